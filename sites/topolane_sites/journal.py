"""Events for operators. They stay in memory until they are stored and logged, about once a second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from topolane.mpi.limits import Event

from topolane_sites.state import ManagerDatabase, Row, StateError

_MOST_WAITING = 1000
"""Most events per second, since a hostile sender can cause a flood."""
OF_RANKS = {"rank-gone", "rank-began-again", "frames-dropped", "garbled", "refused"}
"""Kinds that any client can cause in any number: they are stored but not logged."""
_MOST_OF_RANKS = 100
"""How many of these are stored each time. The rest are only counted, so that they cannot displace other
events.
"""


class EventJournal:
    """Events on their way to the database and to the log.

    say: called with a line for each event.
    """

    def __init__(self, state: ManagerDatabase, say: Callable[[str], None] = lambda _: None) -> None:
        self._state, self._say = state, say
        self._waiting: deque[Row] = deque(maxlen=_MOST_WAITING)
        self._unsaid: deque[Row] = deque(maxlen=_MOST_WAITING)
        self._of_ranks = 0
        """Events of these kinds since the last writing."""

    def tell(self, kind: str, subject: str, text: str) -> None:
        """Records an event of a program, a guest or a host."""
        row = {"time": time.time(), "kind": kind[:32], "subject": subject[:255], "text": text}
        if kind in OF_RANKS:
            self._of_ranks += 1
            if self._of_ranks > _MOST_OF_RANKS:
                return
        else:
            self._unsaid.append(row)
        self._waiting.append(row)

    def happened(self, event: Event) -> None:
        """Records an event of the receiver."""
        self.tell(event.kind, event.program, event.text)

    def write(self) -> None:
        """Logs and stores pending events. If the database does not answer, they stay pending."""
        unkept, self._of_ranks = self._of_ranks - _MOST_OF_RANKS, 0
        if unkept > 0:
            self.tell("not-recorded", "", f"{unkept} more events of ranks and connections")
        while self._unsaid:
            self._say(_line(self._unsaid.popleft()))
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


def _line(row: Row) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["time"]))
    # A driver's reason may have lines of its own.
    words = [one for one in (when, row["kind"], row["subject"], " ".join(row["text"].split())) if one]
    return "  ".join(words)
