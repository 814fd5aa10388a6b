"""A copy of a snapshot in the engine that can be run forward in time to see which job starts when. It changes
nothing in the live system.
"""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import math
import time
from collections.abc import Mapping, Sequence

from topolane._engine import Decision, InputError, Machine, Refusal, Scheduler
from topolane.cluster.view import Reserved, Running, View, Waiting
from topolane.policy import resolve

DEPTH = 2000
"""The number of waiting jobs that a forecast considers, from the head of the queue."""
NEVER = float("inf")


@dataclasses.dataclass(frozen=True)
class Start:
    """The start of a waiting job in a forecast."""

    id: int
    nodes: Sequence[int]
    start: float
    end: float


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The starts of jobs if each job uses its whole walltime and no further job comes."""

    starts: list[Start]
    until: float
    """The end of the forecast."""
    whole: bool
    """Whether the forecast covers everything requested; False if it reached its time budget."""


class Copy:
    """A scheduler with the jobs of a snapshot. It is a copy, so callers may change it freely."""

    def __init__(
        self,
        machine: Machine,
        snapshot: View,
        policy: str,
        queue: str,
        runs: Mapping[int, float] | None = None,
    ) -> None:
        """runs: run times of jobs by number; other jobs use their whole walltime."""
        self.time, self._runs = snapshot.time, runs or {}
        self.scheduler = Scheduler(machine, resolve(policy), queue)
        self.refused: dict[int, Refusal] = {}
        """Waiting jobs that can never be placed, with the reason."""
        self.lost = 0
        """The number of running jobs that the engine cannot take over: their nodes lack what the snapshot
        says, or another job holds it.
        """
        self._nodes, self._reserved = machine.nodes, snapshot.reserved
        self._queued: dict[int, tuple[Waiting, int]] = {}
        """Jobs that have not started, with their order. A job that reservations exclude from all nodes is
        listed but does not wait in the scheduler.
        """
        self._ends: list[tuple[float, int]] = []
        self._changes: list[tuple[float, int]] = []
        """The times at which a reservation starts or stops excluding a job from nodes."""
        for job in snapshot.running:
            self._adopt(job)
        self._out: frozenset[int] = frozenset()
        self.set_out(snapshot.out)
        ready = [job for job in snapshot.waiting if not job.held]
        self.beyond_depth = len(ready) - DEPTH
        for order, one in enumerate(ready[:DEPTH]):
            # A job that the engine refuses because of its user's request has no forecast.
            with contextlib.suppress(InputError):
                self.submit(one, order)
        wait = snapshot.head_wait
        if wait is not None and wait.policy == policy:
            self.scheduler.set_head_wait(wait.id, wait.until)

    def set_out(self, nodes: Sequence[int]) -> None:
        """Takes exactly these nodes out of service."""
        out = frozenset(nodes)
        for node in out ^ self._out:
            self.scheduler.set_in_service(node, node not in out)
        self._out = out

    def _adopt(self, job: Running) -> None:
        walltime = NEVER if job.end is None else max(job.end - job.start, 0.0)
        share = None if job.share is None else dict(job.share)
        for own in (job.links, ()):
            try:
                self.scheduler.adopt(
                    *(job.id, job.nodes, job.start, walltime),
                    share=share,
                    links=own,
                    bandwidth_share=job.bandwidth_share if own else 1.0,
                )
            except InputError:
                continue
            end = job.start + self._runs.get(job.id, walltime)
            if end < NEVER:
                heapq.heappush(self._ends, (max(end, self.time), job.id))
            return
        self.lost += 1

    def submit(self, job: Waiting, order: int) -> Refusal | None:
        """Queues a job behind those with a lower `order`. Returns the refusal if it can never be placed,
        otherwise None.
        """
        choices: list[Sequence[int] | None] = [_both(one.nodes, job.eligible) for one in self._own(job)]
        refusal = None
        for nodes in choices or [job.eligible]:
            refusal = self._queue(job, order, nodes)
            if refusal is None:
                break
        if refusal is not None:
            self.refused[job.id] = refusal
            return refusal
        self._queued[job.id] = job, order
        if self._reserved:
            self._reconsider(job, order)
        return None

    def _queue(self, job: Waiting, order: int, eligible: Sequence[int] | None) -> Refusal | None:
        return self.scheduler.submit(
            *(job.id, job.nodes, length_of(job)),
            order=order,
            share=None if job.share is None else dict(job.share),
            eligible=eligible,
        )

    def _reconsider(self, job: Waiting, order: int) -> None:
        """Queues a job again, on the nodes from which no reservation excludes it now."""
        self.scheduler.cancel(job.id)
        change = min((time for time in self._boundaries(job) if time > self.time), default=NEVER)
        if change < NEVER:
            heapq.heappush(self._changes, (change, job.id))
        for usable in self.usable(job)[:1]:
            self._queue(job, order, usable)  # if it is refused, it waits for the next change

    def usable(self, job: Waiting) -> list[Sequence[int] | None]:
        """The sets of nodes on which a job may start now, one set per reservation of the job; None stands for
        all nodes.
        """
        own, kept_off = self._own(job), {node for one in self.kept_off(job) for node in one.nodes}
        if not own and not kept_off:
            return [job.eligible]
        begun = [one.nodes for one in own if one.start <= self.time <= one.end - length_of(job)]
        choices = (_both(nodes, job.eligible) for nodes in (begun if own else [range(self._nodes)]))
        found = ([node for node in nodes if node not in kept_off] for nodes in choices)
        return [nodes for nodes in found if nodes]

    def _boundaries(self, job: Waiting) -> list[float]:
        """The times at which the nodes that a job may use change: it must end before other jobs' reservations
        begin, and within its own.
        """
        length = length_of(job)
        others = [time for one in self._others(job) for time in (_after(one.start - length), one.end)]
        return others + [time for one in self._own(job) for time in (one.start, _after(one.end - length))]

    def kept_off(self, job: Waiting) -> list[Reserved]:
        """The reservations whose nodes a job may not use now, because it would still run when they begin."""
        length = length_of(job)
        return [one for one in self._others(job) if one.start - length < self.time < one.end]

    def _others(self, job: Waiting) -> list[Reserved]:
        return [one for one in self._reserved if one.name not in job.reservations]

    def _own(self, job: Waiting) -> list[Reserved]:
        named = {one.name: one for one in self._reserved}
        return [named[name] for name in job.reservations if name in named]

    def starts(self) -> list[Start]:
        """Starts the jobs that start now, and returns them."""
        found = self._started()
        for job, order in [row for row in self._queued.values() if len(row[0].reservations) > 1]:
            found += self._in_the_others(job, order)
        return found

    def _in_the_others(self, job: Waiting, order: int) -> list[Start]:
        """Queues a job that did not start in its first reservation for its next ones. Returns what starts
        then.
        """
        found: list[Start] = []
        first, *others = self.usable(job) or [()]
        for nodes in others:
            if job.id in self._queued:
                self.scheduler.cancel(job.id)
                self._queue(job, order, nodes)
                found += self._started()
        if others and job.id in self._queued:
            self.scheduler.cancel(job.id)
            self._queue(job, order, first)
        return found

    def _started(self) -> list[Start]:
        found = []
        for one in self.scheduler.start(self.time):
            job, _ = self._queued.pop(one.id)
            end = self.time + self._runs.get(one.id, length_of(job))
            if end < NEVER:
                heapq.heappush(self._ends, (end, one.id))
            found.append(Start(one.id, _nodes(one), self.time, end))
        return found

    def withdraw(self, id: int) -> None:
        """Removes a job, whether it waits or runs."""
        self._queued.pop(id, None)
        if not self.scheduler.cancel(id):
            self.scheduler.complete(id)

    def next_time(self) -> float:
        """The next time at which a job ends or a reservation matters; infinite if there is none."""
        return min((events[0][0] for events in (self._ends, self._changes) if events), default=NEVER)

    def next_event(self) -> bool:
        """Moves to the next time at which a job ends or a reservation matters. Returns False if there is
        none.
        """
        if self.next_time() == NEVER:
            return False
        self.time = max(self.time, self.next_time())
        while self._ends and self._ends[0][0] <= self.time:
            self.scheduler.complete(heapq.heappop(self._ends)[1])
        while self._changes and self._changes[0][0] <= self.time:
            _, id = heapq.heappop(self._changes)
            if id in self._queued:
                self._reconsider(*self._queued[id])
        return True

    def advance(self, until: float) -> list[Start]:
        """Moves to the time `until`. Returns the jobs that start before it; jobs that end by then have ended."""
        found = self.starts()
        while self.next_time() < until and self.next_event():
            found += self.starts()
        self.time = max(self.time, until)
        while self.next_time() <= self.time:
            self.next_event()
        return found

    def run(self, until: float, budget: float, wanted: int | None = None) -> Forecast:
        """Lets time pass until `until`, until the budget of seconds is used up, or until the job `wanted`
        starts.
        """
        found: list[Start] = []
        deadline = time.monotonic() + budget
        while True:
            found += self.starts()
            if (wanted is not None and any(one.id == wanted for one in found)) or not self._queued:
                return Forecast(found, self.time, True)
            if time.monotonic() > deadline:
                return Forecast(found, self.time, False)
            if not self.next_event() or self.time > until:
                return Forecast(found, min(self.time, until), True)


def length_of(job: Waiting) -> float:
    """The walltime of a job; infinite without one."""
    return NEVER if job.walltime is None else job.walltime


def _after(last: float) -> float:
    """The first time after `last`, the last time at which a job may still start."""
    return math.nextafter(last, NEVER)


def _both(nodes: Sequence[int], eligible: Sequence[int] | None) -> Sequence[int]:
    """The nodes that are also eligible; all of them if `eligible` is None."""
    if eligible is None:
        return nodes
    may = set(eligible)
    return [node for node in nodes if node in may]


def _nodes(decision: Decision) -> list[int]:
    return sorted({*decision.nodes, *decision.spare})
