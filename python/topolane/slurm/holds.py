"""Why a held job is not yet submitted to the scheduler: a user holds it, or it must wait for other jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from topolane.slurm.comments import HELD_BY_USER, daemon_comment, has_hook_mark, was_released
from topolane.slurm.dependencies import Dependencies
from topolane.slurm.records import HELD_BY_SLURM, Job, Snapshot


class Holds:
    """Finds the reasons for the jobs of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._dependencies: Dependencies | None = None
        active = Counter(job.array for job in snapshot.jobs.values() if job.array and _is_active(job))
        self._active: Counter[int] = active
        self._let_through: Counter[int] = Counter()

    def why(self, job: Job) -> str | None:
        """Why `job` must not be placed yet, or None. Call this for the tasks of an array in their order."""
        if held := _held(job):
            return held
        partitions = [self._snapshot.partitions.get(name) for name in job.partitions]
        if not any(partition is not None and partition.up for partition in partitions):
            return f"partition {','.join(job.partitions)} is down"
        if job.dependency:
            if self._dependencies is None:
                self._dependencies = Dependencies(self._snapshot.jobs.values(), self._snapshot.time)
            if unmet := self._dependencies.unmet(job):
                return f"waits for {unmet}"
        if job.array_limit:
            self._let_through[job.array] += 1
            if self._active[job.array] + self._let_through[job.array] > job.array_limit:
                return f"its array runs {job.array_limit} tasks at once"
        return None


def _held(job: Job) -> str | None:
    if not job.is_held:
        return None
    if not has_hook_mark(job):
        return "held, and not by the submission hook"
    text = daemon_comment(job.comment)
    # The comment of a job that the daemon held, or refused, says so.
    is_anothers = not text or was_released(job)
    if job.reason.endswith(HELD_BY_SLURM) and is_anothers:
        return f"Slurm holds it: {job.reason}"
    if text == HELD_BY_USER or (job.reason == "JobHeldUser" and was_released(job)):
        return "held by its user"
    if job.reason == "JobHeldAdmin" and is_anothers:
        return "held by an administrator"
    return None


def _is_active(job: Job) -> bool:
    return job.holds_nodes or (job.waits and not job.is_held)


def by_submission(jobs: Iterable[Job]) -> list[Job]:
    """In the order in which they were submitted."""
    return sorted(jobs, key=lambda job: (job.submit, job.id))
