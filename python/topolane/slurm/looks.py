"""Finds what changed between two snapshots of Slurm: jobs that started, jobs that ended, and missed starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from topolane.slurm.records import SlurmJob, Snapshot


@dataclasses.dataclass(frozen=True)
class WatchedRun:
    """A job's period on some nodes. A job that Slurm requeues has several."""

    start: float
    nodes: str | None
    """The host list as Slurm writes it; None if the run is known only from a log."""
    is_configuring: bool = False
    """Whether the nodes still boot. When they are ready, Slurm changes the start."""


@dataclasses.dataclass(frozen=True)
class SlurmEnded:
    """A job no longer holds its nodes."""

    job: int
    at: float
    """The end in Slurm's record, or the time of the snapshot if the record is gone."""
    is_brief: bool = False
    """Whether the job started in the same second."""


@dataclasses.dataclass(frozen=True)
class SlurmStarted:
    """A job got nodes."""

    job: SlurmJob
    at: float
    is_missed: bool = False
    """Whether the policy must not be asked: the machine's state at the start is no longer known, or the job
    was resized and has other nodes.
    """


class Looks:
    """Compares each snapshot with the jobs known before.

    longest_gap: seconds between two snapshots after which starts count as missed, because Slurm forgets ended
    jobs. here, over: running and ended jobs from the log of an earlier shadow that this one continues. since:
    the start of that shadow, which did not record jobs that had ended before.
    """

    def __init__(
        self,
        longest_gap: float,
        here: Mapping[int, WatchedRun] | None = None,
        over: Mapping[int, WatchedRun] | None = None,
        since: float = 0.0,
    ) -> None:
        self._longest_gap, self._since = longest_gap, since
        self._is_first = here is None
        self._here = dict(here or {})
        """The runs of jobs that hold nodes."""
        self._over = dict(over or {})
        """The last runs of ended jobs that Slurm still has."""

    def update(self, snapshot: Snapshot) -> list[SlurmEnded | SlurmStarted]:
        """The events since the last snapshot, in order."""
        found = [*self._ended(snapshot), *self._started(snapshot)]
        self._over = {number: run for number, run in self._over.items() if number in snapshot.jobs}
        self._is_first = False
        return sorted(found, key=_order)

    def _ended(self, snapshot: Snapshot) -> Iterator[SlurmEnded | SlurmStarted]:
        for number, run in list(self._here.items()):
            job = snapshot.jobs.get(number)
            if job is not None and _holds(job) and _is_same(job, run):
                self._here[number] = _run(job)
                continue
            del self._here[number]
            if job is not None and _holds(job) and job.start == run.start:
                self._here[number] = _run(job)
                yield SlurmEnded(number, snapshot.time)
                yield SlurmStarted(job, snapshot.time, is_missed=True)
                continue
            self._over[number] = run
            at = snapshot.time if job is None else _end_of(job, run, snapshot.time)
            yield SlurmEnded(number, max(at, run.start))

    def _started(self, snapshot: Snapshot) -> Iterator[SlurmEnded | SlurmStarted]:
        for job in snapshot.jobs.values():
            if not job.allocated or not job.start or job.waits or job.id in self._here:
                continue
            if job.id in self._over and job.start == self._over[job.id].start:
                continue
            if not _holds(job) and 0 < job.end <= self._since:
                continue
            (self._here if _holds(job) else self._over)[job.id] = _run(job)
            is_missed = self._is_first or job.start < snapshot.time - self._longest_gap
            if _holds(job) or not self._is_first:
                yield SlurmStarted(job, job.start, is_missed)
            if not _holds(job) and not self._is_first:
                yield SlurmEnded(job.id, max(job.end, job.start), _is_brief(job))


def _order(event: SlurmEnded | SlurmStarted) -> tuple[float, int, int, int, int]:
    """The sort key of events: time, and within one second first ends, then jobs that start and end in it,
    then starts by priority and number. So no job appears to start on nodes that another job still holds.
    """
    if isinstance(event, SlurmEnded):
        return event.at, int(event.is_brief), 0, event.job, 1
    job = event.job
    return (event.at, 1, 0, job.id, 0) if _is_brief(job) else (event.at, 2, -job.priority, job.id, 0)


def _is_brief(job: SlurmJob) -> bool:
    return 0 < job.end <= job.start


def _holds(job: SlurmJob) -> bool:
    """Whether the job runs. A completing job counts as ended, although it frees its nodes one by one."""
    return job.holds_nodes and job.state != "COMPLETING"


def _is_same(job: SlurmJob, run: WatchedRun) -> bool:
    is_there = run.nodes is None or job.allocated == run.nodes
    return is_there and (job.start == run.start or run.is_configuring)


def _run(job: SlurmJob) -> WatchedRun:
    return WatchedRun(job.start, job.allocated, job.state == "CONFIGURING")


def _end_of(job: SlurmJob, run: WatchedRun, now: float) -> float:
    """When a run ended, if the job's record says so; otherwise `now`."""
    if job.start == run.start and job.end:
        return min(job.end, now)
    return (
        min(job.start, now) if job.start > run.start else now
    )  # the job was requeued, and perhaps started again
