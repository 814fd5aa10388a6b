"""When waiting jobs will start, if every job runs to its walltime and nobody else comes.

The snapshot is played on: its records are changed as Slurm would change them, and the mirror, its
scheduler and all that holds jobs back (dependencies, arrays, reservations, begin times) are those of the
daemon.
"""

from __future__ import annotations

import dataclasses
import time

from topolane.slurm.comments import TO_BE_PLACED
from topolane.slurm.mirror import Changes, Mirror, Start
from topolane.slurm.records import Job, Snapshot

BUDGET = 2.0
"""Seconds of computing after which a forecast stops."""


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What is known of the starts to come."""

    starts: dict[int, tuple[float, Start]]
    """When and where jobs start, by their identity."""
    until: float | None
    """It was not played on beyond this time; None where it was played to its end."""


def forecast(
    mirror: Mirror, snapshot: Snapshot, changes: Changes, starts: list[Start], *, budget: float = BUDGET
) -> Forecast:
    """Plays on from `snapshot`, which `mirror` has just been told: what it then asked for and started.

    A job past its walltime ends now, and so does one that is completing. Jobs end well: what waits for
    another's failure waits for ever. `mirror` is at the end of it all afterwards.
    budget: seconds of computing after which it stops.
    """
    give_up = time.perf_counter() + budget
    play = _Play(mirror, snapshot)
    play.act(changes, starts)
    if changes.escaped:
        play.go_to(snapshot.time)  # what is held again is placed at the next look
    while play.is_anybody_waiting() and (then := play.next()) is not None:
        if time.perf_counter() > give_up:
            return Forecast(play.starts, play.now)
        play.go_to(then)
    return Forecast(play.starts, None)


class _Play:
    def __init__(self, mirror: Mirror, snapshot: Snapshot) -> None:
        self.mirror, self.snapshot, self.now = mirror, snapshot, snapshot.time
        self.jobs = dict(snapshot.jobs)
        self.starts: dict[int, tuple[float, Start]] = {}
        given = {job: nodes for job, _, _, nodes in mirror.scheduler.scheduler.running}
        self.ends = {}
        for job in snapshot.jobs.values():
            if job.holds_nodes:
                self.ends[job.id] = _end(job, snapshot.time)
            elif job.waits and not job.is_held and job.id in given:
                self._starts(job, mirror.machine.hostlist(given[job.id]))
        edges = [edge for each in snapshot.reservations.values() for edge in (each.start, each.end)]
        self.edges = sorted(edge for edge in edges if self.now < edge < float("inf"))

    def is_anybody_waiting(self) -> bool:
        mirror = self.mirror
        return bool(mirror.scheduler.scheduler.waiting or mirror.reasons)

    def next(self) -> float | None:
        """When something happens next."""
        times = [max(end, self.now) for end in self.ends.values() if end < float("inf")]
        begin = self.mirror.scheduler.scheduler.next_begin(self.now)
        times += [edge for edge in self.edges if edge > self.now][:1]
        return min(times + ([] if begin is None else [begin]), default=None)

    def go_to(self, now: float) -> None:
        self.now = now
        for job in [job for job, end in self.ends.items() if end <= now]:
            del self.ends[job]
            self.jobs[job] = dataclasses.replace(self.jobs[job], state="COMPLETED", nodes="")
        changes = self.mirror.update(dataclasses.replace(self.snapshot, time=now, jobs=self.jobs))
        self.act(changes, self.mirror.decide(now))

    def act(self, changes: Changes, starts: list[Start]) -> None:
        """Does to the records what the daemon does in Slurm."""
        for job, _ in changes.escaped:
            self.jobs[job.id] = dataclasses.replace(job, priority=0, comment=TO_BE_PLACED, required="")
        for start in starts:
            self.starts[start.job.id] = (self.now, start)
            self._starts(start.job, start.hosts)

    def _starts(self, job: Job, hosts: str) -> None:
        running = dataclasses.replace(job, state="RUNNING", nodes=hosts, start=self.now, priority=1)
        self.jobs[job.id] = running
        self.ends[job.id] = _end(running, self.now)


def _end(job: Job, now: float) -> float:
    if job.state == "COMPLETING":
        return now
    return float("inf") if job.walltime is None else max(job.start + job.walltime, now)
