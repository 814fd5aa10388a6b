"""`topolane nova plan` and `topolane nova apply`: live migrations that bring groups together, or make room for one."""

from __future__ import annotations

import dataclasses
import functools
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane import texts
from topolane.cli.common import json_option, print_json
from topolane.cli.explained import ExplainedCommand
from topolane.cli.nova_cloud import cloud_options, connected, service_errors
from topolane.cli.nova_room import (
    asked,
    check_room_options,
    defragmented,
    print_defragmented,
    print_migrations,
    print_room,
    room_options,
)
from topolane.cli.room_common import plan_argument, steps_printed, timeout_option

if TYPE_CHECKING:
    from topolane.nova.cloud import Cloud, ServerGroup
    from topolane.nova.migration_plan import MigrationPlan


@click.command(
    cls=ExplainedCommand,
    examples={
        "Bring groups together": "--nova-conf /etc/nova/nova.conf --out plan.json",
        "Make room for an isolated group of 16 servers": "--room-for 16 --flavor hpc --out plan.json",
    },
)
@cloud_options
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option(
    "--least-gain",
    type=click.IntRange(1, 10**6),
    default=2,
    show_default=True,
    help="Fewest hops, summed over pairs of servers, that each migration must save.",
)
@click.option("--most", type=click.IntRange(1), metavar="N", help="Propose at most this many migrations.")
@click.option(
    "--nova-conf",
    metavar="FILE",
    help="The nova.conf of nova-scheduler: its group [topolane] says which traffic was declared or measured, and what "
    "groups get that ask for nothing.",
)
@click.option("--out", metavar="FILE", help="File to write the plan to, for 'topolane nova apply'.")
@room_options
@json_option
@click.pass_context
def plan(
    context: click.Context,
    os_cloud: str | None,
    machine: str | None,
    groups: tuple[str, ...],
    least_gain: int,
    most: int | None,
    nova_conf: str | None,
    out: str | None,
    room_for: int | None,
    defragment: bool,
    flavor: str | None,
    zone: str | None,
    most_groups: int,
    share_on_the_way: bool,
    as_json: bool,
) -> None:
    """Propose the fewest live migrations that lower hop-bytes most.

    This examines the named groups, or by default all groups with the placement compact or isolated. It changes
    nothing.

    With --room-for: propose migrations that make room for an isolated group of N servers, one on each host, which
    Nova refuses now. Only whole groups with the placement compact or isolated are moved, and only if their servers
    have a similar flavor; if groups are named, only these. The exit code is 1 if no migrations make room.

    With --defragment: the same for every size of group that is refused now. The plans are compared by how many servers larger a group may
    be, for each migration, and the best is proposed.
    """
    check_room_options(context)
    from topolane.cluster import room_files
    from topolane.nova import plan_rules

    if out is not None:
        room_files.check(out)
    options = plan_rules.read_options(nova_conf) if nova_conf is not None else None
    known = options if options is not None else plan_rules.WITHOUT_FILE
    connection, cloud = connected(os_cloud, machine or known.machine_file, known.default_placement)
    rules = plan_rules.Rules(connection, cloud, options)
    if flavor is not None:
        with service_errors():
            wish = asked(connection, cloud, groups, flavor, zone, most_groups, most, share_on_the_way, rules)
        if room_for is not None:
            room = wish.room_for(room_for)
            best, show = room.plan, functools.partial(print_room, cloud, room, room_for, most_groups)
        else:
            found = defragmented(cloud, wish)
            best, show = found.best, functools.partial(print_defragmented, cloud, found)
        if out is not None and best is not None:
            room_files.write(out, best)
        show(as_json)
        if best is None:
            raise SystemExit(1)
        return
    from topolane.nova import plan as planning

    wanted = planning.groups_named(cloud, groups)
    with service_errors():
        made = planning.make(
            cloud,
            rules.slots,
            groups=wanted,
            least_gain=least_gain,
            most=most,
            weights=rules.weights,
            compact_policy=known.compact_policy,
        )
    for note in rules.notes:
        click.echo(f"topolane: {texts.printable(note)}", err=True)
    if out is not None:
        room_files.write(out, made)
    if as_json:
        print_json(dataclasses.asdict(made))
        return
    _print_plan(cloud, made, wanted)


def _print_plan(cloud: Cloud, made: MigrationPlan, looked_at: list[ServerGroup]) -> None:
    from topolane.nova import plan as planning
    from topolane.units import plural

    if not made.migrations:
        click.echo(f"No migration pays: {plural(len(looked_at), 'group')} looked at.")
        return
    print_migrations(cloud, made)
    for group, count, before, after in planning.summary(cloud, made):
        said = f"{group.name}: {before:g} hops before, {after:g} after {plural(count, 'migration')}"
        click.echo(texts.printable(said))


@click.command(
    cls=ExplainedCommand,
    examples={
        "Carry out a plan, two migrations at a time": "plan.json --at-once 2",
        "Give it up": "plan.json --undo",
    },
)
@plan_argument
@click.option(
    "--at-once",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Number of migrations at one time.",
)
@timeout_option(3600.0, "How long a migration may take; after that it counts as failed.")
@click.option("--undo", is_flag=True, help="Give up a plan that was begun: start no further migration of it.")
@cloud_options
@json_option
def apply(
    plan_file: Path,
    at_once: int,
    timeout: float,
    undo: bool,
    os_cloud: str | None,
    machine: str | None,
    as_json: bool,
) -> None:
    """Carry out a plan of `topolane nova plan --out`: migrate its servers live.

    A migration is skipped if its server is not where the plan has it, or if its group would end with more hops than at the start. If the
    migrations need each other and one is no longer possible, nothing is changed. Each step is first written to PLAN.journal. After an
    interrupt, no further migration starts and the command waits for those that run; run it again to go on. The exit code is 1 if a
    migration was not made.
    """
    connection, cloud = connected(os_cloud, machine)
    from topolane.cluster.clients.nova import NovaServers
    from topolane.nova import plan_apply

    stopping = threading.Event()
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda *_: stopping.set())
    host = plan_apply.NovaHost(NovaServers(connection), cloud.topology, at_once, timeout, stopping.is_set)
    with steps_printed(as_json) as tell, service_errors():
        plan_apply.apply(plan_file, host, tell, undo=undo)
