"""Infers the nice values of jobs, which sacct does not print, from recorded priorities.

Slurm records the priority that a job had at its submission. The job's age is 0 then, and fair share is the
same for all jobs of a user between two computations of priorities (a turn). The rest of the priority is known
except for the nice value.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from topolane.slurm import accounting_priority
from topolane.slurm.accounting_jobs import AccountedJobs, AccountedRun, NeverStarted
from topolane.slurm.accounting_priority import Formula, Kind

Submitted = tuple[int, int]
"""A job's number and its time of submission."""
When = tuple[int, int]
"""Seconds from the start of a turn to a submission, and the job's number."""
SECOND_SECOND = (1, 0)
"""Slurm computes priorities in the first second of a turn at the earliest, so jobs of that second say nothing
about them.
"""
LOWEST = 1
"""Slurm never gives a lower priority than this to a job that may start (`_get_priority_internal` in
priority_multifactor.c).
"""
LONGEST = 10
"""The most digits of a priority."""
MOST_VALUES = 100
"""If there are more different nice values, doubtful jobs stay without one: too many values would explain
their priorities.
"""


class Submission(NamedTuple):
    """A job at its submission."""

    job: int
    submit: int
    whose: tuple[str, str]
    kind: Kind
    priority: int
    rank: int | None
    """The rank of fair share that explains the priority without a nice value; None if no rank does."""
    turn: int
    when: When


class Level(NamedTuple):
    """The common part of the priorities of a user's jobs in a turn."""

    value: int
    """The user's rank of fair share, or without a formula the highest priority among jobs with equal
    requests.
    """
    since: When
    until: When
    """The level is known from `since` to `until`. Slurm may compute priorities late, so it may not hold
    earlier.
    """


Turns = dict[int, list[Submission]]


def of(jobs: AccountedJobs, config: dict[str, Any], zero: int) -> dict[Submitted, int]:
    """The nice values above 0 that follow from the records, by job.

    The lowest priority gives only a lower bound for a nice value. Such a job gets the smallest value at or
    above the bound that another job has, or else the bound itself.

    config: the configuration of the queue slurm. If it lacks the start of slurmctld or the period of
    priorities, the result is empty.
    """
    begin, period = config.get("begin"), config.get("priority", {}).get("period")
    if begin is None or not period:
        return {}
    formula = accounting_priority.formula(config)
    submissions = list(_submissions(jobs, zero + begin, period, formula))
    if 2 * sum(one.rank is not None for one in submissions) <= len(submissions):
        formula = None
    found: dict[Submitted, int] = {}
    at_least: dict[Submitted, int] = {}
    doubtful: list[tuple[Submission, int]] = []
    for turns in _by_rank(submissions, formula) if formula else _alike(submissions):
        levels = _ranks(turns) if formula else _highest(turns)
        for one, level, is_certain in _with_levels(turns, levels, period):
            without = formula.priority(one.kind, level) if formula else level
            if one.priority >= without:
                continue
            if one.priority == LOWEST:
                at_least[one.job, one.submit] = without - LOWEST
            elif is_certain:
                found[one.job, one.submit] = without - one.priority
            else:
                doubtful.append((one, without - one.priority))
    known = sorted(set(found.values()))
    if formula and len(known) <= MOST_VALUES:
        for one, nice in doubtful:
            if _explanations(one, known, formula) == [nice]:
                found[one.job, one.submit] = nice
    for name, nice in at_least.items():
        place = bisect.bisect_left(known, nice)
        found[name] = known[place] if place < len(known) else nice
    return found | _of_tasks(jobs, found)


def _of_tasks(jobs: AccountedJobs, found: dict[Submitted, int]) -> dict[Submitted, int]:
    """The nice values of the tasks of arrays: all have that of the array's own record."""
    tasks = ((run, _array_of(run)) for run in jobs.runs)
    return {
        (run.job, run.submit): found[array, run.submit]
        for run, array in tasks
        if (array, run.submit) in found
    }


def _array_of(job: AccountedRun | NeverStarted) -> int:
    """The number of the job's array; its own number without one."""
    if isinstance(job, NeverStarted):
        return job.job
    array, _, task = job.shown.partition("_")
    return int(array) if task and array.isdecimal() and len(array) <= LONGEST else job.job


def _submissions(
    jobs: AccountedJobs, begin: int, period: int, formula: Formula | None
) -> Iterator[Submission]:
    """The jobs whose recorded priority is that of their submission, with the turns in which they were
    submitted.

    The last task of an array has the record that Slurm made at the submission of the array. Others have the priority
    of their start. Priority 0 means that a job was held.
    """
    every: list[AccountedRun | NeverStarted] = [*jobs.runs, *jobs.never_started]
    for job in every:
        if _array_of(job) != job.job:
            continue
        turn, seconds = divmod(job.submit - begin, period)
        text = job.priority
        if turn < 0 or not text.isdecimal() or len(text) > LONGEST or not int(text):
            continue
        kind = accounting_priority.kind_of(job)
        yield Submission(
            job.job,
            job.submit,
            (job.user, job.account),
            kind,
            int(text),
            formula.rank(kind, int(text)) if formula else None,
            turn,
            (seconds, job.job),
        )


def _by_rank(submissions: list[Submission], formula: Formula) -> Iterable[Turns]:
    """The jobs of each user by turn, limited to kinds of jobs that the formula fits: ranks explain over half
    of the jobs of the same size, of the same partition and of the same QOS, or all but one: most sizes are rare.
    """
    asked: Counter[tuple[Any, ...]] = Counter()
    explained: Counter[tuple[Any, ...]] = Counter()
    counts = Counter(one.kind for one in submissions)
    fitting = Counter(one.kind for one in submissions if one.rank is not None)
    for kind, count in counts.items():
        for part in _parts(kind, formula):
            asked[part] += count
            explained[part] += fitting[kind]

    def fits(part: tuple[Any, ...]) -> bool:
        return 2 * explained[part] > asked[part] or asked[part] - explained[part] <= 1

    holds = {kind for kind in counts if all(map(fits, _parts(kind, formula)))}
    return _grouped((one.whose, one) for one in submissions if one.kind in holds)


def _parts(kind: Kind, formula: Formula) -> list[tuple[Any, ...]]:
    """The parts of a kind of job that change its priority."""
    nodes, processors, partition, qos = kind
    parts = ("job_size", nodes, processors), ("partition", partition), ("qos", qos)
    return [part for part in parts if formula.weights[f"weight_{part[0]}"]]


def _alike(submissions: list[Submission]) -> Iterable[Turns]:
    """The jobs of each user with equal requests, by turn."""
    return _grouped(((one.whose, one.kind), one) for one in submissions)


def _grouped(pairs: Iterable[tuple[object, Submission]]) -> Iterable[Turns]:
    groups: dict[object, Turns] = {}
    for key, one in pairs:
        groups.setdefault(key, {}).setdefault(one.turn, []).append(one)
    return groups.values()


def _ranks(turns: Turns) -> dict[int, Level]:
    """The rank in each turn in which exactly one rank explains the priorities. Early in a turn, the rank of
    the turn before may still hold.
    """
    levels: dict[int, Level] = {}
    for turn in sorted(turns):
        explained = [(one.when, one.rank) for one in _telling(turns[turn]) if one.rank is not None]
        if not explained:
            continue
        before = levels.get(turn - 1)
        new = [when for when, rank in explained if before is None or rank != before.value]
        since = min(new or [when for when, _ in explained])
        ranks = {rank for when, rank in explained if when >= since}
        if len(ranks) == 1:
            levels[turn] = Level(ranks.pop(), since, max(explained)[0])
    return levels


def _highest(turns: Turns) -> dict[int, Level]:
    """The highest priority in each turn."""
    return {
        turn: Level(max(one.priority for one in telling), SECOND_SECOND, max(one.when for one in telling))
        for turn, jobs in turns.items()
        if (telling := _telling(jobs))
    }


def _telling(jobs: list[Submission]) -> list[Submission]:
    return [one for one in jobs if one.when >= SECOND_SECOND and one.priority > LOWEST]


def _with_levels(
    turns: Turns, levels: dict[int, Level], period: int
) -> Iterator[tuple[Submission, int, bool]]:
    """The jobs, each with the level at its submission and whether that level is certain.

    It is certain if jobs before and after the job in the turn have this level, or one before it in the second half of the
    turn: Slurm computes priorities once in a turn, never early (`_decay_thread`). For a job of the lowest
    priority, which gives only a bound, less is enough: an earlier job, or the lower of the nearest levels
    before and after.
    """
    known = sorted(levels)
    for turn, jobs in turns.items():
        now = levels.get(turn)
        for one in jobs:
            if now and one.when >= now.since:
                yield one, now.value, one.when <= now.until or 2 * now.until[0] >= period
            elif one.priority == LOWEST:
                place = bisect.bisect_left(known, turn)
                if 0 < place < len(known):
                    yield one, min(levels[known[place - 1]].value, levels[known[place]].value), False
            elif now:
                yield one, now.value, False


def _explanations(one: Submission, known: list[int], formula: Formula) -> list[int]:
    """The nice values (0 or one that another job has) with which some rank explains a job's priority."""
    return [nice for nice in (0, *known) if formula.rank(one.kind, one.priority + nice) is not None]
