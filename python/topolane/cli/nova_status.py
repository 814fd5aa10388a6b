"""`topolane nova status` and `topolane nova explain`: which server groups run where, and why others have no host."""

from __future__ import annotations

import dataclasses
import functools
import sys
from typing import TYPE_CHECKING

import click

from topolane import texts
from topolane.cli.common import json_option, print_json
from topolane.cli.explained import ExplainedCommand
from topolane.cli.nova_cloud import cloud_options, connected, service_errors

if TYPE_CHECKING:
    from topolane.nova.status import NovaStatus

RUNNING = ("servers", "nodes", "lies in", "policy", "hops", "least", "since")
WAITING = ("servers", "policy", "since", "why")


@click.command(
    cls=ExplainedCommand,
    examples={
        "All groups, those furthest apart first": "",
        "Draw the tree with its groups": "--os-cloud prod --svg groups.svg",
    },
)
@cloud_options
@click.option("--svg", metavar="FILE", help="Also draw the tree with its groups into this SVG file.")
@json_option
def status(os_cloud: str | None, machine: str | None, svg: str | None, as_json: bool) -> None:
    """Show which server groups run where, how far apart their servers are, and which have no host.

    Groups furthest above their least possible hops are first.
    """
    connection, cloud = connected(os_cloud, machine)
    from topolane.cli.live_status import draw
    from topolane.nova.cloud import off_tree
    from topolane.nova.status import status as rows
    from topolane.nova.view import view

    if svg is not None:
        closed = frozenset(cloud.topology.nodes(cloud.closed))
        draw(svg, cloud.topology.machine, view(cloud), closed, "group")
    with service_errors():
        found = rows(cloud, off_tree(connection, cloud))
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        _print(found)


@click.command(
    cls=ExplainedCommand,
    examples={
        "Why the group 'solver' has no host, or where it runs": "solver",
        "The same as JSON, in one cloud of clouds.yaml": "solver --os-cloud prod --json",
    },
)
@cloud_options
@click.argument("group")
@click.option("--svg", metavar="FILE", help="Also draw the tree with the group into this SVG file.")
@json_option
def explain(os_cloud: str | None, machine: str | None, group: str, svg: str | None, as_json: bool) -> None:
    """Explain where the servers of GROUP run, or why they have no host. GROUP is a name or an id."""
    connection, cloud = connected(os_cloud, machine)
    from topolane.cli.live_status import draw
    from topolane.nova.cloud import free_slots
    from topolane.nova.explain import explain as explanation
    from topolane.nova.explain import tree
    from topolane.nova.view import number_of, view

    one = cloud.group(group)
    if svg is not None:
        closed = frozenset(cloud.topology.nodes(cloud.closed))
        draw(svg, cloud.topology.machine, view(cloud), closed, "group", number_of(cloud, one))
    with service_errors():
        said = explanation(cloud, one, functools.partial(free_slots, connection, cloud, one))
    if as_json:
        print_json(dataclasses.asdict(said))
        return
    for line in (*said.sentences, *tree(cloud, one).splitlines()):
        click.echo(texts.printable(line))


def _print(found: NovaStatus) -> None:
    from rich.console import Console

    from topolane.cli.live_status import tables, totals

    lines = totals(found, "group")
    if found.off_tree:
        lines.append(f"hosts that no leaf of the tree lists: {', '.join(found.off_tree)}")
    for line in lines:
        click.echo(texts.printable(line))
    more = {one.job: {"hops": f"{one.hops:g}", "least": f"{one.least_hops:g}"} for one in found.hops}
    width = None if sys.stdout.isatty() else 200
    console = Console(width=width, highlight=False, markup=False)
    for each in tables(found, RUNNING, WAITING, more):
        console.print(each)
