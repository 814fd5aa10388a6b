"""A plan that makes room for a waiting job of Slurm: which running jobs to requeue, at the least cost, and where it starts then.

`make_room` asks Topolane's engine (crates/placement/src/making_room) with the policy that topolane.conf gives the job. Nothing here
changes Slurm.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from topolane._engine import Decision, InputError, Machine, NoRoom, linking_policies
from topolane.cluster import room_files
from topolane.cluster.hypothetical import Cost, Hypothetical, NodeSlots, Question
from topolane.cluster.room_files import NoPlanError
from topolane.cluster.view import NONE, View
from topolane.slurm.candidates import HostLists, could_use
from topolane.slurm.explain import tasks_named
from topolane.slurm.inspection import SlurmInspection
from topolane.slurm.records import SlurmJob, Snapshot
from topolane.slurm.requeueing import HOUR, ProtectedJobs, Requeued, check_numbers, cost_of, snapshot_of
from topolane.slurm.status import liveness
from topolane.slurm.view import policy_of, view
from topolane.units import plural


@dataclasses.dataclass(frozen=True)
class RequeuePlan:
    """A plan that makes room for a job. Costs in node-hours."""

    FORMAT: ClassVar = "topolane-room-plan"
    VERSION: ClassVar = 1

    job: str
    user: str
    submit: float
    """When the job was submitted, seconds since 1970."""
    walltime: float | None
    """Seconds."""
    policy: str
    min_bandwidth: float
    nodes: str
    """Hostlist of the nodes that the job gets."""
    node_count: int
    requeued: tuple[Requeued, ...]
    node_hours: float
    """What the plan costs."""
    least_node_hours: float
    """No plan costs less."""
    time: float
    """When it was made, by Slurm's clock."""


def make_plan(look: SlurmInspection, number: str, untouchable: ProtectedJobs | None = None) -> RequeuePlan:
    """The cheapest plan found for the waiting job of that number.

    Raises NoPlanError if there is none, InputError for a job that does not wait, and if the plugin does not decide.
    """
    snapshot, machine = _readable(look)
    job = waiting_job(look, number)
    asked, seen = RoomQuestion.of(look, job), view(look)
    present = _Present(look, seen, job, untouchable or ProtectedJobs())
    usable = frozenset(eligible(look, snapshot, machine, job)) - present.unavailable
    found = asked.of_policy(machine, seen).make_room(
        Question(job.id, job.fewest_nodes, eligible=usable), present.costs
    )
    if isinstance(found, NoRoom):
        raise NoPlanError(f"there is no plan for job {job.number}: {found.reason}{present.stay}")
    gone = [snapshot.jobs[each] for each in found.requeued]
    return RequeuePlan(
        job=job.number,
        user=job.user,
        submit=job.submit,
        walltime=job.walltime,
        policy=asked.policy,
        min_bandwidth=asked.min_bandwidth,
        nodes=machine.hostlist(sorted(found.decision.nodes)),
        node_count=len(found.decision.nodes),
        requeued=tuple(Requeued.of(one, len(present.nodes[one.id]), look.time) for one in gone),
        node_hours=round(found.cost / HOUR, 6),
        least_node_hours=round(found.least / HOUR, 6),
        time=look.time,
    )


def waiting_job(look: SlurmInspection, number: str) -> SlurmJob:
    """The waiting job of that number. Raises InputError if there is none, or if no plan can be made for such a job."""
    jobs = tasks_named(look, number, "--room-for")
    if not jobs:
        raise InputError(
            f"--room-for {number}: Slurm knows no such job (it forgets a job some minutes after its end)"
        )
    job = next((job for job in jobs if job.waits), None)
    if job is None:
        raise InputError(f"--room-for {number}: the job does not wait: it is {jobs[-1].state}")
    if job.is_held:
        raise InputError(f"--room-for {number}: the job is held, so Slurm would not start it")
    if job.dependency:
        raise InputError(f"--room-for {number}: the job waits for {job.dependency}, not for nodes")
    if not job.exclusive:
        raise InputError(
            f"--room-for {number}: the job may share its nodes; plans are made for jobs on whole nodes only"
        )
    return job


@dataclasses.dataclass(frozen=True)
class RoomQuestion:
    """How the plugin would ask the engine about a job."""

    policy: str
    min_bandwidth: float

    @classmethod
    def of(cls, look: SlurmInspection, job: SlurmJob) -> RoomQuestion:
        """Raises InputError if no policy places the job."""
        policy, _ = policy_of(look, job)
        if policy is None:
            raise InputError(
                f"--room-for {job.number}: its policy is not known, because it depends on its partition"
            )
        if policy == "stock":
            raise InputError(
                f"--room-for {job.number}: stock Slurm chooses its nodes: no line of topolane.conf fits it"
            )
        said = look.decided(job)
        expected = look.conf.min_bandwidth(job) if look.conf else 1.0
        share = expected if said is None else said.share
        return cls(policy, share if (policy, True) in linking_policies() else 1.0)

    def of_policy(self, machine: Machine, seen: View, gone: Collection[int] = ()) -> Hypothetical:
        """What the policy would do without some jobs. Slurm counts what is free on nodes."""
        return Hypothetical.of(machine, seen, self.policy, self.min_bandwidth, counts_slots=True, gone=gone)


def eligible(look: SlurmInspection, snapshot: Snapshot, machine: Machine, job: SlurmJob) -> list[int]:
    """The nodes, busy or not, that a waiting job could get. Raises InputError for options that plans cannot heed."""
    asked = dataclasses.replace(job, start=look.time)
    names, ignored = could_use(asked, snapshot, HostLists(snapshot.nodes))
    if ignored:
        raise InputError(f"--room-for {job.number}: plans are not made for jobs with {ignored[0]}")
    found = {machine.node_named(name) for name in names}
    return sorted(node for node in found if node is not None and node not in look.closed)


def still_places(look: SlurmInspection, plan: RequeuePlan, job: SlurmJob) -> str | None:
    """Why the policy would not place the job on the nodes of the plan any more once the jobs are gone; None if it would."""
    snapshot, machine = _readable(look)
    seen, names = view(look), {each.job for each in plan.requeued}
    gone = [one.id for one in seen.running if one.name in names]
    present = _Present(look, seen, job, ProtectedJobs(any_priority=True), gone)
    nodes = set(machine.nodes_named(plan.nodes))
    lost = nodes - (set(eligible(look, snapshot, machine, job)) - present.unavailable)
    if lost:
        return f"job {plan.job} may not use {machine.hostlist(sorted(lost))} now"
    held = {node for each in present.nodes.values() for node in each}
    room = tuple(int(node in nodes) for node in range(machine.nodes))
    free = tuple(int(node in nodes - held) for node in range(machine.nodes))
    asked = RoomQuestion(plan.policy, plan.min_bandwidth).of_policy(machine, seen, gone)
    answer = asked.decide(Question(job.id, len(nodes), slots=NodeSlots(free, room, stacked=False)))
    return None if isinstance(answer, Decision) else f"{plan.policy} has no place on {plan.nodes} any more"


def _readable(look: SlurmInspection) -> tuple[Snapshot, Machine]:
    """Slurm and the machine. Raises InputError if they are not known or if the plugin does not decide."""
    snapshot = snapshot_of(look)
    alive = liveness(look)
    if not alive.active:
        why = (alive.why or "there is no sign that it is").rstrip(".")
        raise InputError(f"the plugin topology/topolane is not active: {why}")
    if look.machine is None:
        raise InputError("; ".join(one.rstrip(".") for one in look.problems) or "the plugin names no machine")
    return snapshot, look.machine


class _Present:
    """The running jobs but `gone`: what it costs to requeue each."""

    def __init__(
        self,
        look: SlurmInspection,
        seen: View,
        waiting: SlurmJob,
        untouchable: ProtectedJobs,
        gone: Collection[int] = (),
    ) -> None:
        assert look.snapshot is not None
        there = [job for job in seen.running if job.nodes and job.id not in gone]
        self.nodes = {job.id: job.nodes for job in there}
        self.costs: dict[int, Cost] = {}
        """Of jobs that have nodes and links for themselves."""
        self.unavailable: set[int] = set()
        """Nodes of the others."""
        why: Counter[str] = Counter()
        holders = Counter(node for job in there for node in job.nodes)
        # A link out of service must not be free for the waiting job, whatever it is taken from.
        taken = set(seen.links_out)
        for job in there:
            record = look.snapshot.jobs[job.id]
            reason = untouchable.why(record, waiting)
            if (
                job.link_use == NONE
                or not record.exclusive
                or any(holders[node] > 1 for node in job.nodes)
                or not taken.isdisjoint(job.links)
            ):
                reason = reason or "on shared nodes or links"
                self.unavailable |= set(job.nodes)
            else:
                taken |= set(job.links)
                self.costs[job.id] = Cost(None if reason else cost_of(record, look.time, len(job.nodes)))
            if reason:
                why[reason] += 1
        self.stay = _stay(why, len(self.costs))


def _stay(why: Counter[str], rows: int) -> str:
    """Which jobs must stay, as the end of a sentence."""
    if not why:
        return "" if rows else " (no job runs)"
    counted = ", ".join(f"{number} {reason}" for reason, number in sorted(why.items()))
    return f" ({plural(sum(why.values()), 'running job')} must stay: {counted})"


def read(path: Path) -> RequeuePlan:
    """The plan in a file. Raises InputError."""
    source = str(path)
    given = room_files.read(path, RequeuePlan, "topolane slurm plan")
    given["requeued"] = room_files.rows_of(given, "requeued", Requeued, source)
    plan: RequeuePlan = room_files.made(RequeuePlan, given, source)
    check_numbers((plan.job, *(each.job for each in plan.requeued)), source)
    return plan
