"""The snapshots that were taken, in bounded memory: older ones at coarser steps."""

from __future__ import annotations

import bisect
import pickle
import zlib

from topolane.serve.snapshot import Line, Series, Snapshot

MOST_BYTES = 64 << 20
"""Memory of the snapshots that are kept."""
MOST_POINTS = 4096
"""Points of the line of figures."""


class History:
    """Snapshots by time. When they take too much memory, every second one of the older half goes."""

    def __init__(self, nodes: int, name: str, most_bytes: int = MOST_BYTES) -> None:
        self._nodes, self._name, self._most = nodes, name, most_bytes
        self._times: list[float] = []
        self._packed: list[bytes] = []
        self._bytes = 0
        self._points: list[tuple[float, float, float]] = []

    def add(self, snapshot: Snapshot) -> None:
        """Keeps a snapshot that is later than all others; others are passed over."""
        if self._times and snapshot.time <= self._times[-1]:
            return
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

    def _thin(self) -> None:
        older = max(len(self._times) // 2, 2)
        self._bytes -= sum(map(len, self._packed[1:older:2]))
        del self._times[1:older:2], self._packed[1:older:2]

    def at(self, time: float) -> Snapshot | None:
        """The last snapshot at or before a time, or the first; None if there is none."""
        if not self._times:
            return None
        index = max(bisect.bisect_right(self._times, time) - 1, 0)
        kept: Snapshot = pickle.loads(zlib.decompress(self._packed[index]))
        return kept

    def span(self) -> tuple[float, float] | None:
        """The first and the last time; None if there is none."""
        return (self._times[0], self._times[-1]) if self._times else None

    def __len__(self) -> int:
        return len(self._times)

    @property
    def bytes(self) -> int:
        """What the snapshots take."""
        return self._bytes

    def series(self) -> Series:
        """Utilisation and queue length of the times that were looked at."""
        times, busy, waiting = ([row[column] for row in self._points] for column in range(3))
        return Series(times, [Line(self._name, busy, waiting, [None] * len(times))])
