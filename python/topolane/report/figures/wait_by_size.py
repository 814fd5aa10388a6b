"""Mean wait by job size (SC'18: start less submission, by size bins)."""

from __future__ import annotations

from collections.abc import Sequence

from topolane.units import NOTHING, duration

from ..bins import merge_bins, nodes_label
from ..data import MachinePicture, Run
from ..plot import Plot, decade_axis, empty, label, name_rows, panels, plain_time, spans_decades
from ..style import INK, MUTED, series

NAME = "wait-by-size"
TITLE = "Mean wait by job size"


def draw(runs: Sequence[Run], picture: MachinePicture) -> Plot:
    """Bars of the mean wait: a panel per size bin, a row per run."""
    waits = [run.wait_by_size() for run in runs]
    bins = [bounds for bounds in merge_bins(waits) if any(wait.get(bounds) is not None for wait in waits)]
    values = [wait.get(bounds) for wait in waits for bounds in bins]
    wide = spans_decades(values)
    words = "From submission to start, the mean over the jobs of each size. Shorter is better. " + (
        "The waits differ so much that the axis is logarithmic beyond one minute: compare the numbers at "
        "the bars, not their lengths."
        if wide
        else "All panels have the same axis."
    )
    if not bins:
        return Plot(NAME, TITLE, words, "No jobs.", empty("No jobs."))

    drawn, axes = panels(len(bins), len(runs))
    longest = max(value or 0.0 for value in values)
    for one, bounds in zip(axes, bins):
        one.set_title(nodes_label(bounds))
        ends = [wait.get(bounds) or 0.0 for wait in waits]
        one.barh(range(len(runs)), ends, height=0.66, color=[series(row) for row in range(len(runs))])
        for row, wait in enumerate(waits):
            value = wait.get(bounds)
            one.annotate(
                "no jobs" if value is None else duration(value), (value or 0.0, row), xytext=(4, 0),
                textcoords="offset points", va="center", fontsize=8, color=MUTED if value is None else INK,
            )  # fmt: skip
    axis = axes[0].xaxis
    unit = (
        decade_axis(axis, longest, room=0.74, gap=0.2) if wide else plain_time(axis, max(longest * 1.4, 60.0))
    )
    name_rows(axes[0], [label(run) for run in runs])
    drawn.supxlabel(f"mean wait ({unit})", fontsize=9)
    numbers = [["run", *(nodes_label(bounds) for bounds in bins)]]
    numbers += [
        [
            run.label,
            *(duration(wait.get(bounds)) if wait.get(bounds) is not None else NOTHING for bounds in bins),
        ]
        for run, wait in zip(runs, waits)
    ]
    alt = " ".join(f"{name}: {', '.join(cells)}." for name, *cells in numbers[1:])
    return Plot(NAME, TITLE, words, "Mean wait by job size. " + alt, drawn, numbers=numbers)
