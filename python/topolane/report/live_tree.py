"""The machine of a live system at one moment, drawn as in the report of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .data import MachinePicture
from .figures import dragonfly, fat_tree, switches
from .holders import held_by
from .svg import to_svg

if TYPE_CHECKING:
    from topolane._engine import Machine


@dataclasses.dataclass(frozen=True)
class DrawnHolder:
    """The nodes of a job or of a group of servers."""

    nodes: Sequence[int]
    name: str
    tip: str
    """The hover text."""


def svg(
    machine: Machine,
    holders: Mapping[int, DrawnHolder],
    *,
    closed: frozenset[int] = frozenset(),
    apart: frozenset[int] = frozenset(),
    title: str = "",
) -> str:
    """The picture as SVG. `closed` nodes get no new jobs; holders in `apart` share no link with another
    holder.
    """
    picture = MachinePicture.of(machine)
    ranges = {key: [(node, node + 1) for node in one.nodes] for key, one in holders.items()}
    state = held_by(ranges, picture, 0.0, closed, apart)
    names = {key: one.name for key, one in holders.items()}
    if picture.wiring == "tree":
        drawn, facts = fat_tree.tree(picture, state, names), fat_tree.facts(picture, state)
    elif picture.wiring == "dragonfly":
        drawn, facts = dragonfly.dragonfly(picture, state, names), dragonfly.facts(picture, state)
    else:
        drawn, facts = switches.switches(picture, state, names), switches.facts(picture, state)
    # A sentence on each line, because those of a dragonfly are wider than the picture.
    drawn.title = title + (facts if picture.wiring == "tree" else facts.replace(". ", ".\n"))
    return to_svg(drawn, {f"job-{key}": one.tip for key, one in holders.items()})
