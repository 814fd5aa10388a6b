"""The servers of a Nova: where each is, and how to migrate it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from topolane import untrusted

if TYPE_CHECKING:
    from openstack.connection import Connection


@dataclasses.dataclass(frozen=True)
class ServerState:
    """The state of a server in Nova at this moment."""

    host: str | None
    status: str
    busy: bool


class NovaServers:
    """The servers of a real cloud."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def look(self, server: str) -> ServerState | None:
        """The state of the server now; None if it no longer exists."""
        from openstack import exceptions

        try:
            found = self._connection.compute.get_server(server)
        except exceptions.NotFoundException:
            return None
        return ServerState(found.compute_host, found.status, found.task_state is not None)

    def members(self, group: str) -> dict[str, str] | None:
        """The host of every server of the group that has one; None if the group no longer exists."""
        from openstack import exceptions

        try:
            members = self._connection.compute.get_server_group(group).member_ids or ()
        except exceptions.NotFoundException:
            return None
        found = {member: self.look(member) for member in members}
        return {member: now.host for member, now in found.items() if now is not None and now.host is not None}

    def migrate(self, server: str, host: str, forced: bool = False) -> str | None:
        """Starts a live migration. Returns None, or a sentence that says why Nova refuses it.

        Nova's scheduler must allow the host. If `forced`, its filters are bypassed: only Placement and the hosts
        check that there is room. Nova accepts that up to microversion 2.67; openstacksdk requests 2.30.
        """
        from openstack import exceptions

        try:
            self._connection.compute.live_migrate_server(
                server, host=host, force=forced, block_migration="auto"
            )
        except exceptions.SDKException as error:
            return untrusted.line(getattr(error, "details", None)) or str(error).partition("\n")[0]
        # The server is busy from the moment Nova has accepted.
        return None
