"""Infers until when jobs were held: while EASY would have started them on the recorded machine but they did
not start.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topolane.inference.log import RunLog
    from topolane.inference.service import Service

SOON = 60.0
"""A job that starts within this many seconds was not held, because a scheduler takes that long to act."""


def held_until(log: RunLog, service: Service) -> NDArray[np.float64]:
    """For each job, the moment after which it no longer counts as held; nan for a job that never did.

    At each submission, start and end in the log, EASY decides what it would start on the machine of that
    moment. A job that EASY starts and the log does not is held. If the log starts a job that would delay the
    head of the queue, the head is held.

    Moments are processed from last to first, because a job held at one moment was held at all earlier ones
    too. In forward order, a held job that does not fit at a moment would be taken as the head of the queue,
    and jobs that wait for the true head would count as held.
    """
    moments = np.unique(np.concatenate((log.submit, log.start, log.end)))[::-1]
    queue = np.argsort(log.rank)
    machine = _Recorded(log.in_order(queue))
    until = np.full(len(queue), np.nan)
    later = float(moments[0])
    for now, nodes in zip(moments.tolist(), service.at(moments).tolist()):
        until[queue[machine.held(now, nodes)]] = later
        later = now
    return np.asarray(np.minimum(until, log.start))


class _Due:
    """Yields jobs by one of their times, from the latest back to the earliest."""

    def __init__(self, times: NDArray[np.float64]) -> None:
        self._order: list[int] = np.argsort(times, kind="stable").tolist()
        self._times: list[float] = np.sort(times).tolist()

    def since(self, now: float) -> list[int]:
        """The jobs whose time is `now` or later and that no earlier call returned."""
        first = bisect.bisect_left(self._times, now)
        found = self._order[first:]
        del self._order[first:], self._times[first:]
        return found


class _Recorded:
    """The recorded machine and queue, moved backwards from moment to moment. Jobs are numbered in order of
    the queue.
    """

    def __init__(self, log: RunLog) -> None:
        self._submissions, self._starts, self._ends = map(_Due, (log.submit, log.start, log.end))
        self.nodes: list[float] = log.nodes.tolist()
        self._walltime: list[float] = log.walltime.tolist()
        self._start: list[float] = log.start.tolist()
        self._runs: list[bool] = (log.end > log.start).tolist()
        self._log = log
        self._waiting = np.zeros(0, np.int64)
        """Jobs that are not held at any later moment, in order of the queue."""
        self._expected: list[tuple[float, int]] = []
        """(expected end, job) of the running jobs, in order."""
        self._end_of: dict[int, float] = {}
        self._busy = 0.0

    def held(self, now: float, in_service: float) -> list[int]:
        """Moves back to `now`. Returns the jobs that are held then and were not found held at a later moment."""
        starting = sorted(self._starts.since(now))
        for job in starting:
            self._leave(job)
        self._waiting = np.insert(self._waiting, np.searchsorted(self._waiting, starting), starting)
        found = _Pass(self, now, in_service - self._busy, starting).held(self._waiting)
        for job in starting:
            self._leave(job)
        for job in self._ends.since(now):
            self.start(job)
        gone = [*found, *self._submissions.since(now)]
        if gone:
            self._waiting = self._waiting[~np.isin(self._waiting, gone)]
        return found

    def that_fit(
        self, jobs: NDArray[np.int64], free: float, now: float, at: float, spare: float
    ) -> list[int]:
        """The jobs that each fit on the free nodes and respect a reservation, considered one at a time."""
        wanted = self._log.nodes[jobs]
        keeps = (now + self._log.walltime[jobs] <= at) | (wanted <= spare)
        found: list[int] = jobs[(wanted <= free) & keeps].tolist()
        return found

    def start(self, job: int) -> None:
        """Lets the job run since its start in the log."""
        if self._runs[job]:
            self._busy += self.nodes[job]
            self._end_of[job] = self._start[job] + self._walltime[job]
            bisect.insort(self._expected, (self._end_of[job], job))

    def _leave(self, job: int) -> None:
        """Removes the job from the running ones."""
        if job in self._end_of:
            del self._expected[bisect.bisect_left(self._expected, (self._end_of.pop(job), job))]
            self._busy -= self.nodes[job]

    def reservation(self, wanted: float, free: float, now: float) -> tuple[float, float]:
        """The time when `wanted` nodes are expected to be free, and the number of nodes that remain free
        then.
        """
        at = math.inf
        for end, job in self._expected:
            if end > at:
                return max(at, now), free - wanted
            free += self.nodes[job]
            if free >= wanted:
                at = end
        return (max(at, now), free - wanted) if at < math.inf else (math.inf, 0.0)

    def is_late(self, job: int, now: float, at: float) -> bool:
        """Whether a job that starts now may run past the time `at`."""
        return now + self._walltime[job] > at

    def starts_soon(self, job: int, now: float) -> bool:
        """Whether the log starts the job so soon that it is not held."""
        return self._start[job] - now <= SOON


class _Pass:
    """One pass of EASY over the queue that starts only the jobs that the log starts."""

    def __init__(self, machine: _Recorded, now: float, free: float, starting: Iterable[int]) -> None:
        self._machine = machine
        self._now = now
        self._free = free
        self._left = set(starting)
        self._held: list[int] = []

    def held(self, waiting: NDArray[np.int64]) -> list[int]:
        """Starts the jobs that the log starts now. Returns the jobs of the queue that are held."""
        for place, job in enumerate(waiting):
            if self._has_turn(int(job)):
                continue
            at, spare = self._machine.reservation(self._machine.nodes[job], self._free, self._now)
            if self._is_kept(at, spare):
                self._backfill(waiting[place + 1 :], at, spare)
                break
            self._held.append(int(job))
        return self._held

    def _backfill(self, behind: NDArray[np.int64], at: float, spare: float) -> None:
        """Gives a turn to the jobs behind the head that respect its reservation or that the log starts."""
        fit = self._machine.that_fit(behind, self._free, self._now, at, spare)
        for job in sorted({*fit, *self._left}):
            late = self._machine.is_late(job, self._now, at)
            if job in self._left or not late or self._machine.nodes[job] <= spare:
                before = self._free
                self._has_turn(job)
                spare -= before - self._free if late else 0.0

    def _has_turn(self, job: int) -> bool:
        """Whether the job fits on the free nodes, or the log starts it. It takes nodes if the log starts it
        now or soon; otherwise it is held.
        """
        wanted = self._machine.nodes[job]
        if job in self._left:
            self._left.discard(job)
            self._machine.start(job)
        elif wanted > self._free:
            return False
        elif not self._machine.starts_soon(job, self._now):
            self._held.append(job)
            return True
        self._free -= wanted
        return True

    def _is_kept(self, at: float, spare: float) -> bool:
        """Whether the jobs that the log starts now respect a reservation."""
        free = self._free
        for job in sorted(self._left):
            wanted = self._machine.nodes[job]
            if wanted > free:
                continue
            free -= wanted
            if self._machine.is_late(job, self._now, at):
                spare -= wanted
                if spare < 0:
                    return False
        return True
