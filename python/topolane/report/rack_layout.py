"""Positions of the racks on a machine's floor plan: side by side, in lines of whole pods.

All lengths are points of the figure, with `y` downward from the top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from .data import MachinePicture
from .gpus import Rack

WIDTH = 670.0
TALLEST = 520.0
WIDTHS = (15.0, 12.0, 10.0, 8.0, 7.0, 6.0, 5.0, 4.2, 3.6, 3.0, 2.5, 2.0, 1.6, 1.2, 0.9, 0.6, 0.4)
"""The widths that a GPU's cell may have."""
FLATNESS = 0.85  # height of a cell as a part of its width
MOST_ROWS = 36  # nodes per column; a larger leaf has several columns
NAMED = 36.0  # least width of a rack or pod that shows its name
BETWEEN = 1.2  # distance between racks, in cells
BETWEEN_PODS = 1.6  # additional distance between pods, in cells


@dataclass(frozen=True)
class Column:
    """A column of nodes: a rack, or a part of a large leaf."""

    rack: int
    nodes: Sequence[int]
    gpus: int  # the most GPUs of a node
    x: float
    y: float


@dataclass(frozen=True)
class RackLayout:
    """The columns of all racks, and the names of pods as (name, x, y)."""

    columns: list[Column]
    pods: list[tuple[str, float, float]]
    cell: tuple[float, float]  # width and height of a GPU's cell
    height: float
    named: bool  # whether racks are wide enough for their names


Part = tuple[int, Sequence[int], int]
"""The rack, its nodes with GPUs, and the most GPUs of a node."""


def lay_out(racks: Sequence[Rack], picture: MachinePicture) -> RackLayout:
    """The layout with the largest cells with which all racks fit on the figure."""
    pods = _pods(racks, picture)
    found = _placed(pods, WIDTHS[-1])
    for width in WIDTHS:
        found = _placed(pods, width)
        widest = max((column.x + column.gpus * width for column in found.columns), default=0.0)
        if found.height <= TALLEST and widest <= WIDTH:
            break
    return found


def _pods(racks: Sequence[Rack], picture: MachinePicture) -> list[tuple[str, list[Part]]]:
    """The columns of each second-level group; on a machine with two levels, one group with all columns."""
    groups = picture.levels[1] if len(picture.levels) > 2 else ()

    def pod_of(index: int) -> str:
        first = racks[index].nodes[0]
        return next((group.name for group in groups if group.start <= first < group.end), "")

    return [
        (name, [part for index in members for part in _columns(index, racks[index], picture)])
        for name, members in groupby(range(len(racks)), key=pod_of)
    ]


def _columns(index: int, rack: Rack, picture: MachinePicture) -> Iterator[Part]:
    gpus = {node: picture.resources[node].get("gpu", 0) for node in rack.nodes}
    nodes = [node for node in rack.nodes if gpus[node]]
    if not nodes:
        return
    rows = -(-len(nodes) // -(-len(nodes) // MOST_ROWS))
    for start in range(0, len(nodes), rows):
        part = nodes[start : start + rows]
        yield index, part, max(gpus[node] for node in part)


def _placed(pods: Sequence[tuple[str, list[Part]]], width: float) -> RackLayout:
    height = FLATNESS * width
    narrowest = min((gpus for _, parts in pods for *_, gpus in parts), default=0)
    named = narrowest * width >= NAMED
    titles = len(pods) > 1 and all(_across(parts, width) >= NAMED for _, parts in pods)
    above, below = (11.0 if titles else 0.0), (12.0 if named else 2.5 * height + 2.0)
    x, y, tallest = 0.0, above, 0.0
    columns: list[Column] = []
    names: list[tuple[str, float, float]] = []
    for name, parts in pods:
        if x and x + _across(parts, width) > WIDTH:
            x, y, tallest = 0.0, y + tallest + below + above, 0.0
        if titles:
            names.append((name, x, y - 3.0))
        for rack, nodes, gpus in parts:
            if x and x + gpus * width > WIDTH:
                x, y, tallest = 0.0, y + tallest + below, 0.0
            columns.append(Column(rack, nodes, gpus, x, y))
            x, tallest = x + (gpus + BETWEEN) * width, max(tallest, len(nodes) * height)
        x += BETWEEN_PODS * width
    return RackLayout(columns, names, (width, height), y + tallest + below, named)


def _across(parts: Sequence[Part], width: float) -> float:
    return sum(gpus + BETWEEN for *_, gpus in parts) * width - BETWEEN * width
