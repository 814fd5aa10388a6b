"""Checks isolation on a torus from the table `[torus]` of its machine file alone: nothing here comes from the engine.

A message goes to its place in the first dimension, router by router, then in the second, and so on; in a ring the shorter
way, or either if both are equally short. A job may use every link of every message between two of its nodes.

In a pod, messages of a job in one cube stay in it. Optical switches join the cubes of a job in several. If its nodes are in
boxes of one cross-section that follow each other along one dimension, only the first and the last being less than a cube
deep, it has these boxes, with all their links and the ports on the faces along the chain. Otherwise it has all links and
ports of its cubes. A port is a link of its own here: from its router to a face.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Iterable, Sequence

from closure import hosts, leaves_of

Router = tuple[int, ...]
Link = tuple[object, object]
"""From one router to another, or from a router to a face of its cube."""


class Torus:
    """The routers, nodes and cables of a machine in Topolane's own format."""

    def __init__(self, text: str) -> None:
        machine = tomllib.loads(text)
        table, site = machine["torus"], machine["site"][0]
        self.sizes: list[int] = table["dimensions"]
        self.wrap: list[bool] = table.get("wrap", [True] * len(self.sizes))
        self.cube: list[int] = table.get("cube", [])
        leaves = leaves_of(site)
        names = hosts(table["routers"]) if "routers" in table else list(leaves)
        places = dict(zip(names, self._places(), strict=True))
        self.router_of = {node: places[leaf] for leaf, nodes in leaves.items() for node in nodes}
        self.ways: dict[tuple[Router, Router], frozenset[Link]] = {}

    def _places(self) -> Iterable[Router]:
        """The routers in the order of their names: cube by cube, the last dimension fastest."""
        sides = self.cube or self.sizes
        cubes = [range(size // side) for size, side in zip(self.sizes, sides, strict=True)]
        for cube in itertools.product(*cubes):
            for place in itertools.product(*map(range, sides)):
                yield tuple(c * side + at for c, side, at in zip(cube, sides, place, strict=True))

    def cube_of(self, router: Router) -> Router:
        return tuple(at // side for at, side in zip(router, self.cube, strict=True))

    def way(self, start: Router, end: Router) -> frozenset[Link]:
        """The links of all messages from one router to another; in one cube of a pod."""
        known = self.ways.get((start, end))
        if known is None:
            known = self.ways[start, end] = frozenset(self._walk(start, end))
        return known

    def _walk(self, start: Router, end: Router) -> Iterable[Link]:
        for dimension, (at, to) in enumerate(zip(start, end, strict=True)):
            if at == to:
                continue
            size = self.sizes[dimension]
            steps = [1 if to > at else -1]
            if self.wrap[dimension] and not self.cube and size > 2:
                up = (to - at) % size
                steps = [1] * (up <= size - up) + [-1] * (size - up <= up)
            for step in steps:
                here = start
                while here[dimension] != to:
                    there = (*here[:dimension], (here[dimension] + step) % size, *here[dimension + 1 :])
                    yield here, there
                    here = there
            yield from self._walk((*start[:dimension], to, *start[dimension + 1 :]), end)
            return

    def links_of(self, nodes: Iterable[str]) -> set[Link]:
        """All links that a job on these nodes may use."""
        routers = {self.router_of[node] for node in nodes}
        if self.cube and len({self.cube_of(router) for router in routers}) > 1:
            return self._in_cubes(routers)
        return set().union(*(self.way(a, b) for a in routers for b in routers))

    def _in_cubes(self, routers: set[Router]) -> set[Link]:
        parts: dict[Router, list[Router]] = {}
        for router in routers:
            inside = tuple(at % side for at, side in zip(router, self.cube, strict=True))
            parts.setdefault(self.cube_of(router), []).append(inside)
        for along in range(len(self.cube)):
            boxes = self._chain(along, parts)
            if boxes:
                return set().union(*(self._box(cube, box, [along]) for cube, box in boxes.items()))
        whole = [range(side) for side in self.cube]
        return set().union(*(self._box(cube, whole, range(len(whole))) for cube in parts))

    def _chain(self, along: int, parts: dict[Router, list[Router]]) -> dict[Router, list[range]] | None:
        """The box in each cube if they form a chain along a dimension; none of cubes that are all whole."""
        side = self.cube[along]
        everywhere = [place for places in parts.values() for place in places]
        section = [_extent(everywhere, dimension) for dimension in range(len(self.cube))]
        depth = {cube: _extent(places, along) for cube, places in parts.items()}
        ends = sorted(cube for cube, extent in depth.items() if len(extent) < side)
        if len(ends) > 2:
            return None
        if not ends and all(len(extent) == size for extent, size in zip(section, self.cube, strict=True)):
            return None
        choices = []
        for low in itertools.product([True, False], repeat=len(ends)):
            if len(ends) == 2 and low[0] == low[1]:
                continue
            grown = {
                cube: range(depth[cube].stop) if first else range(depth[cube].start, side)
                for cube, first in zip(ends, low, strict=True)
            }
            choices.append((sum(map(len, grown.values())), not low[0] if low else 0, grown))
        grown = min(choices, key=lambda choice: choice[:2])[2]
        boxes = {}
        for cube, extent in depth.items():
            boxes[cube] = [*section[:along], grown.get(cube, extent), *section[along + 1 :]]
        return boxes

    def _box(self, cube: Router, box: Sequence[range], with_ports: Iterable[int]) -> set[Link]:
        links: set[Link] = set()
        with_ports = set(with_ports)
        for place in itertools.product(*box):
            at = tuple(c * side + p for c, side, p in zip(cube, self.cube, place, strict=True))
            for dimension, side in enumerate(self.cube):
                if place[dimension] + 1 in box[dimension]:
                    there = (*at[:dimension], at[dimension] + 1, *at[dimension + 1 :])
                    links |= {(at, there), (there, at)}
                if dimension in with_ports:
                    if place[dimension] == 0:
                        links.add((at, f"low {dimension}"))
                    if place[dimension] == side - 1:
                        links.add((at, f"high {dimension}"))
        return links

    def hops(self, a: str, b: str) -> int:
        """Links between the routers of two nodes, by the size of the machine."""
        found = 0
        for start, end, size, wrap in zip(
            self.router_of[a], self.router_of[b], self.sizes, self.wrap, strict=True
        ):
            far = abs(start - end)
            found += min(far, size - far) if wrap else far
        return found

    def routers(self) -> int:
        return math.prod(self.sizes)


def _extent(places: Iterable[Router], dimension: int) -> range:
    at = [place[dimension] for place in places]
    return range(min(at), max(at) + 1)
