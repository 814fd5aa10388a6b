"""Infers holds, nodes out of service and priorities from the recorded starts of a log that does not name
them.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from topolane._engine import InputError
from topolane.failures import Failure
from topolane.inference.holds import SOON, held_until
from topolane.inference.log import RunLog, cores_of
from topolane.inference.service import Service

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topolane._engine import Machine, Workload


@dataclasses.dataclass(frozen=True)
class Inferred:
    """A workload with the facts inferred from its recorded starts."""

    workload: Workload
    """The workload with holds and priorities."""
    out_of_service: list[Failure]
    """Nodes that accept no jobs, each for a period."""
    facts: dict[str, Any]
    """Numbers for the summary of a run."""


def infer(
    workload: Workload,
    machine: Machine,
    *,
    held: bool,
    capacity: bool,
    order: bool,
    scattered: bool = False,
    default_walltime: float | None = None,
    seed: int = 0,
) -> Inferred:
    """Infers from the recorded starts what the arguments ask for.

    Raises InputError if there are no recorded starts, or for `capacity` if they are over a hundred years
    apart.

    held: until when each job counts as held; for a job that ran several times, at most until its first run.
    capacity: nodes that count as out of service.
    order: priorities by recorded start; a job that ran several times has that of its first run.
    scattered: a node out of service may be anywhere, instead of next to those that return with it.
    seed: determines which nodes are out of service, and by how many seconds each hold ends later. With seed
    0, no hold ends later.
    """
    found = _found(workload, machine.nodes, cores_of(machine), held, capacity, order, default_walltime)
    until = found.until
    if seed and until is not None:
        until = until + np.random.default_rng(seed).integers(0, int(SOON), len(until), endpoint=True)
    return Inferred(
        workload.arranged(
            held_until=None if until is None else until.tolist(),
            priority=None if found.priority is None else found.priority.tolist(),
        ),
        found.service.spans(seed, scattered=scattered),
        dict(found.facts),
    )


@dataclasses.dataclass(frozen=True)
class _Found:
    """What is inferred, before a seed draws what the records leave open."""

    until: NDArray[np.float64] | None
    priority: NDArray[np.float64] | None
    service: Service
    facts: dict[str, Any]


@functools.lru_cache(maxsize=1)
def _found(
    workload: Workload,
    nodes: int,
    cores: float,
    held: bool,
    capacity: bool,
    order: bool,
    default_walltime: float | None,
) -> _Found:
    """The same for all policies and seeds, so runs of one workload share it."""
    columns = workload.columns()
    known = ~np.isnan(columns["start"])
    if not known.any():
        raise InputError(
            f"workload {workload.name} records no starts, from which --held, --capacity and --order could be inferred; "
            "what changes widths or submissions (--nodes-x, --load, --squeeze) takes them away"
        )
    log = RunLog.of(columns, workload.earlier_runs(), known, cores, default_walltime, by_start=order)
    service = _in_service(log, nodes) if capacity else Service.full(nodes)
    until = priority = None
    asked = {"held": held, "capacity": capacity, "order": order}
    facts: dict[str, Any] = {"options": [name for name, is_asked in asked.items() if is_asked]}
    if held:
        until = np.full(len(known), np.nan)
        until[known] = held_until(log, service)[: known.sum()]
        extra = until - columns["submit"]
        facts |= {"held_jobs": int((extra > 0).sum()), "held_seconds": float(np.nansum(extra))}
    if order:
        starts = columns["submit"].copy()
        starts[known] = log.start[: known.sum()]
        priority = -np.argsort(np.argsort(starts, kind="stable"), kind="stable").astype(float)
    if capacity:
        facts["node_seconds_out"] = service.node_seconds_out
    return _Found(until, priority, service, facts)


def _in_service(log: RunLog, nodes: int) -> Service:
    """Nodes in service, inferred from the demand of jobs that were not held.

    A job counts as held until its start if no other job ended in the minute before, because then it was not
    waiting for nodes. It also counts as held while the nodes known to be in use would have been enough for
    it.
    """
    ready = np.where(log.start - log.last_end() <= SOON, log.submit, log.start)
    least = Service.of(log, ready, nodes)
    return Service.of(log, np.fmax(ready, held_until(log, least)), nodes)
