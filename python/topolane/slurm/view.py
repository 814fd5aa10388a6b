"""Slurm as the neutral picture of a live system."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping

from topolane.cluster.view import Reserved, Running, View, Waiting
from topolane.slurm.inspection import OURS, SlurmInspection, number_of, on_machine
from topolane.slurm.records import SlurmJob
from topolane.slurm.shadow import share_of
from topolane.slurm.wait_reasons import wait_reason


def view(look: SlurmInspection) -> View:
    """The view of what a look read. Without a machine no job has nodes."""
    jobs = [] if look.snapshot is None else list(look.snapshot.jobs.values())
    running = sorted((job for job in jobs if job.holds_nodes), key=lambda job: (job.start, job.id))
    queue = sorted((job for job in jobs if job.waits), key=lambda job: (-job.priority, job.submit, job.id))
    partitions = partitions_of(look)
    # Many jobs name the same partitions, and the nodes of each name are many.
    usable = {names: _eligible(look, names, partitions) for names in {job.partitions for job in queue}}
    found = View(
        look.time,
        tuple(_running(look, job) for job in running),
        tuple(_waiting(look, job, usable[job.partitions]) for job in queue),
        problems=look.problems,
        reserved=_reserved(look),
        links_out=() if look.out is None else tuple(sorted(look.out.all)),
    )
    return dataclasses.replace(found, out=tuple(sorted(look.closed - found.busy)))


def policy_of(look: SlurmInspection, job: SlurmJob) -> tuple[str | None, str | None]:
    """The policy of a job and what gave it, as the plugin published them; None if it is not known. Of a waiting job that the plugin
    has not refused: what topolane.conf will give it.
    """
    said = look.decided(job)
    if said is not None:
        return said.policy, said.rule
    expected = look.conf.policy(job) if look.conf and job.waits else None
    if expected is None:
        return None, None
    policy, line = expected
    return policy, f"topolane.conf line {line}" if line else "no line of topolane.conf fits it"


def partitions_of(look: SlurmInspection) -> dict[str, tuple[int, ...]]:
    """By partition: its nodes that the machine has."""
    if look.snapshot is None or look.machine is None:
        return {}
    parts = look.snapshot.partitions.values()
    return {part.name: tuple(on_machine(part.nodes, look.machine)) for part in parts}


def _reserved(look: SlurmInspection) -> tuple[Reserved, ...]:
    """The reservations of nodes that have not ended."""
    if look.snapshot is None or look.machine is None:
        return ()
    found = (
        Reserved(one.name, tuple(on_machine(one.nodes, look.machine)), one.start, one.end)
        for one in look.snapshot.reservations.values()
        if one.end > look.time
    )
    return tuple(one for one in found if one.nodes)


def _eligible(
    look: SlurmInspection, names: Collection[str], partitions: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...] | None:
    """The nodes of the partitions of a job; None if they are all nodes."""
    if look.machine is None:
        return None
    found = [partitions.get(name, ()) for name in names]
    if len(found) != 1:
        found = [tuple(sorted(set().union(*found)))]
    return None if len(found[0]) == look.machine.nodes else found[0]


def _running(look: SlurmInspection, job: SlurmJob) -> Running:
    number = number_of(job)
    own, said, (policy, rule) = look.allocations.get(number), look.decided(job), policy_of(look, job)
    return Running(
        *(job.id, job.number, job.name, job.user, tuple(look.holders.get(number, ())), job.start),
        end=None if job.walltime is None else job.start + job.walltime,
        links=tuple(sorted(own.links)) if own else (),
        bandwidth_share=own.bandwidth_share if own else 1.0,
        share=_share(look, job),
        requeueable=job.requeueable,
        hosts=job.nodes,
        slots=job.fewest_nodes,
        size=job.fewest_nodes,
        part=",".join(job.partitions),
        state=job.state,
        policy=policy,
        rule=rule,
        link_use=said.link_use if said else look.default_link_use,
    )


def _share(look: SlurmInspection, job: SlurmJob) -> dict[str, int] | None:
    """The share of each node that a running job takes; None for whole nodes."""
    if look.machine is None or look.snapshot is None or job.exclusive:
        return None
    names = map(look.machine.node_name, look.holders.get(number_of(job), ()))
    return share_of(job, [look.snapshot.nodes[name].cpus for name in names if name in look.snapshot.nodes])


def _waiting(look: SlurmInspection, job: SlurmJob, eligible: tuple[int, ...] | None) -> Waiting:
    cores = math.ceil(job.processes * job.cpus_per_process / max(job.fewest_nodes, 1))
    wait, (policy, rule) = wait_reason(look, job), policy_of(look, job)
    refused = wait.refused
    size = job.fewest_nodes if refused is None else refused.wanted
    return Waiting(
        *(job.id, job.number, job.name, job.user, job.fewest_nodes, job.submit, job.walltime),
        begin=job.begin,
        why=wait.words,
        expected_start=job.expected_start if job.expected_start > look.time else None,
        share=None if job.exclusive or not cores else {"cores": cores},
        held=job.is_held or bool(job.dependency) or job.reason not in (*OURS, "Reservation"),
        eligible=eligible,
        reservations=tuple(name for name in job.reservation.split(",") if name),
        record=job.record,
        slots=size,
        size=size,
        reason=job.reason,
        refused=refused,
        policy=policy,
        rule=rule,
    )
