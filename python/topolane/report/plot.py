"""Parts that figures share: the figure with its words, panels of rows, box plots, and a line per run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars

from topolane.units import clean

from .axes import DASHED, Axes, Spot
from .chart import Figure, LegendEntry
from .data import ReportedRun
from .scale import AxisScale, rows
from .style import INK, MUTED, SURFACE, hues

WIDTH = 9.2  # in inches: a figure as wide as the page
TOGETHER = " The grey line in each panel is the first run, to compare with."
QUANTILES = {"low": 0.05, "left": 0.25, "median": 0.5, "right": 0.75, "high": 0.95}


@dataclass(frozen=True)
class Plot:
    """A figure with its title, an explanation, and the alternative text.

    `tips` are the hover texts by gid. `numbers` is a table of the drawn values, with a heading in the first
    row; if it has a name, the page shows it open.
    """

    name: str
    title: str
    words: str
    alt: str
    figure: Figure
    tips: dict[str, str] = field(default_factory=dict)
    numbers: list[list[str]] = field(default_factory=list)
    numbers_name: str = ""


def label(run: ReportedRun) -> str:
    """The name of a run next to its mark."""
    return clean(run.label)


def colours_of(runs: Sequence[ReportedRun]) -> list[str]:
    """The colour of each run. A policy and its variants under an assumed speed-up share a hue."""
    return hues([(run.policy, run.queue, run.network, run.workload, run.machine) for run in runs])


def empty(reason: str) -> Figure:
    """An empty figure that shows the reason."""
    blank = Figure(6.0, 1.0)
    (axes,) = blank.grid(1)
    axes.shown = False
    axes.text(0.5, 0.5, reason, size=11.0, colour=MUTED, anchor="middle")
    return blank


def panels(titles: Sequence[str], names: Sequence[str], columns: int = 3) -> tuple[Figure, list[Axes]]:
    """One panel per title. All panels have the same rows, one per name."""
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
        one.has_x_labels = position + columns >= len(titles)  # no panel is beneath this one
    return drawn, axes[: len(titles)]


def share_x(axes: Sequence[Axes], scale: AxisScale) -> None:
    """Gives all panels the same scale."""
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
    """Draws horizontal box plots, one per row, without outliers and with the mean as a dot. Rows without
    statistics show the text `nothing`.
    """
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
    runs: Sequence[ReportedRun],
    curves: Sequence[Sequence[tuple[float, float]]],
    height: float,
    together: int,
    columns: int,
    colours: Sequence[str] | None = None,
) -> tuple[Figure, list[Axes]]:
    """Draws one line per run: all in one panel for up to `together` runs, otherwise in a panel each, in
    `columns`.

    With several panels, each shows the first run as a grey line for comparison.
    """
    colours = colours or colours_of(runs)
    if len(runs) <= together:
        drawn = Figure(WIDTH, height)
        (axes,) = drawn.grid(1)
        dashes = [((), DASHED)[index % 2] for index in range(len(runs))]
        for curve, colour, dash in zip(curves, colours, dashes):
            axes.line(curve, colour, 1.3, dash)
        if len(runs) > 1:
            looks = zip(runs, colours, dashes)
            drawn.legend(
                [LegendEntry(label(run), colour, 1.3, dash) for run, colour, dash in looks], 4, above=True
            )
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
