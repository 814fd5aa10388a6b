"""Runs a job that an agent adopts and a job that never waits on the same cores, and measures the share of each."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from topolane._engine import GangLimits, InputError
from topolane_gang.agent import Agent, AgentJob
from waiting import until

WEIGHT = 3.0
"""Weight of the adopted job, against 1 of the other: the kernel alone would give both the same share."""
ENOUGH = 3.0
"""Seconds of CPU, of both together, after which the shares are looked at."""


@dataclass
class Pair:
    """Two jobs of an agent."""

    agent: Agent
    adopted: AgentJob
    busy: AgentJob

    def cpu(self, job: AgentJob) -> float:
        """Seconds on a core so far."""
        return next(each.cpu for each in self.agent.jobs() if each.id == job.id)

    def share(self) -> float:
        """The adopted job's share of the CPU time that both get from now on."""
        first = self.cpu(self.adopted), self.cpu(self.busy)

        def had() -> tuple[float, float]:
            return self.cpu(self.adopted) - first[0], self.cpu(self.busy) - first[1]

        until(lambda: sum(had()) > ENOUGH, "both jobs run")
        adopted, busy = had()
        return adopted / (adopted + busy)

    def off(self, job: AgentJob) -> list[tuple[float, float]]:
        """The times in which a job was stopped, CLOCK_MONOTONIC seconds; not the one that lasts."""
        switches = self.agent.switches()
        return [
            (before.ended, after.began)
            for before, after in itertools.pairwise(switches)
            if job.id not in (*before.first, *before.fillers)
        ]


def cores() -> tuple[int, int]:
    """Two that this process may use."""
    found = sorted(os.sched_getaffinity(0))
    if len(found) < 2:
        pytest.skip("two jobs of two threads need two cores")
    return found[0], found[1]


def alone(slice: float | None) -> Agent:
    """An agent of two cores, once no other agent of this machine has them."""
    made: list[Agent] = []

    def make() -> bool:
        try:
            made.append(Agent(policy="gang", cores=cores(), limits=GangLimits(slice=slice)))
        except InputError as error:
            if "another agent" not in str(error):
                raise
        return bool(made)

    until(make, "the cores are free of agents")
    return made[0]


@contextlib.contextmanager
def pair(adopt: Callable[[Agent], AgentJob], slice: float | None = None) -> Iterator[Pair]:
    """Both jobs in turns, in slices of `slice` seconds."""
    with alone(slice) as agent:
        command = ["sh", "-c", "(while :; do :; done) & while :; do :; done"]
        busy = agent.start("busy", command, threads=2)
        yield Pair(agent, adopt(agent), busy)


def seconds(thread: int) -> float:
    """CPU time that a thread has had."""
    return int(Path(f"/proc/{thread}/schedstat").read_text().split()[0]) / 1e9


def goes_on(threads: list[int]) -> bool:
    """Whether all of them get CPU time, looked at for as long as that takes."""
    before = {thread: seconds(thread) for thread in threads}
    until(lambda: all(seconds(thread) > before[thread] + 0.05 for thread in threads), "they go on")
    return True


def stand_still(threads: list[int], rounds: Callable[[], int]) -> None:
    """They get nothing over three rounds of slices; asked for again where they were still being stopped."""

    def still() -> bool:
        before, begun = [seconds(thread) for thread in threads], rounds()
        while rounds() < begun + 3:
            time.sleep(0.02)
        return [seconds(thread) for thread in threads] == before

    until(still, "they are stopped")


def place(thread: int) -> tuple[str, set[str]]:
    """The control groups that a thread is in, and the cores that it may use."""
    lines = Path(f"/proc/{thread}/status").read_text().splitlines()
    return Path(f"/proc/{thread}/cgroup").read_text(), {line for line in lines if "_allowed" in line}
