"""Measures the agent that switches gangs, on this machine's first two cores."""

from __future__ import annotations

import bisect
import os
import statistics
import subprocess
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from measure import Options, Result, Row
from topolane._engine import InputError
from topolane_gang.agent import Agent, Limits

CORES = tuple(sorted(os.sched_getaffinity(0)))[:2]
WAYS = ("freeze", "freezer", "signals")
SLICE = 0.05
"""In seconds."""
SOURCE = Path(__file__).parent / "spin.c"


def agent_of(policy: str, length: float, way: str | None = None, *, alone: bool) -> Agent:
    """An agent with slices of `length` seconds. If `alone`, its jobs have the greatest weight, so that other
    programs hardly run.
    """
    agent = Agent(policy, CORES, Limits(slice=length), switch_by=way)
    if alone:
        for group in agent.means.groups:
            for file, most in (("cpu.shares", "262144"), ("cpu.weight", "10000")):
                if (group / file).exists():
                    (group / file).write_text(most)
    return agent


class Spinners:
    """The compiled program and the results of its runs."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.counted = 0
        """Rounds of all threads in the last run."""
        subprocess.run(["cc", "-O2", "-pthread", "-o", place / "spin", SOURCE], check=True)

    def run(self, agent: Agent, jobs: int, seconds: float) -> dict[int, list[list[tuple[float, float]]]]:
        """Runs jobs. Returns for each job the periods in which each of its threads was on a core; `counted`
        gets the total number of rounds.
        """
        started = []
        for number in range(jobs):
            log = self._place / str(number)
            command = [str(self._place / "spin"), str(len(CORES)), str(seconds), str(log)]
            started.append((agent.start(f"job {number}", command, threads=len(CORES)), log))
        for job, _ in started:
            job.wait(60 + 10 * seconds)
        self.counted = 0
        return {job.id: self._read(log) for job, log in started}

    def _read(self, log: Path) -> list[list[tuple[float, float]]]:
        threads: list[list[tuple[float, float]]] = [[] for _ in CORES]
        for line in log.read_text().splitlines():
            thread, *values = map(int, line.split())
            if len(values) == 2:
                threads[thread].append((values[0] / 1e9, values[1] / 1e9))
            else:
                self.counted += values[0]
        return threads


def agent_cpu() -> float:
    """Seconds that the switching thread has been on a core."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().strip() == "gang-agent":
            return int((task / "schedstat").read_text().split()[0]) / 1e9
    return 0.0


def skews(
    agent: Agent, ran: dict[int, list[list[tuple[float, float]]]], length: float
) -> tuple[list[float], list[float]]:
    """For each switch: the time between the first and the last thread of the new job to begin, and of the old
    job to stop.

    A switch counts only if all threads of the job noticed it; a thread that another program keeps off its
    core does not.
    """
    begins = {job: [[begin for begin, _ in thread] for thread in threads] for job, threads in ran.items()}
    ends = {job: [[end for _, end in thread] for thread in threads] for job, threads in ran.items()}
    began, stopped = [], []
    for before, switch in pairwise(agent.switches()):
        came = [_next(of, switch.began, length) for job in switch.first for of in begins.get(job, [])]
        since = switch.began - length / 10
        went = [_next(of, since, length / 5) for job in before.first for of in ends.get(job, [])]
        for times, of in ((came, began), (went, stopped)):
            known = [time for time in times if time is not None]
            if len(known) == len(times) == len(CORES):
                of.append(max(known) - min(known))
    return began, stopped


def _next(times: list[float], since: float, within: float) -> float | None:
    at = bisect.bisect_left(times, since)
    return times[at] if at < len(times) and times[at] < since + within else None


def load_before() -> list[str]:
    """The load of the machine, as a line below the table."""
    return [f"load of the machine before: {os.getloadavg()[0]:.1f}"]


def skew(options: Options) -> Result:
    """How far apart the threads of a job begin and stop, as they observe it, with slices of 50 ms."""
    rows, notes = [], load_before()
    for way in WAYS:
        for jobs in (4,) if options.quick else (4, 8, 16):
            try:
                runs = [
                    _one_run(way, jobs, 5 if options.quick else 15, options.alone)
                    for _ in range(1 if options.quick else 3)
                ]
            except InputError as error:
                rows.append(Row("skew", f"by {way}", "us", (), note=str(error)))
                break
            for at, what in enumerate(("begin", "stop")):
                columns = [[1e6 * apart for apart in run[at]] for run in runs if run[at]]
                number = sum(map(len, columns))
                words = f"threads of a job {what}, {jobs} jobs, by {way}, {number} switches"
                rows.append(
                    Row("skew", f"{words}: median", "us", tuple(map(statistics.median, columns)), 200)
                )
                rows.append(
                    Row("skew", f"{words}: p99", "us", tuple(percentile(of, 0.99) for of in columns), 1000)
                )
    return Result(rows, notes=notes)


def _one_run(way: str, jobs: int, seconds: float, alone: bool) -> tuple[list[float], list[float]]:
    with tempfile.TemporaryDirectory() as place:
        with agent_of("gang", SLICE, way, alone=alone) as agent:
            ran = Spinners(Path(place)).run(agent, jobs, seconds)
            return skews(agent, ran, SLICE)


def percentile(values: list[float], share: float) -> float:
    """The value that this fraction of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def own_cpu(options: Options) -> Result:
    """The part of a core that the agent's thread uses with slices of 50 ms."""
    rows, notes = [], load_before()
    for jobs in (4, 16):
        shares = []
        for _ in range(1 if options.quick else 5):
            with agent_of("gang", SLICE, alone=options.alone) as agent:
                spin = ["sh", "-c", "(while :; do :; done) & while :; do :; done"]
                for number in range(jobs):
                    agent.start(f"job {number}", spin, threads=len(CORES))
                time.sleep(1)
                before, began = agent_cpu(), time.monotonic()
                time.sleep(3 if options.quick else 10)
                shares.append(100 * (agent_cpu() - before) / (time.monotonic() - began))
        rows.append(
            Row("agent", f"CPU of the agent, {jobs} jobs, slices of 50 ms", "% of a core", tuple(shares), 1)
        )
    return Result(rows, notes=notes)


def loss(options: Options) -> Result:
    """The work that gangs with slices of 100 ms lose, compared with the same jobs run one after the other by
    the operating system alone.
    """
    losses, notes = [], load_before()
    for _ in range(2 if options.quick else 8):
        done = {}
        for policy in ("free", "gang", "gang", "free"):
            with tempfile.TemporaryDirectory() as place:
                spinners = Spinners(Path(place))
                with agent_of(policy, 0.1, alone=options.alone) as agent:
                    spinners.run(agent, 4, 3 if options.quick else 5)
                done[policy] = done.get(policy, 0) + spinners.counted
        losses.append(100 * (1 - done["gang"] / done["free"]))
    row = Row("loss", "work lost against free, 4 jobs, slices of 100 ms", "%", tuple(losses), 2)
    return Result([row], notes=notes)
