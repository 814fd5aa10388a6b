"""Stores received counts and then acknowledges them, so no acknowledged frame can be lost."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable

from topolane.mpi.connection import Connection
from topolane.mpi.window import Window

Taken = dict[str, set[int]]
"""By program: the ranks from which something was received."""
_MOST_PAUSE = 5.0


class Acknowledger:
    """Calls `keep` about every `interval` seconds with all received ranks, and acknowledges them when `keep`
    returns.

    keep: stores the counts. It may raise OSError and is then called again later. None if memory is enough.
    windows: returns the windows of some ranks. failed: called with the reason if storing fails.
    """

    def __init__(
        self,
        keep: Callable[[Taken], Awaitable[None]] | None,
        interval: float,
        windows: Callable[[Taken], Iterable[Window]],
        failed: Callable[[str], None],
    ) -> None:
        self._keep, self._interval, self._windows, self._failed = keep, interval, windows, failed
        self._taken: Taken = {}
        self._waiting: set[Connection] = set()
        self._soon = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def took(self, program: str, rank: int) -> None:
        """Records that something from a rank must be stored."""
        self._taken.setdefault(program, set()).add(rank)

    def holds(self, program: str) -> bool:
        """Whether something from a program is not yet stored."""
        return program in self._taken

    def expects(self, connection: Connection) -> None:
        """Records that a connection awaits the acknowledgement of its newest frame."""
        self._waiting.add(connection)

    def left(self, connection: Connection) -> None:
        """Records that a connection has ended."""
        self._waiting.discard(connection)

    def hurry(self) -> None:
        """Stores soon, because a rank awaits an acknowledgement before it ends."""
        self._soon.set()

    def start(self) -> None:
        """Starts the task in the running event loop."""
        if self._running is None:
            self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stores and acknowledges what remains, and stops."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        await self._flush()

    async def _run(self) -> None:
        pause = self._interval
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._soon.wait(), pause)
                # The other ranks of an ending program will follow soon.
                await asyncio.sleep(min(0.05, self._interval))
            self._soon.clear()
            began = time.monotonic()
            await self._flush()
            # If storing is slow, spend at most a fifth of the time on it.
            pause = min(_MOST_PAUSE, max(self._interval, 4 * (time.monotonic() - began)))

    async def _flush(self) -> None:
        taken, self._taken = self._taken, {}
        waiting = [(connection, connection.newest) for connection in self._waiting]
        self._waiting.clear()
        marks = [(window, window.highest) for window in self._windows(taken)]
        if self._keep is not None and taken:
            try:
                await self._keep(taken)
            except OSError as error:
                self._failed(f"what arrived could not be kept, and is not acknowledged: {error}")
                for program, ranks in taken.items():
                    self._taken.setdefault(program, set()).update(ranks)
                self._waiting.update(connection for connection, _ in waiting if connection.is_open)
                return
        for window, highest in marks:
            window.kept = highest
        for connection, sequence in waiting:
            connection.acknowledge(sequence)
