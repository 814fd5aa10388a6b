"""Requests that a scheduler process works on at the same time: each sees what the others have given so far."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

SECONDS = 120.0
"""For so long the databases may not know what a request gave."""


class Entry(NamedTuple):
    """A request's group as far as it is placed."""

    group: str
    hosts: list[str]
    """Those of all its members, with the host that the server at hand is expected to get."""
    given: list[str]
    """Of these the hosts given by the request, the last one expected."""
    owned: bool
    """Whether it wants links of its own."""
    since: float


class Underway:
    """The requests of the last two minutes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """To be held from looking at the others until it is noted what came of it."""
        self._entries: dict[object, Entry] = {}

    def note(self, request: object, group: str, hosts: list[str], given: list[str], owned: bool) -> None:
        """What a request has given, and where the members of its group are."""
        now = time.monotonic()
        self._entries[request] = Entry(group, hosts, given, owned, now)
        for old in [key for key, entry in self._entries.items() if now - entry.since > SECONDS]:
            del self._entries[old]

    def given(self) -> dict[object, int]:
        """How many hosts every request has given so far."""
        return {key: len(entry.given) for key, entry in self._entries.items()}

    def others(self, request: object, before: dict[object, int]) -> list[Entry]:
        """The other requests that have given hosts since it was `before`, and which."""
        others = [(key, entry) for key, entry in self._entries.items() if key is not request]
        since = [entry._replace(given=entry.given[before.get(key, 0) :]) for key, entry in others]
        return [entry for entry in since if entry.given]


UNDERWAY = Underway()
