"""The processes of a Slurm job or step on this node."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from topolane._engine import InputError
from topolane.cluster.clients.scontrol import scontrol

from topolane_gang import control_groups

BATCH = "batch"
"""Slurm's name for the step of the job's script."""
NOT_HERE = ("There are no steps for job", "does not exist on node")
"""What scontrol prints if slurmd knows no such step."""

TASK = re.compile(r"^0::(/.*/job_[0-9]+/step_[^/]+/user/task_[^/\n]+)", re.MULTILINE)
"""The group of version 2 that Slurm keeps a task in (src/plugins/cgroup/v2/cgroup_v2.c)."""


@dataclass(frozen=True)
class SlurmStep:
    """A step, or all steps of a job, on this node."""

    name: str
    processes: tuple[int, ...]
    """The processes that descend from no other process of the step; ascending."""
    threads: int
    """The sum of the cores of its tasks on this node."""
    groups: tuple[Path, ...] = ()
    """The groups of its tasks, if Slurm keeps each in one of version 2."""


@dataclass(frozen=True)
class StepProcess:
    """A line of `scontrol listpids`."""

    process: int
    step: str
    task: bool
    """Whether Slurm started it as a task; otherwise it descends from one."""


def step(named: str) -> SlurmStep:
    """The step JOB.STEP (a number or `batch`), or all steps of JOB. Raises InputError.

    The slurmd of this node says which processes belong to it, for any `ProctrackType`.
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
    return SlurmStep(named, _roots(members), _threads(members), _groups(members))


def _members(job: str, named: str) -> list[StepProcess]:
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
        StepProcess(int(line[0]), line[2], line[3] != "-")
        for line in lines
        if len(line) >= 4 and line[0].isdigit() and line[2] != "extern"
    ]


def _roots(members: list[StepProcess]) -> tuple[int, ...]:
    """The processes without an ancestor in the step. Their descendants may end before the adoption."""
    everybody = {each.process for each in members}
    return tuple(sorted(each for each in everybody if _parent(each) not in everybody | {None}))


def _groups(members: list[StepProcess]) -> tuple[Path, ...]:
    """The groups of its tasks; none if a process is in no such group.

    Slurm suspends a step by the group above them (`user`), so that neither thaws what the other has frozen.
    """
    groups = set()
    for each in members:
        try:
            listed = Path(f"/proc/{each.process}/cgroup").read_text()
        except OSError:
            continue  # it has ended
        found = TASK.search(listed)
        if found is None:
            return ()
        groups.add(control_groups.group(found[1]))
    return tuple(sorted(groups))


def _parent(process: int) -> int | None:
    """The parent process; None if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return None
    found = re.search(r"^PPid:\s*([0-9]+)$", status, re.MULTILINE)
    return int(found[1]) if found else None


def _threads(members: list[StepProcess]) -> int:
    """The cores for its tasks. A script has all cores of its job here, unless it runs steps and so only
    waits.
    """
    tasks = [each for each in members if each.task]
    steps = [each for each in tasks if each.step != BATCH]
    if steps:
        return sum(_number(each.process, "SLURM_CPUS_PER_TASK") for each in steps)
    return max((_number(each.process, "SLURM_CPUS_ON_NODE") for each in tasks), default=1)


def _number(process: int, name: str) -> int:
    """A number from the environment that Slurm gave a task; 1 if it is missing."""
    try:
        environment = Path(f"/proc/{process}/environ").read_text(errors="replace")
    except OSError:
        return 1  # it has ended, or hides it
    found = re.search(rf"(?:^|\0){name}=([1-9][0-9]{{0,5}})\0", environment)
    return int(found[1]) if found else 1
