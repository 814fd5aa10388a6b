"""Positions of the parts of a tree: leaves side by side, wrapped into rows of whole pods.

The horizontal unit is a leaf, the vertical unit a node. The nodes of a leaf hang down from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from .data import MachinePicture

ROW_LEAVES = 150  # then a leaf is about 4 points wide
GAP = 1.4  # distance between pods, in leaves


@dataclass(frozen=True)
class TreeRow:
    """The groups of each level within one row; `leaves` has those of the lowest level."""

    groups: list[list[int]]

    @property
    def leaves(self) -> list[int]:
        """The leaves of this row."""
        return self.groups[0]


@dataclass(frozen=True)
class TreeLayout:
    """Positions by [level][group], with the same scale in each row."""

    rows: list[TreeRow]
    x: list[list[float]]  # the middle of each group
    spans: list[list[tuple[float, float]]]  # the middles of each group's first and last leaf
    y: list[float]  # height of each level's bar; the last is the core's
    width: float
    top: float
    bottom: float
    margin: float
    row_height: float  # inches
    cell_points: float  # height of a node's cell
    named: bool  # whether pods are wide enough for their names


def lay_out(picture: MachinePicture, between: Sequence[float] | None = None) -> TreeLayout:
    """Wrap the groups under the top level into rows of at most `ROW_LEAVES` leaves.

    `between` has the distances between the bars of neighbouring levels, in nodes; the default suits plain
    lines.
    """
    levels = picture.levels
    upper = max(len(levels) - 2, 0)
    leaf_at = {group.start: index for index, group in enumerate(levels[0])}
    place: list[float] = [0.0] * len(levels[0])
    row_of: list[int] = [0] * len(levels[0])
    row, x, width = 0, 0.0, 1.0
    members = _members(picture, upper, leaf_at)
    for leaves in members:
        gap = GAP if upper else 0.0
        if x and x + len(leaves) > ROW_LEAVES:
            row, x = row + 1, 0.0
        for leaf in leaves:
            place[leaf], row_of[leaf], x = x, row, x + 1
        width, x = max(width, x), x + gap

    spans = []
    for level in range(len(levels)):
        spans.append([(place[leaves[0]], place[leaves[-1]]) for leaves in _members(picture, level, leaf_at)])
    rows = [TreeRow([[] for _ in levels]) for _ in range(row + 1)]
    for level in range(upper + 1):
        for group, leaves in enumerate(_members(picture, level, leaf_at)):
            rows[row_of[leaves[0]]].groups[level].append(group)

    tall = picture.leaf
    step = max(4.0, 0.42 * tall)
    y = [0.0, *accumulate(between or [step] * (len(levels) - 1))]
    cell_points = min(9.0, max(3.0, 150.0 / tall))
    bottom = -tall - (2.6 * 9.0 / cell_points if upper else 1)
    top = y[-1] + 0.12 * tall + 0.5
    return TreeLayout(
        rows=rows,
        x=[[(first + last) / 2 for first, last in level] for level in spans],
        spans=spans,
        y=y,
        width=width,
        top=top,
        bottom=bottom,
        margin=0.07 * width,
        row_height=(top - bottom) * cell_points / 72,
        cell_points=cell_points,
        named=min(len(leaves) for leaves in members) / width > 0.06,
    )


def _members(picture: MachinePicture, level: int, leaf_at: dict[int, int]) -> list[list[int]]:
    """The leaves of each group of `level`, in order."""
    starts = sorted(leaf_at)
    position = {start: place for place, start in enumerate(starts)}
    position[picture.nodes] = len(starts)
    return [
        [leaf_at[start] for start in starts[position[group.start] : position[group.end]]]
        for group in picture.levels[level]
    ]
