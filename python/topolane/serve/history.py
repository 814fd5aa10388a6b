"""Keeps past snapshots in bounded memory: the older they are, the coarser the steps."""

from __future__ import annotations

import bisect
import pickle
import zlib

from topolane.cluster.view import View
from topolane.serve.source import PolicyLine, Series

MOST_BYTES = 64 << 20
"""The most bytes of stored snapshots."""
MOST_POINTS = 4096
"""The most points of a line over time."""


class SnapshotHistory:
    """Snapshots by time. If they take too much memory, every second one of the older half is dropped.

    If the clock is set back, the times of earlier snapshots are moved back too, so that their order stays.
    """

    def __init__(self, nodes: int, name: str, most_bytes: int = MOST_BYTES) -> None:
        self._nodes, self._name, self._most = nodes, name, most_bytes
        self._times: list[float] = []
        self._packed: list[bytes] = []
        self._bytes = 0
        self._points: list[tuple[float, float, float]] = []

    def add(self, snapshot: View) -> bool:
        """Stores a snapshot, unless it repeats the last one. Returns whether the times of earlier snapshots
        have changed.
        """
        if self._times and snapshot.time == self._times[-1]:
            return False
        is_back = bool(self._times) and snapshot.time < self._times[-1]
        if is_back:
            self._move(snapshot.time)
        packed = zlib.compress(pickle.dumps(snapshot, protocol=5), 1)
        self._times.append(snapshot.time)
        self._packed.append(packed)
        self._bytes += len(packed)
        while self._bytes > self._most and len(self._times) > 2:
            self._thin()
        busy = len({node for job in snapshot.running for node in job.nodes})
        self._points.append((snapshot.time, busy / max(self._nodes, 1), float(len(snapshot.waiting))))
        if len(self._points) > MOST_POINTS:
            del self._points[: len(self._points) // 2 : 2]
        return is_back

    def _move(self, now: float) -> None:
        """Moves all times back so that the last one is a usual step before `now`."""
        times = self._times
        step = times[-1] - times[-2] if len(times) > 1 else 1.0
        by = times[-1] - (now - step)
        self._times = [time - by for time in times]
        self._points = [(time - by, busy, waiting) for time, busy, waiting in self._points]

    def _thin(self) -> None:
        older = max(len(self._times) // 2, 2)
        self._bytes -= sum(map(len, self._packed[1:older:2]))
        del self._times[1:older:2], self._packed[1:older:2]

    def at(self, time: float) -> View | None:
        """The last snapshot at or before a time, otherwise the first one; None if there is none."""
        if not self._times:
            return None
        index = max(bisect.bisect_right(self._times, time) - 1, 0)
        kept: View = pickle.loads(zlib.decompress(self._packed[index]))
        return kept

    def span(self) -> tuple[float, float] | None:
        """The first and the last time; None without snapshots."""
        return (self._times[0], self._times[-1]) if self._times else None

    def __len__(self) -> int:
        return len(self._times)

    @property
    def bytes(self) -> int:
        """The bytes that the snapshots take."""
        return self._bytes

    def series(self) -> Series:
        """Utilisation and queue length at the times of snapshots."""
        times, busy, waiting = ([row[column] for row in self._points] for column in range(3))
        return Series(times, [PolicyLine(self._name, busy, waiting, [None] * len(times))])
