"""Plans live migrations that bring groups together, or off each other's links."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from topolane import files, parsing
from topolane._engine import InputError, State
from topolane.nova.cloud import Cloud, ServerGroup
from topolane.nova.hints import PlacementHint

VERSION = 1
STATES = ("planned", "started", "done", "failed", "skipped")


@dataclasses.dataclass
class Migration:
    """The move of one server. Hops are those of its group, summed over pairs of its servers."""

    server: str
    name: str
    group: str
    source: str
    target: str
    before: float
    """Hops before it, as planned."""
    after: float
    """Hops after it, as planned."""
    state: str = "planned"
    """One of `STATES`."""
    why: str = ""
    """Why it failed or was skipped."""
    forced: bool = False
    """Whether to bypass Nova's filters: meanwhile the group shares links that the filters would exclude."""


@dataclasses.dataclass
class Plan:
    """Migrations, in the order in which to make them."""

    migrations: list[Migration]
    start: dict[str, float]
    """Hops of every group with migrations, when the plan was made. No group may end with more."""
    in_order: bool = False
    """Whether each migration must wait until all before it are done."""

    def write(self, path: Path) -> None:
        """Writes the plan atomically."""
        text = json.dumps({"version": VERSION, **dataclasses.asdict(self)}, indent=1)
        files.write(path, text + "\n", "plan")

    @staticmethod
    def read(path: Path) -> Plan:
        """Reads what `write` wrote. Raises InputError for anything else."""
        content = parsing.read_json(path)
        try:
            if content["version"] != VERSION:
                raise InputError(f"{path}: a plan of version {content['version']}, not {VERSION}")
            migrations = [Migration(**migration) for migration in content["migrations"]]
            start = {str(group): float(hops) for group, hops in content["start"].items()}
            for migration in migrations:
                if migration.state not in STATES or migration.group not in start:
                    raise InputError(
                        f"{path}: server {migration.server}: state {migration.state!r} or its group is unknown"
                    )
            return Plan(migrations, start, content.get("in_order") is True)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: not a plan of 'topolane nova plan' ({error})") from error


def nodes(cloud: Cloud, group: ServerGroup) -> list[int]:
    """The nodes of the members that run on the machine, once per member."""
    found = (cloud.topology.node_of.get(server.host or "") for server in group.servers)
    return [node for node in found if node is not None]


def hops(cloud: Cloud, group: ServerGroup) -> float:
    """Hops summed over the pairs of a group's members."""
    return cloud.topology.machine.quality(sorted(nodes(cloud, group)))[1]


def make(
    cloud: Cloud,
    slots: Callable[[ServerGroup], list[int]],
    *,
    groups: list[ServerGroup],
    least_gain: int,
    most: int | None = None,
) -> Plan:
    """Plans migrations that each lower the hops of a group by `least_gain` or more.

    Groups are planned one after the other, highest gain per migration first, since each leaves room for the
    next. At most `most` migrations in all. `slots` returns the free slots of every node for a group's
    servers.
    """
    free = {group.id: slots(group) for group in groups}
    where = {group.id: _whereabouts(cloud, group) for group in cloud.groups}
    plan = Plan([], {})
    left = list(groups)
    while left and (most is None or len(plan.migrations) < most):
        offers = [(group, _moves(cloud, group, where, free[group.id], least_gain)) for group in left]
        offers = [(group, moves) for group, moves in offers if moves]
        if not offers:
            break
        group, moves = max(
            offers, key=lambda offer: (offer[1][0].before - offer[1][-1].after) / len(offer[1])
        )
        left.remove(group)
        plan.start[group.id] = moves[0].before
        for move in moves[: None if most is None else most - len(plan.migrations)]:
            plan.migrations.append(move)
            where[group.id][move.server] = cloud.topology.node_of[move.target]
            # The room that is left for servers of another size is unknown until Placement is read again.
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
    others = [other for other in cloud.groups if other.id != group.id and where[other.id]]
    for other in others:
        beyond = any(server.host and server.id not in where[other.id] for server in other.servers)
        state.overlay(list(where[other.id].values()), isolates(other.hint), beyond)
    # The links of hosts matter if groups must not share them.
    apart = any(isolates(one.hint) for one in (group, *others))
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


def isolates(hint: PlacementHint) -> bool:
    """Whether a group requests dedicated links."""
    return hint.placement == "isolated"


def summary(cloud: Cloud, plan: Plan) -> Iterator[tuple[ServerGroup, int, float, float]]:
    """For every group with migrations: how many, and its hops before and after all of them."""
    for identity, before in plan.start.items():
        own = [migration for migration in plan.migrations if migration.group == identity]
        if own:
            yield cloud.group(identity), len(own), before, own[-1].after
