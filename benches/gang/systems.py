"""The systems that let two jobs run on the same cores: the kernel alone, Slurm, and Topolane."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from live_cluster import Cluster, running
from topolane import _engine
from topolane_gang.agent import Agent
from topolane_gang.study import gang_programs as programs

if TYPE_CHECKING:
    from priority import Ahead

SLICE = 5.0
"""In seconds: the least value that Slurm accepts for `SchedulerTimeSlice`."""
PATIENCE = 300.0
"""The longest wait, in seconds, for another agent to free the cores."""
Start = Callable[[Sequence[str]], None]
"""A function that starts a command as a job."""
Running = Callable[[Cluster, "Ahead"], contextlib.AbstractContextManager[Start]]


@dataclasses.dataclass(frozen=True)
class System:
    """A system that switches between jobs."""

    name: str
    running: Running
    before: float = 2.0
    """Seconds after the start that are not counted."""


@contextlib.contextmanager
def cluster(folder: Path, cores: int) -> Iterator[Cluster]:
    """A Slurm with one node, whose cores two jobs use in turn."""
    gangs = ("PreemptMode=GANG", "PreemptType=preempt/none", f"SchedulerTimeSlice={SLICE:g}")
    options = ("--cpus", cores, "--select", "cons_tres", "--partitions", "pbatch:ALL:FORCE:2")
    with running(1, folder, *options, *(word for line in gangs for word in ("--conf", line))) as up:
        yield up


@contextlib.contextmanager
def kernel(_: Cluster, __: Ahead) -> Iterator[Start]:
    """Jobs under the kernel alone."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        yield lambda words: started.append(subprocess.Popen(words))
    finally:
        for process in started:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def slurm(up: Cluster, _: Ahead) -> Iterator[Start]:
    """Jobs under Slurm's own gang scheduler."""
    jobs: list[int] = []

    def start(words: Sequence[str]) -> None:
        jobs.append(up.submit("-n1", f"-c{len_of(up)}", script=f"exec {shlex.join(words)}"))

    try:
        yield start
    finally:
        if jobs:
            up.run("scancel", *jobs)


def len_of(up: Cluster) -> int:
    """The number of cores of the one node."""
    return int(up.run("sinfo", "-h", "-o", "%c"))


def gang(**limits: float) -> Running:
    """Jobs under Topolane's agent."""

    @contextlib.contextmanager
    def agent(_: Cluster, ahead: Ahead) -> Iterator[Start]:
        with _alone(_engine.GangLimits(**limits)) as made:
            ahead.raise_groups(Path(group) for group in made.means.groups)
            count = iter(range(1, 100))
            yield lambda words: made.start(f"job{next(count)}", words, threads=len(made.cores)) and None

    return agent


def _alone(limits: _engine.GangLimits) -> Agent:
    """An agent, made when no other agent has the cores."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return Agent(policy="gang", limits=limits)
        except _engine.InputError as error:
            if "another agent" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


SYSTEMS = (
    System("kernel", kernel),
    System("slurm", slurm, before=11.0),  # its first slices have another length than requested
    System("topolane-5s", gang(slice=SLICE)),
    System("topolane", gang()),
)


def alone(words: Callable[[Path, float], list[str]], folder: Path, seconds: float) -> float:
    """Iterations per second of a job that has its cores to itself."""
    log = folder / "alone"
    subprocess.run(words(log, seconds), check=True)
    found = ends(log, 0)
    log.unlink()
    return len(found) / (found[-1] - found[0])


def ends(log: Path, deadline: float) -> list[float]:
    """The times at which iterations of a job ended, returned after the job's end. Raises TimeoutError."""
    while not log.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{log.name} has not ended")
        time.sleep(0.2)
    return programs.by_thread(programs.log(log))[0]
