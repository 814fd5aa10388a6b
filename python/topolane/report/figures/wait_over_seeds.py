"""Mean waits over seeds with their confidence intervals, a panel for each load."""

from __future__ import annotations

from collections.abc import Sequence

from topolane.sweep.seeds import Row, text
from topolane.units import HOUR, clean

from ..plot import Plot, name_rows, panels
from ..style import INK

NAME = "wait-over-seeds"
TITLE = "Mean wait over seeds"
WORDS = "A dot is the mean over the seeds in hours, a line its confidence interval. A panel is a load of the machine."


def draw(rows: Sequence[Row]) -> Plot:
    """The dots, from the first rule downward."""
    loads, names = (list(dict.fromkeys(each)) for each in zip(*((row.load, row.label) for row in rows)))
    drawn, axes = panels(len(loads), len(names))
    for axis, load in zip(axes, loads):
        if load is not None:
            axis.set_title(f"load {load:g}")
        for row in (row for row in rows if row.load == load):
            wait = row.figures["mean_wait"]
            if wait is None:
                continue
            axis.errorbar(
                wait.mean / HOUR,
                names.index(row.label),
                xerr=None if wait.half is None else wait.half / HOUR,
                fmt="o",
                color=INK,
                markersize=4,
                capsize=2,
            )
        axis.set_xlabel("hours")
    name_rows(axes[0], [clean(name) for name in names])
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
