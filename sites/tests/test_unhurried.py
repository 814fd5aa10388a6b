"""The rule of waking seldom: a stream is taken in by portions, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest
from topolane_sites import moderated_selector
from topolane_sites.moderated_selector import PAUSE, ModeratedSelector

BYTES = 500


class Counting(ModeratedSelector):
    """Counts the looks that were free to wait."""

    waits = 0

    def select(self, timeout: float | None = None) -> Any:
        self.waits += timeout is None or timeout > 0
        return super().select(timeout)


class Clock:
    """Goes on while one sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_stream_wakes_the_loop_at_most_once_in_a_pause_and_all_of_it_arrives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 500 bytes that come one by one all arrive, and no two looks are closer than a pause."""
    clock = Clock()
    monkeypatch.setattr(moderated_selector, "time", clock)
    here, there = socket.socketpair()

    def send() -> None:
        with there:
            for _ in range(BYTES):
                there.send(b"x")
                time.sleep(0.001)

    async def stream(unhurried: Counting) -> None:
        reader, writer = await asyncio.open_connection(sock=here)
        before, began = unhurried.waits, clock.now
        sender = threading.Thread(target=send)
        sender.start()
        got = len(await reader.read())
        looks, most = unhurried.waits - before, (clock.now - began) / PAUSE + 2
        sender.join()
        writer.close()
        assert got == BYTES
        assert looks <= most

    _run(stream)


def _run(what: Any) -> None:
    unhurried = Counting()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(unhurried)) as runner:
        runner.run(what(unhurried))
