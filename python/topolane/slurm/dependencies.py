"""Dependencies of held jobs: Slurm does not follow them while a job's priority is 0."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from topolane.slurm.records import HOLDING, Job

TERM = re.compile(
    r"(after|afterany|afterok|afternotok|aftercorr):(\d+)(?:_(\d+|\*))?(?:\+(\d+))?(?:\((\w+)\))?"
)


class Dependencies:
    """Evaluates the dependencies between the jobs of one snapshot."""

    def __init__(self, jobs: Iterable[Job], now: float) -> None:
        self._now = now
        self._of_number: dict[str, list[Job]] = defaultdict(list)
        self._of_name: dict[tuple[str, str], list[Job]] = defaultdict(list)
        for job in jobs:
            self._of_number[job.number].append(job)
            if job.array:
                self._of_number[str(job.array)].append(job)
            self._of_name[job.user, job.name].append(job)

    def unmet(self, job: Job) -> str | None:
        """The dependencies that `job` still waits for, or None.

        Dependencies that this cannot evaluate (expand, burst buffers), or on jobs that Slurm has forgotten,
        count as met: Slurm checks again when the job is released.
        """
        if not job.dependency:
            return None
        terms = re.split(r"[,?]", job.dependency)
        unmet = [term.partition("(")[0] for term in terms if not self._is_met(term.strip(), job)]
        if not unmet or ("?" in job.dependency and len(unmet) < len(terms)):
            return None
        return ("?" if "?" in job.dependency else ",").join(unmet)

    def _is_met(self, term: str, job: Job) -> bool:
        if term.startswith("singleton"):
            return not any(self._goes_before(other, job) for other in self._of_name[job.user, job.name])
        match = TERM.fullmatch(term)
        if match is None or match[5] == "fulfilled":
            return True
        kind, array, task, minutes = match[1], match[2], match[3], float(match[4] or 0)
        if kind == "aftercorr":
            task = job.number.partition("_")[2] or task
        others = self._of_number[array if task in (None, "*") else f"{array}_{task}"]
        if kind == "after":
            return all(_has_begun(other, self._now - 60 * minutes) for other in others)
        if any(other.waits or other.state in HOLDING for other in others):
            return False
        well = all(other.state == "COMPLETED" for other in others)
        return {"afterok": well, "aftercorr": well, "afternotok": not well or not others}.get(kind, True)

    @staticmethod
    def _goes_before(other: Job, job: Job) -> bool:
        """Whether `other`, of the same name, must end before `job` starts, by Slurm's rule for singletons."""
        return other.state in HOLDING or (other.waits and (other.submit, other.id) < (job.submit, job.id))


def _has_begun(job: Job, before: float) -> bool:
    """Whether it was cancelled, or started at or before that time."""
    return not job.waits and (job.start <= before or job.state not in HOLDING)
