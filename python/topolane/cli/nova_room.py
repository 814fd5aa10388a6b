"""`topolane nova plan --room-for` and `--defragment`: live migrations that make room for isolated groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from topolane._engine import InputError
from topolane.cli.common import options, print_json, print_table, progress_bar
from topolane.units import plural

if TYPE_CHECKING:
    from openstack.connection import Connection

    from topolane.nova.cloud import Cloud, ServerGroup
    from topolane.nova.defragmentation import Defragmentation
    from topolane.nova.migration_plan import MigrationPlan
    from topolane.nova.plan_rules import Rules
    from topolane.nova.room_plan import NovaRoomPlan

room_options = options(
    click.option(
        "--room-for",
        type=click.IntRange(1, 100_000),
        metavar="N",
        help="Make room for an isolated group of this many servers.",
    ),
    click.option(
        "--defragment",
        is_flag=True,
        help="Let larger isolated groups start: the migrations that gain most servers each.",
    ),
    click.option(
        "--flavor", metavar="NAME", help="With --room-for or --defragment: the flavor of the group's servers."
    ),
    click.option(
        "--zone", metavar="NAME", help="With --room-for or --defragment: the availability zone of the group."
    ),
    click.option(
        "--most-groups",
        type=click.IntRange(1, 3),
        default=3,
        show_default=True,
        help="With --room-for or --defragment: most groups to move.",
    ),
    click.option(
        "--share-on-the-way",
        is_flag=True,
        help="With --room-for: let groups share links while they move; such migrations bypass Nova's filters.",
    ),
)


def check_room_options(context: click.Context) -> None:
    """Raises InputError where options of `plan` do not go together."""

    def given(name: str) -> bool:
        return context.get_parameter_source(name) is not ParameterSource.DEFAULT

    for_room = [name for name in ("room_for", "defragment") if given(name)]
    if len(for_room) == 2:
        raise InputError("--room-for cannot be combined with --defragment")
    if not for_room:
        for name in ("flavor", "zone", "most_groups", "share_on_the_way"):
            if given(name):
                raise InputError(f"--{name.replace('_', '-')} needs --room-for or --defragment")
        return
    option = f"--{for_room[0].replace('_', '-')}"
    if not given("flavor"):
        raise InputError(f"{option} needs the flavor of the servers: give --flavor")
    if given("least_gain"):
        raise InputError(
            f"--least-gain cannot be combined with {option}, whose migrations need not save hops"
        )


@dataclasses.dataclass(frozen=True)
class RoomRequest:
    """What room is made for, on this cloud."""

    wanted: ServerGroup
    free: list[int]
    """Free slots of every node for one of its servers."""
    room_for: Callable[[int], NovaRoomPlan]
    """Returns the plan that makes room for a number of servers."""


def asked(
    connection: Connection,
    cloud: Cloud,
    groups: tuple[str, ...],
    flavor: str,
    zone: str | None,
    most_groups: int,
    most: int | None,
    sharing: bool,
    rules: Rules,
) -> RoomRequest:
    """What the options ask for. Raises InputError for an unknown flavor, zone or group."""
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

    def room_for(servers: int) -> NovaRoomPlan:
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

    return RoomRequest(wanted, free, room_for)


def defragmented(cloud: Cloud, asked: RoomRequest) -> Defragmentation:
    """The plans that let larger groups start, with a bar on a terminal."""
    from topolane.nova import defragmentation

    with progress_bar("looking for plans", 1.0) as done:
        return defragmentation.find(cloud, asked.wanted, asked.free, asked.room_for, done)


def print_defragmented(cloud: Cloud, found: Defragmentation, as_json: bool) -> None:
    """What the plans gain, and the migrations of the best."""
    best = found.best
    if as_json:
        made = dataclasses.asdict(best) if best is not None else {"migrations": [], "start": {}}
        gains = [
            {"servers": gain.servers, "migrations": gain.migrations, "per_migration": gain.per_migration}
            for gain in found.gains
        ]
        print_json({**made, "largest_now": found.now, "gains": gains})
        return
    click.echo(f"Now, an isolated group of {plural(found.now, 'server')} finds room.")
    if best is None:
        click.echo("No plan was found with which a larger one does.")
        return
    print_table(
        ["largest group", "migrations", "servers gained per migration"],
        [[f"{gain.servers}", f"{gain.migrations}", f"{gain.per_migration:.2f}"] for gain in found.gains],
    )
    click.echo("The migrations of the first:")
    print_migrations(cloud, best)


def print_room(cloud: Cloud, room: NovaRoomPlan, servers: int, most_groups: int, as_json: bool) -> None:
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


def print_migrations(cloud: Cloud, plan: MigrationPlan) -> None:
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
