"""Until when jobs were held: as long as EASY would have started them on the recorded machine, and they did not start."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topolane.inference.log import Log
    from topolane.inference.service import Service

SOON = 60.0
"""Seconds within which a job that starts was not held: a scheduler takes that long to act."""


def held_until(log: Log, service: Service) -> NDArray[np.float64]:
    """For each job the moment after which it no longer counts as held; nan for one that never did.

    At every submission, start and end in the log, EASY is asked what it would start on the machine as it was then. What it would
    start and the log does not is held. If the log starts a job that would delay the head of the queue, the head is held.

    The moments are taken from the last to the first, because a held job was held at all earlier moments too. Taken from the first, a
    held job that does not fit at the moment would be the head of the queue, and jobs that wait for the true head would count as held.
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
    """The jobs in order of one of their times, the last first, given out as time goes back."""

    def __init__(self, times: NDArray[np.float64]) -> None:
        self._order: list[int] = np.argsort(times, kind="stable").tolist()
        self._times: list[float] = np.sort(times).tolist()

    def since(self, now: float) -> list[int]:
        """Those whose time is `now` or later, and that no call gave before."""
        first = bisect.bisect_left(self._times, now)
        found = self._order[first:]
        del self._order[first:], self._times[first:]
        return found


class _Recorded:
    """The machine and its queue as the log says, moved back from one moment to the one before. Jobs are numbered in order of the queue."""

    def __init__(self, log: Log) -> None:
        self._submissions, self._starts, self._ends = map(_Due, (log.submit, log.start, log.end))
        self.nodes: list[float] = log.nodes.tolist()
        self._walltime: list[float] = log.walltime.tolist()
        self._start: list[float] = log.start.tolist()
        self._runs: list[bool] = (log.end > log.start).tolist()
        self._log = log
        self._waiting = np.zeros(0, np.int64)
        """Jobs in order of the queue that are not held at a later moment."""
        self._expected: list[tuple[float, int]] = []
        """(expected end, job) of the running jobs, in order."""
        self._end_of: dict[int, float] = {}
        self._busy = 0.0

    def held(self, now: float, in_service: float) -> list[int]:
        """Moves back to `now`; the jobs that are held then, and for which no later moment showed it."""
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
        """Those of the jobs that fit into what is free and keep a reservation, each for itself."""
        wanted = self._log.nodes[jobs]
        keeps = (now + self._log.walltime[jobs] <= at) | (wanted <= spare)
        found: list[int] = jobs[(wanted <= free) & keeps].tolist()
        return found

    def start(self, job: int) -> None:
        """The job runs, since its start in the log."""
        if self._runs[job]:
            self._busy += self.nodes[job]
            self._end_of[job] = self._start[job] + self._walltime[job]
            bisect.insort(self._expected, (self._end_of[job], job))

    def _leave(self, job: int) -> None:
        """The job does not run."""
        if job in self._end_of:
            del self._expected[bisect.bisect_left(self._expected, (self._end_of.pop(job), job))]
            self._busy -= self.nodes[job]

    def reservation(self, wanted: float, free: float, now: float) -> tuple[float, float]:
        """When `wanted` nodes are expected to be free, and how many more are free then."""
        at = math.inf
        for end, job in self._expected:
            if end > at:
                return max(at, now), free - wanted
            free += self.nodes[job]
            if free >= wanted:
                at = end
        return (max(at, now), free - wanted) if at < math.inf else (math.inf, 0.0)

    def is_late(self, job: int, now: float, at: float) -> bool:
        """Whether a job that starts now may run past a time."""
        return now + self._walltime[job] > at

    def starts_soon(self, job: int, now: float) -> bool:
        """Whether the log starts it so soon that it is not held."""
        return self._start[job] - now <= SOON


class _Pass:
    """One pass of EASY over the queue, in which only what the log starts is started."""

    def __init__(self, machine: _Recorded, now: float, free: float, starting: Iterable[int]) -> None:
        self._machine = machine
        self._now = now
        self._free = free
        self._left = set(starting)
        self._held: list[int] = []

    def held(self, waiting: NDArray[np.int64]) -> list[int]:
        """The jobs of the queue that are held, while those that the log starts start."""
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
        """Gives a turn to those behind the head that keep its reservation, or that the log starts."""
        fit = self._machine.that_fit(behind, self._free, self._now, at, spare)
        for job in sorted({*fit, *self._left}):
            late = self._machine.is_late(job, self._now, at)
            if job in self._left or not late or self._machine.nodes[job] <= spare:
                before = self._free
                self._has_turn(job)
                spare -= before - self._free if late else 0.0

    def _has_turn(self, job: int) -> bool:
        """Whether the job fits, or the log starts it. It takes its nodes if the log starts it now or soon, and is held otherwise."""
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
        """Whether the jobs that the log starts now leave a reservation as it is."""
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
