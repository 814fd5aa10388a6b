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
    from topolane.nova.room_plan import RoomPlan

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
) -> RoomPlan:
    """The plan that makes room. Raises InputError for an unknown flavor, zone or group."""
    from topolane.nova import room_plan
    from topolane.nova.cloud import free_slots

    only = {cloud.group(name).id for name in groups}
    if zone is not None and zone not in cloud.zones.values():
        known = ", ".join(sorted(set(cloud.zones.values())))
        raise InputError(f"there is no availability zone {zone!r}; there are {known}")
    found = connection.compute.find_flavor(flavor, get_extra_specs=True)
    if found is None:
        raise InputError(f"there is no flavor {flavor!r}")
    wanted = room_plan.wanted_group(found.to_dict(), zone)
    free = free_slots(connection, cloud, wanted)
    # Whole groups are moved, and CPUs are not known.
    stay = {group.id for group in cloud.groups if rules.alike(group) != "none"}
    return room_plan.find(
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


def print_room(cloud: Cloud, room: RoomPlan, servers: int, most_groups: int, as_json: bool) -> None:
    """The migrations, or why there are none."""
    if as_json:
        plan = room.plan
        made = dataclasses.asdict(plan) if plan is not None else {"migrations": [], "start": {}}
        print_json({**made, "refusal": room.refusal, "room": plan is not None, "hosts": room.hosts})
        return
    if room.refusal is None:
        click.echo(f"There is room for {plural(servers, 'server')}: nothing needs to be moved.")
        return
    click.echo(f"Now, a group of {servers} is refused: {room.refusal}.")
    if room.plan is not None:
        print_migrations(cloud, room.plan)
        if forced := sum(move.forced for move in room.plan.migrations):
            click.echo(f"{forced} of them must bypass Nova's filters: groups share links while they move.")
        where = cloud.topology.machine.hostlist([cloud.topology.node_of[host] for host in room.hosts])
        click.echo(f"Then the group can be placed, for example on {where}.")
        return
    looked = plural(room.groups, "group")
    click.echo(f"No room was found by moving at most {most_groups} of the {looked} that can be moved.")
    if room.unordered:
        what = "One way" if room.unordered == 1 else f"{room.unordered} ways"
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
