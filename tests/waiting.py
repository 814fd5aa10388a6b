"""How a test waits: for an event, never for a time that should be enough."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import inspect
import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
IN_OPEN, IN_CLOSE_NOWRITE = 0x20, 0x10
"""Of linux/inotify.h."""
EVENT = struct.Struct("iIII")
"""Of the same: watch, what happened, cookie, bytes of the name that follows."""
DEADLINE = float(os.environ.get("TOPOLANE_TEST_DEADLINE", "400"))
"""Seconds that anything may take on a busy machine. It only ends tests that hang: none is judged by it."""
IN_EMULATION = 2000.0
"""The same in a machine that is emulated, whose cores are many times as slow."""


class _Wait:
    """Pauses that grow a little, until the deadline."""

    def __init__(self, holds: Callable[[], object], what: str, deadline: float = DEADLINE) -> None:
        self._holds, self._what, self._deadline = holds, what, deadline
        self._began = time.monotonic()

    def pause(self, seen: object) -> float:
        waited = time.monotonic() - self._began
        if waited > self._deadline:
            what = self._what or inspect.getsource(self._holds).strip()
            raise AssertionError(f"not within {self._deadline:g} s: {what}; last seen: {seen!r}")
        return min(0.01 + waited / 50, 0.2)


def until(
    holds: Callable[[], T | None],
    what: str = "",
    passing: tuple[type[Exception], ...] = (OSError,),
    deadline: float = DEADLINE,
) -> T:
    """Returns what `holds` returns once that is true. While it raises one of `passing`, it does not hold yet."""
    wait = _Wait(holds, what, deadline)
    while True:
        seen: Any = None
        try:
            if seen := holds():
                return seen
        except passing as error:
            seen = error
        time.sleep(wait.pause(seen))


def next_second() -> None:
    """Waits until the clock shows another second: what comes next is younger, where times are whole seconds."""
    now = int(time.time())
    until(lambda: int(time.time()) > now, "the next second")


def until_opened(file: Path, times: int = 3) -> None:
    """Waits until a program has opened a file so often from now on: what it saw before has changed nothing."""
    system = ctypes.CDLL(None)
    watch = system.inotify_init1(os.O_NONBLOCK)
    try:
        system.inotify_add_watch(watch, bytes(file), IN_OPEN)
        for _ in range(times):
            until(lambda: os.read(watch, 4096), f"{file} is opened")
    finally:
        os.close(watch)


@contextlib.contextmanager
def counting_opens(file: Path) -> Iterator[Callable[[], int]]:
    """Yields a function that returns how often programs have opened a file since then. Two that open it at once count once."""
    system = ctypes.CDLL(None)
    watch = system.inotify_init1(os.O_NONBLOCK)
    # Equal events in a row become one, and so nothing could be counted without the ends.
    system.inotify_add_watch(watch, bytes(file), IN_OPEN | IN_CLOSE_NOWRITE)

    def opens() -> int:
        with contextlib.suppress(BlockingIOError):
            while events := os.read(watch, 1 << 16):
                seen.extend(what for _, what, _, _ in EVENT.iter_unpack(events))
        return sum(what & IN_OPEN > 0 for what in seen)

    seen: list[int] = []
    try:
        yield opens
    finally:
        os.close(watch)


async def until_async(holds: Callable[[], T | None], what: str = "") -> T:
    """The same while other tasks run."""
    wait = _Wait(holds, what)
    while not (seen := holds()):
        await asyncio.sleep(wait.pause(seen))
    return seen
