"""The log of a driver: one line of JSON per event. Its decisions can be replayed from it."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import sys
import time
from collections.abc import Callable
from typing import IO, Any

from topolane import files
from topolane._engine import InputError


class Log:
    """JSON lines, one per event."""

    def __init__(self, path: str | None) -> None:
        # Stays open as long as the daemon runs.
        self.listeners: list[Callable[[str], None]] = []
        """Called with the name of every event."""
        self._file: IO[str] = sys.stderr
        if path is not None:
            self._file = open(files.open_to_append(path, "log"), "a", encoding="utf-8")  # noqa: SIM115
            _claim(self._file, path)

    def write(self, event: str, **facts: Any) -> None:
        """Writes one event."""
        line = json.dumps({"time": round(time.time(), 3), "event": event, **facts})
        try:
            print(line, file=self._file, flush=True)
        except OSError as error:  # a full disk must not keep jobs from starting
            print(f"topolane: the log cannot be written: {error.strerror}", file=sys.stderr)
        for heard in self.listeners:
            heard(event)


def _claim(file: IO[str], path: str) -> None:
    """Locks a log for this process, until it is closed. Raises InputError if another process writes it."""
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(
            f"log {path}: another daemon writes it, and two in one log could not be replayed: "
            "end that one, or name another file"
        ) from error
