"""The links of a machine with rails on the picture of the tree: one line per rail, in the rail's colour.

At the foot of the lines, a bar shows which jobs use the links, as the lines do on a machine without rails.
"""

from __future__ import annotations

from collections.abc import Sequence

from .axes import Axes
from .chart import LegendEntry
from .data import MachinePicture
from .style import MUTED, RAILS
from .tree_layout import TreeLayout

HALF = 0.42
"""Half of the width that the lines above a leaf may take, in leaves."""
WIDEST = 22.0  # largest width of a leaf's lines, in points
WIDEST_ABOVE = 13.0  # the same for a larger group, which has a text next to its lines
BAR = 2.3  # distance between the bars of two rails, in points
FOOT = 4.0  # height of the bar that shows which jobs use the links, in points
FIGURE = 640.0  # width of the tree, in points


def colour(rail: int) -> str:
    """The colour of a rail. Colours repeat after eight."""
    return RAILS[rail % len(RAILS)]


def room(picture: MachinePicture, cell_points: float, step: float) -> list[float] | None:
    """The distances between the bars of neighbouring levels, in nodes; None on a machine without rails."""
    if not picture.rails:
        return None
    return [step + _bars(picture, level) * BAR / cell_points for level in range(len(picture.levels) - 1)]


def _bars(picture: MachinePicture, level: int) -> int:
    """The number of bars of a level in addition to the first; leaves have only one."""
    return picture.rails_at(level) - 1 if level else 0


def uplinks(
    axes: Axes,
    layout: TreeLayout,
    picture: MachinePicture,
    level: int,
    groups: Sequence[tuple[int, Sequence[str]]],
    unused: str,
) -> None:
    """Draws the uplinks of a level's groups, each with the colours of the jobs that use them; `unused` is the
    colour of links without a job.
    """
    rails, point = picture.rails_at(level), layout.width / FIGURE
    start = layout.y[level] + (
        0.0 if level == 0 else (_bars(picture, level) + 0.8) * BAR / layout.cell_points
    )
    foot = start + FOOT / layout.cell_points
    above = picture.rails_at(level + 1)
    half = half_of(layout, level)
    feet: dict[str, list[tuple[float, float]]] = {}
    lines: dict[tuple[int, bool], list[tuple[float, float]]] = {}
    for group, colours in groups:
        left = layout.x[level][group] - half
        for place, each in enumerate(colours):
            wide = 2 * half / len(colours)
            feet.setdefault(each, []).append((left + place * wide, left + (place + 1) * wide))
        for rail in range(rails):
            lines.setdefault((rail, colours == [unused]), []).append(
                (left + 2 * half * (rail + 0.5) / rails, foot)
            )
    width = max(0.3, min(1.6, 0.75 * 2 * half / point / rails))
    for (rail, is_unused), feet_of in lines.items():
        end = layout.y[level + 1] + (rail if above > 1 else 0) * BAR / layout.cell_points
        gid, opacity = f"rail-{level}-{rail}{'-unused' if is_unused else ''}", 0.4 if is_unused else 1.0
        axes.strokes([((x, low), (x, end)) for x, low in feet_of], colour(rail), width, gid, opacity)
    for each, spans in feet.items():
        axes.boxes([(left, right, start, foot) for left, right in spans], each)


def half_of(layout: TreeLayout, level: int) -> float:
    """Half of the width that a group's lines may take, in leaves."""
    point = layout.width / FIGURE
    return min(HALF, WIDEST / 2 * point) if level == 0 else WIDEST_ABOVE / 2 * point


def bar(
    axes: Axes, layout: TreeLayout, picture: MachinePicture, level: int, ends: tuple[float, float]
) -> None:
    """Draws the switches of a group: one bar per rail, or a single bar where rails share switches."""
    rails = picture.rails_at(level)
    beyond = min(HALF, half_of(layout, level - 1)) if picture.rails_at(level - 1) > 1 else 0.0
    ends = (ends[0] - beyond, ends[1] + beyond)
    for rail in range(rails):
        y = layout.y[level] + rail * BAR / layout.cell_points
        each, width = (colour(rail), 1.5) if rails > 1 else (MUTED, 3.2)
        axes.strokes([((ends[0], y), (ends[1], y))], each, width, round_ends=rails == 1)


def legend(picture: MachinePicture) -> list[LegendEntry]:
    """A legend entry for each rail."""
    return [LegendEntry(f"rail {rail}", colour(rail), 1.8) for rail in range(max(picture.rails, default=0))]


def tips(picture: MachinePicture) -> dict[str, str]:
    """The hover texts of the lines, by gid."""
    return {
        f"rail-{level}-{rail}{unused}": f"rail {rail}{', no job uses these links' if unused else ''}"
        for level in range(len(picture.levels))
        for rail in range(picture.rails_at(level))
        for unused in ("", "-unused")
    }
