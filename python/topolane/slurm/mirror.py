"""Slurm's jobs and nodes in a scheduler: what changed there is told here, and what starts is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from topolane._engine import InputError, Machine, Scheduler
from topolane.slurm.dependencies import is_met
from topolane.slurm.records import Job, Partition, Snapshot
from topolane.slurm.requests import Ask, Unfit, ask_of, placed_here

PATIENCE = 60.0
"""Seconds that a released job may wait for its nodes before it is held and placed again."""

MARK = "topolane"
"""What the submission hook writes into the administrator's comment of a job that it holds for us."""


@dataclasses.dataclass(frozen=True)
class Start:
    """A job to be released onto these nodes."""

    job: int
    nodes: tuple[int, ...]
    hosts: str
    as_asked: bool
    """Whether its user named these nodes."""


@dataclasses.dataclass
class Changes:
    """What a snapshot asks to be done in Slurm."""

    unfit: dict[int, str] = dataclasses.field(default_factory=dict)
    """Jobs that stay held, and why."""
    escaped: list[int] = dataclasses.field(default_factory=list)
    """Waiting jobs that Slurm might start by itself: to be held again."""


class Mirror:
    """Keeps a scheduler in step with Slurm, which alone knows the truth.

    A mirror made anew from one snapshot is as good as one that has followed them all, but for the
    order of jobs of one priority, which is that of their submission.
    """

    def __init__(
        self,
        machine: Machine,
        new_scheduler: Callable[[], Scheduler],
        partitions: frozenset[str],
        *,
        whole_nodes: bool = True,
        by_priority: bool = False,
    ) -> None:
        self.machine = machine
        self._names = [machine.node_name(node) for node in range(machine.nodes)]
        self.scheduler = new_scheduler()
        self._partitions = partitions
        self._whole_nodes = whole_nodes
        self._by_priority = by_priority
        self._waiting: dict[int, tuple[Ask, float]] = {}
        self._running: dict[int, tuple[tuple[int, ...], float | None]] = {}
        self._unfit: dict[int, str] = {}
        self._released: dict[int, float] = {}
        """Jobs released and not yet seen on their nodes: when."""
        self._blocked: dict[int, tuple[int, ...]] = {}
        """Nodes of running jobs that could not be taken over: nobody else may start there."""
        self._in_service = [True] * machine.nodes
        self._seen: dict[int, Job] = {}
        """Jobs as they were when they were last looked at: most are the same in the next snapshot."""
        self._dependent: set[int] = set()
        """Jobs that wait for others."""
        self._seen_partitions: dict[str, Partition] = {}

    @property
    def waits_for_slurm(self) -> bool:
        """Whether jobs were released that have not been seen on their nodes yet."""
        return bool(self._released)

    def manages(self, job: Job) -> bool:
        """Whether its start is decided here."""
        return bool(job.partitions) and self._partitions.issuperset(job.partitions)

    def update(self, snapshot: Snapshot) -> Changes:
        """Tells the scheduler what has changed in Slurm since the last snapshot."""
        changes = Changes()
        if snapshot.partitions != self._seen_partitions:
            self._seen.clear()
            self._seen_partitions = snapshot.partitions
        for gone in [job for job in self._seen if not self._is_there(job, snapshot)]:
            self._forget(gone)
        for job in sorted(snapshot.jobs.values(), key=lambda job: (job.submit, job.id)):
            if self._seen.get(job.id) == job and job.id not in self._dependent:
                continue
            self._seen[job.id] = job
            if job.holds_nodes:
                self._runs(job, snapshot)
            elif job.waits and self.manages(job):
                self._waits(job, snapshot, changes)
        for waiting, since in self._released.items():
            if snapshot.time - since > PATIENCE:
                changes.escaped.append(waiting)
        self._nodes(snapshot)
        return changes

    def decide(self, now: float) -> list[Start]:
        """What starts now, in order."""
        starts = []
        for job, nodes in self.scheduler.start(now):
            ask, _ = self._waiting.pop(job)
            self._running[job] = (tuple(nodes), ask.walltime)
            self._released[job] = now
            asked = self._seen[job]
            as_asked = bool(asked.required) and not placed_here(asked)
            starts.append(Start(job, tuple(nodes), self.machine.hostlist(nodes), as_asked))
        return starts

    def take_back(self, job: int) -> None:
        """A release that Slurm did not accept: the job will be looked at anew."""
        self._forget(job)

    def _nodes(self, snapshot: Snapshot) -> None:
        blocked = {node for nodes in self._blocked.values() for node in nodes}
        for node, was in enumerate(self._in_service):
            known = snapshot.nodes.get(self._names[node])
            usable = known is not None and known.usable and node not in blocked
            if usable != was:
                self.scheduler.set_in_service(node, usable)
                self._in_service[node] = usable

    def _is_there(self, job: int, snapshot: Snapshot) -> bool:
        known = snapshot.jobs.get(job)
        return known is not None and (known.holds_nodes or known.waits)

    def _forget(self, job: int) -> None:
        self.scheduler.complete(job)
        self.scheduler.cancel(job)
        for known in (self._running, self._waiting, self._released, self._unfit, self._blocked, self._seen):
            known.pop(job, None)
        self._dependent.discard(job)

    def _runs(self, job: Job, snapshot: Snapshot) -> None:
        """A job on its nodes, ours or not: they are taken."""
        nodes = tuple(
            node
            for name in _expand(job.nodes, self.machine)
            if (node := self.machine.node_named(name)) is not None
        )
        self._released.pop(job.id, None)
        known = self._running.get(job.id)
        if known is not None and set(known[0]) == set(nodes):
            if known[1] != job.walltime:
                self.scheduler.set_walltime(job.id, _walltime(job))
                self._running[job.id] = (nodes, job.walltime)
            return
        self._forget(job.id)
        self._seen[job.id] = job
        if not nodes:
            return
        try:
            self.scheduler.adopt(job.id, nodes, job.start or snapshot.time, _walltime(job))
        except InputError:
            self._blocked[job.id] = nodes  # Slurm shares nodes that are whole here
            return
        self._running[job.id] = (nodes, job.walltime)

    def _waits(self, job: Job, snapshot: Snapshot, changes: Changes) -> None:
        if job.id in self._running:
            if not job.is_held:
                return  # released, not yet started
            self._forget(job.id)  # requeued, or held again by somebody
            self._seen[job.id] = job
        if not job.is_held:
            self._adopt_released(job, snapshot, changes)
            return
        self._dependent.discard(job.id)
        if not job.note.startswith(MARK) or not is_met(job, snapshot.jobs):
            self._forget(job.id)
            self._seen[job.id] = job
            if job.note.startswith(MARK):
                self._dependent.add(job.id)
            return
        try:
            ask = ask_of(job, snapshot, self.machine, whole_nodes=self._whole_nodes)
        except Unfit as reason:
            self._refuse(job.id, str(reason), changes)
            return
        priority = float(job.priority) if self._by_priority else 0.0
        if self._waiting.get(job.id) == (ask, priority):
            return
        self._forget(job.id)
        self._seen[job.id] = job
        refusal = self.scheduler.submit(
            job.id,
            ask.nodes,
            ask.walltime,
            priority=priority,
            begin=ask.begin,
            share=ask.share,
            eligible=ask.eligible,
        )
        if refusal is not None:
            self._refuse(job.id, refusal[1], changes)
            return
        self._waiting[job.id] = (ask, priority)

    def _adopt_released(self, job: Job, snapshot: Snapshot, changes: Changes) -> None:
        """A waiting job that Slurm may start: on the nodes that an earlier daemon gave it, or else on
        any, which is not to happen."""
        nodes = self.machine.nodes_named(job.required) if job.required else []
        if len(nodes) == job.fewest_nodes == job.most_nodes:
            try:
                self.scheduler.adopt(job.id, nodes, snapshot.time, _walltime(job))
            except InputError:
                changes.escaped.append(job.id)
                return
            self._running[job.id] = (tuple(nodes), job.walltime)
            self._released[job.id] = snapshot.time
            return
        changes.escaped.append(job.id)

    def _refuse(self, job: int, reason: str, changes: Changes) -> None:
        self.scheduler.cancel(job)
        self._waiting.pop(job, None)
        if self._unfit.get(job) != reason:
            self._unfit[job] = reason
            changes.unfit[job] = reason


def _walltime(job: Job) -> float:
    return float("inf") if job.walltime is None else job.walltime


def _expand(hosts: str, machine: Machine) -> list[str]:
    try:
        return [machine.node_name(node) for node in machine.nodes_named(hosts)]
    except InputError:
        return []
