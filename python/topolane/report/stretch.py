"""Run times of jobs divided by their run times alone: mean, 95th percentile and maximum, as marks on a row.

Jobs on one node use no link and are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars

from topolane.units import NOTHING

from .axes import Axes, Spot
from .chart import Figure
from .data import ReportedRun
from .plot import colours_of, label, panels, share_x
from .scale import AxisScale, linear
from .style import MUTED, SURFACE

SIZE = "requested_number_of_resources"
MARKS = "The bar ends at the mean, the upright stroke is the 95th percentile, the circle the worst."
NONE = "No job of a run on a network has more than one node."


@dataclass(frozen=True)
class Spread:
    """Mean, 95th percentile and maximum of run time over run time alone. A percentile between two values is
    the lower one.
    """

    mean: float
    high: float
    most: float

    @classmethod
    def of(cls, values: polars.Series) -> Spread | None:
        """The statistics of these values; None without values."""
        if values.is_empty():
            return None
        return cls(values.mean(), values.quantile(0.95, "lower"), values.max())

    def __str__(self) -> str:
        return f"{self.mean:.3f} / {self.high:.3f} / {self.most:.3f}"


def networked(runs: Sequence[ReportedRun]) -> list[tuple[ReportedRun, str, polars.DataFrame]]:
    """The runs on a network, each with its colour and its jobs on more than one node."""
    return [
        (run, colour, run.jobs.filter(polars.col(SIZE) > 1))
        for run, colour in zip(runs, colours_of(runs))
        if run.network is not None
    ]


def draw_spreads(
    runs: Sequence[tuple[ReportedRun, str, polars.DataFrame]],
    groups: Sequence[tuple[str, Sequence[Spread | None]]],
) -> Figure:
    """A panel per group and a row per run."""
    drawn, axes = panels([title for title, _ in groups], [label(run) for run, *_ in runs])
    longest = max((each.most for _, spreads in groups for each in spreads if each), default=1.0)
    for one, (_, spreads) in zip(axes, groups):
        for row, (spread, (_, colour, _)) in enumerate(zip(spreads, runs)):
            _mark(one, row, spread, colour)
    room = max(longest - 1.0, 0.01)
    share_x(axes, stretches(1.0 - 0.03 * room, 1.0 + 1.45 * room))
    drawn.x_name = "times longer than alone"
    return drawn


def stretches(low: float, high: float) -> AxisScale:
    """A scale for these ratios, with ticks such as ×1, ×1.05, ×1.1."""
    return linear(low, high, "×{:.4g}".format, 4)


def table(
    runs: Sequence[tuple[ReportedRun, str, polars.DataFrame]],
    groups: Sequence[tuple[str, Sequence[Spread | None]]],
) -> list[list[str]]:
    """The drawn values as text: mean, 95th percentile and maximum, by run and group."""
    rows = [["run: mean / 95 % / worst", *(title for title, _ in groups)]]
    for row, (run, *_) in enumerate(runs):
        cells = (spreads[row] for _, spreads in groups)
        rows.append([run.label, *(NOTHING if cell is None else str(cell) for cell in cells)])
    return rows


def _mark(axes: Axes, row: int, spread: Spread | None, colour: str) -> None:
    if spread is None:
        axes.text(1.0, row, "no jobs", size=8.0, colour=MUTED)
        return
    axes.strokes([((1.0, row), (spread.most, row))], colour, 1.0)
    axes.boxes([(1.0, spread.mean, row - 0.3, row + 0.3)], colour)
    axes.strokes([((spread.high, row - 0.3), (spread.high, row + 0.3))], colour, 2.0)
    axes.items.append(Spot(spread.most, row, 2.2, SURFACE, colour))
    axes.text(spread.most, row, f"{spread.mean:.3f}", size=8.0, offset=(6.0, 0.0))
