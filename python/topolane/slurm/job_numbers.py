"""Numbers of jobs as squeue prints them: 97, 97_3, 97_[2-6%1], 97_[1,3,5-9:2%4], and 97+1 for a part of a heterogeneous job."""

from __future__ import annotations

import dataclasses
import re

from topolane import texts
from topolane._engine import InputError
from topolane.slurm.records import SlurmJob, Snapshot

FORMS = "97, 97_3, 97_[2-6%1] or 97+1"
LONGEST = 4096
"""Characters. squeue prints 64 of a list of tasks unless SLURM_BITSTR_LEN says otherwise."""

WORD = re.compile(r"([0-9]{1,10})(?:\+([0-9]{1,6})|_([0-9]{1,10})|_\[([^\]%]*)(?:%[0-9]{1,10})?\])?")
RANGE = re.compile(r"([0-9]{1,10})(?:(?:-|\.\.)([0-9]{1,10})(?::([0-9]{1,10}))?)?")
"""`topolane slurm status` prints `..` between the first and the last of some tasks."""
CUT = "..."
"""Ends a list of tasks that squeue cut short."""


@dataclasses.dataclass(frozen=True)
class JobNumber:
    """A job, tasks of an array, or a part of a heterogeneous job."""

    text: str
    """As it was given."""
    job: int
    tasks: tuple[range, ...] | None = None
    """Of an array; None if none is named: all."""
    part: int | None = None
    """Of a heterogeneous job; None if none is named."""

    @classmethod
    def read(cls, text: str, source: str) -> JobNumber:
        """The number in a text. Raises InputError; `source` is where the text is from."""
        word = text.strip()
        found = WORD.fullmatch(word) if len(word) <= LONGEST else None
        if found is None:
            raise InputError(f"{source}: {texts.shown(text)} is no number of a job, such as {FORMS}")
        job, part, task, tasks = found.groups()
        if task is not None:
            tasks = task
        return cls(
            word,
            int(job),
            None if tasks is None else _ranges(tasks, text, source),
            None if part is None else int(part),
        )

    def jobs(self, snapshot: Snapshot) -> list[SlurmJob]:
        """The jobs that it names, in order. Without tasks it names all tasks of an array."""
        found = [job for job in snapshot.jobs.values() if self._names(job)]
        exact = [job for job in found if job.number == str(self.job)] if self.text == str(self.job) else []
        return exact or sorted(found, key=lambda job: job.id)

    def _names(self, job: SlurmJob) -> bool:
        if self.part is not None:
            return job.het_job > 0 and (job.het_job, job.het_part) == (self.job, self.part)
        if self.tasks is None:
            return str(self.job) in (job.number, str(job.array), job.record)
        task = job.number.partition("_")[2]
        return job.array == self.job and task != "" and any(int(task) in each for each in self.tasks)


def _ranges(tasks: str, text: str, source: str) -> tuple[range, ...] | None:
    """The tasks in `1,3,5-9:2`; None for all, if squeue cut the list short."""
    if tasks.endswith(CUT):
        return None
    found = []
    for part in tasks.split(","):
        match = RANGE.fullmatch(part)
        first, last, step = (int(each or 0) for each in match.groups()) if match else (0, 0, 0)
        if match is None or (match[2] is not None and last < first) or (match[3] is not None and step == 0):
            raise InputError(f"{source}: {texts.shown(text)}: {texts.shown(part)} names no tasks of an array")
        found.append(range(first, (first if match[2] is None else last) + 1, step or 1))
    return tuple(found)
