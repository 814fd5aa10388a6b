"""The replay under today's rules compared with the recorded starts: utilisation over time, and waits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars

from topolane.baseline import Baseline
from topolane.units import DAY, HOUR, NOTHING, count, decimal, duration

from ..axes import DASHED
from ..chart import Figure, LegendEntry
from ..marks import Point
from ..plot import WIDTH, Plot
from ..scale import WHOLE, decades, linear
from ..style import INK, series
from .wait_cdf import curve

NAME = "baseline"
SECTION = "The replay next to the records"
TITLE = "Utilisation and waits, recorded and replayed"
WORDS = (
    "Above, the share of the nodes that jobs hold, {step} by {step}. Below, the share of the jobs that waited at most so "
    "long. The closer the two lines, the more a replay of this log says about the machine. The axis of the wait is "
    "logarithmic beyond one minute."
)
MOST_HOURS = 24 * 14
"""Up to this number of hours each hour is drawn; for longer times each day."""
FEW_HOURS = 48
"""Up to this number of hours the axis is in hours, otherwise in days."""


def draw(baseline: Baseline) -> Plot:
    """Two panels with a line for the records and one for the replay."""
    hours, step = 1, "hour"
    if len(baseline.utilisation[0]) > MOST_HOURS:
        hours, step = 24, "day"
    unit = "hours" if len(baseline.utilisation[0]) <= FEW_HOURS else "days"
    drawn = Figure(WIDTH, 5.2)
    above, below = drawn.grid(2)
    waits = [baseline.jobs[name].sort() for name in ("recorded_wait", "replayed_wait")]
    longest = max(float(wait[-1]) for wait in waits)
    entries = [LegendEntry("recorded", INK, 1.3), LegendEntry("replayed", series(0), 1.3, DASHED)]
    edges = _edges(baseline, hours, HOUR if unit == "hours" else DAY)
    for entry, held, wait in zip(entries, baseline.utilisation, waits):
        above.line(_steps(_means(100 * held, hours), edges), entry.colour, entry.width, entry.dash)
        below.line(curve(polars.Series(wait), longest * 10), entry.colour, entry.width, entry.dash)
    drawn.legend(entries, 2, above=True)
    above.x, above.y = linear(edges[0], edges[-1], most=9), linear(0.0, 102.0, most=6, steps=WHOLE)
    above.x_name, above.y_name = f"{unit} since second 0 of the log", "nodes in use, %"
    below.x, shown = decades(longest, room=0.96, gap=0.08)
    below.y = linear(0.0, 101.0, most=6, steps=WHOLE)
    below.x_name, below.y_name = f"wait ({shown})", "% of the jobs"
    numbers = table(baseline)
    alt = f"{baseline.sentence} " + "; ".join(
        f"{what}: mean recorded {recorded}, replayed {replayed}"
        for what, _, recorded, replayed, *_ in numbers[1:]
    )
    return Plot(NAME, TITLE, WORDS.format(step=step), alt, drawn, numbers=numbers, numbers_name="Waits")


def table(baseline: Baseline) -> list[list[str]]:
    """The waits by size and partition; the first row is the heading."""
    rows = [
        ["jobs", "number", "mean recorded", "mean replayed", "median recorded", "median replayed",
         "95 % recorded", "95 % replayed", "rank correlation"]
    ]  # fmt: skip
    for waits in baseline.waits:
        pairs = (*waits.mean, *waits.median, *waits.p95)
        rank = NOTHING if waits.rank is None else decimal(waits.rank)
        rows.append([waits.what, count(waits.jobs), *map(duration, pairs), rank])
    return rows


def _means(values: np.ndarray, hours: int) -> list[float]:
    """The mean of each block of `hours` values."""
    return [float(values[at : at + hours].mean()) for at in range(0, len(values), hours)]


def _edges(baseline: Baseline, hours: int, unit: float) -> list[float]:
    """The start of each period of `hours` hours, and the end of the last one, in units of `unit` seconds."""
    parts = -(-len(baseline.utilisation[0]) // hours)
    edges = baseline.edges[0] + HOUR * hours * np.arange(parts + 1)
    return [float(edge) for edge in np.minimum(edges, baseline.edges[-1]) / unit]


def _steps(values: Sequence[float], edges: Sequence[float]) -> list[Point]:
    """A step line: each value holds from one edge to the next."""
    return [
        point
        for value, ends in zip(values, pairwise(edges))
        for point in ((ends[0], value), (ends[1], value))
    ]
