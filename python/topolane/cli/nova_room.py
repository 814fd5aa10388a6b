"""`topolane nova plan --room-for`: live migrations that make room for an isolated group."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from topolane._engine import InputError
from topolane.cli.common import options, print_json, print_table
from topolane.units import plural

if TYPE_CHECKING:
    from openstack.connection import Connection

    from topolane.nova.cloud import Cloud
    from topolane.nova.plan import Plan
    from topolane.nova.plan_rules import Rules
    from topolane.nova.repair import RepairPlan

room_options = options(
    click.option(
        "--room-for",
        type=click.IntRange(1, 100_000),
        metavar="N",
        help="Make room for an isolated group of this many servers.",
    ),
    click.option("--flavor", metavar="NAME", help="With --room-for: the flavor of its servers."),
    click.option("--zone", metavar="NAME", help="With --room-for: the availability zone of the group."),
    click.option(
        "--most-groups",
        type=click.IntRange(1, 3),
        default=3,
        show_default=True,
        help="With --room-for: most groups to move.",
    ),
    click.option(
        "--share-on-the-way",
        is_flag=True,
        help="With --room-for: let groups share links while they move; such migrations bypass Nova's filters.",
    ),
)


def room_found(
    connection: Connection,
    cloud: Cloud,
    groups: tuple[str, ...],
    servers: int,
    flavor: str,
    zone: str | None,
    most_groups: int,
    most: int | None,
    sharing: bool,
    rules: Rules,
) -> RepairPlan:
    """The repair that makes room. Raises InputError for an unknown flavor, zone or group."""
    from topolane.nova import repair as repairs
    from topolane.nova.cloud import free_slots

    only = {cloud.group(name).id for name in groups}
    if zone is not None and zone not in cloud.zones.values():
        known = ", ".join(sorted(set(cloud.zones.values())))
        raise InputError(f"there is no availability zone {zone!r}; there are {known}")
    found = connection.compute.find_flavor(flavor, get_extra_specs=True)
    if found is None:
        raise InputError(f"there is no flavor {flavor!r}")
    wanted = repairs.wanted_group(found.to_dict(), zone)
    free = free_slots(connection, cloud, wanted)
    # A repair moves whole groups and knows no CPUs.
    stay = {group.id for group in cloud.groups if rules.alike(group) != "none"}
    return repairs.find(
        cloud,
        wanted,
        servers,
        free,
        most_groups=most_groups,
        most=most,
        only=only,
        stay=stay,
        sharing=sharing,
    )


def print_room(cloud: Cloud, repair: RepairPlan, servers: int, most_groups: int, as_json: bool) -> None:
    """The migrations, or why there are none."""
    if as_json:
        plan = repair.plan
        made = dataclasses.asdict(plan) if plan is not None else {"migrations": [], "start": {}}
        print_json({**made, "refusal": repair.refusal, "room": plan is not None, "hosts": repair.hosts})
        return
    if repair.refusal is None:
        click.echo(f"There is room for {plural(servers, 'server')}: nothing needs to be moved.")
        return
    click.echo(f"Now, a group of {servers} is refused: {repair.refusal}.")
    if repair.plan is not None:
        print_migrations(cloud, repair.plan)
        if forced := sum(move.forced for move in repair.plan.migrations):
            click.echo(f"{forced} of them must bypass Nova's filters: groups share links while they move.")
        where = cloud.topology.machine.hostlist([cloud.topology.node_of[host] for host in repair.hosts])
        click.echo(f"Then the group can be placed, for example on {where}.")
        return
    looked = plural(repair.groups, "group")
    click.echo(f"No room was found by moving at most {most_groups} of the {looked} that can be moved.")
    if repair.unordered:
        what = "One way" if repair.unordered == 1 else f"{repair.unordered} ways"
        click.echo(
            f"{what} to make it had no order in which every server finds an empty host and no links are shared on"
            " the way; see --share-on-the-way."
        )


def print_migrations(cloud: Cloud, plan: Plan) -> None:
    """A plan as a table."""
    name_of = {group.id: group.name for group in cloud.groups}
    print_table(
        ["server", "group", "from", "to", "hops saved"],
        [
            [move.name, name_of[move.group], move.source, move.target, f"{move.before - move.after:g}"]
            for move in plan.migrations
        ],
        ["group", "from", "to"],
    )
