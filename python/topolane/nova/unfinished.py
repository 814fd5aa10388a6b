"""Unfinished migrations: the hosts that a server keeps in addition to its own."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

OVER = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
"""The status of ended migrations, as in Nova's `migration_get_in_progress_by_host_and_node`."""
AWAITS_CONFIRMATION = "finished"
"""The status of a resize or cold migration that may still be reverted."""
RECENT_SECONDS = 120.0
"""Seconds after a change of a server's record during which Nova may still write the server's new host."""


class MigrationRecord(NamedTuple):
    """A migration of a server, as Nova records it."""

    source: str | None
    target: str | None
    status: str


class ServerWork(NamedTuple):
    """What Nova's records say of the work on a server."""

    busy: bool
    """Whether Nova is working on it."""
    elsewhere: tuple[str, ...]
    """The other hosts of its unfinished migrations: destinations, or hosts to return to."""


def is_recent(age: float | None) -> bool:
    """Whether a server's record that changed `age` seconds ago may still be followed by the server's new host."""
    return age is not None and age < RECENT_SECONDS


def server_work(
    host: str | None, has_task: bool, age: float | None, migrations: Collection[MigrationRecord]
) -> ServerWork:
    """The work on a server on `host`. age: seconds since its record changed; None if that is not known.

    Without a task, a migration that is under way does not count, because a fault left it unfinished. The exception is
    a server whose record changed recently: Nova ends the task of an evacuated server before it writes the new host.
    """
    under_way = [one for one in migrations if one.status not in OVER and one.status != AWAITS_CONFIRMATION]
    busy = has_task or (is_recent(age) and bool(under_way))
    if host is None:
        return ServerWork(busy, ())
    known = [one for one in migrations if one.status == AWAITS_CONFIRMATION or (busy and one in under_way)]
    hosts = (other for one in known for other in (one.source, one.target))
    elsewhere = tuple(dict.fromkeys(other for other in hosts if other is not None and other != host))
    return ServerWork(busy, elsewhere)
