"""Measures what the cores of this machine compute, compared with a reference core."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from topolane._engine import smooth

REFERENCE = 2e9
"""Values that the reference core, of speed 1.0, computes per second in `smooth`: about a core of a server processor
of 2023 (AMD EPYC 9004).
"""
AT_START, AGAIN = 1.0, 0.1
"""Seconds that all cores together are measured for, at the start and later."""
EVERY = 600.0
"""Seconds between measurements."""
KEPT = 6
"""Measurements that count, so that a core which got slower is seen within an hour."""
_LEAST_REPEATS = 3
_REPEAT = 2e-4
"""Seconds of one repeat: a tenth of the shortest time slices, so that some repeats run undisturbed on a loaded core."""


class CoreSpeed:
    """The speed of this machine's cores, measured from time to time."""

    def __init__(self) -> None:
        self._times = max(1, round(_REPEAT / _seconds(1)))
        self._best: deque[float] = deque(maxlen=KEPT)
        self._now = 0.0
        self._measured = -EVERY

    def look(self) -> dict[str, float]:
        """`speed`: mean over the cores of their fastest repeat. `speed_now`: the same of the mean repeat, which other
        processes slow down.
        """
        began = time.monotonic()
        if began - self._measured >= EVERY:
            self._measure(AGAIN if self._best else AT_START)
            self._measured = began
        return {"speed": round(max(self._best), 2), "speed_now": round(self._now, 2)}

    def _measure(self, seconds: float) -> None:
        cores = sorted(os.sched_getaffinity(0))
        best = mean = 0.0
        for core in cores:
            with _on(core):
                repeats = self._repeats(seconds / len(cores))
            best += max(repeats)
            mean += len(repeats) / sum(1 / speed for speed in repeats)
        self._best.append(best / len(cores))
        self._now = mean / len(cores)

    def _repeats(self, seconds: float) -> list[float]:
        speeds: list[float] = []
        end = time.perf_counter() + seconds
        while len(speeds) < _LEAST_REPEATS or time.perf_counter() < end:
            speeds.append(_speed(self._times))
        return speeds


def _speed(times: int) -> float:
    began = time.perf_counter()
    computed, _ = smooth(times)
    return computed / (time.perf_counter() - began) / REFERENCE


def _seconds(times: int) -> float:
    """Seconds of the fastest of some repeats."""
    return min(smooth(times)[0] / REFERENCE / _speed(times) for _ in range(20))


@contextmanager
def _on(core: int) -> Iterator[None]:
    """Runs this thread on one core; anywhere, if the system does not allow that."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {core})
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
