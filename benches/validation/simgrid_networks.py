"""Compares rates on dragonflies and tori with those on SimGrid's own dragonfly and torus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from cases import Pair
from components import Programs, run
from dragonflies import Dragonfly
from topolane._engine import Machine, Traffic, contend, max_min
from tori import Torus

PATTERNS = ("permutation", "shift by a group", "all-to-all of 24", "one group to another", "random")
"""A group of a torus is a plane: the routers with one place in the first dimension."""
SIMGRIDS = "SimGrid's routes"
SHAPES: tuple[Dragonfly | Torus, ...] = (
    Dragonfly("all to all", (6, 2), (1, 1), (8, 1), 2, same=("minimal",)),
    Dragonfly("rows and columns", (4, 3), (3, 3), (6, 1), 2),
    Torus("torus 5 x 3 x 7", (5, 3, 7), same=("dimension-order",)),
    Torus("torus 4 x 6 x 4", (4, 6, 4)),
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
            (pattern, flows_of(pattern, machine, shape.parts, np.random.default_rng([seed, place])))
            for place, pattern in enumerate(PATTERNS)
            for seed in range(seeds)
        ]
        lines = [shape.platform(), str(len(sets))]
        for _, flows in sets:
            pairs = (f"{shape.host(a)} {shape.host(b)}" for a, b in flows)
            lines.append(" ".join([str(len(flows)), *pairs]))
        command = [programs.simgrid_rates(), "--log=root.thresh:warning"]
        answers = run(command, "\n".join(lines) + "\n", 600).splitlines()
        theirs = [np.array(line.split(" ")[2:], dtype=float) for line in answers]
        for routing in (*shape.routings, SIMGRIDS):
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


def rates(shape: Dragonfly | Torus, machine: Machine, routing: str, flows: list[Pair]) -> np.ndarray:
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
    """Over SimGrid's routes all rates are its own. So they are under a routing that has its routes: `minimal` where all groups
    are joined all to all and parallel cables count as one link, `dimension-order` where no two ways around a ring are equally
    short.
    """
    (shape,) = (shape for shape in SHAPES if shape.name == row.machine)
    return row.routing not in (SIMGRIDS, *shape.same) or row.equal >= 1
