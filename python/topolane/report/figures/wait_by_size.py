"""Mean wait by job size (SC'18: start minus submission, by size bins)."""

from __future__ import annotations

from collections.abc import Sequence

from topolane.units import NOTHING, duration

from ..bins import merge_bins, nodes_label
from ..data import MachinePicture, ReportedRun
from ..plot import Plot, colours_of, empty, label, panels, share_x
from ..scale import decades, spans_decades, times
from ..style import INK, MUTED

NAME = "wait-by-size"
TITLE = "Mean wait by job size"


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """Bars of the mean wait: a panel per size bin, a row per run."""
    waits = [run.wait_by_size() for run in runs]
    bins = [bounds for bounds in merge_bins(waits) if any(wait.get(bounds) is not None for wait in waits)]
    values = [wait.get(bounds) for wait in waits for bounds in bins]
    wide = spans_decades(values)
    words = "From submission to start, the mean over the jobs of each size. Shorter is better. " + (
        "The waits span orders of magnitude, so the axis is logarithmic beyond one minute: compare the numbers at "
        "the bars, not their lengths."
        if wide
        else "All panels have the same axis."
    )
    if not bins:
        return Plot(NAME, TITLE, words, "No jobs.", empty("No jobs."))

    drawn, axes = panels([nodes_label(bounds) for bounds in bins], [label(run) for run in runs])
    longest = max(value or 0.0 for value in values)
    for one, bounds in zip(axes, bins):
        ends = [wait.get(bounds) or 0.0 for wait in waits]
        one.bars(ends, colours_of(runs))
        for row, wait in enumerate(waits):
            value = wait.get(bounds)
            text = "no jobs" if value is None else duration(value)
            colour = MUTED if value is None else INK
            one.text(value or 0.0, row, text, size=8.0, colour=colour, offset=(4.0, 0.0))
    scale, unit = decades(longest, room=0.74, gap=0.2) if wide else times(max(longest * 1.4, 60.0))
    share_x(axes, scale)
    drawn.x_name = f"mean wait ({unit})"
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
