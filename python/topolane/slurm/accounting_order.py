"""When each job got its place among jobs of the same priority.

Slurm orders jobs of the same priority by submission (`sort_job_queue2` in job_scheduler.c). Under priority/basic it gives each job the
next lower number when it is submitted, released from a hold or queued again (`set_job_prio` in job_mgr.c, `priority_p_set` in
priority_basic.c). A job that waits for a dependency or a begin time keeps its number, and so do the tasks of an array. A nice value is
taken off. The number is in the records, so it says which place a job really had.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from topolane.slurm.accounting_jobs import Jobs, NeverStarted, Run

BASIC = "priority/basic"
LONGEST = 10
"""Digits of the highest priority."""


class Numbered(NamedTuple):
    """A job with a number of priority/basic. Lower ones come first here: it is the priority with its sign changed."""

    submit: int
    number: int
    place: int
    """Where it is among the rows."""


def note(jobs: Jobs, settings: dict[str, str]) -> None:
    """Sets `queued` of every run and of every job that never started. settings: of config.txt."""
    rows: list[Run | NeverStarted] = [*jobs.runs, *jobs.never_started]
    queued = [float(row.submit) for row in rows]
    if settings.get("PriorityType") == BASIC:
        for place, time in _times(list(_numbered(rows))):
            queued[place] = time
    times = iter(queued)
    jobs.runs = [run._replace(queued=time) for run, time in zip(jobs.runs, times)]
    jobs.never_started = [job._replace(queued=time) for job, time in zip(jobs.never_started, times)]


def _numbered(rows: list[Run | NeverStarted]) -> Iterator[Numbered]:
    """The jobs with a number. Priority 0 is that of a job on hold."""
    for place, row in enumerate(rows):
        text = row.priority
        if text.isdecimal() and len(text) <= LONGEST and int(text):
            yield Numbered(row.submit, -int(text), place)


def _times(numbered: list[Numbered]) -> Iterator[tuple[int, float]]:
    """When each got its number, such that these times have the order of the numbers.

    Most jobs got theirs when they were submitted: the most jobs whose submissions and numbers rise together. Another one, such as a
    job that was held, got its number after the last of these that has a lower one. Within a second, parts of it show the order.
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
    """The places of the most jobs whose submissions and numbers rise together (patience sorting)."""
    ends: list[int] = []
    """The lowest last number of a sequence of each length."""
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
