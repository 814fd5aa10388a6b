"""What the recorded starts of a log say about holds, nodes out of service and priorities, which the log itself does not name."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from topolane._engine import InputError
from topolane.failures import Failure
from topolane.inference.holds import SOON, held_until
from topolane.inference.log import Log
from topolane.inference.service import Service

if TYPE_CHECKING:
    from topolane._engine import Machine, Workload


@dataclasses.dataclass(frozen=True)
class Inferred:
    """A workload with what its recorded starts say."""

    workload: Workload
    """With holds and priorities."""
    out_of_service: list[Failure]
    """Nodes that take no jobs, each for a time."""
    facts: dict[str, Any]
    """In a few figures, for the summary of a run."""


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
    """What is asked for, inferred from the recorded starts.

    Raises InputError if there are none, or for capacity if they are over a hundred years apart.

    held: until when each job counts as held; a job that ran several times, until its first run at most.
    capacity: nodes that count as out of service.
    order: priorities by recorded start, of a job that ran several times that of its first run.
    scattered: each node that is out of service lies anywhere, instead of next to those that come back with it.
    seed: draws where these nodes lie, and by how many seconds each hold ends later. With seed 0 no hold ends later.
    """
    columns = workload.columns()
    known = ~np.isnan(columns["start"])
    if not known.any():
        raise InputError(
            f"workload {workload.name} records no starts, from which --held, --capacity and --order could be inferred; "
            "what changes widths or submissions (--nodes-x, --load, --squeeze) takes them away"
        )
    log = Log.of(columns, workload.earlier_runs(), known, machine, default_walltime, by_start=order)
    service = _in_service(log, machine) if capacity else Service.full(machine.nodes)
    until = priority = None
    asked = {"held": held, "capacity": capacity, "order": order}
    facts: dict[str, Any] = {"options": [name for name, is_asked in asked.items() if is_asked]}
    if held:
        until = np.full(len(known), np.nan)
        until[known] = held_until(log, service)[: known.sum()]
        extra = until - columns["submit"]
        facts |= {"held_jobs": int((extra > 0).sum()), "held_seconds": float(np.nansum(extra))}
        if seed:
            until += np.random.default_rng(seed).integers(0, int(SOON), len(until), endpoint=True)
    if order:
        starts = columns["submit"].copy()
        starts[known] = log.start[: known.sum()]
        priority = -np.argsort(np.argsort(starts, kind="stable"), kind="stable").astype(float)
    if capacity:
        facts["node_seconds_out"] = service.node_seconds_out
    return Inferred(
        workload.arranged(
            held_until=None if until is None else until.tolist(),
            priority=None if priority is None else priority.tolist(),
        ),
        service.spans(seed, scattered=scattered),
        facts,
    )


def _in_service(log: Log, machine: Machine) -> Service:
    """Nodes in service, by what jobs wanted that were not held.

    A job counts as held until its start if no other job ended in the minute before, because it waited for no nodes then; and as long
    as even the nodes in use were enough for it.
    """
    ready = np.where(log.start - log.last_end() <= SOON, log.submit, log.start)
    least = Service.of(log, ready, machine.nodes)
    return Service.of(log, np.fmax(ready, held_until(log, least)), machine.nodes)
