"""Which server of which group runs where, from Nova's own databases."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from nova import context as nova_context
from nova import exception, objects
from oslo_log import log as logging

from topolane.nova.wishes import Wish, wish_of

LOG = logging.getLogger(__name__)

IN_FLIGHT_SECONDS = 120.0
"""For so long a server that was given a host is believed to be on its way there."""


class Member(NamedTuple):
    """A server of a group that Nova knows."""

    uuid: str
    host: str | None
    """None while it has no host: scheduled nowhere yet, or shelved."""
    created: datetime.datetime | None
    launch_index: int
    """Which of its request it was."""

    def age(self) -> tuple[bool, str, int]:
        """The order of ranks: who was created first, and first in a request."""
        return self.created is None, str(self.created), self.launch_index


class Group(NamedTuple):
    """Another group."""

    hosts: list[str]
    owned: bool
    """Whether it asked for links of its own."""


class InFlight:
    """Hosts given a moment ago to servers that the databases do not know yet. For all threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given: dict[str, tuple[str, float]] = {}

    def note(self, server: str, host: str) -> None:
        """The server was given the host."""
        now = time.monotonic()
        with self._lock:
            self._given[server] = (host, now)
            for old in [key for key, (_, then) in self._given.items() if now - then > IN_FLIGHT_SECONDS]:
                del self._given[old]

    def host(self, server: str) -> str | None:
        """The host that the server was given of late."""
        with self._lock:
            given = self._given.get(server)
        return given[0] if given and time.monotonic() - given[1] <= IN_FLIGHT_SECONDS else None


IN_FLIGHT = InFlight()


def known(context: Any, uuids: Collection[str]) -> dict[str, Member]:
    """Those of the servers that some cell knows, deleted ones included, which have no host.

    A group's list keeps them; were they left out here, they would count as on their way to a host. A cell
    that does not answer is left out, as Nova itself does for the hosts of a group.
    """
    if not uuids:
        return {}

    def in_cell(cell_context: Any) -> Any:
        cell_context.read_deleted = "yes"
        filters = {"uuid": list(uuids)}
        return objects.InstanceList.get_by_filters(cell_context, filters=filters, expected_attrs=[])

    found: dict[str, Member] = {}
    for result in nova_context.scatter_gather_all_cells(context, in_cell).values():
        if nova_context.is_cell_failure_sentinel(result):
            LOG.warning("A cell does not answer: the members it runs are not counted.")
            continue
        for server in result:
            host = None if server.deleted else server.host or None
            launch_index = server.launch_index or 0
            found[server.uuid] = Member(server.uuid, host, server.created_at, launch_index)
    return found


def placed(context: Any, uuids: Collection[str]) -> dict[str, str]:
    """The host of every one of the servers that has one, or was given one a moment ago."""
    members = known(context, uuids)
    hosts = {uuid: member.host for uuid, member in members.items() if member.host is not None}
    on_their_way = {uuid: IN_FLIGHT.host(uuid) for uuid in uuids if uuid not in members}
    return hosts | {uuid: host for uuid, host in on_their_way.items() if host is not None}


class Others:
    """The other groups of the cloud. What a group asked for is looked up once."""

    def __init__(self) -> None:
        self._wishes: dict[str, Wish] = {}

    def of(self, context: Any, but: str, default: str) -> Iterator[Group]:
        """All groups but one that have two members or more; only those can cross links."""
        groups = [group for group in objects.InstanceGroupList.get_all(context) if group.uuid != but]
        groups = [group for group in groups if len(group.members) > 1]
        where = placed(context, {uuid for group in groups for uuid in group.members})
        for group in groups:
            running = [uuid for uuid in group.members if uuid in where]
            hosts = [where[uuid] for uuid in running]
            if len(set(hosts)) > 1:
                wish = self._wish(context, group.uuid, running[0], default)
                yield Group(hosts, wish.placement == "isolated")

    def _wish(self, context: Any, group: str, member: str, default: str) -> Wish:
        if group not in self._wishes:
            try:
                spec = objects.RequestSpec.get_by_instance_uuid(context, member)
            except exception.RequestSpecNotFound:
                return wish_of({}, {}, default)
            self._wishes[group] = wish_of_spec(spec, default)
        return self._wishes[group]


def wish_of_spec(spec: Any, default: str) -> Wish:
    """What a request asks for."""
    flavor = spec.flavor if "flavor" in spec else None
    extra_specs = flavor.extra_specs if flavor is not None and "extra_specs" in flavor else {}
    hints = spec.scheduler_hints if "scheduler_hints" in spec else {}
    return wish_of(hints, extra_specs, default)
