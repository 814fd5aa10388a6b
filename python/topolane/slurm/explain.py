"""Why a job waits, or where it runs, in plain sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from topolane._engine import InputError
from topolane.cluster import explain as common
from topolane.cluster.decided import NO_ENGINE, REFUSALS
from topolane.cluster.explain import FOR_EVER, LONGEST_HOSTS, Explanation, InTheWay, until_then
from topolane.cluster.view import Refused, View
from topolane.slurm.inspection import SlurmInspection
from topolane.slurm.job_numbers import JobNumber
from topolane.slurm.records import SlurmJob
from topolane.slurm.refusals import WORDS, way_of
from topolane.slurm.status import liveness
from topolane.slurm.view import view
from topolane.slurm.wait_reasons import SLURM, wait_reason
from topolane.units import clock, duration, plural


def explain(look: SlurmInspection, number: str) -> Explanation:
    """Explains the job of that number, in any form of JobNumber. Of several tasks of an array: the first that waits, or the last if
    none waits.

    Raises InputError if there is no such job, or if Slurm does not answer.
    """
    if look.snapshot is None:
        raise InputError("; ".join(one.rstrip(".") for one in look.problems) or "slurmctld does not answer")
    jobs = tasks_named(look, number)
    if not jobs:
        raise InputError(f"Slurm knows no job {number} (it forgets a job some minutes after its end)")
    job = next((job for job in jobs if job.waits), jobs[-1])
    said = []
    if len(jobs) > 1:
        waiting = sum(job.waits for job in jobs)
        said.append(f"Of the {len(jobs)} tasks of job {number} that Slurm knows {waiting} wait.")
    seen = view(look)
    return _waiting(look, seen, job, said) if job.waits else _not_waiting(look, seen, job, said)


def tasks_named(look: SlurmInspection, number: str, source: str = "JOBID") -> list[SlurmJob]:
    """The jobs that a number as squeue prints it names (JobNumber), in order. Raises InputError for a text that is none."""
    named = JobNumber.read(number, source)
    return [] if look.snapshot is None else named.jobs(look.snapshot)


def _waiting(look: SlurmInspection, seen: View, task: SlurmJob, said: list[str]) -> Explanation:
    job = next(one for one in seen.waiting if one.id == task.id)
    wait, now = wait_reason(look, task), look.time
    says = f"Slurm says {job.reason}" if job.reason else "Slurm says nothing"
    meaning = SLURM.get(job.reason)
    said.append(
        f"Job {job.name} waits since {clock(job.submit, now)}. {says}{f': {meaning}' if meaning else ''}."
    )
    way, more = None, list[str]()
    if wait.refused is not None:
        if look.machine is not None and wait.refused.kind != NO_ENGINE:
            way = way_of(look, seen, task, job, wait)
        more += _refused(now, job.policy, wait.refused, len(wait.offered), way)
    elif look.state is not None and look.state.jobs is not None:
        too_few = ": Slurm itself finds too few free nodes" if job.reason == "Resources" else ""
        more.append(f"The plugin has not refused it{too_few}.")
    if job.expected_start is not None:
        by, left = clock(job.expected_start, now), duration(job.expected_start - now)
        more.append(f"Slurm expects to start it by {by} (in {left}).")
    else:
        more.append("Slurm has no expected start for it yet (squeue --start).")
    return common.waiting(job, task.state, said, [*more, *_health(look)], way)


def _health(look: SlurmInspection) -> list[str]:
    """Why the plugin does not decide, if it does not."""
    why = liveness(look).why
    return [] if why is None else [why]


def _refused(
    now: float, policy: str | None, refused: Refused, offered: int, way: InTheWay | None
) -> Iterator[str]:
    """What the plugin refused, and what stands in the way."""
    asked = plural(refused.wanted, "node")
    if refused.min_bandwidth < 1:
        asked += f" with {refused.min_bandwidth:g} of full bandwidth or more"
    when = "" if refused.time is None else f" last at {clock(refused.time, now)}"
    yield f"The plugin refused it{when}: it asks for {asked} under {policy} and {REFUSALS[refused.kind]}."
    if refused.kind in FOR_EVER:
        yield "Change the job or its policy, or cancel it."
        return
    if refused.kind == NO_ENGINE:
        yield "It starts when the engine answers again: the log of slurmctld says why it does not."
        return
    count = plural(offered, "node")
    if way is None:
        yield f"Slurm offered {count}."
        return
    named = f", {way.candidates}" if offered and len(way.candidates) <= LONGEST_HOSTS else ""
    idle = f"{way.idle_count} of them {'is' if way.idle_count == 1 else 'are'} idle now"
    yield f"Slurm offered {count}{named}; {idle}{f': {way.where}' if way.where else ''}."
    if way.has_place:
        yield f"By now {policy} has a place for it: it starts when Slurm asks again and no job goes before it."
        return
    yield from way.obstacles
    yield from until_then(way.must_end, now, WORDS)


def _not_waiting(look: SlurmInspection, seen: View, task: SlurmJob, said: list[str]) -> Explanation:
    if not task.holds_nodes:
        said.append(f"Job {task.number} has ended: {task.state}.")
        return Explanation(task.number, task.state, sentences=said)
    job = next(one for one in seen.running if one.id == task.id)
    said.append(f"Job {job.name} is {job.state} on {job.hosts} since {clock(job.start, look.time)}.")
    if job.end is not None:
        said.append(f"It ends by {clock(job.end, look.time)}, its time limit.")
    found = common.running(look.machine, seen, job, said, WORDS)
    return dataclasses.replace(found, sentences=found.sentences + _health(look))
