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
class RunLog:
    """Runs of jobs; first come the first runs, in the order of the workload. Times are in seconds."""

    submit: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    walltime: NDArray[np.float64]
    nodes: NDArray[np.float64]
    """Parts of nodes count as fractions."""
    rank: NDArray[np.int64]
    """Position in the queue, from 0."""

    @classmethod
    def of(
        cls,
        columns: Mapping[str, NDArray[np.float64]],
        earlier: Mapping[str, NDArray[np.float64]],
        known: NDArray[np.bool_],
        cores: float,
        default_walltime: float | None,
        *,
        by_start: bool,
    ) -> RunLog:
        """The runs of a workload's `known` jobs, queued by submission or by recorded start, including earlier
        runs of the same jobs.

        Each later run counts as a job that was submitted when the previous run ended. The first run has the
        job's position; later runs come after all jobs.
        """
        place = np.concatenate((earlier["job"].astype(np.int64), np.flatnonzero(known)))
        start = np.concatenate((earlier["start"], columns["start"][known]))
        run = np.concatenate((earlier["run"], columns["run"][known]))
        nodes = np.concatenate((earlier_nodes(columns, earlier, cores), held_nodes(columns, cores)[known]))
        order = np.lexsort((start, place))
        place, start, run, nodes = place[order], start[order], run[order], nodes[order]
        is_later = np.diff(place, prepend=-1) == 0
        submit = np.where(is_later, np.minimum(np.roll(start + run, 1), start), columns["submit"][place])
        start = np.maximum(start, submit)
        walltime = columns["walltime"][place]
        walltime = np.where(np.isnan(walltime), default_walltime or run, walltime)
        order = np.argsort(start if by_start else submit, kind="stable")
        log = cls(submit, start, start + run, walltime, nodes, np.argsort(order, kind="stable"))
        return log.in_order(np.argsort(is_later, kind="stable"))

    def last_end(self) -> NDArray[np.float64]:
        """For each job, the end of the last job that ended before its start; -inf if none did. Jobs that took
        no time do not count.
        """
        ends = np.concatenate(([-np.inf], np.sort(self.end[self.end > self.start])))
        return np.asarray(ends[np.searchsorted(ends, self.start, "right") - 1])

    def in_order(self, order: NDArray[np.int64]) -> RunLog:
        """The same jobs in another order."""
        return RunLog(*(getattr(self, field.name)[order] for field in dataclasses.fields(self)))


def cores_of(machine: Machine) -> float:
    """Cores of a node, in the mean; at least 1."""
    each = [machine.resources_of(node).get("cores", 1) for node in range(machine.nodes)]
    return max(float(np.mean(each)), 1.0)


def held_nodes(columns: Mapping[str, NDArray[np.float64]], cores: float) -> NDArray[np.float64]:
    """Nodes that each job of a workload holds; a job that shares nodes counts by its cores of a node's `cores`."""
    nodes, own = columns["nodes"].astype(float), columns["cores"]
    return np.where(np.isnan(own), nodes, nodes * own / cores)


def earlier_nodes(
    columns: Mapping[str, NDArray[np.float64]], earlier: Mapping[str, NDArray[np.float64]], cores: float
) -> NDArray[np.float64]:
    """The number of nodes that each earlier run held: a job holds the same part of each node in all of its
    runs.
    """
    place = earlier["job"].astype(np.int64)
    return np.asarray(earlier["nodes"] * (held_nodes(columns, cores) / columns["nodes"])[place])
