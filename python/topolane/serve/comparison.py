"""Replays the jobs that a live system had since the page started under other policies: utilisation, queue and
waits.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import threading
import time
from collections.abc import Sequence

from topolane._engine import Machine
from topolane.cluster.view import Running, View, Waiting
from topolane.serve.forecast import NEVER, Copy
from topolane.serve.lines import edges_of, line_of
from topolane.serve.source import PolicyLine, Series

MOST_JOBS = 20_000
"""After this number of jobs, the comparison starts again from the system's present state."""
PART = 0.05
"""The fraction of time that computing the other policies may take."""


@dataclasses.dataclass
class ObservedJob:
    """A job that was in the system. Times are in seconds."""

    job: Waiting
    since: float
    """When the job was submitted; when its hold ended, if it was held first."""
    seen: float
    """The earliest time from which the page knew that the job could start."""
    start: float = NEVER
    end: float = NEVER
    """When the job left the system, even if it never started."""

    @property
    def runs(self) -> float:
        """The job's run time; infinite while it is not known."""
        return self.end - self.start if self.end < NEVER and self.start < NEVER else NEVER


class Followed:
    """The jobs that a live system had, collected from consecutive snapshots."""

    def __init__(self) -> None:
        self.base: View | None = None
        """The first snapshot. Its running jobs are numbered by their index in `jobs`."""
        self.jobs: list[ObservedJob] = []
        self.outs: list[tuple[float, tuple[int, ...]]] = []
        """The nodes out of service from each time on."""
        self.last = 0.0
        self._now: dict[int, int] = {}
        self._held: set[int] = set()

    def add(self, snapshot: View) -> None:
        """Adds a later snapshot."""
        if self.base is None:
            running = [dataclasses.replace(job, id=number) for number, job in enumerate(snapshot.running)]
            self.base = dataclasses.replace(snapshot, running=tuple(running), waiting=())
        there = {job.id for job in snapshot.running} | {job.id for job in snapshot.waiting}
        for id in [id for id in self._now if id not in there]:
            self._end(id, snapshot.time)
        self._held &= there
        for job in snapshot.running:
            self._runs(job)
        for waiting in snapshot.waiting:
            self._waits(waiting, snapshot.time)
        if not self.outs or self.outs[-1][1] != snapshot.out:
            self.outs.append((snapshot.time, snapshot.out))
        self.last = snapshot.time

    def _runs(self, job: Running) -> None:
        known = self._observed(job.id)
        if known is not None and known.start in (NEVER, job.start):
            if known.since == job.start and known.job.nodes < len(job.nodes):
                self._widen(self._now[job.id], job)
            known.start = job.start
            return
        if known is not None:  # the job was requeued since the last snapshot, or its start was changed
            self._end(job.id, max(known.start, job.start))
        walltime = None if job.end is None else job.end - job.start
        self._begin(
            job.id, Waiting(0, "", "", "", len(job.nodes), job.start, walltime, share=job.share), job.start
        )
        self.jobs[-1].start = job.start

    def _widen(self, number: int, job: Running) -> None:
        """Corrects the nodes of a group that was first seen while only some of its pods were bound."""
        observed = self.jobs[number]
        observed.job = dataclasses.replace(observed.job, nodes=len(job.nodes))
        base = self.base
        if base is not None and number < len(base.running):
            there = list(base.running)
            there[number] = dataclasses.replace(there[number], nodes=job.nodes)
            self.base = dataclasses.replace(base, running=tuple(there))

    def _waits(self, job: Waiting, now: float) -> None:
        known = self._observed(job.id)
        if known is not None and known.start < NEVER:  # the job was requeued
            self._end(job.id, now)
        elif known is not None:
            return
        if job.held:
            self._held.add(job.id)
            return
        self._begin(job.id, job, now if job.id in self._held or known is not None else job.submit)

    def _observed(self, id: int) -> ObservedJob | None:
        return self.jobs[self._now[id]] if id in self._now else None

    def _begin(self, id: int, job: Waiting, since: float) -> None:
        assert self.base is not None
        self._now[id] = number = len(self.jobs)
        self._held.discard(id)
        self.jobs.append(ObservedJob(dataclasses.replace(job, id=number), since, max(since, self.base.time)))

    def _end(self, id: int, now: float) -> None:
        self.jobs[self._now.pop(id)].end = now


def starts(machine: Machine, followed: Followed, policy: str, queue: str) -> list[float]:
    """When each job would have started under a policy, if each ran as long as it did in the system; infinite
    if it has not started.

    At first the jobs run where the system had placed them. Submissions and cancellations are those of the
    system.
    """
    base, jobs = followed.base, followed.jobs
    assert base is not None
    copied = Copy(machine, base, policy, queue, {number: each.runs for number, each in enumerate(jobs)})
    found = [each.start for each in jobs[: len(base.running)]] + [NEVER] * (len(jobs) - len(base.running))
    events = [(each.seen, 0, number) for number, each in enumerate(jobs) if number >= len(base.running)]
    events += [(each.end, 1, number) for number, each in enumerate(jobs) if each.end < each.start == NEVER]
    events += [(time, 2, index) for index, (time, _) in enumerate(followed.outs)]
    for time_, group in itertools.groupby(sorted(events), key=lambda event: event[0]):
        for start in copied.advance(time_):
            found[start.id] = start.start
        for _, kind, number in group:
            if kind == 0:
                copied.submit(jobs[number].job, number)
            elif kind == 1:
                copied.withdraw(number)
            else:
                copied.set_out(followed.outs[number][1])
    for start in (*copied.advance(followed.last), *copied.starts()):
        found[start.id] = start.start
    return found


class PolicyComparison:
    """Statistics of a live system, and of other policies with the same jobs. Several threads may use it."""

    def __init__(self, machine: Machine, name: str, policies: Sequence[str], queue: str) -> None:
        self._machine, self._name, self._policies, self._queue = machine, name, policies, queue
        self._followed, self._lock = Followed(), threading.Lock()
        self._series: Series | None = None
        self._again = 0.0

    def add(self, snapshot: View) -> None:
        """Adds a later snapshot. Starts again from this one if there are too many jobs or the clock was set
        back.
        """
        with self._lock:
            if len(self._followed.jobs) > MOST_JOBS or snapshot.time < self._followed.last:
                self._followed = Followed()
            self._followed.add(snapshot)

    def series(self) -> Series | None:
        """A line for the system and one for each policy; None before the first snapshot.

        They are computed again only as often as `PART` allows.
        """
        began = time.monotonic()
        if self._series is None or began >= self._again:
            with self._lock:
                followed = copy.deepcopy(self._followed)
            if followed.base is not None:
                self._series = self._made(followed, followed.base)
            self._again = began + (time.monotonic() - began) / PART
        return self._series

    def _made(self, followed: Followed, base: View) -> Series:
        jobs = followed.jobs
        edges = edges_of(base.time, followed.last)
        submits, nodes = [each.since for each in jobs], [each.job.nodes for each in jobs]

        def drawn(name: str, starts: Sequence[float], ends: Sequence[float]) -> PolicyLine:
            return line_of(name, edges, self._machine.nodes, submits, starts, ends, nodes)

        lines = [drawn(self._name, [each.start for each in jobs], [each.end for each in jobs])]
        for policy in self._policies:
            found = starts(self._machine, followed, policy, self._queue)
            ends = [min(start + each.runs, _gone(each)) for start, each in zip(found, jobs)]
            lines.append(drawn(f"{policy}, {self._queue}", found, ends))
        return Series([float(edge) for edge in edges[1:]], lines)


def _gone(observed: ObservedJob) -> float:
    """When a job was cancelled before its start; infinite for other jobs."""
    return observed.end if observed.start == NEVER else NEVER
