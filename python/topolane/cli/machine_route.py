"""`topolane machine route`: the links between two GPUs."""

from __future__ import annotations

import click

from topolane import networks, sources
from topolane._engine import InputError, Machine
from topolane.cli import common, values
from topolane.cli.explained import ExplainedCommand


@click.command(
    "route",
    cls=ExplainedCommand,
    examples={
        "The route between two nodes": "cab cab1 cab600",
        "Between GPUs of two rails": "nvl72-5000 gb1 gb19 --rails 0 3",
    },
)
@click.argument("machine", type=values.MACHINE)
@click.argument("nodes", nargs=2)
@click.option(
    "--rails",
    nargs=2,
    type=click.IntRange(0),
    default=(0, 0),
    show_default=True,
    help="Rails of the adapters of the two GPUs, from 0.",
)
@click.option(
    "--cross-rail",
    type=click.Choice(["nvlink", "spines"]),
    default="nvlink",
    show_default=True,
    help="How GPUs on different rails reach each other: NVLink inside the first node, or switches where rails meet.",
)
@common.on_option
@common.json_option
def command(
    machine: str,
    nodes: tuple[str, str],
    rails: tuple[int, int],
    cross_rail: str,
    network: str | None,
    as_json: bool,
) -> None:
    """Show the route from a GPU of one node to a GPU of another, by d-mod-k.

    Traffic between GPUs of one index takes their rail. If the chosen way for other traffic is not whole, the other ways are
    tried. With --on, both may be any hosts of that network, such as a node and a server.
    """
    fabric = sources.machine(machine)
    if network is not None:
        fabric = networks.named(fabric, network).machine
    where = f"machine {fabric.name}" if network is None else f"network {network}"
    first, last = (one(fabric, name, where) for name in nodes)
    found = fabric.rail_route((first, last), rails, cross_rail)
    if found is None:
        raise InputError(f"no route leads from {nodes[0]} (rail {rails[0]}) to {nodes[1]} (rail {rails[1]})")
    nvlink_first, nvlink_last, route = found
    names = fabric.link_names()
    links = []
    for cable, way in route:
        lower, _, upper, _, number = names[cable]
        start, end = (lower, upper) if way == "up" else (upper, lower)
        links.append({"cable": cable, "from": start, "to": end, "number": number})
    if as_json:
        common.print_json({"nvlink_first": nvlink_first, "nvlink_last": nvlink_last, "links": links})
        return
    if nvlink_first:
        click.echo(f"{nodes[0]}: over NVLink from GPU {rails[0]} to GPU {rails[1]}")
    for link in links:
        parallel = "" if link["number"] is None else f"#{link['number']}"
        click.echo(f"{link['from']}->{link['to']}{parallel} (cable {link['cable']})")
    if nvlink_last:
        click.echo(f"{nodes[1]}: over NVLink from GPU {rails[0]} to GPU {rails[1]}")


def one(fabric: Machine, name: str, where: str) -> int:
    """The node of a name. Raises InputError if there is none."""
    node = fabric.node_named(name)
    if node is None:
        raise InputError(f"{where} has no node {name}")
    return node
