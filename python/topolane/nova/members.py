"""Reads from Nova's databases which servers belong to which group and where they run."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova import exception, objects
from nova.compute.vm_states import SHELVED_OFFLOADED
from nova.db.main import api as db
from nova.db.main import models
from oslo_log import log as logging
from oslo_utils import timeutils

from topolane.nova.hints import PlacementHint, hint_of
from topolane.nova.unanswered import Unanswered
from topolane.nova.unfinished import OVER, MigrationRecord, server_work

LOG = logging.getLogger(__name__)

UNKNOWN_SECONDS = 120.0
"""A server that was given a host and that no cell knows yet counts as on its way there for this many seconds.
"""
BUSY_SECONDS = 3600.0
"""The same, for a server that a cell knows and that Nova is building, unshelving or migrating."""


class GroupMember(NamedTuple):
    """A server of a group, in Nova's databases."""

    uuid: str
    host: str | None
    """None while it has no host: not yet scheduled, or shelved."""
    created: datetime.datetime | None
    launch_index: int
    """Its index in its request."""
    busy: bool
    """Whether Nova is working on it."""
    elsewhere: tuple[str, ...] = ()
    """The other hosts of an unfinished migration: its destination, or the host to return to."""
    shelved: bool = False

    def age(self) -> tuple[bool, str, int]:
        """Sort key of ranks: by creation, then by index in the request."""
        return self.created is None, str(self.created), self.launch_index


class OtherGroup(NamedTuple):
    """Another group of the cloud."""

    hosts: list[str]
    """The hosts that its servers run on or are moving to."""
    dedicated: bool
    """Whether it requested dedicated links."""


class InFlightHosts:
    """The hosts recently given to servers that the databases still show elsewhere. All threads of a process
    share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given: dict[str, tuple[str, str | None, float]] = {}

    def note(self, server: str, host: str, source: str | None) -> None:
        """Records that the server was given the host; `source` is its host before, if any."""
        now = time.monotonic()
        with self._lock:
            self._given[server] = (host, source, now)
            for old in [key for key, (_, _, then) in self._given.items() if now - then > BUSY_SECONDS]:
                del self._given[old]

    def learn(self, server: str, host: str, source: str | None, age: float) -> None:
        """Records the host that another scheduler gave a server `age` seconds ago, unless something newer is
        known.
        """
        then = time.monotonic() - age
        with self._lock:
            if server not in self._given or self._given[server][2] < then:
                self._given[server] = (host, source, then)

    def host(self, server: str, member: GroupMember | None) -> str | None:
        """The host that a server is moving to; None if it is not moving. `member` is its row in a cell."""
        with self._lock:
            host, source, then = self._given.get(server, (None, None, 0.0))
        if member is not None and (not member.busy or member.host != source):
            return None
        lasts = UNKNOWN_SECONDS if member is None else BUSY_SECONDS
        return host if time.monotonic() - then <= lasts else None


IN_FLIGHT = InFlightHosts()


def known_servers(context: Any, uuids: Collection[str], *, needed: bool = False) -> dict[str, GroupMember]:
    """The servers that any cell knows, by id. Deleted ones are included, without a host.

    A group's list keeps deleted servers; if they were missing here, they would count as on their way to a
    host. A cell that does not answer is ignored, as Nova does for the hosts of a group.

    needed: raises Unanswered if a cell does not answer.
    """
    if not uuids:
        return {}

    def in_cell(cell_context: Any) -> Any:
        return _rows(cell_context, uuids)

    rows: dict[str, tuple[Any, ...]] = {}
    migrating: dict[str, list[MigrationRecord]] = {}
    for result in nova_context.scatter_gather_all_cells(context, in_cell).values():
        if nova_context.is_cell_failure_sentinel(result):
            if needed:
                raise Unanswered("a cell does not answer")
            LOG.warning("A cell does not answer: the members it runs are not counted.")
            continue
        for uuid, *server, source, target, status in result:
            rows[uuid] = tuple(server)
            if status is not None:
                migrating.setdefault(uuid, []).append(MigrationRecord(source, target, status))
    found: dict[str, GroupMember] = {}
    now = timeutils.utcnow()
    for uuid, (host, created, launch_index, state, task, deleted, changed) in rows.items():
        here, has_task = (None, False) if deleted else (host or None, task is not None)
        latest = changed or created
        age = None if latest is None else (now - latest.replace(tzinfo=None)).total_seconds()
        work = server_work(here, has_task, age, migrating.get(uuid, ()))
        shelved = not deleted and state == SHELVED_OFFLOADED
        found[uuid] = GroupMember(uuid, here, created, launch_index or 0, *work, shelved)
    return found


@db.pick_context_manager_reader  # type: ignore[untyped-decorator]
def _rows(context: Any, uuids: Collection[str]) -> list[Any]:
    """The rows of these servers, each with the source, target and status of an unfinished migration, or None.

    One statement reads both. Otherwise an evacuation could end in between: its server would be read on its old
    host, and its migration as ended. Only a few columns are read: Nova's own objects take most of a second for
    thousands of members. While a server moves between two cells, the cell that hides it is ignored.
    """
    one, move = models.Instance, models.Migration
    columns = (
        one.uuid,
        one.host,
        one.created_at,
        one.launch_index,
        one.vm_state,
        one.task_state,
        one.deleted,
        one.updated_at,
        move.source_compute,
        move.dest_compute,
        move.status,
    )
    unfinished = sa.and_(move.instance_uuid == one.uuid, move.deleted == 0, move.status.not_in(OVER))
    servers = context.session.query(*columns).outerjoin(move, unfinished)
    return list(servers.filter(one.uuid.in_(list(uuids)), one.hidden == sa.false()))


def ended(context: Any, servers: Collection[str]) -> set[str]:
    """The servers among these that are deleted or for which Nova found no host."""
    known = known_servers(context, servers)
    return {uuid for uuid, member in known.items() if member.host is None and not member.busy}


def hosts_of(server: str, member: GroupMember | None) -> list[str]:
    """All hosts that an existing server may use. The last one is the host that it is moving to."""
    elsewhere = member.elsewhere if member is not None else ()
    hosts = [*elsewhere, member.host if member is not None else None, IN_FLIGHT.host(server, member)]
    return [host for host in hosts if host is not None]


class OtherGroups:
    """The other groups of the cloud. The hint of each group is read only once."""

    def __init__(self) -> None:
        self._hints: dict[str, PlacementHint] = {}

    def of(self, context: Any, but: str, default: str, *, needed: bool = False) -> Iterator[OtherGroup]:
        """All groups except `but` that have two or more members; smaller groups use no links between hosts.
        needed: see `known_servers`.
        """
        groups = [group for group in objects.InstanceGroupList.get_all(context) if group.uuid != but]
        groups = [group for group in groups if len(group.members) > 1]
        members = known_servers(context, {uuid for group in groups for uuid in group.members}, needed=needed)
        for group in groups:
            where = {uuid: hosts_of(uuid, members.get(uuid)) for uuid in group.members}
            running = [uuid for uuid, hosts in where.items() if hosts]
            hosts = [host for hosts in where.values() for host in hosts]
            if len(set(hosts)) > 1:
                hint = self._hint(context, group.uuid, running[0], default)
                yield OtherGroup(hosts, hint.placement == "isolated")

    def _hint(self, context: Any, group: str, member: str, default: str) -> PlacementHint:
        if group not in self._hints:
            try:
                spec = objects.RequestSpec.get_by_instance_uuid(context, member)
            except exception.RequestSpecNotFound:
                return hint_of({}, {}, default)
            self._hints[group] = hint_of_spec(spec, default)
        return self._hints[group]


def hint_of_spec(spec: Any, default: str) -> PlacementHint:
    """The placement hint of a request."""
    flavor = spec.flavor if "flavor" in spec else None
    extra_specs = flavor.extra_specs if flavor is not None and "extra_specs" in flavor else {}
    hints = spec.scheduler_hints if "scheduler_hints" in spec else {}
    return hint_of(hints, extra_specs, default)
