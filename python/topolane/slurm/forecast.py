"""When waiting jobs will start, if every job runs to its walltime and no other job is submitted.

The forecast simulates what follows the snapshot. It changes the records as Slurm would, and uses the daemon's
own mirror, scheduler and rules that hold jobs back (dependencies, arrays, reservations, begin times).
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterable

from topolane.slurm.comments import TO_BE_PLACED
from topolane.slurm.mirror import Changes, Mirror, Start
from topolane.slurm.records import Job, Snapshot

BUDGET = 2.0
"""Seconds of computing after which a forecast stops."""


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The expected starts."""

    starts: dict[int, tuple[float, Start]]
    """When and where jobs start, by their identity."""
    until: float | None
    """The time at which the simulation stopped; None if it reached its end."""


def forecast(
    mirror: Mirror, snapshot: Snapshot, changes: Changes, starts: list[Start], *, budget: float = BUDGET
) -> Forecast:
    """Simulates what follows `snapshot`. `mirror` has just been updated with it, which gave `changes` and
    `starts`.

    A job past its walltime ends now, and so does a completing job. All jobs succeed, so a job that depends on
    a failure never starts. This advances `mirror` to the end of the simulation. budget: seconds of computing
    after which it stops.
    """
    give_up = time.perf_counter() + budget
    play = _Play(mirror, snapshot)
    play.act(changes, starts)
    while play.has_waiting_jobs() and (then := play.next()) is not None:
        if time.perf_counter() > give_up:
            return Forecast(play.starts, play.now)
        play.go_to(then)
    return Forecast(play.starts, None)


class _Play:
    def __init__(self, mirror: Mirror, snapshot: Snapshot) -> None:
        self.mirror, self.snapshot, self.now = mirror, snapshot, snapshot.time
        self.jobs = dict(snapshot.jobs)
        self.starts: dict[int, tuple[float, Start]] = {}
        given = {given.id: given.nodes for given, _, _ in mirror.scheduler.scheduler.running}
        self.ends = {}
        for job in snapshot.jobs.values():
            if job.holds_nodes:
                self.ends[job.id] = _end(job, snapshot.time)
            elif job.waits and not job.is_held and job.id in given:
                self._starts(job, mirror.machine.hostlist(given[job.id]))
        edges = [edge for each in snapshot.reservations.values() for edge in (each.start, each.end)]
        self.edges = sorted(edge for edge in edges if self.now < edge < float("inf"))
        self.watched = _watched(job for job in snapshot.jobs.values() if job.waits)
        self.must_look = False
        """Whether the mirror must be updated: something has happened that other jobs wait for."""

    def has_waiting_jobs(self) -> bool:
        mirror = self.mirror
        return bool(mirror.scheduler.scheduler.waiting or mirror.reasons)

    def next(self) -> float | None:
        """The time of the next event."""
        if self.must_look:
            return self.now
        times = [max(end, self.now) for end in self.ends.values() if end < float("inf")]
        begin = self.mirror.scheduler.scheduler.next_begin(self.now)
        times += [edge for edge in self.edges if edge > self.now][:1]
        return min(times + ([] if begin is None else [begin]), default=None)

    def go_to(self, now: float) -> None:
        self.now = now
        ended = [job for job, end in self.ends.items() if end <= now]
        for job in ended:
            del self.ends[job]
            self.jobs[job] = dataclasses.replace(self.jobs[job], state="COMPLETED", nodes="")
        changes = Changes()
        by_time = bool(self.snapshot.reservations)
        if by_time or self.must_look or any(self._matters(self.jobs[job]) for job in ended):
            changes = self.mirror.update(dataclasses.replace(self.snapshot, time=now, jobs=self.jobs))
        else:
            for job in ended:
                self.mirror.withdraw_release(job)
        self.must_look = False
        self.act(changes, self.mirror.decide(now))

    def _matters(self, job: Job) -> bool:
        """Whether its start or end may release jobs that are not in the scheduler's queue."""
        return self.mirror.has_blocked_nodes or not self.watched.isdisjoint(
            (job.number, str(job.array), (job.user, job.name))
        )

    def act(self, changes: Changes, starts: list[Start]) -> None:
        """Changes the records as the daemon would change Slurm."""
        for job, _ in changes.to_hold:
            self.jobs[job.id] = dataclasses.replace(job, priority=0, comment=TO_BE_PLACED, required="")
            self.ends.pop(job.id, None)
            self.must_look = True
        for start in starts:
            self.starts[start.job.id] = (self.now, start)
            self._starts(start.job, start.hosts)
            self.must_look |= self._matters(start.job)

    def _starts(self, job: Job, hosts: str) -> None:
        running = dataclasses.replace(job, state="RUNNING", nodes=hosts, start=self.now, priority=1)
        self.jobs[job.id] = running
        self.ends[job.id] = _end(running, self.now)


def _end(job: Job, now: float) -> float:
    if job.state == "COMPLETING":
        return now
    return float("inf") if job.walltime is None else max(job.start + job.walltime, now)


def _watched(waiting: Iterable[Job]) -> set[object]:
    """The numbers of jobs and arrays, and the users and names, that some job waits for."""
    watched: set[object] = set()
    for job in waiting:
        if job.array_limit:
            watched.add(str(job.array))
        watched.update(re.findall(r"\d+", job.dependency))
        if "singleton" in job.dependency:
            watched.add((job.user, job.name))
    return watched
