"""Which server of which group runs where, from Nova's own databases."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from nova import context as nova_context
from nova import exception, objects
from nova.db.main import api as db
from nova.db.main import models
from oslo_log import log as logging

from topolane.nova.wishes import Wish, wish_of

LOG = logging.getLogger(__name__)

UNKNOWN_SECONDS = 120.0
"""For so long a server that was given a host, and that no cell knows yet, is believed to be on its way there."""
BUSY_SECONDS = 3600.0
"""For so long one that a cell knows and that Nova is busy with: builds, unshelving, migrations."""


class Member(NamedTuple):
    """A server of a group that Nova knows."""

    uuid: str
    host: str | None
    """None while it has no host: scheduled nowhere yet, or shelved."""
    created: datetime.datetime | None
    launch_index: int
    """Which of its request it was."""
    busy: bool
    """Whether Nova is doing something to it."""

    def age(self) -> tuple[bool, str, int]:
        """The order of ranks: who was created first, and first in a request."""
        return self.created is None, str(self.created), self.launch_index


class Group(NamedTuple):
    """Another group."""

    hosts: list[str]
    """Those that its servers are on or on their way to."""
    owned: bool
    """Whether it asked for links of its own."""


class InFlight:
    """Hosts given of late to servers that the databases have elsewhere yet. For all threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given: dict[str, tuple[str, str | None, float]] = {}

    def note(self, server: str, host: str, source: str | None) -> None:
        """The server was given the host; `source` is where it was, if anywhere."""
        now = time.monotonic()
        with self._lock:
            self._given[server] = (host, source, now)
            for old in [key for key, (_, _, then) in self._given.items() if now - then > BUSY_SECONDS]:
                del self._given[old]

    def host(self, server: str, member: Member | None) -> str | None:
        """The host that a server is on its way to; `member`: what a cell knows of it."""
        with self._lock:
            host, source, then = self._given.get(server, (None, None, 0.0))
        if member is not None and (not member.busy or member.host != source):
            return None
        lasts = UNKNOWN_SECONDS if member is None else BUSY_SECONDS
        return host if time.monotonic() - then <= lasts else None


IN_FLIGHT = InFlight()


def known(context: Any, uuids: Collection[str]) -> dict[str, Member]:
    """Those of the servers that some cell knows, deleted ones included, which have no host.

    A group's list keeps them; were they left out here, they would count as on their way to a host. A cell
    that does not answer is left out, as Nova itself does for the hosts of a group.
    """
    if not uuids:
        return {}

    def in_cell(cell_context: Any) -> Any:
        return _rows(cell_context, uuids)

    found: dict[str, Member] = {}
    for result in nova_context.scatter_gather_all_cells(context, in_cell).values():
        if nova_context.is_cell_failure_sentinel(result):
            LOG.warning("A cell does not answer: the members it runs are not counted.")
            continue
        for uuid, host, created, launch_index, task, deleted in result:
            here, busy = (None, False) if deleted else (host or None, task is not None)
            found[uuid] = Member(uuid, here, created, launch_index or 0, busy)
    return found


@db.pick_context_manager_reader  # type: ignore[untyped-decorator]
def _rows(context: Any, uuids: Collection[str]) -> list[Any]:
    """Six columns only: for thousands of members Nova's own objects take most of a second to be made."""
    one = models.Instance
    columns = (one.uuid, one.host, one.created_at, one.launch_index, one.task_state, one.deleted)
    return list(context.session.query(*columns).filter(one.uuid.in_(list(uuids))))


def whereabouts(server: str, member: Member | None) -> list[str]:
    """The host of a server, as a cell knows it, and that which it is on its way to."""
    hosts = [member.host if member is not None else None, IN_FLIGHT.host(server, member)]
    return [host for host in hosts if host is not None]


class Others:
    """The other groups of the cloud. What a group asked for is looked up once."""

    def __init__(self) -> None:
        self._wishes: dict[str, Wish] = {}

    def of(self, context: Any, but: str, default: str) -> Iterator[Group]:
        """All groups but one that have two members or more; only those can cross links."""
        groups = [group for group in objects.InstanceGroupList.get_all(context) if group.uuid != but]
        groups = [group for group in groups if len(group.members) > 1]
        members = known(context, {uuid for group in groups for uuid in group.members})
        for group in groups:
            where = {uuid: whereabouts(uuid, members.get(uuid)) for uuid in group.members}
            running = [uuid for uuid, hosts in where.items() if hosts]
            hosts = [host for hosts in where.values() for host in hosts]
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
