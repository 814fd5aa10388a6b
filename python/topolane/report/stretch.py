"""How many times longer jobs ran than alone: mean, 95th percentile and worst, as marks on a row.

Jobs of one node use no link and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from topolane.units import NOTHING

from .data import Run
from .plot import label, name_rows, panels
from .style import INK, MUTED, SURFACE, series

SIZE = "requested_number_of_resources"
MARKS = "The bar ends at the mean, the upright stroke is the 95th percentile, the circle the worst."
NONE = "No job of a run on a network has more than one node."


@dataclass(frozen=True)
class Spread:
    """Times longer than alone; `high` is the 95th percentile, the lower where it lies between two."""

    mean: float
    high: float
    most: float

    @classmethod
    def of(cls, values: polars.Series) -> Spread | None:
        """None of no values."""
        if values.is_empty():
            return None
        return cls(values.mean(), values.quantile(0.95, "lower"), values.max())

    def __str__(self) -> str:
        return f"{self.mean:.3f} / {self.high:.3f} / {self.most:.3f}"


def networked(runs: Sequence[Run]) -> list[tuple[Run, str, polars.DataFrame]]:
    """The runs on a network with their colours and their jobs of more than one node."""
    return [
        (run, series(index), run.jobs.filter(polars.col(SIZE) > 1))
        for index, run in enumerate(runs)
        if run.network is not None
    ]


def draw_spreads(
    runs: Sequence[tuple[Run, str, polars.DataFrame]], groups: Sequence[tuple[str, Sequence[Spread | None]]]
) -> Figure:
    """A panel per group, a row per run."""
    drawn, axes = panels(len(groups), len(runs))
    longest = max((each.most for _, spreads in groups for each in spreads if each), default=1.0)
    for one, (title, spreads) in zip(axes, groups):
        one.set_title(title)
        for row, (spread, (_, colour, _)) in enumerate(zip(spreads, runs)):
            _mark(one, row, spread, colour)
    room = max(longest - 1.0, 0.01)
    axes[0].set_xlim(1.0 - 0.03 * room, 1.0 + 1.45 * room)
    times_axis(axes[0])
    name_rows(axes[0], [label(run) for run, *_ in runs])
    drawn.supxlabel("times longer than alone", fontsize=9)
    return drawn


def times_axis(axes: Axes) -> None:
    """An axis of stretches: ×1, ×1.05, ×1.1."""
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"×{value:.4g}"))


def table(
    runs: Sequence[tuple[Run, str, polars.DataFrame]], groups: Sequence[tuple[str, Sequence[Spread | None]]]
) -> list[list[str]]:
    """What is drawn: mean, 95 % and worst by run and group."""
    rows = [["run: mean / 95 % / worst", *(title for title, _ in groups)]]
    for row, (run, *_) in enumerate(runs):
        cells = (spreads[row] for _, spreads in groups)
        rows.append([run.label, *(NOTHING if cell is None else str(cell) for cell in cells)])
    return rows


def _mark(axes: Axes, row: int, spread: Spread | None, colour: str) -> None:
    if spread is None:
        axes.text(1.0, row, "no jobs", va="center", color=MUTED, fontsize=8)
        return
    axes.plot([1.0, spread.most], [row, row], color=colour, linewidth=1)
    axes.barh(row, spread.mean - 1.0, left=1.0, height=0.6, color=colour)
    axes.plot([spread.high] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=2)
    axes.plot([spread.most], [row], "o", markersize=4.5, markerfacecolor=SURFACE, markeredgecolor=colour)
    place, text = (spread.most, row), f"{spread.mean:.3f}"
    axes.annotate(text, place, (6, 0), textcoords="offset points", va="center", fontsize=8, color=INK)
