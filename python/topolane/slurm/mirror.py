"""Mirrors Slurm's jobs and nodes in a scheduler: passes changes on to it, and asks it what starts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools

from topolane._engine import Decision, InputError
from topolane.live.allocation import Allocation
from topolane.live.job_request import JobRequest
from topolane.live.journal import Recorder
from topolane.slurm.candidates import IneligibleJobError, NodeSelector
from topolane.slurm.comments import placed_by_daemon, was_released
from topolane.slurm.holds import Holds, by_submission
from topolane.slurm.link_failures import LinkFailures
from topolane.slurm.priority import Priorities
from topolane.slurm.records import Job, Snapshot
from topolane.slurm.requests import RequestSettings, memory_of, request_of

PATIENCE = 60.0
"""Seconds that a released job may wait for its nodes before it is held and placed again."""
SHORT_PATIENCE = 10.0
"""The same if one of its nodes is no longer usable."""
LONGEST_PAUSE = 3600.0
"""Seconds, at most, before a job that Slurm does not start is tried again; doubled each time."""


@dataclasses.dataclass(frozen=True)
class Start:
    """A job to be released onto these nodes."""

    job: Job
    decision: Decision
    hosts: str
    """Its nodes in order of its ranks."""
    as_asked: bool
    """Whether its user named these nodes."""


@dataclasses.dataclass
class Changes:
    """What the daemon must do in Slurm after a snapshot, and what the snapshot shows."""

    ineligible: list[tuple[Job, str]] = dataclasses.field(default_factory=list)
    """Jobs that stay held, and why."""
    to_hold: list[tuple[Job, str]] = dataclasses.field(default_factory=list)
    """Waiting jobs that Slurm might start by itself, to be held again, and why."""
    started: list[Job] = dataclasses.field(default_factory=list)
    """Jobs first seen on their nodes."""
    ended: list[tuple[int, float]] = dataclasses.field(default_factory=list)
    """Jobs that have left their nodes, and when they ended."""


class Mirror:
    """Keeps a scheduler in step with Slurm, whose state is authoritative.

    A new mirror of one snapshot equals one that has followed all snapshots. With `shadow`, Slurm starts the
    jobs itself, so waiting jobs need not be held.
    """

    def __init__(
        self,
        terms: RequestSettings,
        scheduler: Recorder,
        partitions: frozenset[str],
        *,
        priorities: Priorities | None = None,
        failures: LinkFailures | None = None,
        shadow: bool = False,
    ) -> None:
        self.terms, self.machine, self.scheduler = terms, terms.machine, scheduler
        self._names = [self.machine.node_name(node) for node in range(self.machine.nodes)]
        self._partitions = partitions
        self.priorities = priorities
        self.failures = failures
        """The failed links; None if no file of them is configured."""
        self._ordered_at = 0.0
        self._shadow = shadow
        self._nodes: NodeSelector | None = None
        self._waiting: dict[int, JobRequest] = {}
        self._running: dict[int, tuple[frozenset[int], float]] = {}
        """Nodes and walltime of the jobs that run in the scheduler."""
        self._released: dict[int, float] = {}
        """The time of release of the jobs that have not yet been seen on their nodes."""
        self.dedicated: dict[int, Allocation] = {}
        """The allocations of jobs with dedicated links, including those by an earlier daemon, until the jobs
        are known to have ended.
        """
        self._blocked: dict[int, tuple[int, ...]] = {}
        """Nodes of running jobs that the scheduler could not adopt: no other job may start there."""
        self._in_service = [True] * self.machine.nodes
        self._seen: dict[int, Job] = {}
        """Jobs as they were at the last look. Most do not change until the next snapshot."""
        self._pauses: dict[int, tuple[float, float]] = {}
        """For jobs that Slurm did not start: the length of the last pause, and its end."""
        self._over: set[int] = set()
        """Jobs that ran and have ended, as long as Slurm knows them."""
        self._has_looked = False
        self.is_timed = False
        """Whether a job waits for some minutes after the start of another."""
        self.reasons: dict[int, str] = {}
        """Why waiting jobs are not in the scheduler's queue."""
        self.refused: set[int] = set()
        """Waiting jobs that can never be placed as submitted."""

    def is_overdue(self, now: float) -> bool:
        """Whether a released job should be on its nodes by now, and is not."""
        return any(now - since > SHORT_PATIENCE for since in self._released.values())

    @property
    def has_blocked_nodes(self) -> bool:
        """Whether jobs hold nodes that the scheduler could not give them."""
        return bool(self._blocked)

    def manages(self, job: Job) -> bool:
        """Whether the daemon decides when it starts."""
        return bool(job.partitions) and self._partitions.issuperset(job.partitions)

    def seen(self, job: int) -> Job:
        """A job as it was last seen."""
        return self._seen[job]

    def request(self, job: int) -> JobRequest | None:
        """The request of a job in the scheduler's queue; None for other jobs."""
        return self._waiting.get(job)

    def update(self, snapshot: Snapshot) -> Changes:
        """Updates the scheduler with the changes in Slurm since the last snapshot."""
        changes = Changes()
        self._remove_ended(snapshot, changes)
        self._find_missed(snapshot, changes)
        if self._nodes is None or not self._nodes.is_current(snapshot):
            self._nodes = NodeSelector(self.machine, snapshot)
            self._reconsider_waiting()
        if self.priorities is not None and self.priorities.read_at != self._ordered_at:
            self._ordered_at = self.priorities.read_at
            self._reconsider_waiting()
        jobs = by_submission(snapshot.jobs.values())
        for job in jobs:
            if job.holds_nodes and (self._seen.get(job.id) != job or job.id in self._blocked):
                self._update_running(job, snapshot, changes)
        waiting = [job for job in jobs if job.waits and self.manages(job)]
        self.is_timed = any("+" in job.dependency for job in waiting)
        for job in waiting:
            if not job.is_held and not self._shadow:
                self._check_startable(job, snapshot, changes)
        holds = Holds(snapshot)
        for job in waiting:
            if (job.is_held or self._shadow) and not self._is_as_it_was(job, snapshot):
                self._update_waiting(job, snapshot, holds, changes)
        self._set_service(snapshot)
        return changes

    def follow_links(self) -> dict[int, frozenset[int]]:
        """Tells the scheduler which links have failed or are back. Returns the failed links of each affected
        job.

        Raises InputError if the file of failed links cannot be used.
        """
        if self.failures is None:
            return {}
        return self.failures.follow(self.scheduler, self._running, keep=not self._shadow)

    def decide(self, now: float) -> list[Start]:
        """The jobs that start now, in order."""
        starts = []
        for decision in self.scheduler.start(now):
            job = decision.id
            self.dedicated[job] = Allocation.of(decision)
            request = self._waiting.pop(job)
            self._running[job] = (self.dedicated[job].nodes, request.walltime)
            self._released[job] = now
            asked = self._seen[job]
            as_asked = bool(asked.required) and not placed_by_daemon(asked)
            starts.append(Start(asked, decision, self.machine.hostlist(decision.nodes), as_asked))
        return starts

    def withdraw_release(self, job: int) -> None:
        """Undoes a release that was not made: the next look considers the job again."""
        self._forget(job)

    def retry_release(self, job: int, now: float) -> None:
        """Schedules another try after Slurm refused a release. Each pause is longer, so the job does not
        block its nodes for ever.
        """
        self._forget(job)
        self._pause(job, now, 1.0)

    def _reconsider_waiting(self) -> None:
        """Makes the next update consider all waiting jobs, even unchanged ones."""
        self._seen = {job: seen for job, seen in self._seen.items() if not seen.waits}

    def _remove_ended(self, snapshot: Snapshot, changes: Changes) -> None:
        """Removes jobs that have ended or no longer run. Only then their nodes are free."""
        for job in list(self._seen):
            now = snapshot.jobs.get(job)
            if now is None or not (now.holds_nodes or now.waits):
                if job in self._running and job not in self._released:
                    changes.ended.append((job, now.end if now is not None and now.end else snapshot.time))
                    self._over.add(job)
                if self.terms.programs is not None:
                    self.terms.programs.forget(job)
                self._forget(job)
                self.dedicated.pop(job, None)
                self._pauses.pop(job, None)
            elif now.waits and (now.is_held or job not in self._released) and job in self._running:
                if now.reason == "BadConstraints":  # Slurm never starts it on these nodes
                    self._pause(job, snapshot.time, SHORT_PATIENCE)
                self._forget(job)  # requeued, or held again
            elif now.waits and not self.manages(now):
                self._forget(job)

    def _find_missed(self, snapshot: Snapshot, changes: Changes) -> None:
        """Finds jobs that started and ended between two looks."""
        over = {job.id for job in snapshot.jobs.values() if job.end and job.start and job.nodes}
        for job in over - self._over if self._has_looked else ():
            changes.started.append(snapshot.jobs[job])
            changes.ended.append((job, snapshot.jobs[job].end))
        self._over, self._has_looked = over, True

    def _forget(self, job: int) -> None:
        if job in self._running:
            self.scheduler.complete(job)
        if job in self._waiting:
            self.scheduler.cancel(job)
        for known in (self._running, self._waiting, self._released, self._blocked, self._seen, self.reasons):
            known.pop(job, None)
        self.refused.discard(job)

    def _update_running(self, job: Job, snapshot: Snapshot, changes: Changes) -> None:
        """Gives a running job its nodes in the scheduler, whichever partition it is in."""
        nodes = _nodes_of(job.nodes, self)
        is_new = job.id not in self._running or job.id in self._released
        if is_new and job.id not in self._blocked:
            changes.started.append(job)
        self._pauses.pop(job.id, None)
        walltime = _walltime(job)
        known = self._running.get(job.id)
        if is_new or known is None or known[0] != frozenset(nodes):
            # Also if it was released onto these nodes, since it started later than its release.
            self._forget(job.id)
            if not self._adopt(job, nodes, job.start or snapshot.time):
                self._blocked[job.id] = nodes  # Slurm shares nodes that are whole here
        elif known[1] != walltime:
            self.scheduler.set_walltime(job.id, walltime)
        self._seen[job.id] = job
        if job.id not in self._blocked:
            self._running[job.id] = (frozenset(nodes), walltime)

    def _adopt(self, job: Job, nodes: tuple[int, ...], start: float) -> bool:
        share = None
        if not self.terms.whole_nodes and not job.exclusive and job.cores_held:
            counted = {name: count for name, count in job.gres_held if name in self.machine.resources}
            share = {"cores": job.cores_held, "memory": memory_of(job, job.cores_held), **counted}
        given = self.dedicated.get(job.id)
        if given is None or given.nodes != frozenset(nodes):
            given = Allocation(frozenset(nodes), ())
        traffic = None if self.terms.traffic is None else self.terms.traffic.of_running(job)
        for links in dict.fromkeys((given.links, ())):
            with contextlib.suppress(InputError):
                self.scheduler.adopt(
                    job.id, nodes, start, _walltime(job), share, links, given.bandwidth_share, traffic
                )
                return True
        return False

    def holds_nodes_now(self, job: int) -> bool:
        """Whether it holds nodes, or has been released onto nodes."""
        return job in self._running or job in self._blocked

    def link_allocations(self) -> dict[int, Allocation]:
        """The allocations of the jobs with dedicated links that run or have been released."""
        found = {}
        for decision, _, _ in self.scheduler.scheduler.running:
            held, known = Allocation.of(decision), self.dedicated.get(decision.id)
            if held.links:
                same = known is not None and (known.nodes, known.links) == (held.nodes, held.links)
                found[decision.id] = known if known is not None and same else held
        return found

    def lent(self) -> dict[int, tuple[tuple[int, ...], float]]:
        """For each job, the links that it is lent since the last decision, and its share of full bandwidth
        with them.
        """
        return {job: (tuple(links), share) for job, links, share in self.scheduler.scheduler.lent}

    def _check_startable(self, job: Job, snapshot: Snapshot, changes: Changes) -> None:
        """Checks a waiting job that Slurm may start. Slurm must start it on the nodes that this or an earlier
        daemon chose; otherwise it is held again.
        """
        nodes = _nodes_of(job.required, self)
        if job.begin > snapshot.time + 1:
            self._withdraw(job)
            changes.to_hold.append((job, "requeued"))
            return
        if job.id not in self._released:
            whole = len(nodes) == job.fewest_nodes == job.most_nodes and was_released(job)
            if whole and self._adopt(job, nodes, snapshot.time):
                self._running[job.id] = (frozenset(nodes), _walltime(job))
                self._released[job.id] = snapshot.time
            else:
                self._withdraw(job)
                changes.to_hold.append((job, "Slurm might start it anywhere"))
        self._seen[job.id] = job
        since = snapshot.time - self._released.get(job.id, snapshot.time)
        taken = {node for others in self._blocked.values() for node in others}
        broken = any(node in taken or not self._is_usable(node, snapshot) for node in nodes)
        never = job.reason.startswith("Dependency")
        if since > PATIENCE or never or (broken and since > SHORT_PATIENCE):
            first = SHORT_PATIENCE if never else PATIENCE
            self._pause(job.id, snapshot.time, first, at_once=broken)
            changes.to_hold.append((job, f"Slurm does not start it: {job.reason}"))

    def _pause(self, job: int, now: float, first: float, *, at_once: bool = False) -> None:
        pause = min(2 * self._pauses.get(job, (first / 2, 0.0))[0], LONGEST_PAUSE)
        self._pauses[job] = (pause, now if at_once else now + pause)

    def _update_waiting(self, job: Job, snapshot: Snapshot, holds: Holds, changes: Changes) -> None:
        request = why = None
        try:
            why = holds.why(job)
            if why is None and self._nodes is not None:
                priority = self._priority_of(job, snapshot)
                cores_of = functools.partial(self._cores_of, now=snapshot.time)
                request = request_of(
                    job, snapshot, self._nodes, self.terms, priority=priority, cores_of=cores_of
                )
                _, until = self._pauses.get(job.id, (0.0, 0.0))
                request = (
                    dataclasses.replace(request, begin=max(request.begin, until))
                    if until > request.begin
                    else request
                )
        except (IneligibleJobError, InputError) as reason:
            self._refuse(job, str(reason), changes)
            return
        if request is None or self._waiting.get(job.id) != request:
            self._withdraw(job)
            refusal = None if request is None else self.scheduler.submit(job.id, request)
            if refusal is not None:
                self._refuse(job, refusal.why, changes)
                return
            if request is not None:
                self._waiting[job.id] = request
        self._seen[job.id] = job
        self.refused.discard(job.id)
        if why is None:
            self.reasons.pop(job.id, None)
        else:
            self.reasons[job.id] = why

    def _is_as_it_was(self, job: Job, snapshot: Snapshot) -> bool:
        """Whether it is already in the queue correctly, and only a change of the job itself could alter that."""
        by_others = job.dependency or job.array_limit or snapshot.reservations
        return not by_others and job.id in self._waiting and self._seen.get(job.id) == job

    def _cores_of(self, job: Job, eligible: tuple[int, ...], *, now: float) -> int | None:
        if self.terms.programs is None:
            return None
        running = (self._seen[other] for other in self._running if other in self._seen)
        return self.terms.programs.cores_of(job, eligible, running, self.scheduler.scheduler, now)

    def _priority_of(self, job: Job, snapshot: Snapshot) -> float:
        return 0.0 if self.priorities is None else self.priorities.of(job, snapshot, snapshot.time)

    def _refuse(self, job: Job, reason: str, changes: Changes) -> None:
        self._withdraw(job)
        self.refused.add(job.id)
        if self.reasons.get(job.id) != reason:
            self.reasons[job.id] = reason
            changes.ineligible.append((job, reason))
        self._seen[job.id] = job

    def _withdraw(self, job: Job) -> None:
        if self._waiting.pop(job.id, None) is not None:
            self.scheduler.cancel(job.id)

    def _set_service(self, snapshot: Snapshot) -> None:
        blocked = {node for nodes in self._blocked.values() for node in nodes}
        for node, was in enumerate(self._in_service):
            usable = node not in blocked and self._is_usable(node, snapshot)
            if usable != was:
                self.scheduler.set_in_service(node, usable)
                self._in_service[node] = usable

    def _is_usable(self, node: int, snapshot: Snapshot) -> bool:
        known = snapshot.nodes.get(self._names[node])
        return known is not None and known.usable


def _walltime(job: Job) -> float:
    return float("inf") if job.walltime is None else job.walltime


def _nodes_of(hosts: str, mirror: Mirror) -> tuple[int, ...]:
    try:
        return tuple(mirror.machine.nodes_named(hosts)) if hosts else ()
    except InputError:
        return ()
