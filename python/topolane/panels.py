"""Places of switches in pictures of machines that are not trees.

A panel is a group of a dragonfly, a plane of a torus or HyperX, or a cube of a pod. Its cells are switches. A report and the live page
draw the same panels.
"""

from __future__ import annotations

import bisect
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topolane._engine import Machine

GRIDS = {"torus": ("torus", "routers"), "HyperX": ("hyperx", "switches")}
"""By wiring: the table of the machine file that has the grid, and the key of its switches."""


@dataclass(frozen=True)
class Panel:
    """A rectangle of cells. The leaf `leaves[i]` is in the cell `cells[i]`, counted row by row from the top left."""

    name: str
    columns: int
    rows: int
    leaves: Sequence[int]
    cells: Sequence[int]


@dataclass(frozen=True)
class SwitchPanels:
    """The panels of a machine."""

    panels: Sequence[Panel] = ()
    """In the order of their switches. Every leaf is in one panel."""
    kind: str = "group"
    """What a panel is: a group, a plane or a cube."""
    block: tuple[int, int] = (0, 0)
    """Columns and rows of a layer, if a panel has several layers: a gap separates these. Otherwise zeros."""


NO_PANELS = SwitchPanels()


def panels_of(machine: Machine) -> SwitchPanels:
    """The panels of a machine; none of a tree."""
    if machine.wiring == "tree":
        return NO_PANELS
    leaves = machine.groups(1)
    groups = machine.groups(min(2, machine.depth))
    if machine.wiring in GRIDS:
        return _of_grid(machine, leaves, groups)
    found, first = [], 0
    starts = [start for start, *_ in leaves]
    for _, end, name in groups:
        own = range(first, bisect.bisect_left(starts, end))
        first = own.stop
        columns = math.ceil(math.sqrt(len(own)))
        found.append(Panel(name, columns, math.ceil(len(own) / columns), own, range(len(own))))
    return SwitchPanels(found)


def _of_grid(
    machine: Machine, leaves: Sequence[tuple[int, int, str]], groups: Sequence[tuple[int, int, str]]
) -> SwitchPanels:
    table, key = GRIDS[machine.wiring]
    text = machine.to("toml")
    grid = tomllib.loads(text)[table]
    sizes: list[int] = grid["dimensions"]
    cube: list[int] = grid.get("cube", [])
    # The switches of a pod are in order cube by cube, those of other grids with the last dimension fastest.
    inside = cube or sizes[-2:]
    places = _places(key, grid, math.prod(sizes), leaves)
    each = math.prod(inside)
    columns, rows = math.prod(inside[-1::-2]), math.prod(inside[-2::-2])
    by_panel: dict[int, list[int]] = {}
    for leaf, place in enumerate(places):
        by_panel.setdefault(place // each, []).append(leaf)
    names = {(start, end): name for start, end, name in groups}
    kind = "cube" if cube else "plane"
    found = []
    for number, own in sorted(by_panel.items()):
        ends = min(leaves[leaf][0] for leaf in own), max(leaves[leaf][1] for leaf in own)
        name = names.get(ends, f"{kind} {number}") if len(by_panel) > 1 else ""
        cells = [
            row * columns + column for column, row in (_cell(places[leaf] % each, inside) for leaf in own)
        ]
        found.append(Panel(name, columns, rows, own, cells))
    return SwitchPanels(found, kind, (inside[-1], inside[-2]) if len(inside) > 2 else (0, 0))


def _places(
    key: str, grid: dict[str, Any], switches: int, leaves: Sequence[tuple[int, int, str]]
) -> Sequence[int]:
    """The number of each leaf among the switches of the grid, of which some may have no nodes."""
    if key not in grid:
        return range(len(leaves))
    # The engine reads the list of names, as the nodes of a machine with one switch.
    site = (
        f'name = "names"\n[[site]]\nname = "names"\nchildren = [{switches}]\nnodes = {_quoted(grid[key])}\n'
    )
    named = Machine.parse(site, key, "toml")
    number = {named.node_name(place): place for place in range(switches)}
    return [number[name] for _, _, name in leaves]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _cell(place: int, sizes: Sequence[int]) -> tuple[int, int]:
    """The column and the row of a place: the last dimension goes across, the one before it down, then across again."""
    at, step = [0, 0], [1, 1]
    for number, size in enumerate(reversed(sizes)):
        at[number % 2] += place % size * step[number % 2]
        step[number % 2] *= size
        place //= size
    return at[0], at[1]
