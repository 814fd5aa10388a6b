"""Plays on this machine's cores, by the agent."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topolane._engine import InputError

from topolane_gang.study import gang_programs as programs
from topolane_gang.study.gang import Done, PlayOutcome, Spell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_gang.study.gang import Play, PlayedJob

GRACE = 2.0
"""Seconds after a play's end in which jobs may end by themselves."""
BREAK = 5e-4
"""Seconds off a core that a timeline does not show."""


class CannotRun(Exception):
    """Nothing can be run here: why."""


class Real:
    """This machine's cores."""

    def __init__(self, folder: Path) -> None:
        """Builds the programs into a folder and measures the kernel. Raises CannotRun."""
        self.cores = tuple(sorted(os.sched_getaffinity(0)))
        if len(self.cores) < 2:
            raise CannotRun("this process may use one core only: there is no gang of one")
        self.folder = folder
        self.mpi = next(iter(programs.mpis()), None)
        try:
            self.threads = programs.build(folder)
            self.ranks = programs.build_mpi(folder, self.mpi) if self.mpi else None
        except programs.Missing as missing:
            raise CannotRun(str(missing)) from missing
        self.rate = programs.measured_rate(self.threads)

    def play(self, play: Play, *, trace: bool = False) -> PlayOutcome:
        """Runs the jobs under the agent. Raises CannotRun where it may not or cannot."""
        for file in self.folder.glob("job-*"):
            file.unlink()
        try:
            with agent(play.policy, self.cores, play.slice) as running:
                start = time.monotonic()
                started = [self.start(running, start, *job, trace) for job in enumerate(play.jobs)]
                for job in started:
                    try:
                        job.wait(max(start + play.seconds + GRACE - time.monotonic(), 0.0))
                    except TimeoutError:
                        running.end(job)
        except (InputError, OSError) as error:
            raise CannotRun(str(error)) from error
        return self.read(play, start, trace)

    def start(self, running: Any, start: float, number: int, job: PlayedJob, trace: bool) -> Any:
        """Starts a job when it is its time."""
        command = self.command(number, job, trace)
        wait_until(start + job.arrival)
        return running.start(
            job.name.replace(" ", "-"),
            command,
            threads=job.threads,
            environment=programs.ENVIRONMENT,
            output=self.folder / f"job-{number}-said",
        )

    def command(self, number: int, job: PlayedJob, trace: bool) -> list[str]:
        """What starts a job; ranks are threads where there is no MPI."""
        traced = self.folder / f"job-{number}-trace" if trace else None
        words = job.run.words(self.rate, self.folder / f"job-{number}-log", traced)
        if job.ranks and self.mpi and self.ranks:
            return self.mpi.command(self.ranks, job.threads, words)
        return [str(self.threads), *words, "--threads", str(job.threads)]

    def read(self, play: Play, start: float, trace: bool) -> PlayOutcome:
        """What the programs have logged."""
        done, spells = [], []
        for number, job in enumerate(play.jobs):
            lines = programs.log(self.folder / f"job-{number}-log")
            ends = programs.by_thread(lines)
            own = [[end - start for end in ends[thread]] for thread in sorted(ends)]
            whole = bool(lines) and (
                job.run.iterations is None or all(len(each) == job.run.iterations for each in own)
            )
            began = min(line.start for line in lines) - start if lines else None
            done.append(Done(job, own, began, max(each[-1] for each in own) if whole else None))
            if trace:
                on_core = joined(programs.trace(self.folder / f"job-{number}-trace"))
                spells += [
                    Spell(line.start - start, line.end - start, self.cores.index(line.core), number)
                    for line in on_core
                ]
        return PlayOutcome(done, spells)


class Others:
    """What programs that are not ours take of the cores from now on."""

    def __init__(self) -> None:
        """Starts to count."""
        self.start, self.all, self.ours = time.monotonic(), busy_seconds(), own_seconds()

    def share(self, cores: int) -> float:
        """Their share of the time of `cores` cores until now, 0 to 1."""
        theirs = busy_seconds() - self.all - (own_seconds() - self.ours)
        return max(theirs, 0.0) / (cores * (time.monotonic() - self.start))


def busy_seconds() -> float:
    """CPU seconds of everybody since the machine started, those that its hypervisor took included."""
    user, nice, system, _, _, irq, softirq, steal = Path("/proc/stat").read_text().split()[1:9]
    return sum(map(int, (user, nice, system, irq, softirq, steal))) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """CPU seconds of this process and of what it started and has ended."""
    return sum(os.times()[:4])


def wait_until(moment: float) -> None:
    """Sleeps."""
    time.sleep(max(moment - time.monotonic(), 0.0))


def joined(lines: list[programs.ProgramLine]) -> list[programs.ProgramLine]:
    """Times on a core, those of a thread joined that a short break parts."""
    found: list[programs.ProgramLine] = []
    for line in sorted(lines, key=lambda line: (line.thread, line.start)):
        last = found[-1] if found else None
        if (
            last is not None
            and (last.thread, last.core) == (line.thread, line.core)
            and line.start - last.end < BREAK
        ):
            found[-1] = programs.ProgramLine(line.thread, last.start, line.end, core=line.core)
        else:
            found.append(line)
    return found


def agent(policy: str, cores: Sequence[int], slice: float | None) -> Any:
    """An agent with a policy, for `with`. Raises CannotRun where this system has none."""
    try:
        from topolane._engine import GangLimits

        from topolane_gang.agent import Agent
    except ImportError as error:
        raise CannotRun(f"no agent on this system: {error}") from error
    return Agent(policy=policy, cores=cores, limits=GangLimits(slice=slice))
