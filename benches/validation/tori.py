"""A torus, here and in SimGrid.

SimGrid has one static route for each pair of routers, in the order of the dimensions. If both ways around a ring are equally
short, it goes up, except from the place in the middle to the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragonflies import CABLE
from topolane._engine import Machine

OWN = 100 * CABLE
"""Bytes per second of a node's link, more than all cables of its router: a router of SimGrid's torus is a host."""


@dataclass(frozen=True)
class Torus:
    """The routers in each dimension, with one node on each."""

    name: str
    sizes: tuple[int, ...]
    routings: tuple[str, ...] = ("dimension-order",)
    """To compare."""
    same: tuple[str, ...] = ()
    """Of these, those with SimGrid's routes."""

    @property
    def parts(self) -> int:
        """The number of planes, across the first dimension."""
        return self.sizes[0]

    def places(self, node: int) -> list[int]:
        """The place of a node in each dimension, the last of which is the fastest."""
        places = []
        for size in reversed(self.sizes):
            node, place = divmod(node, size)
            places.append(place)
        return places[::-1]

    def host(self, node: int) -> int:
        """SimGrid's number of a node: the first dimension is the fastest."""
        strides = (math.prod(self.sizes[:dimension]) for dimension in range(len(self.sizes)))
        return sum(place * stride for place, stride in zip(self.places(node), strides, strict=True))

    def machine(self) -> Machine:
        """The same machine."""
        lines = [f'name = "{self.name}"', "[node]", f"nic-bandwidth = {OWN!r}", "[[site]]", 'name = "all"']
        lines += [f"children = [1, {math.prod(self.sizes)}]", f"bandwidth = {[OWN, OWN]}"]
        lines += ["[torus]", f"dimensions = {list(self.sizes)}", f"bandwidth = {CABLE!r}"]
        return Machine.parse("\n".join(lines), "torus.toml", "toml")

    def path(self, a: int, b: int) -> list[tuple[str, int, int]]:
        """SimGrid's route: its links, each with its kind and its two ends."""
        at, end = self.places(a), self.places(b)
        links = [("up", a, a)]
        for dimension, (size, to) in enumerate(zip(self.sizes, end, strict=True)):
            own, half = at[dimension], size // 2
            step = 1 if own < to <= own + half or (own > half and (own + half) % size >= to) else -1
            while at[dimension] != to:
                here = tuple(at)
                at[dimension] = (at[dimension] + step) % size
                links.append(("cable", self._number(here), self._number(at)))
        return [*links, ("down", b, b)]

    def _number(self, places: tuple[int, ...] | list[int]) -> int:
        number = 0
        for size, place in zip(self.sizes, places, strict=True):
            number = number * size + place
        return number

    def capacity(self, kind: str) -> float:
        """Bytes per second of a link."""
        return CABLE if kind == "cable" else OWN

    def platform(self) -> str:
        """The machine for `platform.hpp`."""
        return " ".join(map(str, ("torus", len(self.sizes), *self.sizes, repr(CABLE))))
