"""What has happened, for people: kept in memory until it is written, about once a second."""

from __future__ import annotations

import time
from collections import deque

from topolane.mpi.limits import Event
from topolane.sites.state import Row, State, StateError

_MOST_WAITING = 1000
"""A flood of events, which a hostile sender can make, is cut to so many a second."""


class Journal:
    """Events on their way to the database."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._waiting: deque[Row] = deque(maxlen=_MOST_WAITING)

    def tell(self, kind: str, subject: str, text: str) -> None:
        """Something happened to a program, a guest or a host."""
        row = {"time": time.time(), "kind": kind[:32], "subject": subject[:255], "text": text}
        self._waiting.append(row)

    def happened(self, event: Event) -> None:
        """Something happened at the receiver."""
        self.tell(event.kind, event.program, event.text)

    def write(self) -> None:
        """Writes down what waits; keeps it where the database does not answer."""
        rows = list(self._waiting)
        try:
            self._state.add_events(rows)
        except StateError:
            return
        for _ in rows:
            self._waiting.popleft()

    def newest(self, limit: int) -> list[Row]:
        """The newest first."""
        self.write()
        return self._state.events(limit)
