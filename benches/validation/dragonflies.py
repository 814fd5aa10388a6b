"""A dragonfly, here and in SimGrid.

SimGrid has one static minimal route for each pair of nodes: along a row (chassis) first, then along a column, and parallel
cables are one link of their summed bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass

from topolane._engine import Machine

CABLE = 5e9
"""Bytes per second of a cable."""


@dataclass(frozen=True)
class Dragonfly:
    """SimGrid's parameters: (number, cables between two of them) of groups, chassis and routers; nodes of a router."""

    name: str
    groups: tuple[int, int]
    chassis: tuple[int, int]
    routers: tuple[int, int]
    nodes: int
    routings: tuple[str, ...] = ("minimal-hashed", "minimal")
    """To compare."""
    same: tuple[str, ...] = ()
    """Of these, those with SimGrid's routes."""

    @property
    def parts(self) -> int:
        """The number of groups."""
        return self.groups[0]

    def host(self, node: int) -> int:
        """SimGrid's number of a node."""
        return node

    def machine(self) -> Machine:
        """The same machine: in each group router n of chassis 0 has the cables to group n, as in SimGrid."""
        (groups, blue), (chassis, black), (routers, green) = self.groups, self.chassis, self.routers
        size = chassis * routers
        cables = []
        for group in range(groups):
            for place in range(size):
                row, column = divmod(place, routers)
                at = group * size + place
                cables += [[at, at - column + other, green] for other in range(column + 1, routers)]
                cables += [
                    [at, group * size + other * routers + column, black] for other in range(row + 1, chassis)
                ]
            cables += [
                [group * size + other, other * size + group, blue] for other in range(group + 1, groups)
            ]
        lines = [f'name = "{self.name}"', "[node]", f"nic-bandwidth = {CABLE!r}", "[[site]]", 'name = "all"']
        lines.append(f"bandwidth = {[CABLE] * 3}")
        for router in range(groups * size):
            own = ",".join(f"n{router * self.nodes + node}" for node in range(self.nodes))
            lines += ["[[site.switch]]", f'name = "r{router}"', f'nodes = "{own}"']
        for group in range(groups):
            below = ",".join(f"r{group * size + place}" for place in range(size))
            lines += ["[[site.switch]]", f'name = "g{group}"', f'switches = "{below}"']
        above = ",".join(f"g{group}" for group in range(groups))
        lines += ["[[site.switch]]", 'name = "all"', f'switches = "{above}"', "[dragonfly]"]
        switches = [",".join(f"r{group * size + place}" for place in range(size)) for group in range(groups)]
        lines.append(f"groups = {switches}".replace("'", '"'))
        lines += ["[[dragonfly.cables]]", f"bandwidth = {CABLE!r}", f"between = {cables}"]
        return Machine.parse("\n".join(lines), f"{self.name}.toml", "toml")

    def path(self, a: int, b: int) -> list[tuple[str, int, int]]:
        """SimGrid's route: its links, each with its kind and its two ends.

        Along the row, then along the column to chassis 0, over the cable, and so again. Inside a group SimGrid takes the
        link along a column as if the row before it were that of chassis 0, also where it needs none.
        """
        (chassis, _), (routers, _) = self.chassis, self.routers
        size = chassis * routers
        at, end = a // self.nodes, b // self.nodes
        links = [("up", a, at)]

        def go(kind: str, to: int) -> None:
            nonlocal at
            links.append((kind, at, to))
            at = to

        if at != end:
            group, other = at // size, end // size
            if group != other:
                if at % routers != other:
                    go("green", at - at % routers + other)
                if at % size >= routers:
                    go("black", group * size + other)
                go("blue", other * size + group)
            if at % routers != end % routers:
                go("green", at - at % routers + end % routers)
                at = other * size + end % routers
            if at != end:
                go("black", end)
        return [*links, ("down", end, b)]

    def capacity(self, kind: str) -> float:
        """Bytes per second of a link."""
        count = {"green": self.routers[1], "black": self.chassis[1], "blue": self.groups[1]}
        return CABLE * count.get(kind, 1)

    def platform(self) -> str:
        """The machine for `platform.hpp`."""
        numbers = (*self.groups, *self.chassis, *self.routers, self.nodes)
        return " ".join(map(str, ("dragonfly", *numbers, repr(CABLE))))
