"""What changed between two looks at Slurm: jobs that started, that ended, and whose start was missed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from topolane.slurm.records import Job, Snapshot


@dataclasses.dataclass(frozen=True)
class Stay:
    """The time of a job on some nodes. A job that Slurm requeues has several."""

    start: float
    nodes: str | None
    """As Slurm writes them; None if they are only known from a log."""
    is_configuring: bool = False
    """Whether its nodes still boot: the start is then moved to when they are ready."""


@dataclasses.dataclass(frozen=True)
class Ended:
    """A job holds its nodes no longer."""

    job: int
    at: float
    """By Slurm's record; or the time of the look, if the record is gone."""
    is_brief: bool = False
    """Whether it started in the same second."""


@dataclasses.dataclass(frozen=True)
class Started:
    """A job got nodes."""

    job: Job
    at: float
    is_missed: bool = False
    """Whether no policy is asked: it was so long ago that the state of the machine at its start is not known, or the job
    has other nodes since it was resized.
    """


class Looks:
    """Compares each snapshot with what was known. longest_gap: seconds between two looks after which starts count as
    missed, since Slurm forgets jobs that have ended. here, over: what an earlier shadow knew, if this goes on from its log.
    since: when that shadow began. It did not look at jobs that had ended.
    """

    def __init__(
        self,
        longest_gap: float,
        here: Mapping[int, Stay] | None = None,
        over: Mapping[int, Stay] | None = None,
        since: float = 0.0,
    ) -> None:
        self._longest_gap, self._since = longest_gap, since
        self._is_first = here is None
        self._here = dict(here or {})
        """Of the jobs that hold nodes."""
        self._over = dict(over or {})
        """The last stay of jobs that have ended and that Slurm still has."""

    def update(self, snapshot: Snapshot) -> list[Ended | Started]:
        """What happened, in order."""
        found = [*self._ended(snapshot), *self._started(snapshot)]
        self._over = {number: stay for number, stay in self._over.items() if number in snapshot.jobs}
        self._is_first = False
        return sorted(found, key=_order)

    def _ended(self, snapshot: Snapshot) -> Iterator[Ended | Started]:
        for number, stay in list(self._here.items()):
            job = snapshot.jobs.get(number)
            if job is not None and _holds(job) and _is_same(job, stay):
                self._here[number] = _stay(job)
                continue
            del self._here[number]
            if job is not None and _holds(job) and job.start == stay.start:
                self._here[number] = _stay(job)
                yield Ended(number, snapshot.time)
                yield Started(job, snapshot.time, is_missed=True)
                continue
            self._over[number] = stay
            at = snapshot.time if job is None else _end_of(job, stay, snapshot.time)
            yield Ended(number, max(at, stay.start))

    def _started(self, snapshot: Snapshot) -> Iterator[Ended | Started]:
        for job in snapshot.jobs.values():
            if not job.allocated or not job.start or job.waits or job.id in self._here:
                continue
            if job.id in self._over and job.start == self._over[job.id].start:
                continue
            if not _holds(job) and 0 < job.end <= self._since:
                continue
            (self._here if _holds(job) else self._over)[job.id] = _stay(job)
            is_missed = self._is_first or job.start < snapshot.time - self._longest_gap
            if _holds(job) or not self._is_first:
                yield Started(job, job.start, is_missed)
            if not _holds(job) and not self._is_first:
                yield Ended(job.id, max(job.end, job.start), _is_brief(job))


def _order(event: Ended | Started) -> tuple[float, int, int, int, int]:
    """By time. In one second: ends, then jobs that start and end in it, then starts by priority and number. So no job seems to
    start on nodes that another one still holds.
    """
    if isinstance(event, Ended):
        return event.at, int(event.is_brief), 0, event.job, 1
    job = event.job
    return (event.at, 1, 0, job.id, 0) if _is_brief(job) else (event.at, 2, -job.priority, job.id, 0)


def _is_brief(job: Job) -> bool:
    return 0 < job.end <= job.start


def _holds(job: Job) -> bool:
    """Whether it runs. One that completes has ended, and frees its nodes one by one."""
    return job.holds_nodes and job.state != "COMPLETING"


def _is_same(job: Job, stay: Stay) -> bool:
    is_there = stay.nodes is None or job.allocated == stay.nodes
    return is_there and (job.start == stay.start or stay.is_configuring)


def _stay(job: Job) -> Stay:
    return Stay(job.start, job.allocated, job.state == "CONFIGURING")


def _end_of(job: Job, stay: Stay, now: float) -> float:
    """When a stay ended, if the record of its job says so."""
    if job.start == stay.start and job.end:
        return min(job.end, now)
    return min(job.start, now) if job.start > stay.start else now  # requeued, and perhaps started again
