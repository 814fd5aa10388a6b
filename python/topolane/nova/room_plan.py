"""Finds live migrations that make room for an isolated group that Nova refuses. `make_room` of
`cluster.hypothetical` chooses the groups to move; this module orders the migrations so that Nova allows each.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from topolane._engine import Decision, NoRoom, Refusal
from topolane._engine import RoomPlan as Found
from topolane.cluster.hypothetical import Cost, Holder, Hypothetical, Question
from topolane.cluster.view import ISOLATED, SHARED
from topolane.nova.cloud import Cloud, Server, ServerGroup, alike
from topolane.nova.group_placement import POLICIES, GroupPlacement
from topolane.nova.hints import PlacementHint
from topolane.nova.migration_plan import Migration, MigrationPlan
from topolane.nova.steps import MigrationStep, Where, moved, order, others_on

WANTED = 1 << 32
"""The number of the new group, above those of the groups that may be moved."""
TRIES = 16
"""How often to ask the engine. Each time, some groups of the earlier plans must stay."""

Layout = tuple[dict[str, list[int]], list[int]]
"""The target nodes of the moved groups by group id, and the nodes of the new group."""


@dataclasses.dataclass(frozen=True)
class NovaRoomPlan:
    """The answer to the question how to make room for one group."""

    refusal: str | None
    """Why the group is refused now; None if it fits without moves."""
    plan: MigrationPlan | None
    """Migrations after which Nova admits the group; None if none were found."""
    hosts: list[str]
    """The hosts where the group then fits."""
    groups: int
    """The number of groups that could be moved."""
    unordered: int
    """The number of layouts that make room but have no order in which every migration is allowed."""


def wanted_group(flavor: dict[str, Any], zone: str | None) -> ServerGroup:
    """An isolated group to make room for: no running servers, at most one server per host."""
    one = Server("", "", None, "", flavor, {}, zone, busy=False)
    return ServerGroup("", "", "", 1, [one], PlacementHint("isolated"))


def find(
    cloud: Cloud,
    wanted: ServerGroup,
    servers: int,
    free: list[int],
    *,
    most_groups: int,
    most: int | None = None,
    only: Collection[str] = (),
    stay: Collection[str] = (),
    sharing: bool = False,
) -> NovaRoomPlan:
    """Finds the plan with the fewest forced migrations, then the fewest migrations.

    wanted: a group of one server, which gives the flavor and the zone of all servers. free: the free slots of
    every node for it. most: the limit of migrations. only: ids of the groups that may be moved [default:
    all]. stay: ids of groups that must stay. sharing: whether groups may share links during the moves, which
    Nova's filter does not allow.
    """
    where = hosts_of(cloud)
    movable = [group for group in _movable(cloud, wanted, where) if group.id in (only or {group.id})]
    movable = [group for group in movable if group.id not in stay]
    refusal = _refusal(cloud, where, servers, free)
    proposed = NovaRoomPlan(refusal, MigrationPlan([], {}) if refusal is None else None, [], len(movable), 0)
    if refusal is None:
        return proposed
    left: collections.deque[frozenset[int]] = collections.deque([frozenset()])
    tried: set[frozenset[int]] = set()
    while left and len(tried) < TRIES:
        without = left.popleft()
        if without in tried:
            continue
        tried.add(without)
        those = {index: group for index, group in enumerate(movable) if index not in without}
        asked = _asked(cloud, wanted, where, free, list(those.values()))
        found = _cheapest(cloud, where, asked, servers, those, most_groups)
        if isinstance(found, NoRoom) or not found.moved:
            continue
        left.extend(without | {moved.id} for moved in found.moved)
        groups = [movable[moved.id] for moved in found.moved]
        layouts = list(_layouts(cloud, wanted, where, free, servers, groups, found))
        best = _best(cloud, wanted, where, free, servers, layouts, sharing)
        if best is None:
            proposed = dataclasses.replace(proposed, unordered=proposed.unordered + 1)
            continue
        plan, hosts = best
        if len(plan.migrations) <= (most or len(plan.migrations)) and (
            proposed.plan is None or _price(plan) < _price(proposed.plan)
        ):
            proposed = dataclasses.replace(proposed, plan=plan, hosts=hosts)
    return proposed


def _cheapest(
    cloud: Cloud,
    where: Where,
    asked: Hypothetical,
    servers: int,
    movable: Mapping[int, ServerGroup],
    most_groups: int,
) -> Found | NoRoom:
    """The engine's plan: it moves groups with the fewest servers in total, all smaller than the new group."""
    costs = {}
    for index, group in movable.items():
        asked.hold(index, Holder(tuple(cloud.topology.nodes(where[group.id].values()))))
        size = len(group.servers)
        costs[index] = Cost(size if size < servers else None, 0)
    return asked.make_room(Question(WANTED, servers), costs, [most_groups], movable=list(movable))


def _layouts(
    cloud: Cloud,
    wanted: ServerGroup,
    where: Where,
    free: list[int],
    servers: int,
    groups: list[ServerGroup],
    found: Found,
) -> Iterator[Layout]:
    """The engine's layout, and variants with the new group in each part of the tree that a moved group uses
    now.

    The engine counts all servers of moved groups, even those that can stay on their hosts.
    """
    machine = cloud.topology.machine
    yield (
        {group.id: moved.nodes for group, moved in zip(groups, found.moved, strict=True)},
        found.decision.nodes,
    )
    old = {node for group in groups for node in cloud.topology.nodes(where[group.id].values())}
    # A group that spans sites fits into no single part of the tree.
    for start, end in machine.homes(servers):
        if not any(start <= node < end for node in old):
            continue
        asked = _asked(cloud, wanted, where, free, groups)
        home = asked.decide(Question(WANTED, servers, eligible=range(start, end)))
        if isinstance(home, Decision):
            places: dict[str, list[int]] = {}
            asked.hold(WANTED, Holder(tuple(home.nodes), link_use=ISOLATED))
            for index, group in enumerate(sorted(groups, key=lambda one: -len(where[one.id]))):
                placed = asked.decide(Question(index, len(where[group.id])))
                if isinstance(placed, Refusal):
                    break
                asked.hold(index, Holder(tuple(placed.nodes), link_use=ISOLATED))
                places[group.id] = placed.nodes
            if len(places) == len(groups):
                yield places, home.nodes


def _fewest_moves(cloud: Cloud, where: Where, layout: Layout) -> Layout:
    """The same layout by leaves, with the most servers kept on their hosts."""
    places, home = layout
    now = {name: set(cloud.topology.nodes(where[name].values())) for name in places}
    then: dict[str, list[int]] = {name: [] for name in places}
    rest: list[int] = []
    every = sorted({*home, *(node for nodes in [*places.values(), *now.values()] for node in nodes)})
    leaf_of = dict(zip(every, cloud.topology.machine.leaves_of(every)))
    for leaf in sorted(set(leaf_of.values())):
        inside = {name: [node for node in nodes if leaf_of[node] == leaf] for name, nodes in places.items()}
        here = [node for node in home if leaf_of[node] == leaf]
        stay = {
            name: sorted(node for node in now[name] if leaf_of[node] == leaf)[: len(nodes)]
            for name, nodes in inside.items()
        }
        kept = {node for nodes in stay.values() for node in nodes}
        pool = sorted({node for nodes in [*inside.values(), here] for node in nodes} - kept)
        for name, nodes in inside.items():
            more = len(nodes) - len(stay[name])
            then[name] += stay[name] + pool[:more]
            pool = pool[more:]
        rest += pool[: len(here)]
    return then, rest


def _best(
    cloud: Cloud,
    wanted: ServerGroup,
    where: Where,
    free: list[int],
    servers: int,
    layouts: list[Layout],
    sharing: bool,
) -> tuple[MigrationPlan, list[str]] | None:
    """The cheapest plan among layouts that make room in an allowed order, and the hosts for the new group."""
    found: list[tuple[MigrationPlan, list[str]]] = []
    for places, home in (_fewest_moves(cloud, where, layout) for layout in layouts):
        goes = {name: [_host(cloud, node) for node in nodes] for name, nodes in places.items()}
        steps = order(cloud, where, goes)
        if steps is None and sharing:
            steps = order(cloud, where, goes, sharing=True)
        if steps is None:
            continue
        plan = _plan(cloud, where, steps)
        then, left = after(cloud, wanted, where, free, plan.migrations)
        if _refusal(cloud, then, servers, left) is None:
            found.append((plan, [_host(cloud, node) for node in sorted(home)]))
    return min(found, key=lambda one: _price(one[0]), default=None)


def _price(plan: MigrationPlan) -> tuple[int, int]:
    """Sort key of plans: the number of forced migrations, then of all."""
    return sum(migration.forced for migration in plan.migrations), len(plan.migrations)


def _movable(cloud: Cloud, wanted: ServerGroup, where: Where) -> list[ServerGroup]:
    """The groups whose servers can trade places with servers of the new group.

    Each has one server per host, without other groups there; all its servers are on the machine, and Nova can
    migrate them live.
    """
    (model,) = wanted.servers
    zones = {model.zone} if model.zone is not None else set(cloud.zones.values())
    on = collections.Counter(
        host for group in cloud.groups for server in group.servers for host in server.hosts
    )

    def may(group: ServerGroup) -> bool:
        pinned = {server.zone for server in group.servers if server.zone is not None}
        return (
            bool(group.servers)
            and group.hint.placement in ("compact", "isolated")
            and group.hint.problem is None
            and (not pinned or (pinned == zones and len(zones) == 1))
            and all(server.movable and alike(server.flavor, model.flavor) for server in group.servers)
            and all(on[host] == 1 and host in cloud.topology.node_of for host in where[group.id].values())
        )

    return [group for group in cloud.groups if may(group)]


def _asked(
    cloud: Cloud, wanted: ServerGroup, where: Where, free: list[int], movable: list[ServerGroup]
) -> Hypothetical:
    """What the policy would do with only the groups that stay. Hosts that cannot take the new group are out of
    service.
    """
    asked = Hypothetical(cloud.topology.machine, POLICIES["isolated"], counts_slots=True)
    names = {group.id for group in movable}
    held = {host for name in names for host in where[name].values()}

    out = [
        node
        for host, node in cloud.topology.node_of.items()
        if (not cloud.takes(wanted.servers[0], host) if host in held else free[node] == 0)
    ]
    asked.serve(out)
    for number, (nodes, dedicated, beyond) in enumerate(others_on(cloud, where, names), WANTED + 1):
        asked.hold(number, Holder(tuple(nodes), link_use=ISOLATED if dedicated else SHARED, is_beyond=beyond))
    return asked


def _refusal(cloud: Cloud, where: Where, servers: int, free: list[int]) -> str | None:
    """Why the filter refuses an isolated group of this number of servers on distinct hosts; None if it does
    not.
    """
    placing = GroupPlacement(
        cloud.topology,
        POLICIES["isolated"],
        stacked=True,
        members=[],
        awaiting=servers,
        others=list(others_on(cloud, where, ())),
    )
    return placing.costs(np.minimum(free, 1).astype(np.uint32)).refusal


def hosts_of(cloud: Cloud) -> Where:
    """The host of each server now, by group."""
    return {group.id: {s.id: s.host for s in group.servers if s.host} for group in cloud.groups}


def largest(cloud: Cloud, where: Where, free: list[int]) -> int:
    """The size of the largest isolated group that the filter admits. Any smaller group fits on a part of its
    hosts.
    """
    fits, beyond = 0, sum(slots > 0 for slots in free) + 1
    while beyond - fits > 1:
        servers = (fits + beyond) // 2
        if _refusal(cloud, where, servers, free) is None:
            fits = servers
        else:
            beyond = servers
    return fits


def after(
    cloud: Cloud, wanted: ServerGroup, where: Where, free: list[int], moves: Iterable[Migration]
) -> tuple[Where, list[int]]:
    """The hosts of servers after the migrations, and then the slots that are free for the wanted group."""
    then, left = {name: dict(hosts) for name, hosts in where.items()}, list(free)
    for move in moves:
        then[move.group][move.server] = move.target
        left[cloud.topology.node_of[move.target]] = 0
        if cloud.takes(wanted.servers[0], move.source):
            left[cloud.topology.node_of[move.source]] = 1
    return then, left


def _plan(cloud: Cloud, where: Where, steps: list[MigrationStep]) -> MigrationPlan:
    """A plan of these steps, with the hops of their groups before and after each."""
    now = moved(where, [])

    def hops(group: str) -> float:
        return cloud.topology.hops(now[group].values())

    plan = MigrationPlan([], {step.group: hops(step.group) for step in steps}, in_order=True)
    for group, server, source, target, forced in steps:
        before = hops(group)
        now[group][server.id] = target
        after = hops(group)
        plan.migrations.append(
            Migration(server.id, server.name, group, source, target, before, after, forced=forced)
        )
    return plan


def _host(cloud: Cloud, node: int) -> str:
    return cloud.topology.machine.node_name(node)
