"""Which live migrations would bring groups together, or apart from each other's links."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from topolane import files, parsing
from topolane._engine import InputError, State
from topolane.nova.cloud import Cloud, ServerGroup
from topolane.nova.wishes import Wish

VERSION = 1
STATES = ("planned", "started", "done", "failed", "skipped")


@dataclasses.dataclass
class Migration:
    """One server to be moved; hops are the group's, summed over pairs of its servers."""

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
    """Whether Nova's filters are not to be asked: on the way the group shares links that they keep it off."""


@dataclasses.dataclass
class Plan:
    """Migrations in the order in which they are to be made."""

    migrations: list[Migration]
    start: dict[str, float]
    """Hops of every group with migrations when the plan was made: none may end above."""
    in_order: bool = False
    """Whether each migration needs those before it, and waits until they are done."""

    def write(self, path: Path) -> None:
        """Writes it, whole or not at all."""
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
    """The migrations that lower the groups' hops by `least_gain` or more each.

    Group after group, those first that gain most for each migration, as each leaves room for the next;
    at most `most` migrations in all. `slots` tells the free slots of every node for a group's servers.
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
            # What is left there for servers of another size is not known before Placement is asked again.
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
        state.overlay(list(where[other.id].values()), isolates(other.wish), beyond)
    # The links of hosts matter where groups must not meet on them.
    apart = any(isolates(one.wish) for one in (group, *others))
    found = state.moves(
        [own[server.id] for server in movable],
        slots,
        fixed=fixed,
        price=least_gain,
        stacked=group.most_per_host != 1 or apart,
        isolates=isolates(group.wish),
    )
    name = cloud.topology.machine.node_name
    return [
        Migration(
            movable[member].id, movable[member].name, group.id, name(source), name(target), before, after
        )
        for member, source, target, before, after in found
    ]


def isolates(wish: Wish) -> bool:
    """Whether a group wants links of its own."""
    return wish.placement == "isolated"


def summary(cloud: Cloud, plan: Plan) -> Iterator[tuple[ServerGroup, int, float, float]]:
    """Of every group with migrations how many, and its hops before and after all of them."""
    for identity, before in plan.start.items():
        own = [migration for migration in plan.migrations if migration.group == identity]
        if own:
            yield cloud.group(identity), len(own), before, own[-1].after
