"""Programs that the agent's tests run as jobs, and what they look at."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

CORES = tuple(sorted(os.sched_getaffinity(0)))[:2]
needs_two_cores = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")

SPIN = ["sh", "-c", "(while :; do :; done) & while :; do :; done"]
"""Two processes that compute for ever."""

ALONE = [sys.executable, "-c", "while True: pass"]
"""One that does."""

STUBBORN = [
    sys.executable,
    "-c",
    "import signal as s\nfor n in (s.SIGTERM, s.SIGINT, s.SIGHUP): s.signal(n, s.SIG_IGN)\nprint('deaf', flush=True)\nwhile True: pass",
]


def computes(process: int) -> bool:
    """Whether a process got anything done within the next 50 ms of its own time, or of a second of ours."""
    before, until = cpu(process), time.monotonic() + 1
    while time.monotonic() < until:
        if cpu(process) - before > 0.05:
            return True
        time.sleep(0.01)
    return False


def cpu(process: int) -> float:
    """Seconds that the first thread of a process was on a core."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def lives(process: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children(process: int) -> list[int]:
    """The processes that one started."""
    listed = subprocess.run(["ps", "--ppid", str(process), "-o", "pid="], capture_output=True, text=True)
    return [int(line) for line in listed.stdout.split()]
