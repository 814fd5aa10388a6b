"""Overviews: one group on the tree, or all groups in a table."""

from __future__ import annotations

import collections
import dataclasses

from topolane._engine import Decision, LinkUse, Machine, State
from topolane.nova.cloud import Cloud, ServerGroup
from topolane.nova.plan import hops, isolates, linked_nodes, nodes


@dataclasses.dataclass(frozen=True)
class GroupRow:
    """One group in the table."""

    id: str
    name: str
    placement: str
    """Its placement hint."""
    servers: int
    running: int
    """Its servers on hosts of the topology."""
    leaves: int
    hops: float
    """Hops summed over pairs of servers."""
    least: float
    """The least possible hops on the empty machine, with at most as many servers on a host as now."""
    shares: list[str]
    """The parts of the tree (leaf, pod) whose uplinks the group shares, if one of the sharing groups is
    isolated.
    """


def rows(cloud: Cloud) -> list[GroupRow]:
    """All groups, those furthest above their least possible hops first."""
    groups = [(index, linked_nodes(cloud, group), ()) for index, group in enumerate(cloud.groups)]
    links = LinkUse(cloud.topology.machine, groups)
    apart = [isolates(group.hint) for group in cloud.groups]
    shares = [
        [
            name
            for name, others in links.meetings(index)
            if others and any(apart[one] for one in (index, *others))
        ]
        for index, _, _ in groups
    ]
    found = [_row(cloud, group, shares[index]) for index, group in enumerate(cloud.groups)]
    return sorted(found, key=lambda row: (row.least - row.hops, row.name, row.id))


def _row(cloud: Cloud, group: ServerGroup, shares: list[str]) -> GroupRow:
    own = nodes(cloud, group)
    machine = cloud.topology.machine
    return GroupRow(
        id=group.id,
        name=group.name,
        placement="not understood" if group.hint.problem else group.hint.placement or "-",
        servers=len(group.servers),
        running=len(own),
        leaves=len(set(machine.leaves_of(own))),
        hops=hops(cloud, group),
        least=_least(machine, own),
        shares=shares,
    )


def _least(machine: Machine, own: list[int]) -> float:
    """The least possible hops on the empty machine, with at most as many servers on a host as now."""
    if len(own) < 2:
        return 0.0
    most = max(collections.Counter(own).values())
    placed = State(machine).place("hop-bytes-exact", len(own), slots=[most] * machine.nodes, stacked=most > 1)
    return placed.hop_bytes if isinstance(placed, Decision) else 0.0


def nodes_of(cloud: Cloud, groups: list[ServerGroup]) -> dict[int, list[int]]:
    """The nodes of each group that has any, by the group's index in the list."""
    found = {index: sorted(set(nodes(cloud, group))) for index, group in enumerate(groups)}
    return {index: own for index, own in found.items() if own}


def tree(cloud: Cloud, group: ServerGroup) -> str:
    """The group drawn as a tree: its pods, leaves and hosts, with the servers on each host."""
    topology = cloud.topology
    machine = topology.machine
    on: dict[int, list[str]] = collections.defaultdict(list)
    astray = []
    for server in group.servers:
        node = cloud.topology.node_of.get(server.host or "")
        if node is None:
            astray.append((server.host is not None, server.name, server.host or server.status))
        else:
            on[node].append(server.name)
    rows = machine.outline([node for node, names in on.items() for _ in names])
    lines = []
    for level, name, inside, hosts in rows:
        servers = ", ".join(sorted(on[topology.node_of[name]])) if level == 0 else ""
        words = servers or f"{inside} of the group on {hosts} hosts"
        lines.append(f"{'  ' * (rows[0][0] - level)}{name}: {words}")
    for on_a_host, what in ((True, "not on the topology"), (False, "without a host")):
        names = [f"{name} ({where})" for has, name, where in sorted(astray) if has is on_a_host]
        if names:
            lines.append(f"{what}: {', '.join(names)}")
    kept = sorted((server.name, host) for server in group.servers for host in server.elsewhere)
    if kept:
        lines.append(
            f"kept until a migration is over: {', '.join(f'{host} ({name})' for name, host in kept)}"
        )
    return "\n".join(lines)
