"""The processes of a Slurm job or step on this node."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from topolane._engine import InputError
from topolane.live.clients.scontrol import scontrol

BATCH = "batch"
"""What Slurm calls the step that is the job's script."""
NOT_HERE = ("There are no steps for job", "does not exist on node")
"""What scontrol says where slurmd knows none."""


@dataclass(frozen=True)
class Step:
    """A step, or all steps of a job, on this node."""

    name: str
    processes: tuple[int, ...]
    """Those that descend from no other one of it; ascending."""
    threads: int
    """Cores that its tasks on this node were given for each, together."""


@dataclass(frozen=True)
class Member:
    """A line of `scontrol listpids`."""

    process: int
    step: str
    task: bool
    """Whether Slurm started it as a task; else it descends from one."""


def step(named: str) -> Step:
    """The step JOB.STEP (a number or `batch`), or all of JOB's. Raises InputError, in a sentence.

    Which processes belong to it is what the slurmd of this node knows, by whatever `ProctrackType`.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,9})(?:\.([0-9]{1,9}|batch))?", named)
    if found is None:
        raise InputError(
            f"Slurm step {named!r}: JOB or JOB.STEP is wanted, with a number or `batch` as the step"
        )
    job, wanted = found.groups()
    members = [each for each in _members(job, named) if wanted in (None, each.step)]
    if not members:
        raise InputError(f"Slurm step {named} has no process on this node")
    return Step(named, _roots(members), _threads(members))


def _members(job: str, named: str) -> list[Member]:
    # Only numbers may be asked for as steps: the job is asked for, and what is wanted is taken out.
    try:
        listed = scontrol("listpids", job)
    except InputError as error:
        if any(words in str(error) for words in NOT_HERE):
            raise InputError(f"Slurm step {named} has no process on this node") from error
        raise
    lines = [line.split() for line in listed.splitlines()[1:]]
    # What is not started as a task has no number as one. The step `extern` only keeps the job's place.
    return [
        Member(int(line[0]), line[2], line[3] != "-")
        for line in lines
        if len(line) >= 4 and line[0].isdigit() and line[2] != "extern"
    ]


def _roots(members: list[Member]) -> tuple[int, ...]:
    """Whoever descends from these may have ended by the time that they are adopted."""
    everybody = {each.process for each in members}
    return tuple(sorted(each for each in everybody if _parent(each) not in everybody | {None}))


def _parent(process: int) -> int | None:
    """None where it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return None
    found = re.search(r"^PPid:\s*([0-9]+)$", status, re.MULTILINE)
    return int(found[1]) if found else None


def _threads(members: list[Member]) -> int:
    """Cores for its tasks. A script's are all that its job has here, unless it runs steps: then it waits for them."""
    tasks = [each for each in members if each.task]
    steps = [each for each in tasks if each.step != BATCH]
    if steps:
        return sum(_number(each.process, "SLURM_CPUS_PER_TASK") for each in steps)
    return max((_number(each.process, "SLURM_CPUS_ON_NODE") for each in tasks), default=1)


def _number(process: int, name: str) -> int:
    """What Slurm told a task when it started it; 1 where it told nothing."""
    try:
        environment = Path(f"/proc/{process}/environ").read_text(errors="replace")
    except OSError:
        return 1  # it has ended, or hides it
    found = re.search(rf"(?:^|\0){name}=([1-9][0-9]{{0,5}})\0", environment)
    return int(found[1]) if found else 1
