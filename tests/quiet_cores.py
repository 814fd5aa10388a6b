"""Whether anything else runs on the cores whose shares a test compares."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Iterable

import pytest

NOISE = """
import time
began, had = time.monotonic(), time.process_time()
while (now := time.process_time()) < had + 0.2: pass
print((now - had) / (time.monotonic() - began))
"""


class QuietCores:
    """Judges what only holds on cores that nothing else uses. What else runs is measured before and after.

    stopped: processes of the test, which do not run while that is measured.
    """

    def __init__(self, stopped: Iterable[int] = ()) -> None:
        self._stopped = list(stopped)
        self._were_quiet = self._are_quiet()

    def judge(self, holds: bool, seen: object) -> None:
        """To be called last, when the jobs of the test have ended."""
        if not (self._were_quiet and self._are_quiet()):
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
