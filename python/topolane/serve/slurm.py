"""A running Slurm as a source, read at intervals like `topolane slurm status` and `explain` read it."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping

from topolane import sources
from topolane._engine import InputError, Machine
from topolane.serve.snapshot import Reserved, Running, Series, Snapshot, Waiting, look_of
from topolane.slurm.explain import explain
from topolane.slurm.fabric import slurm_tree, with_resources_of
from topolane.slurm.inspection import OURS, TYPE, Inspection, Settings, inspect, number_of, on_machine
from topolane.slurm.records import Job, Node
from topolane.slurm.shadow import share_of
from topolane.slurm.status import policy_of
from topolane.slurm.wait_reasons import wait_reason

STOCK = "slurm-tree"
"""The policy of a question if the plugin places no jobs."""


class Slurm:
    """A running Slurm as a source.

    machine: a name or a file; None for the plugin's file, otherwise Slurm's own tree. policy: None for the
    policy that the plugin uses for most jobs. Raises InputError if Slurm or the machine cannot be read.
    """

    queue = "easy"
    epoch = 0.0

    def __init__(self, settings: Settings, machine: str | None, policy: str | None, interval: float) -> None:
        look = inspect(settings)
        if look.snapshot is None:
            raise InputError(look.problems[0] if look.problems else "slurmctld does not answer")
        self._settings, self.interval = settings, interval
        self._is_plugins = machine is None and look.machine is not None
        bare = _machine(look, machine)
        self.machine = with_resources_of(bare, look.snapshot.nodes, bare.name)
        self.policy = policy or _commonest(look)
        self.partitions = _partitions(look, self.machine)
        self.title = f"Slurm, {look.configuration.get('ClusterName') or self.machine.name}"
        note = (
            f"Slurm decides when jobs start. Forecasts are the engine's, with policy {self.policy} and the queue easy in Slurm's "
            "order of priority."
        )
        self.notes = (*bare.notes, note)
        self._looks: tuple[Inspection, ...] = ()

    def now(self) -> Snapshot:
        """The present state of Slurm; if it does not answer, its last state and a problem."""
        look = inspect(self._settings)
        look = dataclasses.replace(look, machine=self.machine, owned=look.owned if self._is_plugins else {})
        if look.snapshot is None:
            last = self._looks[-1] if self._looks else None
            jobs = ((), ()) if last is None else _jobs(last)
            time = look.time if last is None else last.time
            return Snapshot(time, *jobs, problems=look.problems, is_old=True)
        self._looks = (*self._looks[-1:], look)
        running, waiting = _jobs(look)
        held = {node for job in running for node in job.nodes}
        # Without the plugin, its missing state file is not a problem.
        problems = look.problems if look.topology in (None, TYPE) else ()
        out = tuple(sorted(look.closed - held))
        return Snapshot(look.time, running, waiting, out, problems, reserved=_reserved(look, self.machine))

    def at(self, time: float) -> None:
        """None: Slurm keeps no past states, so the page's history is used."""

    def span(self) -> None:
        """None: Slurm keeps no past states."""

    def explain(self, snapshot: Snapshot, job: Waiting) -> list[str] | None:
        """Why a job waits, as `topolane slurm explain` says it."""
        look = look_of(self._looks, snapshot)
        if look is None:
            return None
        return list(explain(look, job.name).sentences)

    def series(self) -> Series | None:
        """None: only the page's history has lines over time."""
        return None


def _machine(look: Inspection, machine: str | None) -> Machine:
    if machine is not None:
        return sources.machine(machine)
    return look.machine if look.machine is not None else slurm_tree()


def _partitions(look: Inspection, machine: Machine) -> dict[str, tuple[int, ...]]:
    """By partition: its nodes that the machine has."""
    assert look.snapshot is not None
    return {part.name: tuple(on_machine(part.nodes, machine)) for part in look.snapshot.partitions.values()}


def _commonest(look: Inspection) -> str:
    policies = Counter(policy_of(look, job) for job in look.jobs.values())
    named = [(count, name) for name, count in policies.items() if name not in (None, "stock")]
    return str(max(named)[1]) if named else STOCK


def _jobs(look: Inspection) -> tuple[tuple[Running, ...], tuple[Waiting, ...]]:
    assert look.snapshot is not None and look.machine is not None
    jobs = list(look.snapshot.jobs.values())
    running = [_running(look, look.machine, job, look.snapshot.nodes) for job in jobs if job.holds_nodes]
    queue = sorted((job for job in jobs if job.waits), key=lambda job: (-job.priority, job.submit, job.id))
    partitions = _partitions(look, look.machine)
    waiting = (_waiting(look, job, _eligible(job, partitions, look.machine.nodes)) for job in queue)
    return tuple(job for job in running if job.nodes), tuple(waiting)


def _reserved(look: Inspection, machine: Machine) -> tuple[Reserved, ...]:
    """The reservations of nodes that have not ended."""
    assert look.snapshot is not None
    found = (
        Reserved(one.name, tuple(on_machine(one.nodes, machine)), one.start, one.end)
        for one in look.snapshot.reservations.values()
        if one.end > look.time
    )
    return tuple(one for one in found if one.nodes)


def _eligible(job: Job, partitions: Mapping[str, tuple[int, ...]], nodes: int) -> tuple[int, ...] | None:
    """The nodes of a job's partitions; None if they are all nodes."""
    found = [partitions.get(name, ()) for name in job.partitions]
    if len(found) != 1:
        found = [tuple(sorted(set().union(*found)))]
    return None if len(found[0]) == nodes else found[0]


def _running(look: Inspection, machine: Machine, job: Job, nodes: Mapping[str, Node]) -> Running:
    held = on_machine(job.nodes, machine)
    own = look.allocations.get(number_of(job))
    cpus = [nodes[name].cpus for node in held if (name := machine.node_name(node)) in nodes]
    return Running(
        *(job.id, job.number, job.name, job.user, tuple(held), job.start),
        end=None if job.walltime is None else job.start + job.walltime,
        links=tuple(sorted(own.links)) if own else (),
        bandwidth_share=own.bandwidth_share if own else 1.0,
        share=share_of(job, cpus),
        requeueable=job.requeueable,
    )


def _waiting(look: Inspection, job: Job, eligible: tuple[int, ...] | None) -> Waiting:
    cores = math.ceil(job.processes * job.cpus_per_process / max(job.fewest_nodes, 1))
    return Waiting(
        *(job.id, job.number, job.name, job.user, job.fewest_nodes, job.submit, job.walltime),
        why=wait_reason(look, job).words,
        expected_start=job.expected_start if job.expected_start > look.time else None,
        share=None if job.exclusive or not cores else {"cores": cores},
        held=job.is_held or bool(job.dependency) or job.reason not in (*OURS, "Reservation"),
        eligible=eligible,
        reservations=tuple(name for name in job.reservation.split(",") if name),
    )
