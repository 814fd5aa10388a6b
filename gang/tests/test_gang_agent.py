"""Jobs of the agent on this machine's cores: who runs with whom, how often, and where."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from gang_processes import CORES, SPIN, needs_two_cores
from quiet_cores import QuietCores
from topolane._engine import InputError
from topolane_gang.agent import Agent, Limits
from waiting import DEADLINE, until

WAYS = ("freeze", "freezer", "signals")


def agent_by(way: str, policy: str = "gang", **limits: float) -> Agent:
    """An agent that switches so, or a skipped test."""
    try:
        return Agent(policy, CORES, Limits(**limits), switch_by=way)
    except InputError as error:
        if "does not work here" not in str(error):
            raise
        pytest.skip(str(error))


def test_a_command_ends_with_its_own_exit_code(tmp_path: Path) -> None:
    with Agent("gang", CORES) as agent:
        job = agent.start("three", ["sh", "-c", "echo said; exit 3"], output=tmp_path / "out")
        assert job.wait(DEADLINE) == 3
        assert (tmp_path / "out").read_text() == "said\n"


@needs_two_cores
def test_every_job_is_pinned_to_as_many_cores_as_it_has_threads(tmp_path: Path) -> None:
    program = "import os; print(sorted(os.sched_getaffinity(0)))"
    with Agent("gang", CORES) as agent:
        for threads in (1, 2):
            out = tmp_path / str(threads)
            agent.start("where", [sys.executable, "-c", program], threads=threads, output=out).wait(DEADLINE)
            cores = ast.literal_eval(out.read_text())
            assert len(cores) == threads
            assert set(cores) <= set(CORES)


def test_a_second_agent_on_the_same_cores_is_refused() -> None:
    with Agent("gang", CORES):
        with pytest.raises(InputError, match=f"core {CORES[0]}: another agent .* has it already"):
            Agent("gang", CORES)
    with Agent("gang", CORES):
        pass  # let go with its owner


# Prints a line (begin, end), nanoseconds of CLOCK_MONOTONIC, whenever it was not on a core for 4 ms.
STRETCHES = """
import sys, time
begin = last = time.monotonic_ns()
while last < int(sys.argv[1]):
    now = time.monotonic_ns()
    if now - last > 4_000_000:
        print(begin, last)
        begin = now
    last = now
"""


@needs_two_cores
@pytest.mark.parametrize("way", WAYS)
def test_two_gangs_never_run_at_the_same_time(way: str, tmp_path: Path, quiet_cores: QuietCores) -> None:
    """Of two jobs of two threads, no two stretches of computing overlap by more than a switch takes.

    By their own clocks: each thread notes when it was on a core. A switch is over when the kernel was called, and
    every thread has seen it; both come late on a busy machine, so what counts is that nothing is common but that.
    """
    seconds = 2
    with agent_by(way, slice=0.1) as agent:
        until = time.monotonic_ns() + seconds * 10**9
        script = (
            f'{sys.executable} -c "$1" {until} > "$0.0" & {sys.executable} -c "$1" {until} > "$0.1"; wait'
        )
        names = ("one", "other")
        jobs = [
            agent.start(name, ["sh", "-c", script, str(tmp_path / name), STRETCHES], threads=2)
            for name in names
        ]
        for job in jobs:
            job.wait(DEADLINE)
        switches = agent.switches()
    ran = {name: stretches(tmp_path / f"{name}.0") + stretches(tmp_path / f"{name}.1") for name in names}
    common = sum(overlap(one, other) for one in ran["one"] for other in ran["other"])
    together = min(sum(end - begin for begin, end in of) for of in ran.values())
    seen = (len(switches), together, common)
    quiet_cores.judge(len(switches) >= 8 and together > 0.1 and common < 0.1 * together, seen)


def stretches(log: Path) -> list[tuple[float, float]]:
    """Seconds of CLOCK_MONOTONIC."""
    lines = [line.split() for line in log.read_text().splitlines()]
    return [(int(begin) / 1e9, int(end) / 1e9) for begin, end in lines]


def overlap(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Seconds that two stretches have in common."""
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))


@needs_two_cores
def test_weights_share_the_time(quiet_cores: QuietCores) -> None:
    """Two jobs of weights 2 and 1 that never block are given slices of that ratio, and are on cores so long."""
    with Agent("gang", CORES, Limits(slice=0.02)) as agent:
        for name, weight in (("heavy", 2.0), ("light", 1.0)):
            agent.start(name, SPIN, threads=2, weight=weight)
        until(lambda: len(agent.switches()) > 300, "300 switches")
        switches, jobs = agent.switches(), {job.id: job for job in agent.jobs()}
    seconds = dict.fromkeys(jobs, 0.0)
    for one, next_one in pairwise(switches[2:]):
        (id,) = one.first
        seconds[id] += next_one.began - one.ended
    heavy, light = seconds.values()
    cpu = [job.cpu for job in jobs.values()]
    quiet_cores.judge(
        heavy / light == pytest.approx(2, rel=0.1) and 1.2 < cpu[0] / cpu[1] < 3.5, (heavy, light, *cpu)
    )


@needs_two_cores
def test_fillers_get_what_a_blocked_job_leaves_and_nothing_of_a_busy_one() -> None:
    """If the threads of a job sleep nine tenths of the time, a filler computes in that job's slices; if they compute,
    it does not."""
    with Agent("adaptive", CORES, Limits(slice=0.05)) as agent:
        if agent.means.ranking == "nothing":
            pytest.skip("no job may be ranked behind others here")
        sleepy = "import time\nwhile True:\n  end = time.monotonic() + 0.004\n  while time.monotonic() < end: pass\n"
        sleepy += "  time.sleep(0.006)"
        script = f"{sys.executable} -c '{sleepy}' & {sys.executable} -c '{sleepy}'"
        agent.start("blocked", ["sh", "-c", script], threads=2)
        busy = agent.start("busy", SPIN, threads=2)

        def filling() -> bool:
            return any(busy.id in fillers for _, _, fillers in agent.round().slices)

        until(filling, "the busy job fills the blocked one's slice")
        before = filled(agent, busy.id)
        until(lambda: filled(agent, busy.id) > before + 0.2, "it computes there")


def filled(agent: Agent, id: int) -> float:
    """Seconds that a job was on a core as a filler."""
    (job,) = [job for job in agent.jobs() if job.id == id]
    return job.cpu - job.ran


def test_a_process_tree_that_is_there_is_adopted_and_let_go() -> None:
    """All processes of the tree are kept to the agent's cores and stopped between slices; let go, they run on."""
    tree = subprocess.Popen(SPIN, start_new_session=True)
    other = subprocess.Popen(SPIN, start_new_session=True)
    try:
        with Agent("gang", CORES, Limits(slice=0.02)) as agent:
            jobs = [
                agent.adopt(name, [process.pid], count=len(CORES))
                for name, process in (("tree", tree), ("other", other))
            ]
            until(lambda: all(job.given > 0.1 for job in agent.jobs()), "both have had slices")
            agent.let_go(jobs[0])
            until(lambda: [job.name for job in agent.jobs()] == ["other"], "the other is alone")
            assert tree.poll() is None
        assert other.poll() is None
    finally:
        for process in (tree, other):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
