"""Checks isolation on a HyperX from its list of cables alone: nothing here comes from the engine.

A job may use every link on every shortest route between two of its nodes. Parallel cables are one link.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable

from closure import Link, ShortestWays, hosts, leaves_of


class HyperX:
    """The switches, nodes and cables of a machine in Topolane's own format."""

    def __init__(self, text: str) -> None:
        machine = tomllib.loads(text)
        table, site = machine["hyperx"], machine["site"][0]
        sizes: list[int] = table["dimensions"]
        leaves = leaves_of(site)
        names = hosts(table["switches"]) if "switches" in table else list(leaves)
        self.switch_of = {node: leaf for leaf, nodes in leaves.items() for node in nodes}
        # Two switches of the grid have a cable if they differ in one dimension.
        near: dict[str, list[str]] = {name: [] for name in names}
        placed = list(zip(names, itertools.product(*map(range, sizes)), strict=True))
        self.place_of = dict(placed)
        for (one, place), (other, to) in itertools.permutations(placed, 2):
            if sum(a != b for a, b in zip(place, to, strict=True)) == 1:
                near[one].append(other)
        self.ways = ShortestWays(near)

    def links_of(self, nodes: Iterable[str]) -> set[Link]:
        """All links that a job on these nodes may use."""
        switches = {self.switch_of[node] for node in nodes}
        return set().union(*(self.ways.links(a, b) for a in switches for b in switches))

    def hops(self, a: str, b: str) -> int:
        return self.ways.far[self.switch_of[a]][self.switch_of[b]]
