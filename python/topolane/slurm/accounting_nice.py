"""The nice values of jobs, which sacct does not print, as far as the recorded priorities tell them.

Slurm records the priority that a job had at its submission. Its age is 0 then, and fair share is the same for all jobs of a user
from one computation of priorities to the next. So jobs that ask for the same differ in their nice value only.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from typing import Any

from topolane.slurm.accounting_jobs import Jobs, NeverStarted, Run

Submitted = tuple[int, int]
"""A job's number and when it was submitted."""
LOWEST = 1
"""Slurm gives no job that may start a lower priority (`_get_priority_internal` in priority_multifactor.c)."""


def of(jobs: Jobs, config: dict[str, Any], zero: int) -> dict[Submitted, int]:
    """The nice values above 0, of jobs that have a job like them to be compared with.

    The lowest priority tells only how much a nice value is at least. Such a job has the least value from there on that another
    job has, or as much as that if there is none.

    config: of the queue slurm; without the start of slurmctld and the period of its priorities nothing can be told.
    """
    begin, period = config.get("begin"), config.get("priority", {}).get("period")
    if begin is None or not period:
        return {}
    alike: dict[tuple[Any, ...], dict[int, dict[Submitted, int]]] = defaultdict(lambda: defaultdict(dict))
    submitted: list[Run | NeverStarted] = [*jobs.runs, *jobs.never_started]
    for job in submitted:
        turn, seconds = divmod(job.submit - zero - begin, period)
        # A job with priority 0 was held.
        if turn < 0 or not job.priority.isdecimal() or not int(job.priority):
            continue
        # Priorities are computed in the first second of a turn: which came first is not known, so it is between two turns.
        between = 0 if seconds else -1
        if seconds or int(job.priority) == LOWEST:
            asks = (job.user, job.account, job.partition, job.qos, job.nodes, job.processors)
            alike[asks][2 * turn + between][job.job, job.submit] = int(job.priority)
    found: dict[Submitted, int] = {}
    at_least: dict[Submitted, int] = {}
    for turns in alike.values():
        most = {turn: max(priorities.values()) for turn, priorities in turns.items()}
        for turn, priorities in turns.items():
            without = _without_nice(most, turn)
            for name, priority in priorities.items():
                told = at_least if priority == LOWEST else found
                if priority < without:
                    told[name] = without - priority
    known = sorted(set(found.values()))
    for name, nice in at_least.items():
        place = bisect.bisect_left(known, nice)
        found[name] = known[place] if place < len(known) else nice
    return found


def _without_nice(most: dict[int, int], turn: int) -> int:
    """The priority of a job without a nice value: the highest of its turn. If that is the lowest of all, fair share is taken to lie
    between those of the last such turn before and the first one after that tell more, and the lower priority counts."""
    if most[turn] > LOWEST:
        return most[turn]
    others = [other for other, priority in most.items() if priority > LOWEST]
    before = max((other for other in others if other < turn), default=turn)
    after = min((other for other in others if other > turn), default=turn)
    return min(most[before], most[after])
