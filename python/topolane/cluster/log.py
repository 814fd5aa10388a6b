"""The log of a driver or a shadow: one line of JSON per event. Its decisions can be replayed from it."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from topolane import files, parsing, texts
from topolane._engine import InputError

LONGEST = 64 << 20
"""Most bytes of a line. The line with the machine is the longest."""


class EventLog:
    """JSON lines, one per event."""

    def __init__(self, path: str | None) -> None:
        # Stays open as long as the daemon runs.
        self.listeners: list[Callable[[str], None]] = []
        """Called with the name of every event."""
        self._file: IO[str] = sys.stderr
        if path is not None:
            self._file = open(files.open_to_append(path, "log"), "a", encoding="utf-8")  # noqa: SIM115
            _claim(self._file, path)
            _mend(path)

    def write(self, event: str, **facts: Any) -> None:
        """Writes one event."""
        line = json.dumps({"time": round(time.time(), 3), "event": event, **facts})
        try:
            print(line, file=self._file, flush=True)
        except OSError as error:  # a full disk must not keep jobs from starting
            print(f"topolane: the log cannot be written: {error.strerror}", file=sys.stderr)
        for heard in self.listeners:
            heard(event)


def events(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events of a log by line. A last line that was cut short is skipped. Raises InputError for what is no such log."""
    with open(path, "rb") as log:
        for line, text in enumerate(iter(lambda: log.readline(LONGEST + 1), b""), 1):
            if len(text) > LONGEST:
                raise InputError(f"{path}:{line}: the line is longer than {LONGEST >> 20} MiB")
            if not text.endswith(b"\n"):
                return
            event = parsing.parse_json(texts.decoded(text, f"{path}:{line}"), str(path), line)
            if not isinstance(event, dict) or "event" not in event:
                raise InputError(f"{path}:{line}: no event")
            yield line, event


def _mend(path: str) -> None:
    """Takes the last line off a log if it was cut short, so that the next event does not go on in it."""
    if not os.path.isfile(path):
        return
    with open(path, "r+b") as log:
        size = log.seek(0, os.SEEK_END)
        kept = size
        while kept > 0:
            start = max(kept - LONGEST, 0)
            log.seek(start)
            at = log.read(kept - start).rfind(b"\n")
            if at >= 0:
                kept = start + at + 1
                break
            kept = start
        if kept < size:
            log.truncate(kept)


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
