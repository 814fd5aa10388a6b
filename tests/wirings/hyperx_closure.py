"""Checks isolation on a HyperX from its list of cables alone: nothing here comes from the engine.

A job may use every link on every shortest route between two of its nodes. Parallel cables are one link.
"""

from __future__ import annotations

import itertools
import tomllib
from collections import deque
from collections.abc import Iterable

from closure import Link, hosts


class HyperX:
    """The switches, nodes and cables of a machine in Topolane's own format."""

    def __init__(self, text: str) -> None:
        machine = tomllib.loads(text)
        table, site = machine["hyperx"], machine["site"][0]
        sizes: list[int] = table["dimensions"]
        leaves: dict[str, list[str]] = {}
        if "children" in site:
            nodes = hosts(site["nodes"])
            each = site["children"][0]
            for number in range(len(nodes) // each):
                leaves[f"leaf{number}"] = nodes[number * each : (number + 1) * each]
        for switch in site.get("switch", []):
            if "nodes" in switch:
                leaves[switch["name"]] = hosts(switch["nodes"])
        names = hosts(table["switches"]) if "switches" in table else list(leaves)
        self.switch_of = {node: leaf for leaf, nodes in leaves.items() for node in nodes}
        self.near: dict[str, list[str]] = {name: [] for name in names}
        """The cables: two switches of the grid have one if they differ in one dimension."""
        placed = list(zip(names, itertools.product(*map(range, sizes)), strict=True))
        for (one, place), (other, to) in itertools.permutations(placed, 2):
            if sum(a != b for a, b in zip(place, to, strict=True)) == 1:
                self.near[one].append(other)
        self.far = {name: self._distances(name) for name in names}
        self.ways: dict[Link, frozenset[Link]] = {}

    def _distances(self, start: str) -> dict[str, int]:
        found, waiting = {start: 0}, deque([start])
        while waiting:
            at = waiting.popleft()
            for other in self.near[at]:
                if other not in found:
                    found[other] = found[at] + 1
                    waiting.append(other)
        return found

    def way(self, a: str, b: str) -> frozenset[Link]:
        """The links of all shortest routes from one switch to another."""
        known = self.ways.get((a, b))
        if known is None:
            whole = self.far[a][b]
            known = frozenset(
                (at, other)
                for at, gone in self.far[a].items()
                for other in self.near[at]
                if gone + 1 + self.far[other][b] == whole
            )
            self.ways[a, b] = known
        return known

    def links_of(self, nodes: Iterable[str]) -> set[Link]:
        """All links that a job on these nodes may use."""
        switches = {self.switch_of[node] for node in nodes}
        return set().union(*(self.way(a, b) for a in switches for b in switches))

    def hops(self, a: str, b: str) -> int:
        return self.far[self.switch_of[a]][self.switch_of[b]]
