"""Why a job waits, or where it runs, in plain sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from topolane._engine import InputError
from topolane.cluster.links import LISTED, jobs_named, links_used
from topolane.slurm.inspection import Inspection, number_of
from topolane.slurm.job_numbers import JobNumber
from topolane.slurm.plugin_state import NO_ENGINE, Refused
from topolane.slurm.records import Job
from topolane.slurm.refusals import Ending, InTheWay, Room
from topolane.slurm.status import links_of, liveness, policy_of
from topolane.slurm.wait_reasons import REFUSALS, SLURM, wait_reason
from topolane.units import clock, duration, plural

LONGEST_HOSTS = 60
"""Letters of a hostlist that a sentence holds."""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The state of a job, and the reasons for it. Times in seconds since 1970."""

    job: str
    state: str
    reason: str | None = None
    """Slurm's reason of a job that waits."""
    policy: str | None = None
    policy_from: str | None = None
    """What gives it that policy."""
    refused: Refused | None = None
    """The plugin's last refusal, if that is why the job waits; its candidates are numbers of the machine's nodes."""
    in_the_way: InTheWay | None = None
    expected_start: float | None = None
    """As Slurm expects it."""
    level: int | None = None
    """Of a running job: 1 if it lies in one leaf (T1), 2 if in one pod (T2), ..."""
    home: str | None = None
    """The lowest group that contains it."""
    links: list[int] = dataclasses.field(default_factory=list)
    """Its own links between switches, by the machine's numbers."""
    bandwidth_share: float | None = None
    """Its share of full bandwidth on them."""
    may_meet: list[str] = dataclasses.field(default_factory=list)
    """Other jobs that may use the same links."""
    sentences: list[str] = dataclasses.field(default_factory=list)


def explain(look: Inspection, number: str) -> Explanation:
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
    if job.waits:
        return _waiting(look, job, said)
    return _not_waiting(look, job, said)


def tasks_named(look: Inspection, number: str, source: str = "JOBID") -> list[Job]:
    """The jobs that a number as squeue prints it names (JobNumber), in order. Raises InputError for a text that is none."""
    named = JobNumber.read(number, source)
    return [] if look.snapshot is None else named.jobs(look.snapshot)


def _policy(look: Inspection, job: Job) -> tuple[str | None, str | None]:
    """The policy of a job, and what gives it."""
    policy = policy_of(look, job)
    if job.is_stock and policy == "stock":
        return policy, "the engine could not answer when it started: its SystemComment says why"
    by_file = look.conf.policy(job) if look.conf else None
    if policy is None or by_file is None or look.conf is None:
        return policy, None
    by, line = by_file
    if by != policy:
        return policy, "not that of topolane.conf now: its own option --topolane, or an earlier topolane.conf"
    return policy, f"{look.conf.path} line {line}" if line else f"no line of {look.conf.path} fits it"


def _policy_sentence(policy: str | None, source: str | None) -> Iterator[str]:
    if policy is not None:
        yield f"Its policy is {policy}{f' ({source})' if source else ''}."


def _waiting(look: Inspection, job: Job, said: list[str]) -> Explanation:
    wait, now = wait_reason(look, job), look.time
    policy, source = _policy(look, job)
    says = f"Slurm says {wait.slurm}" if wait.slurm else "Slurm says nothing"
    meaning = SLURM.get(wait.slurm)
    said.append(
        f"Job {job.number} waits since {clock(job.submit, now)}. {says}{f': {meaning}' if meaning else ''}."
    )
    said += _policy_sentence(policy, source)
    way = None
    if wait.refused is not None:
        if look.machine is not None and wait.refused.kind != NO_ENGINE:
            way = Room(look, look.machine, job, wait.refused).in_the_way()
        said += _refused(look, wait.refused, way)
    elif look.state is not None and look.state.jobs is not None:
        too_few = ": Slurm itself finds too few free nodes" if wait.slurm == "Resources" else ""
        said.append(f"The plugin has not refused it{too_few}.")
    expected = job.expected_start if job.expected_start > now else None
    if expected is not None:
        said.append(f"Slurm expects to start it by {clock(expected, now)} (in {duration(expected - now)}).")
    else:
        said.append("Slurm has no expected start for it yet (squeue --start).")
    return Explanation(
        job.number,
        job.state,
        wait.slurm,
        policy,
        source,
        refused=wait.refused,
        in_the_way=way,
        expected_start=expected,
        sentences=said + _health(look),
    )


def _health(look: Inspection) -> list[str]:
    """Why the plugin does not decide, if it does not."""
    why = liveness(look).why
    return [] if why is None else [why]


def _refused(look: Inspection, refused: Refused, way: InTheWay | None) -> Iterator[str]:
    """What the plugin refused, and what stands in the way."""
    asked = plural(refused.wanted, "node")
    if refused.min_bandwidth < 1:
        asked += f" with {refused.min_bandwidth:g} of full bandwidth or more"
    yield (
        f"The plugin refused it last at {clock(refused.time, look.time)}: it asks for {asked} under {refused.policy} and "
        f"{REFUSALS[refused.kind]}."
    )
    if refused.kind in ("never", "cannot-isolate"):
        yield "Change the job or its policy, or cancel it."
        return
    if refused.kind == NO_ENGINE:
        yield "It starts when the engine answers again: the log of slurmctld says why it does not."
        return
    count = plural(len(refused.candidates), "node")
    if way is None:
        yield f"Slurm offered {count}."
        return
    named = f", {way.candidates}" if refused.candidates and len(way.candidates) <= LONGEST_HOSTS else ""
    idle = f"{way.idle_count} of them {'is' if way.idle_count == 1 else 'are'} idle now"
    yield f"Slurm offered {count}{named}; {idle}{f': {way.where}' if way.where else ''}."
    if way.has_place:
        yield f"By now {refused.policy} has a place for it: it starts when Slurm asks again and no job goes before it."
        return
    yield from way.obstacles
    if way.must_end:
        ends = [_ending(one, look.time) for one in way.must_end]
        more = f" and {len(ends) - LISTED} more" if len(ends) > LISTED else ""
        yield f"Until then must end: {jobs_named(ends[:LISTED])}{more}."


def _ending(one: Ending, now: float) -> str:
    if one.by is None:
        return f"{one.job} (no time limit)"
    return f"{one.job} ({'past its time limit' if one.by < now else f'by {clock(one.by, now)}'})"


def _not_waiting(look: Inspection, job: Job, said: list[str]) -> Explanation:
    policy, source = _policy(look, job)
    if not job.holds_nodes:
        said.append(f"Job {job.number} has ended: {job.state}.")
        return Explanation(job.number, job.state, sentences=said)
    number = number_of(job)
    held, own, links = look.holders.get(number, []), look.allocations.get(number), links_of(look)
    said.append(f"Job {job.number} is {job.state} on {job.nodes} since {clock(job.start, look.time)}.")
    if job.walltime is not None:
        said.append(f"It ends by {clock(job.start + job.walltime, look.time)}, its time limit.")
    said += _policy_sentence(policy, source)
    level, home = links.home(held) if links and held else (None, None)
    used = links.of(number) if links and number in look.claiming and held else []
    if links is not None and held:
        said += _place(look, number, f"Its nodes are in {home} (T{level})", used)
    return Explanation(
        job.number,
        job.state,
        policy=policy,
        policy_from=source,
        level=level,
        home=home,
        links=list(own.links) if own else [],
        bandwidth_share=own.bandwidth_share if own else None,
        may_meet=sorted({other for _, others in used for other in others}),
        sentences=said + _health(look),
    )


def _place(look: Inspection, number: int, where: str, used: list[tuple[str, list[str]]]) -> Iterator[str]:
    """Which links a running job uses, and with which jobs it could share them."""
    if number not in look.claiming:
        yield f"{where}: it may use any link, because jobs outside may share them (Outside=share)."
        return
    yield from links_used(where, look.allocations.get(number), used)
