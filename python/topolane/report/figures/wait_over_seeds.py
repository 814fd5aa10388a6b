"""Mean waits over several seeds, with confidence intervals, a panel per load."""

from __future__ import annotations

from collections.abc import Sequence

from topolane.sweep.seeds import SeedsRow, text
from topolane.units import HOUR, clean

from ..axes import Spot
from ..plot import Plot, panels
from ..scale import linear
from ..style import INK

NAME = "wait-over-seeds"
TITLE = "Mean wait over seeds"
WORDS = "A dot is the mean over the seeds in hours, a line its confidence interval. A panel is a load of the machine."


def draw(rows: Sequence[SeedsRow]) -> Plot:
    """A dot with its interval for each rule, the first rule on top."""
    loads, names = (list(dict.fromkeys(each)) for each in zip(*((row.load, row.label) for row in rows)))
    titles = ["" if load is None else f"load {load:g}" for load in loads]
    drawn, axes = panels(titles, [clean(name) for name in names])
    known = [(row, row.figures["mean_wait"]) for row in rows]
    ends = [(wait.mean - (wait.half or 0.0), wait.mean + (wait.half or 0.0)) for _, wait in known if wait]
    low, high = (
        min((end for end, _ in ends), default=0.0) / HOUR,
        max((end for _, end in ends), default=0.0) / HOUR,
    )
    room = 0.05 * (high - low) or max(0.05 * high, 0.01)
    for axis, load in zip(axes, loads):
        for row, wait in known:
            if row.load == load and wait is not None:
                y, half = names.index(row.label), (wait.half or 0.0) / HOUR
                left, right = wait.mean / HOUR - half, wait.mean / HOUR + half
                caps = [((end, y - 0.12), (end, y + 0.12)) for end in (left, right)]
                axis.strokes([((left, y), (right, y)), *caps], INK, 1.3)
                axis.items.append(Spot(wait.mean / HOUR, y, 2.0, INK, INK))
        axis.x, axis.x_name = linear(low - room, high + room), "hours"
    numbers = [["rule, load", "mean wait (h)"]]
    numbers += [
        [
            row.label if row.load is None else f"{row.label}, {row.load:g}",
            text(row.figures["mean_wait"], ",.2f", HOUR),
        ]
        for row in rows
    ]
    alt = "Mean wait in hours. " + " ".join(f"{name}: {wait}." for name, wait in numbers[1:])
    return Plot(NAME, TITLE, WORDS, alt, drawn, numbers=numbers)
