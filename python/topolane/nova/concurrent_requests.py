"""Requests that a scheduler process works on at the same time. Each sees the hosts that the others have given
so far, and those that they plan to give.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from typing import NamedTuple

SECONDS = 120.0
"""Seconds for which the databases may not show what a request gave."""


class Entry(NamedTuple):
    """The group of a request, as far as it is placed or planned."""

    group: str
    hosts: list[str]
    """The hosts of all its members, and those that are planned."""
    given: list[str]
    """The hosts that this request gave; the last one may be expected."""
    dedicated: bool
    """Whether it requests dedicated links."""
    since: float
    planned: tuple[str, ...] = ()
    """The hosts that this request plans to give later."""
    server: str = ""
    """The server that was placed when the plan was made."""


class ConcurrentRequests:
    """The requests of the last two minutes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Hold this lock from reading the other requests until the result is noted."""
        self._entries: dict[object, Entry] = {}

    def note(
        self,
        request: object,
        group: str,
        hosts: list[str],
        given: list[str],
        dedicated: bool,
        planned: Collection[str] = (),
        server: str = "",
    ) -> None:
        """Records the hosts that a request has given or plans to give, and those of its group's members."""
        now = time.monotonic()
        self._entries[request] = Entry(group, hosts, given, dedicated, now, tuple(planned), server)
        for old in [key for key, entry in self._at_once() if now - entry.since > SECONDS]:
            del self._entries[old]

    def drop(self, request: object) -> None:
        """Forgets what a request planned: it gives no more."""
        self._entries.pop(request, None)

    def given(self) -> dict[object, int]:
        """How many hosts every request has given so far."""
        return {key: len(entry.given) for key, entry in self._at_once()}

    def planning(self) -> dict[object, str]:
        """For every request that has yet to give hosts of its plan, a server of it."""
        return {key: entry.server for key, entry in self._at_once() if entry.planned}

    def others(
        self, request: object, before: dict[object, int], ended: Collection[object] = ()
    ) -> list[Entry]:
        """The other requests that have given hosts since `before`, with those hosts, or plan to give some.

        ended: requests that give no more.
        """
        others = [(key, entry) for key, entry in self._at_once() if key is not request and key not in ended]
        return [since for key, entry in others if (since := since_then(entry, before.get(key, 0)))]

    def _at_once(self) -> list[tuple[object, Entry]]:
        """All entries of one moment: other threads may add some while they are read."""
        return list(self._entries.items())


def since_then(entry: Entry, before: int) -> Entry | None:
    """What a request gave after its first `before` hosts and plans to give; None if that is nothing."""
    left = entry._replace(given=entry.given[before:], since=0.0)
    return left if left.given or left.planned else None


CONCURRENT = ConcurrentRequests()
