"""Returns the jobs that are held for the daemon to Slurm."""

from __future__ import annotations

import dataclasses
import subprocess
import time

from topolane.slurm.client import Slurm, SlurmError
from topolane.slurm.comments import (
    HELD_BY_USER,
    MARK,
    daemon_comment,
    has_hook_mark,
    placed_by_daemon,
    user_comment,
)
from topolane.slurm.records import Job

HELD_BY_ADMINISTRATOR = f"{MARK} held by an administrator"
"""The submission hook writes this into the administrator's comment of a job that no user may release."""


@dataclasses.dataclass(frozen=True)
class ReturnedJob:
    """A job, or the waiting tasks of an array, and what was done with it."""

    job: str
    """Slurm's number."""
    tasks: int
    """How many tasks wait under this number."""
    partition: str
    what: str
    is_released: bool


def return_jobs(slurm: Slurm, *, wait: float, dry_run: bool) -> list[ReturnedJob]:
    """Releases every job that is held for the daemon, in order of submission, and clears the node lists that
    the daemon wrote. Jobs that a user or an administrator holds stay held.

    wait: seconds after which to check that they are still released. Raises SlurmError if Slurm does not
    answer.
    """
    jobs = [job for job in slurm.snapshot().jobs.values() if _is_ours(job)]
    jobs.sort(key=lambda job: (job.submit, job.id))
    # The waiting tasks of an array are one record, and are released together.
    records = {job.record: job for job in reversed(jobs)}
    first = [job for job in jobs if records[job.record] is job]
    given = [_returned(job, sum(other.record == job.record for other in jobs)) for job in first]
    if dry_run or not given:
        return given
    said = {job.record: _return(slurm, job) for job in first}
    time.sleep(wait)
    held = {job.record for job in slurm.snapshot().jobs.values() if job.waits and job.is_held}
    return [
        dataclasses.replace(each, what=_not_released(said[each.job]), is_released=False)
        if each.is_released and each.job in held
        else each
        for each in given
    ]


def _is_ours(job: Job) -> bool:
    return job.waits and has_hook_mark(job) and (job.is_held or _is_placed(job))


def _is_placed(job: Job) -> bool:
    """Whether the daemon, and not its user, wrote its node list."""
    return bool(job.required) and placed_by_daemon(job)


def _holder(job: Job) -> str | None:
    """The user or administrator that holds it; None if only the daemon does."""
    if not job.is_held:
        return None
    if job.note.startswith(HELD_BY_ADMINISTRATOR):
        return "an administrator"
    return "its user" if daemon_comment(job.comment) == HELD_BY_USER else None


def _returned(job: Job, tasks: int) -> ReturnedJob:
    holder = _holder(job)
    what = f"stays held by {holder}" if holder else "released"
    if _is_placed(job):
        what += ", its node list cleared"
    return ReturnedJob(job.record, tasks, ",".join(job.partitions), what, is_released=not holder)


def _return(slurm: Slurm, job: Job) -> str:
    """Returns one job to Slurm. Returns Slurm's error, or an empty text."""
    holder = _holder(job)
    # A job that stays held keeps its mark, so that a later daemon knows who holds it.
    comment = job.comment if holder else user_comment(job.comment)
    try:
        slurm.return_job(job, comment, release=not holder, clear_nodes=_is_placed(job))
    except SlurmError as error:
        return str(error)
    finally:
        if holder == "its user":
            # While the daemon held it too, Slurm may have noted an administrator's hold.
            subprocess.run(["scontrol", "uhold", job.record], capture_output=True, timeout=60)
    return ""


def _not_released(said: str) -> str:
    return f"not released: {said or 'it is held again; stop the daemon first'}"
