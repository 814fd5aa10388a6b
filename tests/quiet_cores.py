"""Whether anything else runs on the cores whose shares a test compares."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

NOISE = """
import time
began, had = time.monotonic(), time.process_time()
while (now := time.process_time()) < had + 0.2: pass
print((now - had) / (time.monotonic() - began))
"""


TICKS = os.sysconf("SC_CLK_TCK")
MOST_OF_OTHERS = 0.1


def used_by_others() -> float:
    """Seconds of all cores that other processes than those of /proc used since the machine started, or the host took.

    `tools/enclosed` gives the tests a /proc of their own, and its first process reaps what tests leave. So the processes there have
    all that the tests used, and what the kernel counts in addition is of others. Elsewhere it is about 0.
    """
    user, nice, system, _, _, *others = map(int, Path("/proc/stat").read_text().split(None, 9)[1:9])
    own = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path("/proc", process, "stat").read_text().rpartition(")")[2].split()
            own += sum(map(int, fields[11:15]))
    return (user + nice + system + sum(others) - own) / TICKS


class QuietCores:
    """Judges what only holds on cores that nothing else uses. What else runs is measured before, after and in between.

    stopped: processes of the test, which do not run while that is measured before and after.
    """

    def __init__(self, stopped: Iterable[int] = ()) -> None:
        self._stopped = list(stopped)
        self._were_quiet = self._are_quiet()
        self._began, self._used = time.monotonic(), used_by_others()

    def judge(self, holds: bool, seen: object) -> None:
        """To be called last, when the jobs of the test have ended."""
        seconds = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        used = used_by_others() - self._used
        if not (self._were_quiet and used <= MOST_OF_OTHERS * seconds and self._are_quiet()):
            pytest.skip("not judged: the machine is too busy")
        assert holds, seen

    def _are_quiet(self) -> bool:
        """Whether a process on each core at the same time gets nearly all of it."""
        self._send(signal.SIGSTOP)
        measuring = [
            subprocess.Popen(
                [sys.executable, "-ISc", NOISE],
                stdout=subprocess.PIPE,
                preexec_fn=functools.partial(os.sched_setaffinity, 0, {core}),
            )
            for core in sorted(os.sched_getaffinity(0))
        ]
        shares = [float(one.communicate()[0]) for one in measuring]
        self._send(signal.SIGCONT)
        return min(shares) > 0.9

    def _send(self, number: int) -> None:
        for process in self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
