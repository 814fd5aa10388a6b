"""What goes wrong with jobs and agents, on real processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gang_processes import ALONE, CORES, SPIN, STUBBORN, children, computes, lives
from topolane._engine import InputError
from topolane_gang.agent import Agent, Limits
from topolane_gang.agent_files import release_abandoned
from topolane_gang.watchdog import job_groups
from waiting import DEADLINE, until

# An agent whose second job is stopped for a minute while the first computes; says its watchdog's and jobs' numbers.
AGENT = f"""
import sys, time
from topolane_gang.agent import Agent, Limits
agent = Agent("gang", {CORES}, Limits(slice=60), switch_by=sys.argv[1])
spin = [sys.executable, "-c", "while True: pass"]
jobs = [agent.start(name, spin, threads={len(CORES)}, output="/dev/null") for name in ("runs", "waits")]
while not agent.switches():
    time.sleep(0.01)
print(agent.watchdog_pid, *[job.pid for job in jobs], *agent.means.groups, flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def agent_elsewhere(way: str) -> Iterator[tuple[subprocess.Popen[str], int, list[int], list[Path]]]:
    """An agent in a process of its own, its watchdog, its two jobs, of which the second is stopped, and its groups."""
    command = [sys.executable, "-c", AGENT, way]
    agent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    jobs: list[int] = []
    try:
        assert agent.stdout is not None
        assert agent.stderr is not None
        said = agent.stdout.readline().split()
        if not said and "does not work here" in (why := agent.stderr.read()):
            pytest.skip(why.splitlines()[-1])
        watchdog, *jobs = map(int, said[:3])
        yield agent, watchdog, jobs, [Path(group) for group in said[3:]]
    finally:
        agent.kill()
        for job in jobs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job, signal.SIGKILL)
        agent.communicate()
        release_abandoned()


@pytest.mark.parametrize("way", ["freeze", "freezer", "signals"])
def test_all_jobs_run_when_the_agent_is_killed_and_the_next_agent_removes_its_groups(way: str) -> None:
    with agent_elsewhere(way) as (agent, watchdog, (runs, waits), groups):
        assert not computes(waits), "it should be stopped while the other has its slice"
        agent.kill()
        agent.wait()
        until(lambda: computes(waits), "the job that was stopped computes")
        until(lambda: computes(runs), "the other computes")
        until(lambda: not lives(watchdog), "the watchdog ends")
        assert release_abandoned() == 1
        until(lambda: computes(waits), "it still computes")
        assert not [own for own in groups if own.exists()]


@pytest.mark.parametrize("way", ["freeze", "signals"])
def test_all_jobs_run_while_the_agent_is_silent_and_take_turns_when_it_speaks_again(way: str) -> None:
    with agent_elsewhere(way) as (agent, _, (_, waits), _):
        agent.send_signal(signal.SIGSTOP)
        until(lambda: computes(waits), "the job that was stopped computes")
        agent.send_signal(signal.SIGCONT)
        until(lambda: not computes(waits), "it is stopped again")


def test_a_watchdog_that_died_is_replaced() -> None:
    with Agent("gang", CORES) as agent:
        first = agent.watchdog_pid
        os.kill(first, signal.SIGKILL)
        until(lambda: agent.watchdog_pid != first and lives(agent.watchdog_pid), "another watches")


def test_a_job_without_its_control_group_is_lost_and_the_others_go_on() -> None:
    with Agent("gang", CORES, Limits(slice=0.02)) as agent:
        if agent.means.stopping == "signals":
            pytest.skip("no control groups here")
        lost, stays = (agent.start(name, ALONE, threads=len(CORES)) for name in ("lost", "stays"))
        for own in agent.means.groups:
            group = own / f"job-{lost.id}"
            (own.parent / "cgroup.procs").write_text(str(lost.pid))
            group.rmdir()
        until(lambda: lost.state() == "lost", "it is lost")
        (said,) = [job.reason for job in agent.jobs() if job.id == lost.id]
        assert said is not None
        assert "its control group was removed" in said or "moved out of its control group" in said
        assert lost.pid is not None
        until(lambda: computes(lost.pid or 0), "it computes")
        until(lambda: [first for _, first, _ in agent.round().slices] == [[stays.id]], "the other is alone")
        assert stays.pid is not None
        until(lambda: computes(stays.pid or 0), "the other computes")
    assert not lives(lost.pid), "what the agent started ends with it, lost or not"


@pytest.mark.parametrize("way", ["freeze", "freezer", "signals"])
def test_a_process_that_ignores_signals_is_killed_though_it_is_stopped(way: str) -> None:
    """It is ended while another job has a slice of a minute."""
    try:
        agent = Agent("gang", CORES, Limits(slice=60), switch_by=way)
    except InputError as error:
        if "does not work here" not in str(error):
            raise
        pytest.skip(str(error))
    with agent:
        stubborn = subprocess.Popen(STUBBORN, stdout=subprocess.PIPE)
        assert stubborn.stdout is not None
        assert stubborn.stdout.readline(), "it ignores signals from here on"
        agent.start("runs", SPIN, threads=len(CORES))
        stopped = agent.adopt("stubborn", [stubborn.pid], count=len(CORES))
        until(lambda: stopped.state() == "stopped", "it is stopped")
        agent.end(stopped, grace=0.3)
        assert stubborn.wait(0) == -signal.SIGKILL
        stubborn.stdout.close()


@pytest.mark.parametrize("way", ["freeze", "signals"])
def test_jobs_that_fork_and_exit_all_the_time_are_harmless(way: str) -> None:
    """One starts short processes as fast as it can, one is killed in mid-slice, one ends: all are heard of."""
    storm = ["sh", "-c", "while :; do (true & true); done"]
    try:
        agent = Agent("gang", CORES, Limits(slice=0.01), switch_by=way)
    except InputError as error:
        if "does not work here" not in str(error):
            raise
        pytest.skip(str(error))
    with agent:
        forks = agent.start("forks", storm, threads=len(CORES))
        killed = agent.start("killed", SPIN, threads=len(CORES))
        ends = agent.start("ends", ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
        assert ends.wait(DEADLINE) == 0
        assert killed.pid is not None
        os.killpg(killed.pid, signal.SIGKILL)
        assert killed.wait(DEADLINE) == -signal.SIGKILL
        until(lambda: [one for _, one, _ in agent.round().slices] == [[forks.id]], "only the first is left")
        assert forks.state() == "running"
        agent.end(forks, grace=0.1)
        assert not children(forks.pid or 0)


def test_the_next_job_of_a_batch_starts_when_one_ends_in_mid_slice(tmp_path: Path) -> None:
    ends = tmp_path / "ends"
    os.mkfifo(ends)
    with Agent("batch", CORES) as agent:
        first = agent.start("first", ["cat", str(ends)], threads=len(CORES))
        second = agent.start("second", ["sh", "-c", "exit 5"], threads=len(CORES))
        assert second.state() == "stopped"
        ends.write_text("")
        assert second.wait(DEADLINE) == 5
        assert first.returned() == 0


def test_a_job_of_more_threads_than_cores_has_slices_to_itself_on_all_cores() -> None:
    with Agent("gang", CORES, Limits(slice=0.02)) as agent:
        wide = agent.start("wide", SPIN, threads=len(CORES) + 3)
        other = agent.start("other", SPIN, threads=1)
        until(lambda: len(agent.round().slices) == 2, "two slices")
        assert sorted(first for _, first, _ in agent.round().slices) == [[wide.id], [other.id]]
        assert agent.round().cores[wide.id] == list(CORES)
        until(lambda: all(job.cpu > 0.05 for job in agent.jobs()), "both get on")


def test_what_is_not_there_is_refused_by_name() -> None:
    with Agent("gang", CORES) as agent:
        dead = subprocess.Popen(["true"])
        dead.wait()
        for wrong, said in (
            (lambda: agent.adopt("gone", [dead.pid]), f"job gone: there is no process {dead.pid}"),
            (lambda: agent.adopt("me", [os.getpid()]), "is the agent itself"),
            (lambda: agent.adopt("up", [os.getppid()]), "is the agent itself, or started it"),
            (lambda: agent.start("no", ["no-such-command"]), "job no: no-such-command: no such command"),
            (lambda: agent.start("zero", ["true"], threads=0), "job zero: threads must be from 1"),
            (lambda: agent.start("light", ["true"], weight=-1), "job light: weight must be a number above 0"),
        ):
            with pytest.raises(InputError, match=said):
                wrong()
        assert agent.jobs() == []
        assert all(job_groups(own) == [] for own in agent.means.groups)
    for cores, said in (
        ([999999], "999999 is not a core"),
        ([], "at least one"),
        ([CORES[0]] * 2, "different"),
    ):
        with pytest.raises(InputError, match=said):
            Agent("gang", cores)
    with pytest.raises(InputError, match='no gang policy is called "nice"; there are batch, free'):
        Agent("nice", CORES)


# Two jobs in turns, by a user who may do nothing special; another's process.
UNPRIVILEGED = f"""
import os, sys, time
from topolane._engine import InputError
from topolane_gang.agent import Agent, Limits
with Agent("gang", {CORES}, Limits(slice=0.02)) as agent:
    print(agent.means.stopping, agent.means.pinning, agent.means.ranking)
    print(*agent.means.missing, sep="\\n")
    spin = [sys.executable, "-c", "while True: pass"]
    jobs = [agent.start(name, spin, threads={len(CORES)}) for name in ("one", "other")]
    while not all(job.given > 0.1 for job in agent.jobs()):
        time.sleep(0.01)
    print(sorted(os.sched_getaffinity(jobs[0].pid)), len(agent.round().slices))
    try:
        agent.adopt("another", [int(sys.argv[1])])
    except InputError as error:
        print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is missing")
def test_without_any_permission_jobs_take_turns_by_signals_and_what_is_missing_is_said(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o777)
    around = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path)}
    around["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    for above in tmp_path.parents:
        if above.stat().st_mode & 0o1 == 0:
            around.pop("XDG_RUNTIME_DIR", None)
    become = [
        "setpriv",
        "--reuid",
        "nobody",
        "--regid",
        "nogroup",
        "--clear-groups",
        "--bounding-set",
        "-all",
    ]
    another = subprocess.Popen(["sleep", "600"])
    command = [*become, sys.executable, "-c", UNPRIVILEGED, str(another.pid)]
    done = subprocess.run(command, capture_output=True, text=True, env=around, cwd="/", timeout=DEADLINE)
    another.kill()
    another.wait()
    if "Permission denied" in done.stderr or "No module named" in done.stderr:
        pytest.skip(f"another user may not read this installation: {done.stderr.splitlines()[-1]}")
    said = done.stdout.splitlines()
    assert said[0] == "signals affinity nothing", done.stderr
    missing = "\n".join(said)
    assert "no control group that freezes may be made: jobs are stopped by signals" in missing
    assert "no cpuset may be made: jobs are kept to their cores by affinity" in missing
    assert "no fillers" in missing
    assert "no real-time priority" in missing
    assert said[-2] == f"{list(CORES)} 2"
    refused = f"job another: process {another.pid} belongs to another user: no permission to stop it"
    assert said[-1] == refused
