"""Why a job waits, in a few words."""

from __future__ import annotations

import dataclasses
import time
from typing import Literal

from topolane.slurm.comments import was_released
from topolane.slurm.preview import Preview
from topolane.slurm.records import Job

Kind = Literal["starts", "released", "loose", "queued", "begin", "held", "refused"]


@dataclasses.dataclass(frozen=True)
class WaitReason:
    """Why a job waits."""

    kind: Kind
    """starts: to be released now; released: Slurm is starting it; loose: Slurm may start it anywhere, and it
    will be held again; queued; begin: not before its begin time; held: by a user, an administrator or a
    dependency; refused.
    """
    words: str


def wait_reasons(preview: Preview) -> dict[int, WaitReason]:
    """The reason of each waiting job of the managed partitions: the queue in its order, then the other jobs."""
    scheduler = preview.mirror.scheduler.scheduler
    order = {job: place for place, job in enumerate([start.job.id for start in preview.starts])}
    order |= {job: len(order) + place for place, job in enumerate(scheduler.waiting)}
    jobs = [job for job in preview.snapshot.jobs.values() if job.waits and preview.mirror.manages(job)]
    jobs.sort(key=lambda job: (order.get(job.id, len(order)), job.submit, job.id))
    starts = {start.job.id: start.hosts for start in preview.starts}
    return {job.id: _why(job, preview, starts) for job in jobs}


def _why(job: Job, preview: Preview, starts: dict[int, str]) -> WaitReason:
    mirror, now = preview.mirror, preview.snapshot.time
    if job.id in starts:
        return WaitReason("starts", f"to be released now onto {starts[job.id]}")
    if not job.is_held:
        if was_released(job):
            return WaitReason("released", f"released onto {job.required}; Slurm says {job.reason}")
        return WaitReason("loose", "not held: Slurm may start it by itself")
    if job.id in mirror.reasons:
        reason = mirror.reasons[job.id]
        return (
            WaitReason("refused", f"refused: {reason}")
            if job.id in mirror.refused
            else WaitReason("held", reason)
        )
    request = mirror.request(job.id)
    if request is not None and request.begin > now:
        return WaitReason("begin", f"begins at {clock(request.begin, now)} or later")
    refusal = mirror.scheduler.scheduler.explain(job.id)
    return WaitReason("queued", "behind others in the queue" if refusal is None else refusal.why)


def clock(when: float, now: float) -> str:
    """A time of day, with the date if it is not today."""
    day = "" if _day(when) == _day(now) else "%Y-%m-%d "
    return time.strftime(f"{day}%H:%M:%S", time.localtime(when))


def _day(when: float) -> tuple[int, int]:
    local = time.localtime(when)
    return local.tm_year, local.tm_yday
