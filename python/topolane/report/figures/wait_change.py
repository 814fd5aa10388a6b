"""The change of the mean wait by job size: which jobs gain and which lose."""

from __future__ import annotations

from collections.abc import Sequence

from topolane.units import change

from ..axes import Guide
from ..bins import merge_bins, nodes_label
from ..data import MachinePicture, ReportedRun
from ..plot import Plot, empty, label, panels, share_x
from ..scale import decades, spans_decades, times
from ..style import GAIN, INK, LOSS, MUTED

NAME = "wait-change"
TITLE = "Who gains and who loses"


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """Bars of the difference to the first run's mean wait: a panel per size bin, a row per run."""
    first, *others = ((run, run.wait_by_size()) for run in runs)
    bins = [bounds for bounds in merge_bins([first[1]]) if first[1][bounds] is not None]
    changes = [[difference(wait.get(bounds), first[1][bounds]) for bounds in bins] for _, wait in others]
    values = [value for row in changes for value in row]
    wide = spans_decades(values)
    words = (
        f"The mean wait of each size less that under “{first[0].label}”: to the left (blue) jobs of that "
        "size start earlier, to the right (orange) later."
    ) + (" The axis is logarithmic beyond one minute: compare the numbers." if wide else "")
    if not bins or not others:
        reason = "No jobs." if others else "There is one run: nothing to compare it with."
        return Plot(NAME, TITLE, words, reason, empty(reason))

    drawn, axes = panels([nodes_label(bounds) for bounds in bins], [label(run) for run, _ in others])
    for column, one in enumerate(axes):
        ends = [line[column] or 0.0 for line in changes]
        colours = [LOSS if end >= 0 else GAIN for end in ends]
        one.bars(ends, colours)
        one.items.append(Guide(0.0, upright=True, width=0.9))
        for row, value in enumerate(line[column] for line in changes):
            later = (value or 0.0) >= 0
            one.text(
                value or 0.0,
                row,
                "no jobs" if value is None else change(value),
                size=8.0,
                colour=MUTED if value is None else INK,
                anchor="start" if later else "end",
                offset=(4.0 if later else -4.0, 0.0),
            )
    most = max((abs(value) for value in values if value is not None), default=0.0)
    scale, unit = (
        decades(most, room=0.62, gap=0.22, signed=True) if wide else times(max(most * 2, 60.0), signed=True)
    )
    share_x(axes, scale)
    drawn.x_name = f"change of the mean wait ({unit})"
    numbers = [["run", *(nodes_label(bounds) for bounds in bins)]]
    numbers += [[run.label, *(change(value) for value in row)] for (run, _), row in zip(others, changes)]
    alt = f"Change of the mean wait against {first[0].label}. " + " ".join(
        f"{name}: {', '.join(cells)}." for name, *cells in numbers[1:]
    )
    return Plot(NAME, TITLE, words, alt, drawn, numbers=numbers)


def difference(value: float | None, base: float | None) -> float | None:
    """`value` minus `base`; None if either is unknown."""
    return None if value is None or base is None else value - base
