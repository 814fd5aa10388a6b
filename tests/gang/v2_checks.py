"""What test_gang_v2_only.py runs in its machine: one of the functions. It imports little, since that machine is
emulated."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import containers
from topolane._engine import InputError
from topolane.gang import control_groups
from topolane.gang.agent import Agent, Job, Limits
from topolane.gang.control_groups import OwnGroup

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


def soon(what: str, true: Callable[[], object]) -> None:
    """Waits until something is so, and says it."""
    until = time.monotonic() + 120
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.05)
    print("seen:", what, flush=True)


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
    soon(
        "its threads compute",
        lambda: len(os.listdir(tasks)) == 3 and computes(max(map(int, os.listdir(tasks)))),
    )
    return sorted(map(int, os.listdir(tasks)))[1:]


def busy() -> Agent:
    """An agent whose first job computes for a minute, so that later ones are stopped."""
    agent = Agent("gang", limits=Limits(slice=60))
    agent.start("runs", SPIN, threads=2)
    soon("the first job runs", agent.switches)
    return agent


def adopted(agent: Agent, group: Path) -> Job:
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
        soon("a thread is stopped", lambda: not computes(first))
        soon("its sibling runs on", lambda: computes(second))
        agent.let_go(job)
        soon("the thread runs again", lambda: computes(first))
        soon("its group is removed", lambda: not list(GROUP.glob("topolane-*")))
        job = adopted(agent, GROUP)
        soon("all of the unit is stopped", lambda: not computes(first) and not computes(second))
        assert systemctl("is-active", "own") == "active"
        assert Path(f"/proc/{first}/cgroup").read_text() == "0::/system.slice/own.service\n"
        systemctl("restart", "own")
        soon("the job ends with its unit", lambda: job.state() == "ended")
        first, second = threads()
        adopted(agent, GROUP)
        soon("the restarted unit is stopped", lambda: not computes(first) and not computes(second))
    soon("the unit runs when the agent has ended", lambda: computes(first) and computes(second))
    if os.fork() == 0:
        agent = busy()
        agent.adopt("threads", threads=[second], count=2)
        os.kill(os.getpid(), 9)
    os.wait()
    soon("a thread runs when the agent was killed", lambda: computes(second))
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
            soon("it computes", lambda: computes(process))
            job = adopted(agent, group)
            soon("the container is stopped", lambda: not computes(process))
            assert Path(f"/proc/{process}/cgroup").read_text() == where
            agent.let_go(job)
            soon("it runs when it is let go", lambda: computes(process))
            assert runs.shown()["status"] == "running"
            job = adopted(agent, group)
            soon("it is stopped again", lambda: not computes(process))
            runs.call("kill", runs.id, "KILL")
            soon("the job ends with its container", lambda: job.state() == "ended")


if __name__ == "__main__":
    only_version_2()
    globals()[sys.argv[1]](*sys.argv[2:])
    print("all is well")
