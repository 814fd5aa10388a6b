"""The requests that one scheduler process handles at the same time. Each request sees the hosts that the
others have given or plan to give.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from typing import NamedTuple

SECONDS = 120.0
"""The databases may need this many seconds to show the hosts that a request gave."""


class ConcurrentRequest(NamedTuple):
    """The group of a request with the hosts that are given or planned so far."""

    group: str
    hosts: list[str]
    """The hosts of all members of the group, including planned ones."""
    given: list[str]
    """The hosts that this request gave; the last one may still be a guess."""
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
        """Hold this lock from reading the other requests until the decision is noted."""
        self._entries: dict[object, ConcurrentRequest] = {}

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
        self._entries[request] = ConcurrentRequest(
            group, hosts, given, dedicated, now, tuple(planned), server
        )
        for old in [key for key, entry in self._at_once() if now - entry.since > SECONDS]:
            del self._entries[old]

    def drop(self, request: object) -> None:
        """Removes the plan of a request that will give no more hosts."""
        self._entries.pop(request, None)

    def given(self) -> dict[object, int]:
        """The number of hosts that each request has given so far."""
        return {key: len(entry.given) for key, entry in self._at_once()}

    def planning(self) -> dict[object, str]:
        """One server of each request that still has planned hosts to give."""
        return {key: entry.server for key, entry in self._at_once() if entry.planned}

    def others(
        self, request: object, before: dict[object, int], ended: Collection[object] = ()
    ) -> list[ConcurrentRequest]:
        """The other requests that gave hosts after `before` or plan to give some, with only those hosts.

        before: the number of hosts that each request had given earlier. ended: requests to skip because they
        will give no more.
        """
        others = [(key, entry) for key, entry in self._at_once() if key is not request and key not in ended]
        return [since for key, entry in others if (since := since_then(entry, before.get(key, 0)))]

    def _at_once(self) -> list[tuple[object, ConcurrentRequest]]:
        """A copy of all entries, because other threads may add entries during a loop over them."""
        return list(self._entries.items())


def since_then(entry: ConcurrentRequest, before: int) -> ConcurrentRequest | None:
    """The entry without the first `before` given hosts; None if it then has neither given nor planned hosts."""
    left = entry._replace(given=entry.given[before:], since=0.0)
    return left if left.given or left.planned else None


CONCURRENT = ConcurrentRequests()
