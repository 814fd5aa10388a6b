"""`topolane machine`: look at a machine, convert it, check it."""

from __future__ import annotations

import click

import topolane
from topolane import _engine
from topolane.cli import common, machine_route

FORMATS = ["toml", "slurm", "ibnetdiscover"]


@click.group("machine")
def command() -> None:
    """Show a machine, convert it to another format, check it, or show one route."""


command.add_command(machine_route.command)


@command.command()
@click.argument("machine", required=False)
@click.option(
    "--format", "machine_format", type=click.Choice(FORMATS), help="Format of the file [default: guessed]."
)
@click.option(
    "--lines",
    type=click.IntRange(1, 2**31),
    default=60,
    show_default=True,
    help="Most lines of the tree to print.",
)
@common.json_option
def show(machine: str | None, machine_format: str | None, lines: int, as_json: bool) -> None:
    """Print a machine as a tree. Without a name, list the built-in machines."""
    if machine is None:
        common.print_known(_engine.presets(), as_json)
        return
    fabric = topolane.machine(machine, machine_format)
    if not as_json:
        click.echo(fabric.tree(lines), nl=False)
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
            "rails": [{"rails": rails, "meet": meet} for rails, meet in fabric.rails()],
        }
    )


@command.command()
@click.argument("machine")
@click.option(
    "--to", "target", required=True, type=click.Choice([*FORMATS, "ibsim-net"]), help="Format to write."
)
@click.option(
    "--format", "machine_format", type=click.Choice(FORMATS), help="Format of the file [default: guessed]."
)
@click.option("--out", help="File to write to [default: standard output].")
def convert(machine: str, target: str, machine_format: str | None, out: str | None) -> None:
    """Write a machine in another format."""
    text = topolane.machine(machine, machine_format).to(target)
    common.write_text(out, text)


@command.command()
@click.argument("machine")
@click.option(
    "--format", "machine_format", type=click.Choice(FORMATS), help="Format of the file [default: guessed]."
)
def check(machine: str, machine_format: str | None) -> None:
    """Check whether a machine can be used. If not, say why and exit with code 2."""
    fabric = topolane.machine(machine, machine_format)
    click.echo(
        f"{fabric.name}: {fabric.nodes:,} nodes, {fabric.depth} levels of switches, "
        f"{fabric.links:,} links, {fabric.missing_cables:,} of them missing"
    )
