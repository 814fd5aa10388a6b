"""The tree of a live system at one moment, drawn as in the report of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .data import MachinePicture
from .figures.fat_tree import facts, tree
from .holders import held_by
from .style import drawing
from .svg import to_svg, with_tips

if TYPE_CHECKING:
    from topolane._engine import Machine


@dataclasses.dataclass(frozen=True)
class Holder:
    """A job or a group of servers on its nodes."""

    nodes: Sequence[int]
    name: str
    tip: str
    """What the picture says where the pointer rests on it."""


def svg(
    machine: Machine,
    holders: Mapping[int, Holder],
    *,
    closed: frozenset[int] = frozenset(),
    apart: frozenset[int] = frozenset(),
    title: str = "",
) -> str:
    """The picture as SVG. `closed` nodes get no new jobs; holders `apart` share no link with another one."""
    picture = MachinePicture.of(machine)
    ranges = {key: [(node, node + 1) for node in one.nodes] for key, one in holders.items()}
    state = held_by(ranges, picture, 0.0, closed, apart)
    with drawing():
        drawn = tree(picture, state, {key: one.name for key, one in holders.items()})
        drawn.suptitle(title + facts(picture, state), x=0.01, ha="left", fontsize=9)
        text = to_svg(drawn)
    return with_tips(text, {f"job-{key}": one.tip for key, one in holders.items()})
