"""Finds when each job got its position among jobs of equal priority.

Slurm orders jobs of equal priority by the second of their submission, then by job number, the tasks of an array
by that of the array (`sort_job_queue2` in job_scheduler.c). Under priority/basic, a job gets the next lower number as its priority when it is submitted, released from a hold or
queued again (`set_job_prio` in job_mgr.c, `priority_p_set` in priority_basic.c). Jobs that wait for a
dependency or a begin time keep their number, and so do tasks of an array. A nice value is subtracted. The
records contain this number, so they show the position that a job really had.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from topolane.slurm.accounting_jobs import AccountedJobs, AccountedRun, NeverStarted

BASIC = "priority/basic"
LONGEST = 10
"""The most digits of a priority."""


class Numbered(NamedTuple):
    """A job with its number from priority/basic, with the sign changed so that earlier jobs have lower
    numbers.
    """

    submit: int
    number: int
    place: int
    """The index of the job in the rows."""


def note(jobs: AccountedJobs, settings: dict[str, str]) -> None:
    """Sets `queued` of each run and of each job that never started. settings: those of config.txt."""
    rows: list[AccountedRun | NeverStarted] = [*jobs.runs, *jobs.never_started]
    queued = _submitted(rows)
    if settings.get("PriorityType") == BASIC:
        for place, time in _times(list(_numbered(rows))):
            queued[place] = time
    times = iter(queued)
    jobs.runs = [run._replace(queued=time) for run, time in zip(jobs.runs, times)]
    jobs.never_started = [job._replace(queued=time) for job, time in zip(jobs.never_started, times)]


def _submitted(rows: list[AccountedRun | NeverStarted]) -> list[float]:
    """The time of each job's submission. Fractions of a second show the order within a second."""
    keys = [(row.submit, *_number(row)) for row in rows]
    in_second: dict[int, list[tuple[int, int, int]]] = {}
    for key in sorted(set(keys)):
        in_second.setdefault(key[0], []).append(key)
    times = {
        key: key[0] + round(index / len(alike), 6)
        for alike in in_second.values()
        for index, key in enumerate(alike)
    }
    return [times[key] for key in keys]


def _number(row: AccountedRun | NeverStarted) -> tuple[int, int]:
    """The number of the job, for a task that of its array, and the number of the task."""
    array, _, task = row.shown.partition("_") if isinstance(row, AccountedRun) else ("", "", "")
    if array.isdecimal() and task.isdecimal() and max(len(array), len(task)) <= LONGEST:
        return int(array), int(task)
    return row.job, 0


def _numbered(rows: list[AccountedRun | NeverStarted]) -> Iterator[Numbered]:
    """The jobs that have a number. Priority 0 means that a job is held."""
    for place, row in enumerate(rows):
        text = row.priority
        if text.isdecimal() and len(text) <= LONGEST and int(text):
            yield Numbered(row.submit, -int(text), place)


def _times(numbered: list[Numbered]) -> Iterator[tuple[int, float]]:
    """The time at which each job got its number. The times have the order of the numbers.

    Most jobs got their number at submission: the largest set of jobs whose submissions and numbers rise
    together. Any other job, such as one that was held, got its number after the last job of this set with a
    lower number. Fractions of a second show the order within a second.
    """
    at_submission = _rising(numbered)
    second = min((job.submit for job in numbered if job.place in at_submission), default=0)
    in_second: dict[int, list[list[Numbered]]] = {}
    for _, same in itertools.groupby(sorted(numbered, key=lambda job: job.number), lambda job: job.number):
        alike = list(same)
        second = max([second, *(job.submit for job in alike if job.place in at_submission)])
        in_second.setdefault(second, []).append(alike)
    for second, numbers in in_second.items():
        for index, alike in enumerate(numbers):
            for job in alike:
                yield job.place, second + round(index / len(numbers), 6)


def _rising(numbered: list[Numbered]) -> set[int]:
    """The indices of the largest set of jobs whose submissions and numbers rise together (patience sorting)."""
    ends: list[int] = []
    """For each length, the lowest last number of a rising sequence of that length."""
    last: list[int] = []
    before: dict[int, int | None] = {}
    jobs = sorted(numbered)
    for index, job in enumerate(jobs):
        length = bisect.bisect_right(ends, job.number)
        before[index] = last[length - 1] if length else None
        ends[length : length + 1] = [job.number]
        last[length : length + 1] = [index]
    found = set()
    at = last[-1] if last else None
    while at is not None:
        found.add(jobs[at].place)
        at = before[at]
    return found
