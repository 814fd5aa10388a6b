"""Runs a program alone, in copies that share the cores plainly, and in copies that are gangs."""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from topolane._engine import InputError

from topolane_gang.agent import Agent, Limits
from topolane_gang.job import POLL, AgentJob

MOST = 20.0
"""Copies that take longer than this multiple of their planned time are ended."""
QUICK = 1.0
"""Seconds. Shorter runs say little: a start takes tenths of a second."""
COMPETING = 1.3
"""Copies that take less than this times as long as one alone hardly compete."""
OTHERS = 0.1
"""Part of the cores. If other programs use more, the figures say little."""
TICK = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Trial:
    """What is tried. cores, limits and policy are those of the agent."""

    command: tuple[str, ...]
    copies: int
    threads: int
    cores: tuple[int, ...]
    limits: Limits
    policy: str = "adaptive"
    repeat: int = 1

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return 3 * self.repeat


@dataclass(frozen=True)
class TrialRun:
    """How the copies ran, the medians of all repetitions. Times in seconds."""

    how: str
    """alone, shared or gangs"""
    copies: int
    first: float
    """Until the first copy ended."""
    last: float
    """Until the last copy ended."""
    others: float | None
    """Cores that other programs used, on average; None if the copies were ended."""
    ended: bool
    """Otherwise the copies were ended, because they took `MOST` times as long as they should."""


def run_all(trial: Trial, done: Callable[[], None]) -> list[TrialRun]:
    """The program alone, shared, and in gangs; `done` is called after each run.

    Every copy has control groups and a session of its own, also when the cores are shared plainly. Otherwise
    sched_autogroup would share by sessions in one case and not in the other. Raises InputError if a copy
    fails.
    """
    alone = _median(_one(trial, "alone", 1, "free", None, done) for _ in range(trial.repeat))
    most = MOST * trial.copies * max(alone.last, QUICK)
    kinds = (("shared", "free"), ("gangs", trial.policy))
    rest = [
        _median(_one(trial, how, trial.copies, policy, most, done) for _ in range(trial.repeat))
        for how, policy in kinds
    ]
    return [alone, *rest]


def _median(runs: Iterable[TrialRun]) -> TrialRun:
    each = list(runs)
    first, last = (statistics.median(getattr(run, name) for run in each) for name in ("first", "last"))
    others = [run.others for run in each if run.others is not None]
    ended = len(others) == len(each)
    return TrialRun(
        each[0].how, each[0].copies, first, last, statistics.median(others) if ended else None, ended
    )


def _one(
    trial: Trial, how: str, copies: int, policy: str, most: float | None, done: Callable[[], None]
) -> TrialRun:
    with tempfile.TemporaryDirectory() as folder, Agent(policy, trial.cores, trial.limits) as agent:
        busy, own, began = _busy(trial.cores), _children(), time.monotonic()
        jobs = [
            agent.start(f"copy {number}", trial.command, threads=trial.threads, output=f"{folder}/{number}")
            for number in range(1, copies + 1)
        ]
        ends: dict[int, float] = {}
        while len(ends) < copies and (most is None or time.monotonic() < began + most):
            for job in jobs:
                if job.id not in ends and job.returned() is not None:
                    ends[job.id] = time.monotonic() - began
                    _check(trial, how, job, Path(folder) / job.name.split()[1])
            time.sleep(POLL / 4)
        ended, over = len(ends) == copies, time.monotonic() - began
        used = _busy(trial.cores) - busy
    # What copies used that were ended is not all counted as this process's children's.
    others = max(0.0, used - (_children() - own)) / over if ended else None
    done()
    return TrialRun(
        how, copies, min(ends.values(), default=over), max(ends.values()) if ended else over, others, ended
    )


def _check(trial: Trial, how: str, job: AgentJob, output: Path) -> None:
    if code := job.returned():
        lines = output.read_text(errors="replace").split("\n")
        said = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
        raise InputError(f"{trial.command[0]} ended with {code} in the run {how}: {said.strip()}")


def _children() -> float:
    """Seconds of CPU of all that this process has started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _busy(cores: Sequence[int]) -> float:
    """Seconds in which these cores did not idle."""
    wanted = {f"cpu{core}" for core in cores}
    sum = 0.0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in wanted:
            user, nice, system, _, _, irq, soft, steal = map(int, fields[:8])
            sum += TICK * (user + nice + system + irq + soft + steal)
    return sum


def notes(runs: Sequence[TrialRun], cores: int) -> list[str]:
    """Notes on the runs on `cores` cores: what gangs gain, and what makes the figures doubtful. A sentence
    each.
    """
    alone, shared, gangs = runs
    said = []
    if shared.ended and gangs.ended:
        said.append(f"Gangs do {shared.last / gangs.last:.2f} times the work of plain sharing.")
    for run in runs:
        if not run.ended:
            said.append(
                f"{run.how}: the copies were ended after {run.last:.0f} s, {MOST:g} times as long as they should take."
            )
    if alone.last < QUICK:
        said.append(
            f"The program alone takes {alone.last:.2f} s: give it more to do, since starts count for much."
        )
    if shared.ended and shared.last < COMPETING * alone.last:
        said.append("The copies hardly compete: they leave cores free, or the program runs for a fixed time.")
    if (most := max(run.others or 0.0 for run in runs)) > OTHERS * cores:
        said.append(f"Other programs used up to {most:.1f} cores meanwhile: the figures are of little worth.")
    return said


def of_ideal(run: TrialRun, alone: TrialRun) -> float | None:
    """The work done compared with copies that run one after another; None if they did not end."""
    return run.copies * alone.last / run.last if run.ended else None
