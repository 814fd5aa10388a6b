"""The tree of a live system at one moment, drawn as in the report of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .data import MachinePicture
from .figures.fat_tree import facts, tree
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
    drawn = tree(picture, state, {key: one.name for key, one in holders.items()})
    drawn.title = title + facts(picture, state)
    return to_svg(drawn, {f"job-{key}": one.tip for key, one in holders.items()})
