"""Measures the cores in use."""

from __future__ import annotations

import os
import time
from pathlib import Path

TICK = 1 / os.sysconf("SC_CLK_TCK")


class Load:
    """The cores that a process and the whole machine have used since this was made."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._begun = time.monotonic()
        self._before = self._now()

    def cores(self) -> tuple[float, float]:
        """Cores in use by the process, and by everything."""
        seconds = time.monotonic() - self._begun
        one, everything = self._now()
        return (one - self._before[0]) / seconds, (everything - self._before[1]) / seconds

    def _now(self) -> tuple[float, float]:
        words = Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()
        counts = map(int, Path("/proc/stat").read_text().split()[1:9])
        user, nice, system, _, _, irq, soft, _ = counts
        return TICK * (int(words[11]) + int(words[12])), TICK * (user + nice + system + irq + soft)
