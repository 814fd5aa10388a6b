"""The jobs of a log that record a start, as arrays."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from topolane._engine import Machine


@dataclasses.dataclass(frozen=True)
class Log:
    """Jobs in the order of their workload. Seconds."""

    submit: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    walltime: NDArray[np.float64]
    nodes: NDArray[np.float64]
    """Parts of nodes count as parts."""
    rank: NDArray[np.int64]
    """Place in the queue, the first has 0."""

    @classmethod
    def of(
        cls,
        columns: Mapping[str, NDArray[np.float64]],
        known: NDArray[np.bool_],
        machine: Machine,
        default_walltime: float | None,
        *,
        by_start: bool,
    ) -> Log:
        """The `known` jobs of a workload, queued by submission or by recorded start."""
        submit, run = columns["submit"][known], columns["run"][known]
        start = np.maximum(columns["start"][known], submit)
        walltime = columns["walltime"][known]
        walltime = np.where(np.isnan(walltime), default_walltime or run, walltime)
        order = np.argsort(start if by_start else submit, kind="stable")
        nodes = held_nodes(columns, machine)[known]
        return cls(submit, start, start + run, walltime, nodes, np.argsort(order, kind="stable"))

    def last_end(self) -> NDArray[np.float64]:
        """For each job when the last one before its start ended; -inf if none did. Jobs that took no time do not count."""
        ends = np.concatenate(([-np.inf], np.sort(self.end[self.end > self.start])))
        return np.asarray(ends[np.searchsorted(ends, self.start, "right") - 1])

    def in_order(self, order: NDArray[np.int64]) -> Log:
        """The same jobs in another order."""
        return Log(*(getattr(self, field.name)[order] for field in dataclasses.fields(self)))


def held_nodes(columns: Mapping[str, NDArray[np.float64]], machine: Machine) -> NDArray[np.float64]:
    """Nodes that each job of a workload holds; a job that shares nodes counts by its cores."""
    nodes, cores = columns["nodes"].astype(float), columns["cores"]
    if np.isnan(cores).all():
        return nodes
    each = [machine.resources_of(node).get("cores", 1) for node in range(machine.nodes)]
    return np.where(np.isnan(cores), nodes, nodes * cores / max(float(np.mean(each)), 1.0))
