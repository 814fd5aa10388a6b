"""A cloud as the neutral picture of a live system. A server group is a job, and each of its servers a slot."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator

from topolane import untrusted
from topolane.cluster.decided import STOCK
from topolane.cluster.hosts import hostlist
from topolane.cluster.view import ISOLATED, NONE, SHARED, Running, View, Waiting
from topolane.nova.cloud import Cloud, ServerGroup

WITHOUT_GROUP = "servers in no group"
"""What holds the hosts of all other servers. Nova places these alone, and they use no links that are counted."""
FIRST = 1
"""The number of the first group: groups are numbered in the order in which Nova lists them."""


def view(cloud: Cloud) -> View:
    """The view of what was read. Groups without servers are no jobs."""
    names = names_of(cloud)
    jobs = [(number, group) for number, group in enumerate(cloud.groups, FIRST) if group.servers]
    running = [_running(cloud, number, names[group.id], group) for number, group in jobs if group.hosts]
    waiting = [_waiting(number, names[group.id], group) for number, group in jobs if not group.hosts]
    running += _without_group(cloud, running)
    found = View(cloud.time, tuple(running), tuple(waiting), problems=tuple(cloud.problems))
    closed = set(cloud.topology.nodes(cloud.closed))
    return dataclasses.replace(found, out=tuple(sorted(closed - found.busy)))


def number_of(cloud: Cloud, group: ServerGroup) -> int:
    """The number by which the view knows a group."""
    return FIRST + cloud.groups.index(group)


def names_of(cloud: Cloud) -> dict[str, str]:
    """What groups are called, by id: their name, or the id if another group has that name or id."""
    known = collections.Counter(word for group in cloud.groups for word in {group.id, group.name})
    return {
        group.id: group.name if group.name and known[group.name] == 1 else group.id for group in cloud.groups
    }


def _running(cloud: Cloud, number: int, name: str, group: ServerGroup) -> Running:
    hosts, linked = group.hosts, [*group.hosts, *group.kept]
    nodes = tuple(sorted(set(cloud.topology.nodes(linked))))
    policy, rule = _policy(group)
    return Running(
        *(number, name, group.name, group.project, nodes, _begun(group), None),
        requeueable=False,
        hosts=hostlist(cloud.topology.machine, hosts),
        ranks=tuple(hosts),
        slots=len(hosts),
        size=len(group.servers),
        part=_zone(group),
        state=_state(group),
        policy=policy,
        rule=rule,
        link_use=ISOLATED if group.hint.placement == "isolated" else SHARED,
        is_beyond=any(host not in cloud.topology.node_of for host in linked),
    )


def _waiting(number: int, name: str, group: ServerGroup) -> Waiting:
    size, state = len(group.servers), _state(group)
    fault = next((server.fault for server in group.servers if server.fault), "")
    policy, rule = _policy(group)
    return Waiting(
        *(number, name, group.name, group.project, size, _begun(group), None),
        why=fault or f"its servers are {state}",
        # Nova tries no server again.
        held=True,
        record=name,
        slots=size,
        size=size,
        reason=fault,
        policy=policy,
        rule=rule,
    )


def _without_group(cloud: Cloud, grouped: list[Running]) -> Iterator[Running]:
    """The servers of no group, as one job that is not for the plug-in."""
    held = {node for job in grouped for node in job.nodes}
    hosts = [host for host in cloud.occupied if cloud.topology.node_of.get(host) not in held]
    nodes = tuple(sorted(set(cloud.topology.nodes(hosts))))
    if nodes:
        number, listed = FIRST + len(cloud.groups), hostlist(cloud.topology.machine, hosts)
        yield Running(
            *(number, WITHOUT_GROUP, "", "", nodes, 0.0, None),
            hosts=listed,
            link_use=NONE,
            is_ours=False,
        )


def _policy(group: ServerGroup) -> tuple[str | None, str | None]:
    """The placement of a group, which is its policy, and what gives it."""
    hint = group.hint
    if hint.problem is not None:
        return None, None
    if hint.placement is None:
        return STOCK, "it asks for no placement"
    return hint.placement, "topolane:placement as a hint or extra spec, or default_placement"


def _begun(group: ServerGroup) -> float:
    """When its first server was created."""
    times = (untrusted.when(server.created) for server in group.servers)
    return min((time for time in times if time is not None), default=0.0)


def _state(group: ServerGroup) -> str:
    """What Nova says its servers are."""
    return ", ".join(sorted({server.status for server in group.servers}))


def _zone(group: ServerGroup) -> str:
    return ", ".join(sorted({server.zone for server in group.servers if server.zone is not None}))
