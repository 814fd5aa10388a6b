"""The nice values of jobs, which sacct does not print, as far as the recorded priorities tell them.

Slurm records the priority that a job had at its submission. Its age is 0 then, and fair share is the same for all jobs of a user
from one computation of priorities to the next. The rest of a priority is known, except for the nice value.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from topolane.slurm import accounting_priority
from topolane.slurm.accounting_jobs import Jobs, NeverStarted, Run
from topolane.slurm.accounting_priority import Formula, Kind

Submitted = tuple[int, int]
"""A job's number and when it was submitted."""
When = tuple[int, int]
"""Seconds from the beginning of a turn to a submission, and the job's number."""
SECOND_SECOND = (1, 0)
"""Priorities are computed in the first second of a turn at the earliest, so a job in that second proves nothing about them."""
LOWEST = 1
"""Slurm gives no job that may start a lower priority (`_get_priority_internal` in priority_multifactor.c)."""
LONGEST = 10
"""Digits of the highest priority."""
MOST_VALUES = 100
"""If jobs have more nice values than that, one of them explains too many priorities."""


class Submission(NamedTuple):
    """A job as it was submitted."""

    job: int
    submit: int
    whose: tuple[str, str]
    kind: Kind
    priority: int
    rank: int | None
    """The rank of fair share that explains its priority without a nice value."""
    turn: int
    when: When


class Level(NamedTuple):
    """What the priorities of jobs in a turn have in common."""

    value: int
    """The rank of fair share, or the highest priority of jobs that ask for the same."""
    since: When
    until: When
    """Between these it is known to hold. Slurm may compute priorities late."""


Turns = dict[int, list[Submission]]


def of(jobs: Jobs, config: dict[str, Any], zero: int) -> dict[Submitted, int]:
    """The nice values above 0 that follow from the records.

    The lowest priority gives only a lower bound of a nice value. Such a job gets the lowest value from there on that another
    job has, or the bound itself if no other job has one.

    config: of the queue slurm. Without the start of slurmctld and the period of its priorities, the result is empty.
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
    for turns in _by_rank(submissions) if formula else _alike(submissions):
        levels = _ranks(turns) if formula else _highest(turns)
        for one, level, is_certain in _with_levels(turns, levels):
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
    return found


def _submissions(jobs: Jobs, begin: int, period: int, formula: Formula | None) -> Iterator[Submission]:
    """The jobs whose priority is that of their submission, in the turns that began then.

    A task of an array may have the priority of its start. Priority 0 is that of a job on hold.
    """
    runs: list[Run | NeverStarted] = [run for run in jobs.runs if "_" not in run.shown]
    for job in (*runs, *jobs.never_started):
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


def _by_rank(submissions: list[Submission]) -> Iterable[Turns]:
    """The jobs of each user, as far as the formula holds: ranks explain more than half of the jobs of the same size, of the same
    partition and of the same QOS."""
    asked: Counter[tuple[Any, ...]] = Counter()
    explained: Counter[tuple[Any, ...]] = Counter()
    counts = Counter(one.kind for one in submissions)
    fitting = Counter(one.kind for one in submissions if one.rank is not None)
    for kind, count in counts.items():
        for part in _parts(kind):
            asked[part] += count
            explained[part] += fitting[kind]
    holds = {kind for kind in counts if all(2 * explained[part] > asked[part] for part in _parts(kind))}
    return _grouped((one.whose, one) for one in submissions if one.kind in holds)


def _parts(kind: Kind) -> tuple[tuple[Any, ...], ...]:
    nodes, processors, partition, qos = kind
    return ("size", nodes, processors), ("partition", partition), ("qos", qos)


def _alike(submissions: list[Submission]) -> Iterable[Turns]:
    """The jobs of each user that ask for the same."""
    return _grouped(((one.whose, one.kind), one) for one in submissions)


def _grouped(pairs: Iterable[tuple[object, Submission]]) -> Iterable[Turns]:
    groups: dict[object, Turns] = {}
    for key, one in pairs:
        groups.setdefault(key, {}).setdefault(one.turn, []).append(one)
    return groups.values()


def _ranks(turns: Turns) -> dict[int, Level]:
    """The rank of each turn in which only one explains priorities. At first, that of the turn before may do so too."""
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
    """The highest priority of each turn."""
    return {
        turn: Level(max(one.priority for one in telling), SECOND_SECOND, max(one.when for one in telling))
        for turn, jobs in turns.items()
        if (telling := _telling(jobs))
    }


def _telling(jobs: list[Submission]) -> list[Submission]:
    return [one for one in jobs if one.when >= SECOND_SECOND and one.priority > LOWEST]


def _with_levels(turns: Turns, levels: dict[int, Level]) -> Iterator[tuple[Submission, int, bool]]:
    """Jobs, the level that each had at its submission, and whether that is certain.

    It is if jobs before and after it in the turn have this level. The lowest priority gives only a bound, so less will do: an
    earlier job, or the lower one of the nearest levels before and after it.
    """
    known = sorted(levels)
    for turn, jobs in turns.items():
        now = levels.get(turn)
        for one in jobs:
            if now and one.when >= now.since:
                yield one, now.value, one.when <= now.until
            elif one.priority == LOWEST:
                place = bisect.bisect_left(known, turn)
                if 0 < place < len(known):
                    yield one, min(levels[known[place - 1]].value, levels[known[place]].value), False
            elif now:
                yield one, now.value, False


def _explanations(one: Submission, known: list[int], formula: Formula) -> list[int]:
    """The nice values, 0 or one that another job has, with which some rank explains the priority of a job."""
    return [nice for nice in (0, *known) if formula.rank(one.kind, one.priority + nice) is not None]
