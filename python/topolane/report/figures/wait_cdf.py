"""The distribution of the waits."""

from __future__ import annotations

from collections.abc import Sequence

import polars

from topolane.units import duration, percent

from ..data import MachinePicture, ReportedRun
from ..plot import TOGETHER, Plot, empty, lines, share_x
from ..scale import WHOLE, decades, linear

NAME = "wait-distribution"
TITLE = "How long jobs wait"
WORDS = (
    "The share of the jobs (upward) that waited at most so long (to the right); where a line leaves the "
    "left edge is the share that did not wait at all. Higher is better. The axis of the wait is "
    "logarithmic beyond one minute."
)
POINTS = 400
OVERLAID = 4  # runs per panel


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """Cumulative distributions of the wait, in per cent of the jobs."""
    words = WORDS + (TOGETHER if len(runs) > OVERLAID else "")
    waits = [run.jobs["waiting_time"].drop_nulls().drop_nans().sort() for run in runs]
    if all(wait.is_empty() for wait in waits):
        return Plot(NAME, TITLE, words, "No jobs.", empty("No jobs."))
    longest = max(wait.max() or 0.0 for wait in waits)
    drawn, axes = lines(
        runs, [curve(wait, longest * 10) for wait in waits], 3.2, OVERLAID, 2 if len(runs) <= 8 else 3
    )
    least = min(100 * (wait < 1.0).mean() for wait in waits if not wait.is_empty())
    shares = linear(max(0.0, 10 * (least // 10) - 10) if least > 40 else 0.0, 101.0, most=6, steps=WHOLE)
    for one in axes:
        one.y = shares
    scale, unit = decades(longest, room=0.96, gap=0.08 if len(axes) == 1 else 0.2)
    share_x(axes, scale)
    drawn.x_name, drawn.y_name = f"wait ({unit})", "% of the jobs"
    numbers = [["run", "did not wait", "median", "95th percentile", "longest"]]
    for run, wait in zip(runs, waits):
        still = None if wait.is_empty() else (wait < 1.0).mean()
        points = [wait.quantile(q, "linear") for q in (0.5, 0.95, 1.0)]
        numbers.append([run.label, percent(still), *(duration(point) for point in points)])
    alt = "; ".join(
        f"{name}: {still} did not wait, median {median}, 95th percentile {high}"
        for name, still, median, high, _ in numbers[1:]
    )
    return Plot(NAME, TITLE, words, alt, drawn, numbers=numbers)


def curve(wait: polars.Series, end: float) -> list[tuple[float, float]]:
    """At most `POINTS` points of the distribution of the sorted `wait`, continued up to `end`."""
    if wait.is_empty():
        return []
    places = sorted({round(i * (wait.len() - 1) / (POINTS - 1)) for i in range(POINTS)})
    x = wait.gather(places).to_list()
    shares = (100 * (place + 1) / wait.len() for place in places)
    return [(x[0], 0.0), *zip(x, shares), (end, 100.0)]
