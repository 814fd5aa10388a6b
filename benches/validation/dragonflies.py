"""Compares rates on dragonflies with SimGrid's own dragonfly.

SimGrid has one static minimal route for each pair of nodes: along a row (chassis) first, then along a column, and parallel
cables are one link of their summed bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from cases import Pair
from components import Programs, run
from topolane._engine import Machine, Traffic, contend, max_min

CABLE = 5e9
"""Bytes per second of a cable."""
PATTERNS = ("permutation", "shift by a group", "all-to-all of 24", "one group to another", "random")
SIMGRIDS = "SimGrid's routes"
ROUTINGS = ("minimal-hashed", "minimal", SIMGRIDS)


@dataclass(frozen=True)
class Dragonfly:
    """SimGrid's parameters: (number, cables between two of them) of groups, chassis and routers; nodes of a router."""

    name: str
    groups: tuple[int, int]
    chassis: tuple[int, int]
    routers: tuple[int, int]
    nodes: int

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


SHAPES = (
    Dragonfly("all to all", (6, 2), (1, 1), (8, 1), 2),
    Dragonfly("rows and columns", (4, 3), (3, 3), (6, 1), 2),
)


@dataclass(frozen=True)
class PatternRow:
    """The rates of flows of one pattern on one machine, all at the same time."""

    machine: str
    pattern: str
    routing: str
    flows: int
    time: float
    """Seconds until the last flow has sent 1 GB at its rate."""
    simgrid: float
    """The same under SimGrid."""
    mean: float
    """Mean rate, over that under SimGrid."""
    equal: float
    """The part of the flows with the same rate, within 1e-6."""


def flows_of(pattern: str, machine: Machine, groups: int, rng: np.random.Generator) -> list[Pair]:
    """The flows of a pattern between nodes."""
    nodes, size = machine.nodes, machine.nodes // groups
    ends: Iterable[Pair]
    if pattern == "permutation":
        ends = enumerate(rng.permutation(nodes).tolist())
    elif pattern == "shift by a group":
        ends = ((node, (node + size) % nodes) for node in range(nodes))
    elif pattern == "all-to-all of 24":
        chosen = sorted(rng.choice(nodes, 24, replace=False).tolist())
        ends = ((a, b) for a in chosen for b in chosen)
    elif pattern == "one group to another":
        ends = ((node, size + int(rng.integers(size))) for node in range(size))
    else:
        ends = zip(rng.integers(nodes, size=2 * nodes).tolist(), rng.integers(nodes, size=2 * nodes).tolist())
    return sorted({(a, b) for a, b in ends if a != b})


def pattern_rows(programs: Programs, seeds: int) -> list[PatternRow]:
    """A row for each machine, pattern and routing. `seeds` sets of flows of each pattern."""
    rows = []
    for shape in SHAPES:
        machine = shape.machine()
        sets = [
            (pattern, flows_of(pattern, machine, shape.groups[0], np.random.default_rng([seed, place])))
            for place, pattern in enumerate(PATTERNS)
            for seed in range(seeds)
        ]
        lines = [shape.platform(), str(len(sets))]
        lines += [" ".join([str(len(flows)), *(f"{a} {b}" for a, b in flows)]) for _, flows in sets]
        command = [programs.simgrid_rates(), "--log=root.thresh:warning"]
        answers = run(command, "\n".join(lines) + "\n", 600).splitlines()
        theirs = [np.array(line.split(" ")[2:], dtype=float) for line in answers]
        for routing in ROUTINGS:
            ours = [rates(shape, machine, routing, flows) for _, flows in sets]
            for pattern in PATTERNS:
                chosen = [place for place, (name, _) in enumerate(sets) if name == pattern]
                own = np.concatenate([ours[place] for place in chosen])
                other = np.concatenate([theirs[place] for place in chosen])
                equal = float(np.mean(np.abs(own - other) <= 1e-6 * other))
                slowest = (float(1e9 / own.min()), float(1e9 / other.min()))
                mean = float(own.mean() / other.mean())
                rows.append(PatternRow(shape.name, pattern, routing, len(own), *slowest, mean, equal))
    return rows


def rates(shape: Dragonfly, machine: Machine, routing: str, flows: list[Pair]) -> np.ndarray:
    """The max-min rates of flows of weight 1, in bytes per second."""
    if routing == SIMGRIDS:
        numbers: dict[tuple[str, int, int], int] = {}
        paths = [[numbers.setdefault(link, len(numbers)) for link in shape.path(*flow)] for flow in flows]
        first = np.cumsum([0, *map(len, paths)], dtype=np.uint32)
        channels = np.array([channel for path in paths for channel in path], dtype=np.uint32)
        return max_min(np.array([shape.capacity(kind) for kind, _, _ in numbers]), first, channels)
    froms, tos = zip(*flows)
    sent = Traffic.of(machine.nodes, list(froms), list(tos), [1.0] * len(flows))
    job = (list(range(machine.nodes)), sent)
    return contend(machine.routing(routing), "max-min-flows", [job]).rates[0]


def is_kept(row: PatternRow) -> bool:
    """Over SimGrid's routes all rates are its own. So they are under `minimal` where all groups are joined all to all, and each
    pair has one minimal route if parallel cables count as one link.
    """
    own = row.routing == SIMGRIDS or (row.machine, row.routing) == (SHAPES[0].name, "minimal")
    return not own or row.equal >= 1
