"""`topolane nova`: groups of servers of an OpenStack on the tree, and moves that bring them together."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane import extras
from topolane._engine import InputError
from topolane.cli.common import json_option, options, print_json, print_table, progress_bar, write_text
from topolane.cli.metrics import give, metrics_options
from topolane.cli.nova_room import (
    asked,
    check_room_options,
    defragmented,
    print_defragmented,
    print_migrations,
    print_room,
    room_options,
)

if TYPE_CHECKING:
    from openstack.connection import Connection
    from prometheus_client import CollectorRegistry

    from topolane.nova.cloud import Cloud, ServerGroup
    from topolane.nova.plan import MigrationPlan

cloud_options = options(
    click.option(
        "--os-cloud", metavar="NAME", help="Cloud in clouds.yaml [default: the OS_* environment variables]."
    ),
    click.option(
        "--machine",
        metavar="FILE",
        help="A file that describes the network [default: topolane:leaf, pod and site of the host aggregates].",
    ),
)


@click.group("nova")
def command() -> None:
    """Place groups of servers in OpenStack Nova by the tree of the network."""


@command.command()
@cloud_options
@click.argument("group", required=False)
@click.option(
    "--svg", metavar="FILE", help="Draw the tree with the group, or with all groups, into this SVG file."
)
@json_option
def show(
    os_cloud: str | None, machine: str | None, group: str | None, svg: str | None, as_json: bool
) -> None:
    """Show where the servers of GROUP run on the tree. Without GROUP, list all groups."""
    connection, cloud = _cloud(os_cloud, machine)
    from topolane.nova import overview as showing
    from topolane.nova.cloud import off_tree

    one = cloud.group(group) if group is not None else None
    if svg is not None:
        write_text(svg, _drawn(cloud, one), "--svg")
    rows = [row for row in showing.rows(cloud) if one is None or row.id == one.id]
    with _service_errors():
        hosts = off_tree(connection, cloud)
    if hosts:
        click.echo(f"hosts that no leaf of the tree lists: {', '.join(hosts)}", err=True)
    if as_json:
        print_json([dataclasses.asdict(row) for row in rows])
        return
    print_table(
        ["group", "placement", "servers", "on leaves", "hops", "least", "shares links at"],
        [
            [
                row.name,
                row.placement,
                str(row.servers) if row.running == row.servers else f"{row.running} of {row.servers}",
                str(row.leaves),
                f"{row.hops:g}",
                f"{row.least:g}",
                ", ".join(row.shares),
            ]
            for row in rows
        ],
        ["placement", "shares links at"],
    )
    if one is not None:
        click.echo(showing.tree(cloud, one))


def _drawn(cloud: Cloud, group: ServerGroup | None) -> str:
    """The tree with all groups, or one, as SVG."""
    from topolane.nova.overview import nodes_of
    from topolane.report.live_tree import DrawnHolder, svg

    shown = [group] if group is not None else cloud.groups
    names = {index: shown[index].name for index in range(len(shown))}
    holders = {
        index: DrawnHolder(nodes, names[index], f"group {names[index]}")
        for index, nodes in nodes_of(cloud, shown).items()
    }
    closed = frozenset(node for host, node in cloud.topology.node_of.items() if host in cloud.closed)
    return svg(cloud.topology.machine, holders, closed=closed)


@command.command()
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
    from topolane.nova import plan_rules

    options = plan_rules.read_options(nova_conf) if nova_conf is not None else None
    known = options if options is not None else plan_rules.WITHOUT_FILE
    connection, cloud = _cloud(os_cloud, machine or known.machine_file, known.default_placement)
    rules = plan_rules.Rules(connection, cloud, options)
    if flavor is not None:
        with _service_errors():
            wish = asked(connection, cloud, groups, flavor, zone, most_groups, most, share_on_the_way, rules)
        if room_for is not None:
            room = wish.room_for(room_for)
            best, show = room.plan, functools.partial(print_room, cloud, room, room_for, most_groups)
        else:
            found = defragmented(cloud, wish)
            best, show = found.best, functools.partial(print_defragmented, cloud, found)
        if out is not None and best is not None:
            best.write(Path(out))
        show(as_json)
        if best is None:
            raise SystemExit(1)
        return
    from topolane.nova import plan as planning

    wanted = [cloud.group(name) for name in groups]
    for group in wanted:
        if group.hint.placement == "spread":
            raise InputError(f"group {group.name} is to be spread: no plan brings it together")
    if not wanted:
        wanted = [group for group in cloud.groups if group.hint.placement in ("compact", "isolated")]
    wanted = [group for group in wanted if len(planning.nodes(cloud, group)) > 1]
    with _service_errors():
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
        click.echo(f"topolane: {note}", err=True)
    if out is not None:
        made.write(Path(out))
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
        click.echo(f"{group.name}: {before:g} hops before, {after:g} after {plural(count, 'migration')}")


@command.command()
@cloud_options
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--at-once",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Number of migrations at one time.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=3600.0,
    show_default=True,
    help="Seconds after which a migration that has not ended counts as failed.",
)
@json_option
def apply(
    os_cloud: str | None, machine: str | None, file: str, at_once: int, timeout: float, as_json: bool
) -> None:
    """Make the migrations of the plan in FILE; FILE also records which are done.

    After an interrupt, no further migration starts and the command waits for those that run; run it again to continue.
    A migration is skipped if it would make the placement of its group worse than at the start.
    """
    from topolane.nova.plan import MigrationPlan

    path = Path(file)
    made = MigrationPlan.read(path)
    connection, cloud = _cloud(os_cloud, machine)
    from topolane.cluster.clients.nova import NovaServers
    from topolane.nova.execution import PlanExecution

    stopping = threading.Event()
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda *_: stopping.set())
    applying = PlanExecution(
        made,
        NovaServers(connection),
        cloud.topology,
        at_once,
        timeout,
        save=lambda: made.write(path),
        stopped=stopping.is_set,
    )
    with progress_bar("migrations", len(made.migrations)) as progress, _service_errors():
        applying.run(progress)
    if as_json:
        print_json(dataclasses.asdict(made))
    else:
        print_table(
            ["server", "from", "to", "state", "why"],
            [[move.name, move.source, move.target, move.state, move.why] for move in made.migrations],
            ["from", "to", "state", "why"],
        )
    if any(move.state != "done" for move in made.migrations):
        raise SystemExit(1)


def _cloud(
    os_cloud: str | None, machine: str | None, default_placement: str = "none"
) -> tuple[Connection, Cloud]:
    try:
        import openstack  # noqa: F401
    except ImportError as error:
        raise extras.missing("this command", "nova", error) from error
    from topolane.nova import cloud

    connection = cloud.connect(os_cloud)
    found = cloud.read(connection, machine, default_placement)
    for problem in found.problems:
        click.echo(f"topolane: {problem}", err=True)
    return connection, found


@command.command()
@cloud_options
@click.option(
    "--nova-conf",
    metavar="FILE",
    help="The nova.conf of nova-scheduler. Its API database has the refusals, and its group [topolane] says what groups "
    "get that ask for nothing.",
)
@metrics_options(9754)
def metrics(
    os_cloud: str | None, machine: str | None, nova_conf: str | None, listen: str | None, once: bool
) -> None:
    """Give Prometheus the groups that share links, their hops, and what was refused (docs/reference/metrics.md)."""

    def registry() -> CollectorRegistry:
        import openstack  # noqa: F401

        from topolane.nova.metrics import MetricsSource, registry

        return registry(MetricsSource(os_cloud, machine, nova_conf))

    give("Nova", "nova", listen, once, registry)


@contextlib.contextmanager
def _service_errors() -> Iterator[None]:
    """Turns the error of a service into one sentence."""
    from keystoneauth1 import exceptions as auth
    from openstack import exceptions

    try:
        yield
    except (auth.ClientException, exceptions.SDKException) as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"the cloud does not answer: {first}") from error
