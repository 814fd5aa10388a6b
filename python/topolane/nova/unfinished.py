"""Unfinished migrations: the hosts that a server keeps in addition to its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

OVER = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
"""The status of ended migrations, as in Nova's `migration_get_in_progress_by_host_and_node`."""
AWAITS_CONFIRMATION = "finished"
"""The status of a resize or cold migration that may still be reverted."""


class MigrationRecord(NamedTuple):
    """A migration of a server, as Nova records it."""

    source: str | None
    target: str | None
    status: str


def is_under_way(migration: MigrationRecord) -> bool:
    """Whether it has neither ended nor waits for a confirmation."""
    return migration.status not in OVER and migration.status != AWAITS_CONFIRMATION


def other_hosts(host: str | None, busy: bool, migrations: Iterable[MigrationRecord]) -> tuple[str, ...]:
    """The hosts of a server's unfinished migrations, except its own `host`: destinations, or hosts to return
    to.

    A migration whose server is not `busy` does not count: a fault left it unfinished and Nova no longer works
    on it.
    """
    if host is None:
        return ()
    known = [one for one in migrations if one.status == AWAITS_CONFIRMATION or (busy and is_under_way(one))]
    hosts = (other for one in known for other in (one.source, one.target))
    return tuple(dict.fromkeys(other for other in hosts if other is not None and other != host))
