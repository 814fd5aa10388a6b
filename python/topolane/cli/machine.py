"""`topolane machine`: look at a machine, convert it, check it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from topolane import _engine, sources
from topolane.cli import common, machine_route, values
from topolane.cli.explained import ExplainedCommand
from topolane.sources import ASSUMED_CABLES
from topolane.units import plural

if TYPE_CHECKING:
    from topolane._engine import Machine, OtherNetwork

reading_options = common.options(
    click.option(
        "--format",
        "machine_format",
        type=click.Choice(common.FORMATS),
        help="Format of the file [default: guessed].",
    ),
    common.join_options,
    click.option(
        "--sub-domains",
        is_flag=True,
        help="Take accelerator sub-domains, such as the racks of a domain of several, as the domains.",
    ),
    click.option(
        "--hosts",
        metavar="HOSTLIST",
        help="The devices that are nodes, such as 'node[1-72]': required for cables of NetBox or LLDP, where all others are "
        "switches; for ibnetdiscover, other hosts are skipped.",
    ),
)


def read(machine: str, machine_format: str | None, **reading: Any) -> Machine:
    """The machine; notes on what was assumed or skipped go to standard error."""
    fabric = common.tell(sources.machine(machine, machine_format, **reading))
    if not fabric.knows_cables:
        common.tell_notes([ASSUMED_CABLES])
    return fabric


@click.group("machine")
def command() -> None:
    """Show a machine, convert it to another format, check it, or show one route."""


command.add_command(machine_route.command)


@command.command(
    cls=ExplainedCommand,
    examples={
        "List the built-in machines": "",
        "Print the tree of Slurm's own topology": "/etc/slurm/topology.conf",
    },
)
@click.argument("machine", type=values.MACHINE, required=False)
@reading_options
@click.option(
    "--lines",
    type=click.IntRange(1, 2**31),
    default=60,
    show_default=True,
    help="Most lines of the tree to print.",
)
@common.json_option
def show(machine: str | None, lines: int, as_json: bool, **reading: Any) -> None:
    """Print a machine as a tree. Without a name, list the built-in machines."""
    if machine is None:
        common.print_known(_engine.presets(), as_json)
        return
    fabric = read(machine, **reading)
    if not as_json:
        click.echo(fabric.tree(lines), nl=False)
        for network in fabric.networks:
            click.echo(network_line(fabric, network))
        return
    levels = [
        [{"name": name, "start": start, "end": end} for start, end, name in fabric.groups(level)]
        for level in range(1, fabric.depth + 1)
    ]
    common.print_json(
        {
            "name": fabric.name,
            "nodes": fabric.nodes,
            "node_names": fabric.hostlist(range(fabric.nodes)),
            "links": fabric.links,
            "missing_cables": fabric.missing_cables,
            "levels": levels,
            "domains": [
                {"name": name, "nodes": fabric.hostlist(nodes), "bandwidth": bandwidth}
                for name, nodes, bandwidth in fabric.domains()
            ],
            "block_sizes": fabric.block_sizes,
            "rails": [{"rails": rails, "meet": meet} for rails, meet in fabric.rails()],
            "networks": [
                {
                    "name": network.name,
                    "file": network.source,
                    "hosts": network.machine.nodes,
                    "nodes": fabric.hostlist(nodes_on(fabric, network)),
                    "servers": network.machine.hostlist(network.servers),
                }
                for network in fabric.networks
            ],
        }
    )


def network_line(fabric: Machine, network: OtherNetwork) -> str:
    """What is on another network, in a line."""
    there, servers = network.machine, network.servers
    line = f"network {network.name} ({network.source}): {plural(there.nodes, 'host')}, "
    line += f"{len(nodes_on(fabric, network)):,} of the {plural(fabric.nodes, 'node')}"
    return line + (f", {plural(len(servers), 'server')} {there.hostlist(servers)}" if servers else "")


def nodes_on(fabric: Machine, network: OtherNetwork) -> list[int]:
    """The nodes of a machine that are on another network."""
    return [node for node, there in enumerate(network.nodes_of(fabric)) if there is not None]


@command.command(
    cls=ExplainedCommand,
    examples={
        "Turn Slurm's topology into a machine file": "topology.conf --to toml --out machine.toml",
        "A topology.conf for a built-in machine": "cab --to slurm",
    },
)
@click.argument("machine", type=values.MACHINE)
@click.option("--to", "target", required=True, type=click.Choice(common.WRITTEN), help="Format to write.")
@reading_options
@click.option("--out", help="File to write to [default: standard output].")
def convert(machine: str, target: str, out: str | None, **reading: Any) -> None:
    """Write a machine in another format."""
    fabric = read(machine, **reading)
    for lost in fabric.lost(target):
        click.echo(f"note: {lost}", err=True)
    text = fabric.to(target)
    common.write_text(out, text)


@command.command(
    cls=ExplainedCommand,
    examples={
        "Check a machine file": "machine.toml",
        "Check output of ibnetdiscover": "net.txt --format ibnetdiscover",
    },
)
@click.argument("machine", type=values.MACHINE)
@reading_options
def check(machine: str, **reading: Any) -> None:
    """Check whether a machine can be used. If not, say why and exit with code 2."""
    fabric = read(machine, **reading)
    click.echo(
        f"{fabric.name}: {plural(fabric.nodes, 'node')}, {plural(fabric.depth, 'level')} of switches, "
        f"{plural(fabric.links, 'link')}, {fabric.missing_cables:,} of them missing"
    )
