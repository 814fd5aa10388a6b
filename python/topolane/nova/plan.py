"""Plans live migrations that bring the servers of a group together, or that end the sharing of links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from topolane._engine import InputError, LinkUse, State
from topolane.nova.cloud import Cloud, ServerGroup
from topolane.nova.group_placement import POLICIES, GroupPlacement
from topolane.nova.hints import PlacementHint
from topolane.nova.migration_plan import Migration, MigrationPlan
from topolane.nova.plan_traffic import PairWeights
from topolane.nova.plan_traffic import moves as traffic_moves


def groups_named(cloud: Cloud, names: Iterable[str]) -> list[ServerGroup]:
    """The groups to plan for: those named, or all that ask for compact or isolated; with two servers on the machine or more.

    Raises InputError for a group that is to be spread.
    """
    wanted = [cloud.group(name) for name in names]
    for group in wanted:
        if group.hint.placement == "spread":
            raise InputError(f"group {group.name} is to be spread: no plan brings it together")
    if not wanted:
        wanted = [group for group in cloud.groups if group.hint.placement in ("compact", "isolated")]
    return [group for group in wanted if len(cloud.topology.nodes(group.hosts)) > 1]


def make(
    cloud: Cloud,
    slots: Callable[[ServerGroup], list[int]],
    *,
    groups: list[ServerGroup],
    least_gain: int,
    most: int | None = None,
    weights: Callable[[ServerGroup], PairWeights | None] = lambda _: None,
    compact_policy: str = "hop-bytes-exact",
) -> MigrationPlan:
    """Plans migrations that each lower the hops of a group by `least_gain` or more.

    Groups are planned one after the other, highest gain per migration first, because each migration frees
    slots for the next. At most `most` migrations are planned. slots: returns the free slots of every node for
    a group's servers. weights: returns the weights of a group's hops; None if all its servers count as
    talking equally.
    """
    free = {group.id: slots(group) for group in groups}
    where = {group.id: _whereabouts(cloud, group) for group in cloud.groups}
    by_bytes = {group.id: found for group in groups if (found := weights(group)) is not None}
    plan = MigrationPlan([], {})
    left = list(groups)
    while left and (most is None or len(plan.migrations) < most):
        offers = []
        for group in left:
            known = by_bytes.get(group.id)
            if known is not None and not _shares_links(cloud, group, where):
                moves = _traffic_moves(cloud, group, where, free[group.id], least_gain, known, compact_policy)
            else:
                known, moves = None, _moves(cloud, group, where, free[group.id], least_gain)
            if moves:
                offers.append((group, moves, known))
        if not offers:
            break
        group, moves, known = max(
            offers, key=lambda offer: (offer[1][0].before - offer[1][-1].after) / len(offer[1])
        )
        left.remove(group)
        plan.start[group.id] = moves[0].before
        if known is not None:
            plan.weights[group.id] = known
        for move in moves[: None if most is None else most - len(plan.migrations)]:
            plan.migrations.append(move)
            where[group.id][move.server] = cloud.topology.node_of[move.target]
            # How many servers of another size fit is unknown until Placement is read again.
            for slots_left in free.values():
                slots_left[cloud.topology.node_of[move.target]] = 0
    return plan


def _whereabouts(cloud: Cloud, group: ServerGroup) -> dict[str, int]:
    found = {server.id: cloud.topology.node_of.get(server.host or "") for server in group.servers}
    return {server: node for server, node in found.items() if node is not None}


def _moves(
    cloud: Cloud, group: ServerGroup, where: dict[str, dict[str, int]], slots: list[int], least_gain: int
) -> list[Migration]:
    own = where[group.id]
    movable = [server for server in group.servers if server.id in own and server.movable]
    fixed = [node for server, node in own.items() if server not in {s.id for s in movable}]
    if not movable or len(own) < 2:
        return []
    state = State(cloud.topology.machine)
    others = list(_others(cloud, group, where))
    for nodes, dedicated, beyond in others:
        state.overlay(nodes, dedicated, beyond)
    # Groups must not share the hosts' own links with a group that has dedicated links.
    apart = isolates(group.hint) or any(dedicated for _, dedicated, _ in others)
    found = state.moves(
        [own[server.id] for server in movable],
        slots,
        fixed=fixed,
        price=least_gain,
        stacked=group.most_per_host != 1 or apart,
        isolates=isolates(group.hint),
    )
    name = cloud.topology.machine.node_name
    return [
        Migration(
            movable[member].id, movable[member].name, group.id, name(source), name(target), before, after
        )
        for member, source, target, before, after in found
    ]


def _others(
    cloud: Cloud, group: ServerGroup, where: dict[str, dict[str, int]]
) -> Iterator[tuple[list[int], bool, bool]]:
    """For each other group: its nodes, whether its links are dedicated, and whether a member is outside the
    machine.
    """
    for other in cloud.groups:
        own, kept = where[other.id], cloud.topology.nodes(other.kept)
        if other.id != group.id and (own or kept):
            beyond = len(kept) < len(other.kept) or any(
                server.host and server.id not in own for server in other.servers
            )
            yield [*own.values(), *kept], isolates(other.hint), beyond


def _shares_links(cloud: Cloud, group: ServerGroup, where: dict[str, dict[str, int]]) -> bool:
    """Whether the group shares links with another group although one of the two has dedicated links. Such
    groups are moved first.
    """
    others = list(_others(cloud, group, where))
    own = [*where[group.id].values(), *cloud.topology.nodes(group.kept)]
    every = [own, *(nodes for nodes, _, _ in others)]
    apart = [isolates(group.hint), *(dedicated for _, dedicated, _ in others)]
    met = LinkUse(cloud.topology.machine, [(index, nodes, ()) for index, nodes in enumerate(every)])
    return any(apart[one] for _, meets in met.meetings(0) if meets for one in (0, *meets))


def _traffic_moves(
    cloud: Cloud,
    group: ServerGroup,
    where: dict[str, dict[str, int]],
    slots: list[int],
    least_gain: int,
    weights: PairWeights,
    compact_policy: str,
) -> list[Migration]:
    """Migrations that lower the group's weighted hops, onto hosts that the filter allows at that moment."""
    others = list(_others(cloud, group, where))
    apart = isolates(group.hint) or any(dedicated for _, dedicated, _ in others)
    placing = GroupPlacement(
        cloud.topology,
        POLICIES.get(group.hint.placement or "", compact_policy),
        stacked=group.most_per_host != 1 or apart,
        members=[],
        awaiting=1,
        beyond=sum(server.host is not None and server.id not in where[group.id] for server in group.servers),
        others=others,
    )

    def costs(server: str, at: dict[str, int], free: NDArray[np.uint32]) -> NDArray[np.float64] | None:
        placing.members = [node for other, node in at.items() if other != server]
        return placing.costs(free).costs

    machine = cloud.topology.machine
    movable = [server.id for server in group.servers if server.movable]
    names = {server.id: server.name for server in group.servers}
    return [
        Migration(
            step.server,
            names[step.server],
            group.id,
            machine.node_name(step.source),
            machine.node_name(step.target),
            step.before,
            step.after,
        )
        for step in traffic_moves(machine, weights, where[group.id], movable, slots, least_gain, costs)
    ]


def isolates(hint: PlacementHint) -> bool:
    """Whether a group requests dedicated links."""
    return hint.placement == "isolated"


def summary(cloud: Cloud, plan: MigrationPlan) -> Iterator[tuple[ServerGroup, int, float, float]]:
    """For every group with migrations: how many, and its hops before and after all of them."""
    for identity, before in plan.start.items():
        own = [migration for migration in plan.migrations if migration.group == identity]
        if own:
            yield cloud.group(identity), len(own), before, own[-1].after
