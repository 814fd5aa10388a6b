"""Why a job waits, in a few words."""

from __future__ import annotations

import dataclasses
import time
from typing import Literal

from topolane.slurm.comments import was_released
from topolane.slurm.look import Look
from topolane.slurm.records import Job

Kind = Literal["starts", "released", "loose", "queued", "begin", "held", "refused"]


@dataclasses.dataclass(frozen=True)
class Wait:
    """Why a job waits."""

    kind: Kind
    """starts: to be released now; released: Slurm is starting it; loose: Slurm may start it anywhere, it will
    be held again; queued; begin: not before its time; held: by somebody or for others; refused."""
    words: str


def waits(look: Look) -> dict[int, Wait]:
    """Why each waiting job of the managed partitions does: the queue in its order, then the others."""
    scheduler = look.mirror.scheduler.scheduler
    order = {job: place for place, job in enumerate([start.job.id for start in look.starts])}
    order |= {job: len(order) + place for place, job in enumerate(scheduler.waiting)}
    jobs = [job for job in look.snapshot.jobs.values() if job.waits and look.mirror.manages(job)]
    jobs.sort(key=lambda job: (order.get(job.id, len(order)), job.submit, job.id))
    starts = {start.job.id: start.hosts for start in look.starts}
    return {job.id: _why(job, look, starts) for job in jobs}


def _why(job: Job, look: Look, starts: dict[int, str]) -> Wait:
    mirror, now = look.mirror, look.snapshot.time
    if job.id in starts:
        return Wait("starts", f"to be released now onto {starts[job.id]}")
    if not job.is_held:
        if was_released(job):
            return Wait("released", f"released onto {job.required}; Slurm says {job.reason}")
        return Wait("loose", "not held: Slurm may start it by itself")
    if job.id in mirror.reasons:
        reason = mirror.reasons[job.id]
        return Wait("refused", f"refused: {reason}") if job.id in mirror.refused else Wait("held", reason)
    ask = mirror.ask(job.id)
    if ask is not None and ask.begin > now:
        return Wait("begin", f"begins at {clock(ask.begin, now)} or later")
    refusal = mirror.scheduler.scheduler.explain(job.id)
    return Wait("queued", "behind others in the queue" if refusal is None else refusal.why)


def clock(when: float, now: float) -> str:
    """A time of day, with the date where it is not today's."""
    day = "" if _day(when) == _day(now) else "%Y-%m-%d "
    return time.strftime(f"{day}%H:%M:%S", time.localtime(when))


def _day(when: float) -> tuple[int, int]:
    local = time.localtime(when)
    return local.tm_year, local.tm_yday
