"""What every figure shares: the drawn thing with its words, panels, and axes of time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from topolane.units import HOUR, MINUTE, clean

from .data import Run, finite
from .layout import Grid
from .style import INK, MUTED, SURFACE, series

WIDTH = 9.2  # inches, of a figure as wide as the page
DECADES = (MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, 100 * HOUR, 1000 * HOUR, 10000 * HOUR, 100000 * HOUR)

LINEAR = 0.6  # the first minute of a logarithmic axis takes as much room as this part of a decade


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


def figure(width: float, height: float) -> Figure:
    """A blank figure in inches, its parts kept from overlapping."""
    return Figure(figsize=(width, height), layout=Grid())


def label(run: Run) -> str:
    """The name of a run beside its mark."""
    return clean(run.label)


def empty(reason: str) -> Figure:
    """A figure of nothing that says why."""
    blank = figure(6.0, 1.0)
    axes = blank.add_subplot()
    axes.set_axis_off()
    axes.text(0.5, 0.5, reason, ha="center", va="center", color=MUTED, fontsize=11)
    return blank


def panels(count: int, rows: int, columns: int = 3, *, extra: float = 0.75) -> tuple[Figure, list[Axes]]:
    """`count` panels of `rows` labelled rows each, sharing both axes; the rows go downward."""
    columns = min(columns, count)
    lines = math.ceil(count / columns)
    drawn = figure(WIDTH, lines * (extra + 0.235 * rows) + 0.3)
    grid = drawn.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.set_axis_off()
    for position, one in enumerate(axes[:count]):
        one.grid(axis="y", visible=False)
        one.tick_params(axis="y", length=0)
        one.yaxis.set_visible(position % columns == 0)
        if position + columns >= count:  # nothing beneath it
            one.tick_params(axis="x", labelbottom=True)
    axes[0].set_ylim(rows - 0.4, -0.6)
    return drawn, axes[:count]


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write the runs' names on the rows."""
    axes.set_yticks(range(len(names)), list(names))


def box_statistics(values: NDArray[numpy.float64]) -> dict[str, float] | None:
    """Quartiles, median, mean, and whiskers from the 5th to the 95th percentile."""
    known = values[~numpy.isnan(values)]
    if not len(known):
        return None
    quantiles = numpy.quantile(known, (0.05, 0.25, 0.5, 0.75, 0.95))
    return dict(zip(("whislo", "q1", "med", "q3", "whishi"), quantiles.tolist())) | {
        "mean": float(known.mean())
    }


def boxes(axes: Axes, rows: Sequence[tuple[dict[str, float] | None, str]], nothing: str) -> None:
    """Boxes lying on rows, each with its colour: no outliers, the mean as a dot; `nothing` where there are no statistics.

    All medians are one path and all means one line: `Axes.bxp` takes several times as long.
    """
    medians, means = [], []
    for row, (statistics, colour) in enumerate(rows):
        if statistics is None:
            place = axes.get_yaxis_transform()
            axes.text(0.02, row, nothing, transform=place, va="center", color=MUTED, fontsize=8)
            continue
        low, left, median, right, high = (statistics[key] for key in ("whislo", "q1", "med", "q3", "whishi"))
        face = Rectangle((left, row - 0.3), right - left, 0.6, facecolor=colour, edgecolor=colour, alpha=0.45)
        axes.add_artist(face)
        axes.add_artist(strokes([((low, row), (left, row)), ((right, row), (high, row))], colour, 1.2))
        medians.append(((median, row - 0.3), (median, row + 0.3)))
        means.append((statistics["mean"], row))
    if means:
        axes.add_artist(strokes(medians, INK, 1.6))
        dots = {"marker": "o", "markersize": 3.6, "markerfacecolor": SURFACE, "markeredgecolor": INK}
        axes.add_artist(Line2D(*zip(*means), linestyle="", **dots))


Stroke = Sequence[tuple[float, float]]


def strokes(segments: Sequence[Stroke], colour: str, width: float) -> PathPatch:
    """Many lines of one kind as one path: a large machine has thousands.

    As an artist (`Axes.add_artist`) it leaves the limits of the axes alone, which `Axes.add_patch` computes anew each time.
    """
    points = [point for ends in segments for point in ends] or [(0.0, 0.0)]
    codes = [Path.MOVETO, Path.LINETO] * len(segments) or [Path.MOVETO]
    return PathPatch(
        Path(points, codes), facecolor="none", edgecolor=colour, linewidth=width, capstyle="butt"
    )


def spans_decades(values: Iterable[float | None], ratio: float = 50.0) -> bool:
    """True when the sizes differ so much that a linear axis would hide the small ones."""
    sizes = [abs(value) for value in values if finite(value) and abs(value) >= 1.0]
    return bool(sizes) and max(sizes) >= MINUTE and max(sizes) / min(sizes) > ratio


def decade_axis(axis: Axis, largest: float, *, room: float, gap: float, signed: bool = False) -> str:
    """An axis of seconds, linear up to a minute and logarithmic beyond it; its unit in words.

    `largest` lies at `room` of the way to the end; ticks are at least `gap` of the axis apart.
    """
    end = _place(max(largest, 2 * MINUTE)) / room
    top = MINUTE * 10 ** (end - LINEAR)
    length = 2 * end if signed else end
    ticks = [0.0]
    for tick in DECADES:
        if tick <= top and _place(tick) - _place(ticks[-1]) >= gap * length:
            ticks.append(tick)
    both = sorted({-tick for tick in ticks} | set(ticks)) if signed else ticks
    _set(axis, "scale", "symlog", linthresh=MINUTE, linscale=LINEAR * 0.9)
    axis.set_major_locator(FixedLocator(both))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, signed)))
    _set(axis, "lim", -top if signed else 0, top)
    return "logarithmic beyond 1 min"


def _place(seconds: float) -> float:
    """Where a time lies on that axis, in decades from 0."""
    return LINEAR * seconds / MINUTE if seconds < MINUTE else LINEAR + math.log10(seconds / MINUTE)


def _tick(seconds: float, signed: bool) -> str:
    size = abs(seconds)
    if size == 0:
        return "0"
    text = f"{size / MINUTE:.0f} min" if size < HOUR else f"{size / HOUR:,.0f} h"
    return ("−" if seconds < 0 else "+") + text if signed else text


def plain_time(axis: Axis, largest: float, *, signed: bool = False) -> str:
    """A linear axis of seconds with its ticks in hours, minutes or seconds; which, in words."""
    units = ((HOUR, "hours"), (MINUTE, "minutes"), (1.0, "seconds"))
    unit, word = next((pair for pair in units if largest >= 2 * pair[0]), units[-1])
    steps = MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10])
    ticks = steps.tick_values(-largest / unit if signed else 0, max(largest, 1.0) / unit) * unit
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value / unit, signed)))
    _set(axis, "lim", -largest if signed else 0, largest)
    return word


def _set(axis: Axis, what: str, *arguments: float | str, **options: float) -> None:
    getattr(axis.axes, f"set_{axis.axis_name}{what}")(*arguments, **options)


def _plain(value: float, signed: bool) -> str:
    text = f"{abs(value):,.0f}" if abs(value) >= 1000 else f"{abs(value):.3g}"
    return ("−" if value < 0 else "+" if signed and value > 0 else "") + text


def thousands(axis) -> None:
    """Thousands separators on an axis of counts."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


TOGETHER = " The grey line in each panel is the first run, to compare with."


def lines(
    runs: Sequence[Run],
    curves: Sequence[tuple[Sequence[float], Sequence[float]]],
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
        drawn = figure(WIDTH, height)
        axes = drawn.add_subplot()
        for index, (run, (x, y)) in enumerate(zip(runs, curves)):
            axes.plot(
                x,
                y,
                color=colours[index],
                linewidth=1.3,
                label=label(run),
                linestyle=("-", (0, (5, 1.5)))[index % 2],
            )
        if len(runs) > 1:
            drawn.legend(loc="outside upper left", ncols=min(len(runs), 3), borderaxespad=0)
        return drawn, [axes]
    rows = math.ceil(len(runs) / columns)
    drawn = figure(WIDTH, 0.5 + rows * max(1.15, height * 0.45))
    grid = list(drawn.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for spare in grid[len(runs) :]:
        spare.set_axis_off()
    for index, (run, (x, y), axes) in enumerate(zip(runs, curves, grid)):
        if index:
            axes.plot(*curves[0], color=MUTED, linewidth=0.9, alpha=0.75)
        axes.plot(x, y, color=colours[index], linewidth=1.2)
        axes.set_title(label(run), fontsize=8.5)
        if index + columns >= len(runs):
            axes.tick_params(axis="x", labelbottom=True)
    return drawn, grid[: len(runs)]
