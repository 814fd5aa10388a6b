"""What test_gang_v2_only.py runs in its machine. It imports little, since that machine is emulated."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from topolane.gang.agent import Agent, Limits
from topolane.gang.control_groups import OwnGroup, unit

SPIN = [sys.executable, "-I", "-S", "-c", "while True: pass"]
THREADS = """
import hashlib, threading
for _ in range(2):
    threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 2**31 - 1)).start()
"""
GROUP = Path("/sys/fs/cgroup/own.service")


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


def start(command: list[str]) -> int:
    """A process in the group."""
    process = subprocess.Popen(command)
    (GROUP / "cgroup.procs").write_text(str(process.pid))
    tasks = f"/proc/{process.pid}/task"
    soon(
        "its threads compute",
        lambda: len(os.listdir(tasks)) == 3 and computes(max(map(int, os.listdir(tasks)))),
    )
    return process.pid


def busy() -> Agent:
    """An agent whose first job computes for a minute, so that later ones are stopped."""
    agent = Agent("gang", limits=Limits(slice=60))
    agent.start("runs", SPIN, threads=2)
    soon("the first job runs", agent.switches)
    return agent


def main() -> None:
    """Each of these is one rule."""
    kinds = {line.split()[2] for line in Path("/proc/mounts").read_text().splitlines()}
    assert "cgroup2" in kinds and "cgroup" not in kinds, kinds
    GROUP.mkdir()
    with busy() as agent:
        print("the agent has", agent.means.stopping, agent.means.pinning, agent.means.ranking, flush=True)
        process = start([sys.executable, "-I", "-c", THREADS])
        first, second = sorted(map(int, os.listdir(f"/proc/{process}/task")))[1:]
        job = agent.adopt("threads", threads=[first], count=2)
        soon("a thread is stopped", lambda: not computes(first))
        soon("its sibling runs on", lambda: computes(second))
        agent.let_go(job)
        soon("the thread runs again", lambda: computes(first))
        soon("its group is removed", lambda: not list(GROUP.glob("topolane-*")))
        agent.adopt_groups("unit", [OwnGroup(unit("own"))])
        soon("all of the unit is stopped", lambda: not computes(first) and not computes(second))
    soon("the unit runs when the agent has ended", lambda: computes(first) and computes(second))
    if os.fork() == 0:
        agent = busy()
        agent.adopt("threads", threads=[second], count=2)
        os.kill(os.getpid(), 9)
    os.wait()
    soon("a thread runs when the agent was killed", lambda: computes(second))
    print("all is well")


if __name__ == "__main__":
    main()
