"""Where a server group runs, or why it has no host, in plain sentences."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Collection, Iterator

from topolane.cluster import explain as common
from topolane.cluster.explain import LONGEST_HOSTS, Explanation, Why
from topolane.cluster.hypothetical import NodeSlots
from topolane.cluster.links import Words
from topolane.cluster.view import Refused, View, Waiting
from topolane.nova.cloud import Cloud, ServerGroup, alike
from topolane.nova.group_placement import POLICIES
from topolane.nova.view import FIRST, number_of, view
from topolane.units import clock, plural

WORDS = Words("group", "server", "free slot", no_limit="")


def explain(cloud: Cloud, group: ServerGroup, free: Callable[[], list[int]]) -> Explanation:
    """Explains a group. free: asks Placement how many of its servers fit on each node now."""
    seen, number = view(cloud), number_of(cloud, group)
    if not group.servers:
        return Explanation(group.name, "empty", sentences=[f"Group {group.name} has no servers."])
    if group.hosts:
        return _running(cloud, seen, number, group)
    return _waiting(cloud, seen, next(job for job in seen.waiting if job.id == number), group, free)


def _running(cloud: Cloud, seen: View, number: int, group: ServerGroup) -> Explanation:
    job = next(one for one in seen.running if one.id == number)
    hosts = job.hosts if len(job.hosts) <= LONGEST_HOSTS else plural(len(set(job.ranks)), "host")
    servers = plural(job.size, "server")
    said = f"Group {job.name} runs on {hosts} since {clock(job.start, seen.time)}: {servers}, {job.state}."
    if job.slots < job.size:
        said = f"{job.slots} of the {servers} of group {job.name} have a host: {hosts}. They are {job.state}."
    found = common.running(cloud.topology.machine, seen, job, [said, *_hint(group)], WORDS)
    return dataclasses.replace(
        found, sentences=[*found.sentences, *_elsewhere(cloud, group), *_faults(group)]
    )


def _waiting(
    cloud: Cloud, seen: View, job: Waiting, group: ServerGroup, free: Callable[[], list[int]]
) -> Explanation:
    state = ", ".join(sorted({server.status for server in group.servers}))
    servers = f"{plural(job.size, 'server')} of {clock(job.submit, seen.time)}"
    said = f"Group {job.name} has no host: {servers}, {state}."
    way, more = None, list(_faults(group))
    if job.policy in POLICIES or job.policy == "compact":
        why = _why(cloud, seen, job, group, free())
        way = why.way()
        more += why.now(way, job.policy, "delete its servers and request them again")
    return common.waiting(job, state, [said, *_hint(group)], more, way)


def _why(cloud: Cloud, seen: View, job: Waiting, group: ServerGroup, free: list[int]) -> Why:
    """The question whether the policy of the filter has a place for the servers now."""
    policy = POLICIES.get(job.policy or "", "hop-bytes-exact")
    asked = dataclasses.replace(job, policy=policy, refused=Refused("", job.size))
    left = {number: _left(cloud, other, group) for number, other in enumerate(cloud.groups, FIRST)}
    most = group.most_per_host or len(group.servers)

    def slots(gone: Collection[int]) -> NodeSlots:
        now, room = (
            tuple(
                min(count + sum(left[number][node] for number in ended if number in left), most)
                for node, count in enumerate(free)
            )
            for ended in (gone, left)
        )
        return NodeSlots(now, room, stacked=group.most_per_host != 1)

    return Why(cloud.topology.machine, seen, asked, slots, WORDS)


def _left(cloud: Cloud, other: ServerGroup, group: ServerGroup) -> collections.Counter[int]:
    """The slots that the servers of another group would leave, by node. Only those of the same flavor certainly leave one."""
    model = group.servers[0]
    return collections.Counter(
        node
        for server in other.servers
        for node in cloud.topology.nodes(server.hosts)
        if alike(server.flavor, model.flavor) and cloud.takes(model, cloud.topology.machine.node_name(node))
    )


def _hint(group: ServerGroup) -> Iterator[str]:
    if group.hint.problem is not None:
        yield f"What it asks for is not understood: {group.hint.problem}."


def _faults(group: ServerGroup) -> Iterator[str]:
    """What Nova says of errors, each once."""
    yield from (f"Nova says: {fault}" for fault in dict.fromkeys(one.fault for one in group.servers) if fault)


def _elsewhere(cloud: Cloud, group: ServerGroup) -> Iterator[str]:
    """The hosts that the topology lacks, and those that are kept for migrations."""
    astray = [one for one in group.running if one.host not in cloud.topology.node_of]
    if astray:
        hosts = ", ".join(f"{one.host} ({one.name})" for one in astray)
        yield f"The topology lacks hosts of it, so it may use all links above the others: {hosts}."
    kept = sorted((server.name, host) for server in group.servers for host in server.elsewhere)
    if kept:
        yield f"Kept until a migration is over: {', '.join(f'{host} ({name})' for name, host in kept)}."


def tree(cloud: Cloud, group: ServerGroup) -> str:
    """The group drawn as a tree: its pods, leaves and hosts, with the servers on each host."""
    topology = cloud.topology
    on: dict[str, list[str]] = collections.defaultdict(list)
    for server in group.running:
        on[server.host or ""].append(server.name)
    rows = topology.machine.outline(topology.nodes(group.hosts))
    lines = []
    for level, name, inside, hosts in rows:
        words = f"{inside} of the group on {hosts} hosts" if level else ", ".join(sorted(on[name]))
        lines.append(f"{'  ' * (rows[0][0] - level)}{name}: {words}")
    return "\n".join(lines)
