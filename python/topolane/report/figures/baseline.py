"""The replay under today's rules next to the recorded starts: utilisation in the course of time, and the waits."""

from __future__ import annotations

import numpy as np
import polars

from topolane.baseline import Baseline
from topolane.units import DAY, HOUR, NOTHING, count, decimal, duration

from ..plot import WIDTH, Plot, decade_axis, figure
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
"""Up to so many hours each is drawn; of a longer time each day."""


def draw(baseline: Baseline) -> Plot:
    """Two panels with a line for the records and one for the replay."""
    hours, step = 1, "hour"
    if len(baseline.utilisation[0]) > MOST_HOURS:
        hours, step = 24, "day"
    drawn = figure(WIDTH, 5.2)
    above, below = drawn.subplots(2, 1)
    waits = [baseline.jobs[name].sort() for name in ("recorded_wait", "replayed_wait")]
    longest = max(float(wait[-1]) for wait in waits)
    for index, (name, held, wait) in enumerate(zip(("recorded", "replayed"), baseline.utilisation, waits)):
        style = {
            "color": INK if index == 0 else series(0),
            "linewidth": 1.3,
            "linestyle": ("-", (0, (5, 1.5)))[index],
        }
        parts = _means(100 * held, hours)
        above.stairs(parts, _edges(baseline, hours, len(parts)), baseline=None, label=name, **style)
        below.plot(*curve(polars.Series(wait), longest * 10), **style)
    drawn.legend(loc="outside upper left", ncols=2, borderaxespad=0)
    above.set_ylim(0, 102)
    above.set_ylabel("nodes in use, %", fontsize=9)
    above.set_xlabel("days since the workload's epoch", fontsize=9)
    below.set_ylim(0, 101)
    below.set_ylabel("% of the jobs", fontsize=9)
    unit = decade_axis(below.xaxis, longest, room=0.96, gap=0.08)
    below.set_xlabel(f"wait ({unit})", fontsize=9)
    numbers = table(baseline)
    alt = f"{baseline.sentence} " + "; ".join(
        f"{what}: mean recorded {recorded}, replayed {replayed}"
        for what, _, recorded, replayed, *_ in numbers[1:]
    )
    return Plot(NAME, TITLE, WORDS.format(step=step), alt, drawn, numbers=numbers, numbers_name="Waits")


def table(baseline: Baseline) -> list[list[str]]:
    """The waits by size and partition, the first row a heading."""
    rows = [
        ["jobs", "number", "mean recorded", "mean replayed", "median recorded", "median replayed",
         "95 % recorded", "95 % replayed", "rank correlation"]
    ]  # fmt: skip
    for waits in baseline.waits:
        pairs = (*waits.mean, *waits.median, *waits.p95)
        rank = NOTHING if waits.rank is None else decimal(waits.rank)
        rows.append([waits.what, count(waits.jobs), *map(duration, pairs), rank])
    return rows


def _means(values: np.ndarray, hours: int) -> np.ndarray:
    """The mean of every so many values."""
    return np.array([values[at : at + hours].mean() for at in range(0, len(values), hours)])


def _edges(baseline: Baseline, hours: int, parts: int) -> np.ndarray:
    edges = baseline.edges[0] + HOUR * hours * np.arange(parts + 1)
    return np.minimum(edges, baseline.edges[-1]) / DAY
