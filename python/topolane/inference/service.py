"""Infers the nodes in service: the most that were in use while jobs wanted more."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from topolane._engine import InputError
from topolane.failures import Failure
from topolane.units import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from topolane.inference.log import RunLog

LEAST_HOURS = 24
"""Hours that a stretch must last at least: EASY keeps nodes idle for shorter times for a large job."""
LEAST_WANTED = 0.1
"""The fraction of the hours of a stretch in which jobs must have wanted more nodes."""
MOST_HOURS = 1_000_000
"""Over a hundred years. A longer log has a wrong time."""


@dataclasses.dataclass(frozen=True)
class Service:
    """The number of nodes in service in each hour."""

    machine_nodes: int
    edges: NDArray[np.float64]
    """The start of each hour, and the end of the last. Before and after, all nodes are in service."""
    nodes: NDArray[np.int64]

    @classmethod
    def full(cls, machine_nodes: int) -> Service:
        """All nodes in service at all times."""
        return cls(machine_nodes, np.zeros(1), np.zeros(0, np.int64))

    @classmethod
    def of(cls, log: RunLog, ready: NDArray[np.float64], machine_nodes: int) -> Service:
        """The most nodes in use during each stretch of hours in which jobs wanted more; otherwise all nodes.

        ready: the time from which each job wants nodes. The demand is what running jobs hold plus what ready
        jobs ask for. Raises InputError for a log of over MOST_HOURS.
        """
        first, last = float(log.submit.min()), float(log.end.max())
        hours = max(1, math.ceil((last - first) / HOUR))
        if hours > MOST_HOURS:
            raise InputError(
                f"--capacity recorded: from the first submission to the last end the log has {hours:,} hours, "
                f"over {MOST_HOURS:,}; one of its times is wrong"
            )
        used = np.ceil(_most(log.start, log.end, log.nodes, first, hours))
        wanted = _most(ready, log.end, log.nodes, first, hours)
        nodes = np.full(hours, machine_nodes)
        levels = np.unique(used[used < machine_nodes]).astype(int)
        for level in levels[::-1].tolist():
            for begin, end in _stretches(used <= level):
                wants_more = wanted[begin:end] > level
                if end - begin >= LEAST_HOURS and wants_more.mean() >= LEAST_WANTED:
                    nodes[begin:end] = level
        edges = np.append(first + HOUR * np.arange(hours), last)
        return cls(machine_nodes, edges, nodes)

    def at(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """Nodes in service at each time."""
        around = np.concatenate(([self.machine_nodes], self.nodes, [self.machine_nodes]))
        return np.asarray(around[np.searchsorted(self.edges, times, "right")])

    @property
    def node_seconds_out(self) -> float:
        """The node-seconds out of service."""
        return float((self.machine_nodes - self.nodes) @ np.diff(self.edges))

    def spans(self, seed: int = 0, *, scattered: bool = False) -> list[Failure]:
        """The nodes out of service, each with its start and end.

        Nodes that return in the same hour lie next to each other, starting at a node that the seed draws.
        scattered: each may lie anywhere.
        """
        draw = np.random.default_rng([seed, 1])
        levels = range(int(self.nodes.min(initial=self.machine_nodes)), self.machine_nodes)
        spans = sorted(span for level in levels for span in _stretches(self.nodes <= level))
        first = draw.integers(0, self.machine_nodes, len(self.edges) + len(spans)).tolist()
        back = np.zeros(self.machine_nodes, int)
        found = []
        for place, (begin, end) in enumerate(spans):
            anchor = first[len(self.edges) + place if scattered else end]
            node = (anchor + int(np.argmax(np.roll(back <= begin, -anchor)))) % self.machine_nodes
            back[node] = end
            found.append(Failure(node, float(self.edges[begin]), float(self.edges[end])))
        return found


def _stretches(chosen: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The maximal runs of True, each as its first index and the index after its last."""
    changes = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False])))).tolist()
    return zip(changes[::2], changes[1::2])


def _most(
    since: NDArray[np.float64],
    until: NDArray[np.float64],
    nodes: NDArray[np.float64],
    first: float,
    hours: int,
) -> NDArray[np.float64]:
    """For each hour, the most nodes in use at one time, when use `i` takes `nodes[i]` from `since[i]` to
    `until[i]`.
    """
    times, place = np.unique(np.concatenate((since, until)), return_inverse=True)
    there = np.cumsum(np.bincount(place, weights=np.concatenate((nodes, -nodes))))
    begins = first + HOUR * np.arange(hours)
    carried = np.searchsorted(times, begins, "right") - 1
    most = np.where(carried >= 0, there[np.maximum(carried, 0)], 0.0)
    np.maximum.at(most, np.clip((times - first) // HOUR, 0, hours - 1).astype(int), there)
    return np.asarray(most)
