"""Giving the jobs that are held for the daemon back to Slurm."""

from __future__ import annotations

import dataclasses
import subprocess
import time

from topolane.slurm.client import Slurm, SlurmError
from topolane.slurm.comments import HELD_BY_USER, MARK, marked, ours, placed_here, users
from topolane.slurm.records import Job

HELD_BY_ADMINISTRATOR = f"{MARK} held by an administrator"
"""The administrator's comment of a job whose hold no user may end, as the submission hook writes it."""


@dataclasses.dataclass(frozen=True)
class Given:
    """A job, or the waiting tasks of an array, and what becomes of it."""

    job: str
    """Slurm's number."""
    tasks: int
    """How many wait under this number."""
    partition: str
    what: str
    is_released: bool


def give_back(slurm: Slurm, *, wait: float, dry_run: bool) -> list[Given]:
    """Releases every job that is held for the daemon, in the order of submission, without the node lists
    that the daemon wrote. What a user or an administrator holds stays held.

    wait: seconds after which it is looked whether they are free still. Raises SlurmError where Slurm does
    not answer.
    """
    jobs = [job for job in slurm.snapshot().jobs.values() if _is_ours(job)]
    jobs.sort(key=lambda job: (job.submit, job.id))
    # The waiting tasks of an array are one record, and are released together.
    records = {job.record: job for job in reversed(jobs)}
    first = [job for job in jobs if records[job.record] is job]
    given = [_given(job, sum(other.record == job.record for other in jobs)) for job in first]
    if dry_run or not given:
        return given
    said = {job.record: _let_go(slurm, job) for job in first}
    time.sleep(wait)
    held = {job.record for job in slurm.snapshot().jobs.values() if job.waits and job.is_held}
    return [
        dataclasses.replace(each, what=_not_released(said[each.job]), is_released=False)
        if each.is_released and each.job in held
        else each
        for each in given
    ]


def _is_ours(job: Job) -> bool:
    return job.waits and marked(job) and (job.is_held or _is_placed(job))


def _is_placed(job: Job) -> bool:
    """Whether its node list is the daemon's, and not its user's."""
    return bool(job.required) and placed_here(job)


def _holder(job: Job) -> str | None:
    """Who holds it but us."""
    if not job.is_held:
        return None
    if job.note.startswith(HELD_BY_ADMINISTRATOR):
        return "an administrator"
    return "its user" if ours(job.comment) == HELD_BY_USER else None


def _given(job: Job, tasks: int) -> Given:
    holder = _holder(job)
    what = f"stays held by {holder}" if holder else "released"
    if _is_placed(job):
        what += ", its node list cleared"
    return Given(job.record, tasks, ",".join(job.partitions), what, is_released=not holder)


def _let_go(slurm: Slurm, job: Job) -> str:
    """What Slurm says against it."""
    holder = _holder(job)
    # What stays held keeps its mark: a daemon that is turned on again must know whose hold it is.
    comment = job.comment if holder else users(job.comment)
    try:
        slurm.give_back(job, comment, release=not holder, clear_nodes=_is_placed(job))
    except SlurmError as error:
        return str(error)
    finally:
        if holder == "its user":
            # While the daemon held it too, Slurm may have noted an administrator's hold.
            subprocess.run(["scontrol", "uhold", job.record], capture_output=True, timeout=60)
    return ""


def _not_released(said: str) -> str:
    return f"not released: {said or 'it is held again; stop the daemon first'}"
