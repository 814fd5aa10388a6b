"""Reads a cloud through openstacksdk: its hosts, its groups, and which server runs on which host."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from topolane import sources, untrusted
from topolane._engine import InputError
from topolane.nova.hints import PlacementHint, hint_of
from topolane.nova.topology import Aggregate, Topology, from_aggregates
from topolane.nova.unfinished import AWAITS_CONFIRMATION, MigrationRecord, is_recent, server_work

if TYPE_CHECKING:
    from openstack.connection import Connection

MOVABLE = ("ACTIVE", "PAUSED")
"""The status of servers that Nova can migrate live."""


@dataclasses.dataclass(frozen=True)
class Server:
    """A server that is a member of a group."""

    id: str
    name: str
    host: str | None
    status: str
    flavor: dict[str, Any]
    """Its flavor, as the API embeds it."""
    hints: dict[str, Any]
    zone: str | None
    """The availability zone it must stay in."""
    busy: bool
    """Whether Nova is working on it."""
    hostname: str = ""
    addresses: frozenset[str] = frozenset()
    """Its fixed and floating addresses."""
    created: str = ""
    launch_index: int = 0
    """Its index in its request."""
    elsewhere: tuple[str, ...] = ()
    """The other hosts of an unfinished migration: its destination, or the host to return to."""
    fault: str = ""
    """What Nova says of its last error."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts whose links this server keeps: its own and those of unfinished migrations."""
        return (*self.elsewhere, self.host) if self.host is not None else ()

    @property
    def movable(self) -> bool:
        """Whether it can be migrated live now."""
        return self.host is not None and self.status in MOVABLE and not self.busy


@dataclasses.dataclass(frozen=True)
class ServerGroup:
    """A server group and its placement hint."""

    id: str
    name: str
    project: str
    most_per_host: int | None
    """How many members its policy allows on one host; None for any number."""
    servers: list[Server]
    hint: PlacementHint

    @property
    def running(self) -> list[Server]:
        """The servers that have a host, in rank order: by creation, then by index in the request."""
        there = (server for server in self.servers if server.host is not None)
        return sorted(there, key=lambda server: (not server.created, server.created, server.launch_index))

    @property
    def hosts(self) -> list[str]:
        """The host of each server that has one, in rank order."""
        return [server.host for server in self.running if server.host is not None]

    @property
    def kept(self) -> list[str]:
        """The other hosts of unfinished migrations, whose links the group keeps."""
        return [host for server in self.servers for host in server.elsewhere]


@dataclasses.dataclass(frozen=True)
class Cloud:
    """The topology, hosts and groups of a cloud."""

    topology: Topology
    problems: list[str]
    """Sentences that say what is wrong with the topology."""
    groups: list[ServerGroup]
    zones: dict[str, str]
    """The availability zone of every host."""
    closed: frozenset[str]
    """Hosts that are down or disabled."""
    occupied: frozenset[str] = frozenset()
    """Hosts that run servers, whether in a group or not."""
    time: float = dataclasses.field(default_factory=time.time)
    """When it was read."""

    def takes(self, server: Server, host: str) -> bool:
        """Whether the state and the zone of a host allow the server there."""
        return host not in self.closed and server.zone in (None, self.zones.get(host))

    def group(self, name: str) -> ServerGroup:
        """The group with this id, or with this name if there is no such id. Raises InputError if none or several match."""
        found = [group for group in self.groups if group.id == name]
        found = found or [group for group in self.groups if group.name == name]
        if len(found) != 1:
            raise InputError(
                f"there are {len(found)} server groups {name!r}; 'topolane nova status' lists them"
            )
        return found[0]


def connect(cloud: str | None) -> Connection:
    """A connection to this cloud in clouds.yaml; without a name, to the cloud in the environment (OS_*)."""
    import openstack
    from keystoneauth1 import exceptions as auth
    from openstack import exceptions

    try:
        connection = openstack.connect(cloud=cloud)
        connection.authorize()
        return connection
    except (auth.ClientException, exceptions.SDKException) as error:
        raise InputError(f"the cloud cannot be reached: {_first_line(error)}") from error


def read(connection: Connection, machine: str | None, default_placement: str = "none") -> Cloud:
    """Reads all groups of a cloud. This needs an administrator's rights.

    machine: a file that describes the network [default: the metadata of the aggregates]. default_placement:
    the placement of groups without a placement hint. Raises InputError if there is no topology, or if Nova
    forbids a call.
    """
    from keystoneauth1 import exceptions as auth
    from openstack import exceptions

    try:
        aggregates = list(connection.compute.aggregates())
        topology, problems = _topology(aggregates, machine)
        servers = {server.id: server for server in connection.compute.servers(all_projects=True)}
        groups = _server_groups(connection)
        members = {id: servers[id] for group in groups for id in group.member_ids or () if id in servers}
        migrations = _unfinished(connection, members.values())
        # A migration may have ended after its server was read, and before it was read itself.
        moving = {id: connection.compute.find_server(id) for id in migrations if id in members}
        servers = {id: now for id, now in (servers | moving).items() if now is not None}
        services = list(connection.compute.services(binary="nova-compute"))
    except (auth.ClientException, exceptions.SDKException) as error:
        raise InputError(f"the cloud does not answer: {_first_line(error)}") from error
    return Cloud(
        topology=topology,
        problems=problems,
        groups=[_group(group, servers, migrations, default_placement) for group in groups],
        zones={s.host: s.availability_zone for s in services},
        closed=frozenset(s.host for s in services if s.status != "enabled" or s.state != "up"),
        occupied=frozenset(s.compute_host for s in servers.values() if s.compute_host),
    )


def free_slots(connection: Connection, cloud: Cloud, group: ServerGroup) -> list[int]:
    """The number of the group's servers that fit on each node now, according to Placement.

    It is 0 for hosts that are down, disabled, or outside the zones where the group must stay.
    """
    flavors = [server.flavor for server in group.servers]
    wanted = {
        name: max(_resources(flavor).get(name, 0) for flavor in flavors)
        for name in ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")
    }
    wanted = {name: amount for name, amount in wanted.items() if amount > 0}
    if not wanted:
        # Bare metal takes only custom resources and cannot migrate live.
        return [0] * cloud.topology.machine.nodes
    query = "&".join(
        ["resources=" + ",".join(f"{name}:{amount}" for name, amount in wanted.items())]
        + [f"required={trait}" for trait in sorted(set().union(*map(_traits, flavors)))]
    )
    answer = connection.placement.get(f"/allocation_candidates?{query}", microversion="1.22")
    if answer.status_code != 200:
        raise InputError(f"Placement does not say what is free: {answer.status_code} {answer.text[:200]}")
    host_of = {
        hypervisor.id: _host(hypervisor) for hypervisor in connection.compute.hypervisors(details=True)
    }
    zones = {server.zone for server in group.servers if server.zone is not None}
    slots = [0] * cloud.topology.machine.nodes
    for provider, summary in answer.json()["provider_summaries"].items():
        host = host_of.get(provider)
        node = cloud.topology.node_of.get(host or "")
        if node is None or host in cloud.closed or (zones and {cloud.zones.get(host or "")} != zones):
            continue
        resources = summary["resources"]
        if all(name in resources for name in wanted):
            slots[node] = min(
                (resources[name]["capacity"] - resources[name]["used"]) // amount
                for name, amount in wanted.items()
            )
    if group.most_per_host is not None:
        there = collections.Counter(server.host for server in group.servers)
        for host, node in cloud.topology.node_of.items():
            slots[node] = max(0, min(slots[node], group.most_per_host - there[host]))
    return slots


def off_tree(connection: Connection, cloud: Cloud) -> list[str]:
    """The compute hosts that the topology lists neither by host name nor by hypervisor name."""
    hypervisors = list(connection.compute.hypervisors(details=True))
    listed = cloud.topology.node_of
    return sorted({_host(one) for one in hypervisors if _host(one) not in listed and one.name not in listed})


def _host(hypervisor: Any) -> str:
    return str((hypervisor.service_details or {}).get("host") or hypervisor.name)


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether servers of two flavors take the same resources and may use the same hosts."""

    def needs(flavor: dict[str, Any]) -> object:
        extra = (flavor.get("extra_specs") or {}).items()
        return _resources(flavor), {key: value for key, value in extra if not key.startswith("topolane:")}

    return needs(one) == needs(other)


def _server_groups(connection: Connection) -> list[Any]:
    """All groups, read page by page: Nova returns at most [api] max_limit at once, without a link to the next
    page.
    """
    groups: list[Any] = []
    while True:
        rest = f"/os-server-groups?offset={len(groups)}"
        page = list(connection.compute.server_groups(all_projects=True, base_path=rest))
        if not page:
            return groups
        groups += page


def _topology(aggregates: Iterable[Any], machine: str | None) -> tuple[Topology, list[str]]:
    if machine is not None:
        return Topology.of(sources.tree(machine)), []
    known = (Aggregate(a.name, a.hosts or (), a.metadata or {}) for a in aggregates)
    topology, problems = from_aggregates(known)
    if topology is None:
        why = f": {problems[0]}" if problems else "; name a file with --machine, or see docs/guides/nova.md"
        raise InputError(f"no host aggregate has topolane:leaf{why}")
    return topology, problems


def cpus(connection: Connection) -> dict[str, str]:
    """The CPU report of each host's compute service, as JSON, by host name."""
    found: dict[str, str] = {}
    marker = ""
    while True:
        # From microversion 2.88 on, Nova no longer returns the CPUs.
        answer = connection.compute.get(f"/os-hypervisors/detail{marker}", microversion="2.53")
        if answer.status_code != 200:
            raise InputError(
                f"Nova does not list the CPUs of hosts: {answer.status_code} {answer.text[:200]}"
            )
        page = answer.json()["hypervisors"]
        if not page:
            return found
        found |= {one["service"]["host"]: json.dumps(one["cpu_info"]) for one in page if one.get("cpu_info")}
        marker = f"?marker={page[-1]['id']}"


def _unfinished(connection: Connection, members: Iterable[Any]) -> dict[str, list[MigrationRecord]]:
    """The migrations of these servers that may be unfinished, by server."""
    ask = connection.compute.migrations
    found = list(ask(status=AWAITS_CONFIRMATION))
    for server in members:
        if server.task_state is not None or is_recent(_age(server)):
            found += ask(server_id=server.id)
    by_server: collections.defaultdict[str, list[MigrationRecord]] = collections.defaultdict(list)
    for one in found:
        by_server[one.server_id].append(MigrationRecord(one.source_compute, one.dest_compute, one.status))
    return by_server


def _age(server: Any) -> float | None:
    """Seconds since Nova's record of a server changed."""
    changed = untrusted.when(server.updated_at or server.created_at)
    return None if changed is None else time.time() - changed


def _group(
    group: Any, servers: dict[str, Any], migrations: dict[str, list[MigrationRecord]], default_placement: str
) -> ServerGroup:
    members = [_server(servers[id], migrations.get(id, [])) for id in group.member_ids or () if id in servers]
    policy = group.policy or next(iter(group.policies or ()), None)
    most = int((group.rules or {}).get("max_server_per_host", 1)) if policy == "anti-affinity" else None
    found_hints = [
        hint_of(server.hints, server.flavor.get("extra_specs"), default_placement) for server in members
    ]
    hint = next(
        (hint for hint in found_hints if hint.placement is not None or hint.problem), PlacementHint(None)
    )
    return ServerGroup(group.id, group.name, group.project_id or "", most, members, hint)


def _server(server: Any, migrations: list[MigrationRecord]) -> Server:
    flavor = server.flavor
    flavor = flavor.to_dict() if hasattr(flavor, "to_dict") else dict(flavor or {})
    if not (server.image and server.image.id):
        flavor["disk"] = 0  # its root is a volume
    work = server_work(server.compute_host, server.task_state is not None, _age(server), migrations)
    return Server(
        id=server.id,
        name=server.name,
        host=server.compute_host,
        status=server.status,
        flavor=flavor,
        hints=server.scheduler_hints or {},
        zone=server.pinned_availability_zone,
        busy=work.busy,
        hostname=server.hostname or "",
        addresses=frozenset(
            str(one["addr"]) for ports in (server.addresses or {}).values() for one in ports if "addr" in one
        ),
        created=server.created_at or "",
        launch_index=server.launch_index or 0,
        elsewhere=work.elsewhere,
        fault=untrusted.line((server.fault or {}).get("message")),
    )


def _resources(flavor: dict[str, Any]) -> dict[str, int]:
    extra = flavor.get("extra_specs") or {}
    cpus = "PCPU" if extra.get("hw:cpu_policy") == "dedicated" else "VCPU"
    swap = math.ceil((flavor.get("swap") or 0) / 1024)
    disk = (flavor.get("disk") or 0) + (flavor.get("ephemeral") or 0) + swap
    usual = {cpus: flavor.get("vcpus") or 0, "MEMORY_MB": flavor.get("ram") or 0, "DISK_GB": disk}
    return {name: _amount(extra.get(f"resources:{name}"), amount) for name, amount in usual.items()}


def _amount(said: Any, usual: int) -> int:
    """The number in an extra spec; `usual` if it is missing or no number: Nova's API did not check extra
    specs before 2.86.
    """
    try:
        return int(said)
    except (TypeError, ValueError):
        return usual


def _traits(flavor: dict[str, Any]) -> set[str]:
    extra = flavor.get("extra_specs") or {}
    signs = {"required": "", "forbidden": "!"}
    return {
        signs[value] + key.removeprefix("trait:")
        for key, value in extra.items()
        if key.startswith("trait:") and value in signs
    }


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
