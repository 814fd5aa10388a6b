"""What the figures share: the drawn thing with its words, panels of rows, boxes, and a line for each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars

from topolane.units import clean

from .axes import DASHED, Axes, Spot
from .chart import Entry, Figure
from .data import Run
from .scale import Scale, rows
from .style import INK, MUTED, SURFACE, series

WIDTH = 9.2  # inches, of a figure as wide as the page
TOGETHER = " The grey line in each panel is the first run, to compare with."
QUANTILES = {"low": 0.05, "left": 0.25, "median": 0.5, "right": 0.75, "high": 0.95}


@dataclass(frozen=True)
class Plot:
    """A figure, what it is called, what it shows in plain words, and the text that stands for it.

    `tips` are the hover texts of the parts drawn with that gid; `numbers` a table of what is
    drawn, the first row its heading, open on the page where it has a name.
    """

    name: str
    title: str
    words: str
    alt: str
    figure: Figure
    tips: dict[str, str] = field(default_factory=dict)
    numbers: list[list[str]] = field(default_factory=list)
    numbers_name: str = ""


def label(run: Run) -> str:
    """The name of a run next to its mark."""
    return clean(run.label)


def empty(reason: str) -> Figure:
    """A figure of nothing that says why."""
    blank = Figure(6.0, 1.0)
    (axes,) = blank.grid(1)
    axes.shown = False
    axes.text(0.5, 0.5, reason, size=11.0, colour=MUTED, anchor="middle")
    return blank


def panels(titles: Sequence[str], names: Sequence[str], columns: int = 3) -> tuple[Figure, list[Axes]]:
    """A panel for each title with a row for each name; all have the same rows."""
    columns = min(columns, len(titles))
    lines = math.ceil(len(titles) / columns)
    drawn = Figure(WIDTH, lines * (0.75 + 0.235 * len(names)) + 0.3)
    axes = drawn.grid(lines, columns)
    own_rows = rows(names)
    for position, one in enumerate(axes):
        one.shown = position < len(titles)
        one.title = titles[position] if one.shown else ""
        one.y, one.has_rows = own_rows, True
        one.has_y_labels = position % columns == 0
        one.has_x_labels = position + columns >= len(titles)  # nothing beneath it
    return drawn, axes[: len(titles)]


def share_x(axes: Sequence[Axes], scale: Scale) -> None:
    """Give all panels the same scale."""
    for one in axes:
        one.x = scale


def box_statistics(values: polars.Series) -> dict[str, float] | None:
    """Quartiles, median, mean, and whiskers from the 5th to the 95th percentile."""
    known = values.drop_nulls().drop_nans()
    if known.is_empty():
        return None
    found = {name: known.quantile(share, "linear") for name, share in QUANTILES.items()}
    return found | {"mean": known.mean()}


def boxes(axes: Axes, found: Sequence[tuple[dict[str, float] | None, str]], nothing: str) -> None:
    """Boxes lying on rows, each with its colour: no outliers, the mean as a dot; `nothing` where there are no statistics."""
    for row, (statistics, colour) in enumerate(found):
        if statistics is None:
            axes.text(0.02, row, nothing, size=8.0, colour=MUTED, shares="x")
            continue
        low, left, median, right, high = (statistics[name] for name in QUANTILES)
        axes.boxes([(left, right, row - 0.3, row + 0.3)], colour, opacity=0.45)
        axes.strokes([((low, row), (left, row)), ((right, row), (high, row))], colour, 1.2)
        axes.strokes([((median, row - 0.3), (median, row + 0.3))], INK, 1.6)
        axes.items.append(Spot(statistics["mean"], row, 1.8, SURFACE, INK))


def lines(
    runs: Sequence[Run],
    curves: Sequence[Sequence[tuple[float, float]]],
    height: float,
    together: int,
    columns: int,
    colours: Sequence[str] | None = None,
) -> tuple[Figure, list[Axes]]:
    """One line per run: in one panel up to `together` runs, beyond that a panel each, in `columns`.

    In the panels the first run stays as a grey line to compare with.
    """
    colours = colours or [series(index) for index in range(len(runs))]
    if len(runs) <= together:
        drawn = Figure(WIDTH, height)
        (axes,) = drawn.grid(1)
        dashes = [((), DASHED)[index % 2] for index in range(len(runs))]
        for curve, colour, dash in zip(curves, colours, dashes):
            axes.line(curve, colour, 1.3, dash)
        if len(runs) > 1:
            looks = zip(runs, colours, dashes)
            drawn.legend([Entry(label(run), colour, 1.3, dash) for run, colour, dash in looks], 4, above=True)
        return drawn, [axes]
    high = math.ceil(len(runs) / columns)
    drawn = Figure(WIDTH, 0.5 + high * max(1.15, height * 0.45))
    grid = drawn.grid(high, columns)
    for index, (run, curve, axes) in enumerate(zip(runs, curves, grid)):
        if index:
            axes.line(curves[0], MUTED, 0.9, opacity=0.75)
        axes.line(curve, colours[index], 1.2)
        axes.title = label(run)
        axes.has_y_labels = index % columns == 0
        axes.has_x_labels = index + columns >= len(runs)
    for spare in grid[len(runs) :]:
        spare.shown = False
    return drawn, grid[: len(runs)]
