"""The nice values of jobs, which sacct does not print, as far as the recorded priorities tell them.

Slurm records the priority that a job had at its submission. Its age is 0 then, and fair share is the same for all jobs of a user
from one computation of priorities to the next. So jobs that ask for the same differ in their nice value only.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from topolane.slurm.accounting_jobs import Jobs, NeverStarted, Run

Submitted = tuple[int, int]
"""A job's number and when it was submitted."""


def of(jobs: Jobs, config: dict[str, Any], zero: int) -> dict[Submitted, int]:
    """The nice values above 0, of jobs that have a job like them to be compared with.

    config: of the queue slurm; without the start of slurmctld and the period of its priorities nothing can be told.
    """
    begin, period = config.get("begin"), config.get("priority", {}).get("period")
    if begin is None or not period:
        return {}
    alike: dict[tuple[Any, ...], dict[Submitted, int]] = defaultdict(dict)
    submitted: list[Run | NeverStarted] = [*jobs.runs, *jobs.never_started]
    for job in submitted:
        turn, seconds = divmod(job.submit - zero - begin, period)
        # Priorities are computed in the first second of a turn: which came first is not known.
        is_known = turn >= 0 and seconds > 0
        # A job with priority 0 was held.
        if is_known and job.priority.isdecimal() and int(job.priority) > 0:
            asks = (job.user, job.account, job.partition, job.qos, job.nodes, job.processors)
            alike[(*asks, turn)][job.job, job.submit] = int(job.priority)
    found = {}
    for priorities in alike.values():
        most = max(priorities.values())
        found.update({job: most - priority for job, priority in priorities.items() if priority < most})
    return found
