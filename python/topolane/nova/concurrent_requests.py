"""Requests that a scheduler process works on at the same time. Each sees the hosts that the others have given
so far.
"""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

SECONDS = 120.0
"""Seconds for which the databases may not show what a request gave."""


class Entry(NamedTuple):
    """The group of a request, as far as it is placed."""

    group: str
    hosts: list[str]
    """The hosts of all its members, with the expected host of the current server."""
    given: list[str]
    """The hosts that this request gave; the last one is expected."""
    dedicated: bool
    """Whether it requests dedicated links."""
    since: float


class ConcurrentRequests:
    """The requests of the last two minutes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Hold this lock from reading the other requests until the result is noted."""
        self._entries: dict[object, Entry] = {}

    def note(self, request: object, group: str, hosts: list[str], given: list[str], dedicated: bool) -> None:
        """Records the hosts that a request has given, and those of its group's members."""
        now = time.monotonic()
        self._entries[request] = Entry(group, hosts, given, dedicated, now)
        for old in [key for key, entry in self._entries.items() if now - entry.since > SECONDS]:
            del self._entries[old]

    def given(self) -> dict[object, int]:
        """How many hosts every request has given so far."""
        return {key: len(entry.given) for key, entry in self._entries.items()}

    def others(self, request: object, before: dict[object, int]) -> list[Entry]:
        """The other requests that have given hosts since `before`, with those hosts."""
        others = [(key, entry) for key, entry in self._entries.items() if key is not request]
        since = [entry._replace(given=entry.given[before.get(key, 0) :]) for key, entry in others]
        return [entry for entry in since if entry.given]


CONCURRENT = ConcurrentRequests()
