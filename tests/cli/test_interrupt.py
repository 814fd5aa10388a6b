"""Ending a long run early: at once, without leavings, without workers that go on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import DEADLINE, until

SCRIPT = Path(sys.executable).parent / "topolane"
LONG = (
    "compare",
    "--workload",
    "cab-aug-2x",
    "--queues",
    "conservative",
    "--scenarios",
    "none,5,10,20,v1,v2",
)


def processes(group: int) -> list[str]:
    """Command lines of the living processes of a session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == group and state not in "ZX":
                found.append((entry / "cmdline").read_text())
    return found


def computes(group: int) -> bool:
    """Whether a call of the engine in a session has had half a second of a core: it has read what it runs."""
    for task in Path("/proc").glob("[0-9]*/task/*"):
        with contextlib.suppress(OSError):
            session = int((task / "stat").read_text().rpartition(")")[2].split()[3])
            if session == group and (task / "comm").read_text() == "topolane-call\n":
                return int((task / "schedstat").read_text().split()[0]) > 5e8
    return False


@pytest.fixture
def start(tmp_path):
    """Starts a long run in a session of its own, of which nothing outlives the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str, command: tuple[str, ...] = LONG) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            [SCRIPT, *command, *options, "--out", "out"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # Tests in the background of a shell have interrupts ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("ending", "whole_group", "jobs", "code"),
    [
        (signal.SIGINT, False, 2, 130),
        (signal.SIGINT, True, 2, 130),
        (signal.SIGINT, False, 1, 130),
        (signal.SIGTERM, False, 2, 143),
        (signal.SIGKILL, False, 2, -9),
    ],
    ids=["interrupt", "interrupt-from-a-terminal", "interrupt-of-one-process", "terminate", "kill"],
)
def test_a_run_that_is_ended(start, tmp_path, ending, whole_group, jobs, code):
    process = start("--jobs", str(jobs))
    workers = jobs if jobs > 1 else 0
    until(lambda: sum("spawn_main" in line for line in processes(process.pid)) == workers)
    until(lambda: list(tmp_path.iterdir()), "the folder that is written into comes before the runs")
    until(lambda: computes(process.pid), "a run computes")
    assert process.poll() is None
    (os.killpg if whole_group else os.kill)(process.pid, ending)
    out, said = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out) == (code, b""), "it does not go on to its end"
    until(lambda: not processes(process.pid))
    if ending != signal.SIGKILL:
        assert said.strip() == b""
        assert list(tmp_path.iterdir()) == []
    assert not (tmp_path / "out").exists()


SLOW = """
import pathlib, time, topolane
class Slow(topolane.Policy):
    def choose(self, request, state):
        pathlib.Path("asked").touch()
        time.sleep(0.5)
"""


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("policy", ["dedicated", "slow:Slow"])
def test_a_run_ends_at_once_in_the_midst_of_a_pass(start, tmp_path, policy, ending, code):
    """All jobs are submitted at once, so the first pass of the queue takes many minutes. A policy in Python does not take the end of
    the process for its own error."""
    jobs = [f"{number},0,{60 + number % 997},{1 + number % 64}" for number in range(20_000)]
    (tmp_path / "jobs.csv").write_text("\n".join(["id,submit,run,nodes", *jobs, ""]))
    (tmp_path / "slow.py").write_text(SLOW)
    own = {"jobs.csv", "slow.py"}
    run = ("simulate", "--machine", "cab", "--trace", "jobs.csv", "--queue", "conservative")
    process = start("--policy", policy, command=run)
    until(
        lambda: {path.name for path in tmp_path.iterdir()} - own,
        "the folder that is written into comes before the run",
    )
    until(lambda: computes(process.pid) or (tmp_path / "asked").exists(), "the pass has begun")
    assert process.poll() is None
    process.send_signal(ending)
    out, said = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out, said.strip()) == (code, b"", b"")
    assert {path.name for path in tmp_path.iterdir()} - {"asked"} == own


def test_a_worker_that_is_killed_is_said(start, tmp_path):
    process = start("--jobs", "2")
    workers = f"/proc/{process.pid}/task/{process.pid}/children"

    def spawned() -> list[int]:
        children = Path(workers).read_text().split()
        return [int(pid) for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]

    until(lambda: len(spawned()) == 2)
    os.kill(spawned()[0], signal.SIGKILL)
    out, said = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out) == (2, b"")
    assert said.decode() == "topolane: a process that ran a task was killed: too little memory?\n"
    until(lambda: not processes(process.pid))
    assert list(tmp_path.iterdir()) == []
