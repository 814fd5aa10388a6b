"""Dependencies of held jobs: Slurm does not follow them while a job's priority is 0."""

from __future__ import annotations

import re
from collections.abc import Mapping

from topolane.slurm.records import HOLDING, Job

ENDED_WELL = "COMPLETED"
TERM = re.compile(
    r"(after|afterany|afterok|afternotok|afterburstbuffer):(\d+)(?:_\S+?)?(?:\+\d+)?(?:\((\w+)\))?"
)


def is_met(job: Job, jobs: Mapping[int, Job]) -> bool:
    """Whether what `job` depends on has happened, as far as Slurm's list of jobs tells.

    Slurm looks again when the job is released, so what this cannot read (singleton, expand,
    aftercorr) and what Slurm has forgotten count as met.
    """
    if not job.dependency:
        return True
    any_will_do = "?" in job.dependency
    terms = re.split(r"[,?]", job.dependency)
    met = (_term_is_met(term, jobs) for term in terms)
    return any(met) if any_will_do else all(met)


def _term_is_met(term: str, jobs: Mapping[int, Job]) -> bool:
    match = TERM.fullmatch(term.strip())
    if match is None or match[3] == "fulfilled":
        return True
    other = jobs.get(int(match[2]))
    if other is None:
        return True
    if match[1] == "after":
        return other.state != "PENDING"
    if other.state == "PENDING" or other.state in HOLDING:
        return False
    if match[1] == "afterok":
        return other.state == ENDED_WELL
    if match[1] == "afternotok":
        return other.state != ENDED_WELL
    return True
