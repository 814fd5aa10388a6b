"""What test_gang_v2_only.py runs in its machine: one of the functions. It imports little, since that machine is
emulated."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import containers
from topolane._engine import InputError
from topolane_gang import control_groups
from topolane_gang.agent import Agent, AgentJob, Limits
from topolane_gang.control_groups import OwnGroup
from waiting import until

SPIN = [sys.executable, "-I", "-S", "-c", "while True: pass"]
THREADS = """
import hashlib, threading
for _ in range(2):
    threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 2**31 - 1)).start()
"""
GROUP = Path("/sys/fs/cgroup/system.slice/own.service")
UNIT = f"""[Unit]
DefaultDependencies=no

[Service]
ExecStart={sys.executable} -I /run/threads.py
TimeoutStopSec=2
"""


def computes(thread: int) -> bool:
    """Whether a thread gets anything done within a second."""
    file, until = Path(f"/proc/{thread}/schedstat"), time.monotonic() + 1
    before = int(file.read_text().split()[0])
    while time.monotonic() < until:
        if int(file.read_text().split()[0]) > before + 2e7:
            return True
        time.sleep(0.02)
    return False


def systemctl(*words: str) -> str:
    """What systemd answers."""
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"systemctl {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


def threads() -> list[int]:
    """The two threads of the unit that compute, once they do."""
    process = int(systemctl("show", "--property=MainPID", "--value", "own"))
    tasks = f"/proc/{process}/task"
    until(
        lambda: len(os.listdir(tasks)) == 3 and computes(max(map(int, os.listdir(tasks)))),
        "its threads compute",
    )
    return sorted(map(int, os.listdir(tasks)))[1:]


def busy() -> Agent:
    """An agent whose first job computes for a minute, so that later ones are stopped."""
    agent = Agent("gang", limits=Limits(slice=60))
    agent.start("runs", SPIN, threads=2)
    until(agent.switches, "the first job runs")
    return agent


def adopted(agent: Agent, group: Path) -> AgentJob:
    """The job of a group."""
    return agent.adopt_groups("own", [OwnGroup(group)])


def is_refused(agent: Agent, group: Path) -> bool:
    """Whether the agent leaves a group that others have frozen alone."""
    try:
        adopted(agent, group)
    except InputError as error:
        return "is frozen already, not by this agent" in str(error)
    return False


def only_version_2() -> None:
    """Says which means the machine has."""
    kinds = {line.split()[2] for line in Path("/proc/mounts").read_text().splitlines()}
    assert "cgroup2" in kinds and "cgroup" not in kinds, kinds


def units() -> None:
    """Each of these is one rule."""
    Path("/run/threads.py").write_text(THREADS)
    Path("/run/units/own.service").write_text(UNIT)
    systemctl("daemon-reload")
    systemctl("start", "own")
    assert control_groups.unit("own") == GROUP
    first, second = threads()
    with busy() as agent:
        print("the agent has", agent.means.stopping, agent.means.pinning, agent.means.ranking, flush=True)
        job = agent.adopt("threads", threads=[first], count=2)
        until(lambda: not computes(first), "a thread is stopped")
        until(lambda: computes(second), "its sibling runs on")
        agent.let_go(job)
        until(lambda: computes(first), "the thread runs again")
        until(lambda: not list(GROUP.glob("topolane-*")), "its group is removed")
        job = adopted(agent, GROUP)
        until(lambda: not computes(first) and not computes(second), "all of the unit is stopped")
        assert systemctl("is-active", "own") == "active"
        assert Path(f"/proc/{first}/cgroup").read_text() == "0::/system.slice/own.service\n"
        systemctl("restart", "own")
        until(lambda: job.state() == "ended", "the job ends with its unit")
        first, second = threads()
        adopted(agent, GROUP)
        until(lambda: not computes(first) and not computes(second), "the restarted unit is stopped")
    until(lambda: computes(first) and computes(second), "the unit runs when the agent has ended")
    if os.fork() == 0:
        agent = busy()
        agent.adopt("threads", threads=[second], count=2)
        os.kill(os.getpid(), 9)
    os.wait()
    until(lambda: computes(second), "a thread runs when the agent was killed")
    systemctl("stop", "own")
    assert not GROUP.exists()


def container(runtime: str) -> None:
    """Each of these is one rule."""
    with containers.container(runtime, Path("/run/container")) as runs:
        process = int(str(runs.shown()["pid"]))
        group = control_groups.container(runs.id[:12])
        print("the container is", group, flush=True)
        where = Path(f"/proc/{process}/cgroup").read_text()
        with busy() as agent:
            runs.call("pause", runs.id)
            assert is_refused(agent, group)
            runs.call("resume", runs.id)
            until(lambda: computes(process), "it computes")
            job = adopted(agent, group)
            until(lambda: not computes(process), "the container is stopped")
            assert Path(f"/proc/{process}/cgroup").read_text() == where
            agent.let_go(job)
            until(lambda: computes(process), "it runs when it is let go")
            assert runs.shown()["status"] == "running"
            job = adopted(agent, group)
            until(lambda: not computes(process), "it is stopped again")
            runs.call("kill", runs.id, "KILL")
            until(lambda: job.state() == "ended", "the job ends with its container")


if __name__ == "__main__":
    only_version_2()
    globals()[sys.argv[1]](*sys.argv[2:])
    print("all is well")
