"""Live migration by OpenStack Nova, through openstacksdk: the cloud is the one that OS_CLOUD or clouds.yaml
names.

The guest's name is the name or id of a server; a host's `address` is a compute host. Nova ensures one copy
and rolls back by itself; `settle` waits until it has decided.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import openstack
from openstack import exceptions
from topolane.cluster.clients.nova import NovaServers, ServerState

from topolane_sites.movers import ENDS, GuestLost, MoveFailed, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_sites.model import Guest, Host

LOOK = 0.5
"""Seconds between checks."""
CANCELS = 120.0
"""Seconds in which Nova must end a cancelled migration."""


class NovaMover:
    """Migrates servers. Nova's scheduler decides which hosts are allowed."""

    def __init__(self) -> None:
        self._connection = openstack.connect()
        self._servers = NovaServers(self._connection)

    def move(
        self, guest: Guest, source: Host, target: Host, progress: Callable[[float], None]
    ) -> dict[str, float]:
        """See `Mover.move`. Nova does not report the downtime."""
        began = time.monotonic()
        id, now = self._look(guest)
        if now.host != _compute(source) or now.busy:
            raise MoveFailed(f"{guest.name} is on {now.host}{' and busy' if now.busy else ''}")
        if refused := self._servers.migrate(id, _compute(target)):
            raise MoveFailed(f"Nova does not move {guest.name} to {target.name}: {refused}")
        try:
            copied = self._follow(guest, id, progress)
        except MoveFailed as error:
            self._cancel(id)
            if self.settle(guest, source, target) == source.name:
                raise MoveFailed(f"{guest.name} stays at {source.name}: {error}") from error
            copied = 0.0
        _, now = self._look(guest)
        if now.host != _compute(target):
            raise MoveFailed(f"Nova left {guest.name} on {now.host}")
        return {"seconds": time.monotonic() - began, "bytes": copied}

    def where(self, guest: Guest, hosts: tuple[Host, ...]) -> tuple[str, ...]:
        """See `Mover.where`."""
        try:
            _, now = self._look(guest)
        except GuestLost:
            return ()
        return tuple(host.name for host in hosts if _compute(host) == now.host)

    def settle(self, guest: Guest, source: Host, target: Host) -> str:
        """See `Mover.settle`."""
        deadline = time.monotonic() + ENDS
        while True:
            _, now = self._look(guest)
            if not now.busy:
                break
            if time.monotonic() > deadline:
                raise OutcomeUnknown(f"Nova has not decided on {guest.name} for {ENDS:g} s")
            time.sleep(LOOK)
        for host in (source, target):
            if now.host == _compute(host) and now.status != "ERROR":
                return host.name
        raise GuestLost(f"{guest.name} is {now.status} on {now.host}")

    def _follow(self, guest: Guest, id: str, progress: Callable[[float], None]) -> float:
        """Waits until Nova is done. Returns the copied bytes, as last reported."""
        deadline, copied = time.monotonic() + ENDS, 0.0
        while self._look(guest)[1].busy:
            for migration in self._under_way(id):
                total = migration.memory_total_bytes or 0
                copied = float(migration.memory_processed_bytes or 0)
                progress(min(1.0, 1 - (migration.memory_remaining_bytes or 0) / total) if total else 0.0)
            if time.monotonic() > deadline:
                raise MoveFailed(f"it has not ended for {ENDS:g} s")
            time.sleep(LOOK)
        return copied

    def _under_way(self, id: str) -> list[openstack.compute.v2.server_migration.ServerMigration]:
        try:
            return list(self._connection.compute.server_migrations(id))
        except exceptions.SDKException:
            return []  # it has ended since

    def _cancel(self, id: str) -> None:
        deadline = time.monotonic() + CANCELS
        while time.monotonic() < deadline and (migrations := self._under_way(id)):
            for migration in migrations:
                try:
                    self._connection.compute.abort_server_migration(migration.id, id)
                    return
                except exceptions.SDKException:
                    time.sleep(LOOK)  # not begun, or ended

    def _look(self, guest: Guest) -> tuple[str, ServerState]:
        """The id and the state of the server. Raises GuestLost if Nova does not have it."""
        try:
            found = self._connection.compute.find_server(guest.name, all_projects=True)
            now = None if found is None else self._servers.look(found.id)
        except exceptions.SDKException as error:
            raise OutcomeUnknown(f"what became of {guest.name} cannot be seen: {error}") from error
        if found is None or now is None:
            raise GuestLost(f"Nova knows no server {guest.name}")
        return found.id, now


def _compute(host: Host) -> str:
    return host.address or host.name
