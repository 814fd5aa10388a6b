"""Machines, flows and jobs for comparisons, and their description for other simulators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from topolane._engine import Machine, Routing, Traffic, max_min

ROUTINGS = ("d-mod-k", "s-mod-k", "random", "adaptive")

Pair = tuple[int, int]
Job = tuple[list[int], Traffic]


@dataclass(frozen=True)
class Shape:
    """A regular tree PGFT(children; parents; cables) with the bandwidth of each level in bytes per second."""

    name: str
    children: tuple[int, ...]
    parents: tuple[int, ...]
    cables: tuple[int, ...]
    bandwidth: tuple[float, ...] = ()
    missing: tuple[tuple[int, ...], ...] = ()

    def machine(self) -> Machine:
        """The machine."""
        bandwidth = self.bandwidth or (4e9,) * len(self.children)
        text = f"""
name = "{self.name}"
[node]
nic-bandwidth = {bandwidth[0]!r}
[[site]]
name = "site"
children = {list(self.children)}
parents = {list(self.parents)}
cables = {list(self.cables)}
bandwidth = {list(bandwidth)}
missing = {[list(place) for place in self.missing]}
"""
        return Machine.parse(text, self.name, "toml")


SHAPES = (
    Shape("one switch", (12,), (1,), (1,)),
    Shape("full, 2 levels", (8, 8), (1, 8), (1, 1)),
    Shape("tapered 2:1", (8, 6), (1, 4), (1, 1)),
    Shape("full, 3 levels", (4, 4, 8), (1, 4, 4), (1, 1, 1)),
    Shape("parallel cables, tapered", (6, 4, 3), (1, 3, 2), (1, 1, 2)),
    Shape("tapered twice, 512 nodes", (16, 8, 4), (1, 8, 2), (1, 1, 3)),
    Shape("slower upwards", (4, 4, 3), (1, 2, 2), (1, 2, 1), (4e9, 3e9, 1.1e9)),
    Shape(
        "missing cables",
        (6, 4, 3),
        (1, 3, 2),
        (1, 2, 2),
        (),
        ((1, 0, 0, 1, 0), (1, 3, 0, 2, 1), (2, 1, 2, 0, 0)),
    ),
    Shape("4 levels", (3, 3, 3, 3), (1, 2, 2, 2), (1, 1, 1, 1)),
)


@dataclass
class Ways:
    """The routes of some pairs, over channels numbered from 0 so that only channels in use count."""

    routing: Routing
    channels: dict[int, int] = field(default_factory=dict)
    of: dict[Pair, list[int]] = field(default_factory=dict)
    weight: dict[Pair, float] = field(default_factory=dict)
    """The weights of pairs whose flows do not have weight 1."""

    def add(self, pairs: Iterable[Pair]) -> None:
        """Computes the routes of more pairs."""
        for pair in pairs:
            if pair not in self.of:
                path = self.routing.path(*pair)
                self.of[pair] = [self.channels.setdefault(channel, len(self.channels)) for channel in path]

    def capacity(self) -> np.ndarray:
        """Bytes per second of each channel in use."""
        return np.ascontiguousarray(self.routing.capacity[list(self.channels)])

    def arrays(self, pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray]:
        """The flows between these pairs in the form of `max_min`: index of each flow's first channel, and
        channels.
        """
        paths = [self.of[pair] for pair in pairs]
        first = np.cumsum([0, *map(len, paths)], dtype=np.uint32)
        return first, np.array([channel for path in paths for channel in path], dtype=np.uint32)

    def rates(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Topolane's max-min rates of flows between these pairs, in bytes per second."""
        return max_min(self.capacity(), *self.arrays(pairs))

    def platform(self, hosts: dict[int, int], latency: float = 1e-3) -> str:
        """The routes in the format of `platform.hpp`; `hosts` numbers the participating nodes from 0.

        latency: seconds of a route whose flow has weight 1, if weights are given.
        """
        lines = [f"{len(hosts)} {len(self.channels)} {len(self.of)}"]
        lines.append(" ".join(repr(float(value)) for value in self.capacity()))
        for (a, b), path in self.of.items():
            seconds = latency / self.weight.get((a, b), 1.0) if self.weight else 0.0
            lines.append(" ".join(map(str, (hosts[a], hosts[b], seconds, len(path), *path))))
        return "\n".join(lines) + "\n"


def flow_set(rng: np.random.Generator, nodes: int) -> list[Pair]:
    """Random flows of one of five kinds between nodes of a machine; pairs may repeat."""
    kind = rng.integers(5)
    if kind == 0:  # a permutation
        ends = zip(range(nodes), rng.permutation(nodes).tolist())
    elif kind == 1:  # many to few
        few = rng.choice(nodes, size=max(1, nodes // 8), replace=False)
        ends = zip(rng.integers(nodes, size=nodes).tolist(), rng.choice(few, size=nodes).tolist())
    elif kind == 2:  # all-to-all among some
        some = rng.choice(nodes, size=min(nodes, int(rng.integers(2, 17))), replace=False).tolist()
        ends = ((a, b) for a in some for b in some)
    else:  # any to any, few or many
        count = int(rng.integers(2, 4 * nodes))
        ends = zip(rng.integers(nodes, size=count).tolist(), rng.integers(nodes, size=count).tolist())
    flows = [(a, b) for a, b in ends if a != b]
    return flows or [(0, 1)]


def weights(job: Job) -> dict[Pair, float]:
    """The weight of the flow between each pair of a job's nodes: its part of the bytes that its node sends."""
    nodes, traffic = job
    froms, tos, sizes, _ = traffic.arrays()
    sent = np.bincount(froms, weights=sizes, minlength=traffic.ranks)
    ends = zip(froms.tolist(), tos.tolist(), sizes.tolist())
    return {(nodes[a], nodes[b]): size / sent[a] for a, b, size in ends}


def job_nodes(rng: np.random.Generator, nodes: int, sizes: Sequence[int]) -> list[list[int]]:
    """Disjoint nodes for jobs of these sizes, as on a busy machine: in order among the free nodes, while
    scattered blocks of nodes are not free.
    """
    blocks = [list(range(start, min(start + 4, nodes))) for start in range(0, nodes, 4)]
    if rng.random() < 0.5:
        order = [node for block in rng.permutation(len(blocks)) for node in blocks[block]]
    else:
        order = rng.permutation(nodes).tolist()
    given, start = [], 0
    for size in sizes:
        given.append(sorted(order[start : start + size]))
        start += size
    return given
