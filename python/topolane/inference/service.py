"""Nodes in service, inferred from the most that were in use while jobs wanted more."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from topolane.failures import Failure
from topolane.units import DAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topolane.inference.log import Log


@dataclasses.dataclass(frozen=True)
class Service:
    """How many nodes are in service, day by day."""

    machine_nodes: int
    edges: NDArray[np.float64]
    """Beginnings of the days, and the end of the last; before and after them all nodes are in service."""
    nodes: NDArray[np.int64]

    @classmethod
    def full(cls, machine_nodes: int) -> Service:
        """All nodes, always."""
        return cls(machine_nodes, np.zeros(1), np.zeros(0, np.int64))

    @classmethod
    def of(cls, log: Log, machine_nodes: int) -> Service:
        """On each day the most nodes in use, if more were wanted; otherwise all nodes.

        Wanted is what jobs hold and what waiting jobs ask for.
        """
        first, last = float(log.submit.min()), float(log.end.max())
        days = max(1, math.ceil((last - first) / DAY))
        used = _most(log.start, log.end, log.nodes, first, days)
        wanted = _most(log.submit, log.end, log.nodes, first, days)
        nodes = np.where(wanted > used, np.ceil(used), machine_nodes)
        edges = np.append(first + DAY * np.arange(days), last)
        return cls(machine_nodes, edges, np.clip(nodes, 0, machine_nodes).astype(np.int64))

    def at(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """Nodes in service at each time."""
        around = np.concatenate(([self.machine_nodes], self.nodes, [self.machine_nodes]))
        return np.asarray(around[np.searchsorted(self.edges, times, "right")])

    @property
    def node_seconds_out(self) -> float:
        """Nodes out of service times seconds."""
        return float((self.machine_nodes - self.nodes) @ np.diff(self.edges))

    def spans(self) -> list[Failure]:
        """The nodes that are out, each from when until when: those with the highest numbers."""
        found = []
        for node in range(int(self.nodes.min(initial=self.machine_nodes)), self.machine_nodes):
            is_out = np.concatenate(([False], self.nodes <= node, [False]))
            changes = self.edges[np.flatnonzero(np.diff(is_out))].tolist()
            found += [Failure(node, start, end) for start, end in zip(changes[::2], changes[1::2])]
        return found


def _most(
    since: NDArray[np.float64],
    until: NDArray[np.float64],
    nodes: NDArray[np.float64],
    first: float,
    days: int,
) -> NDArray[np.float64]:
    """The most nodes of jobs that are there at once, on each day; each is there from one time to another."""
    times, place = np.unique(np.concatenate((since, until)), return_inverse=True)
    there = np.cumsum(np.bincount(place, weights=np.concatenate((nodes, -nodes))))
    begins = first + DAY * np.arange(days)
    carried = np.searchsorted(times, begins, "right") - 1
    most = np.where(carried >= 0, there[np.maximum(carried, 0)], 0.0)
    np.maximum.at(most, np.clip((times - first) // DAY, 0, days - 1).astype(int), there)
    return np.asarray(most)
