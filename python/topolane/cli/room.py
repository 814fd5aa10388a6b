"""`topolane room`: how many more jobs of each size fit at one moment, and which GPUs no job can use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from topolane import moment, sources
from topolane._engine import InputError, Machine, State
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand
from topolane.cli.place import read, state_of
from topolane.reading import size
from topolane.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

LISTED = 10
"""Domains that are listed."""
SOURCES = "give one of --state, --run and --slurm, or none for the empty machine"


def _sizes(_: click.Context, __: click.Parameter, text: str | None) -> list[int] | None:
    if text is None:
        return None
    sizes = [part.strip() for part in text.split(",")]
    if not all(size.isascii() and size.isdigit() and 0 < int(size) < 2**31 for size in sizes):
        raise click.BadParameter(f"{text}: sizes are whole numbers from 1, separated by commas")
    return [int(size) for size in sizes]


def _memory(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    found = size(text)
    if found is None:
        raise click.BadParameter(f'{text} is neither a number of bytes nor a size such as "8 GiB"')
    return found


@click.command(
    "room",
    cls=ExplainedCommand,
    examples={
        "What still fits into Slurm's machine": "--machine topology.conf --slurm",
        "What fits into a state, in segments of 16": "--machine racks.toml --state state.json --segment 16",
    },
)
@common.machine_options
@click.option("--state", help="Running jobs and their nodes: JSON as `topolane place` reads it.")
@common.run_options
@click.option("--slurm", is_flag=True, help="The jobs that Slurm runs now, read by scontrol.")
@click.option(
    "--sizes",
    callback=_sizes,
    metavar="N,...",
    help="Sizes of jobs: GPUs, or nodes on a machine without GPUs [default: powers of two].",
)
@click.option(
    "--segment",
    type=click.IntRange(1, 2**31 - 1),
    help="Nodes of each part of a job that must lie in one domain.",
)
@click.option(
    "--cores", type=click.IntRange(1, 2**31), default=1, show_default=True, help="Cores of the smallest job."
)
@click.option(
    "--memory",
    callback=_memory,
    metavar="SIZE",
    help='Memory of the smallest job on a node, such as "8 GiB" [default: 0; with --slurm 1 MiB].',
)
@click.option(
    "--gpus", type=click.IntRange(1, 128), default=1, show_default=True, help="GPUs of the smallest job."
)
@common.json_option
def command(
    machine: str,
    machine_format: str | None,
    nodes: str | None,
    topology: str | None,
    join: str | None,
    state: str | None,
    run: str | None,
    at: float | None,
    slurm: bool,
    sizes: list[int] | None,
    segment: int | None,
    cores: int,
    memory: int | None,
    gpus: int,
    as_json: bool,
) -> None:
    """Say how many more jobs of each size fit, and which free GPUs no job can use.

    A job of more GPUs than a node has takes whole nodes. It may have to lie in one group of each level: a node, a domain, a
    leaf, a pod, or anywhere. A free GPU is stranded if its node has too few free cores for the smallest job, or too few GPUs.
    """
    if sum((state is not None, run is not None, slurm)) > 1:
        raise InputError(f"the jobs are in one place: {SOURCES}")
    if at is not None and run is None:
        raise InputError("--at names a moment of a run: give its directory with --run")
    fabric = common.tell(sources.machine(machine, machine_format, nodes=nodes, topology=topology, join=join))
    if slurm:
        from topolane.slurm import room as in_slurm

        now, fabric, unknown = in_slurm.now(fabric)
        if unknown and not as_json:
            click.echo(f"not on the machine: {plural(len(unknown), 'node')} of Slurm, such as {unknown[0]}")
        memory = in_slurm.SMALLEST_MEMORY if memory is None else memory
    elif run is not None:
        now = state_of_run(fabric, run, at)
    else:
        now = state_of(fabric, {} if state is None else read(state))
    smallest = {"cores": cores, "memory": memory or 0}
    if "gpu" in fabric.resources:
        smallest["gpu"] = gpus
    room = now.room(sizes, segment, smallest)
    domains = now.room_by_domain(segment, smallest)
    if as_json:
        common.print_json({**room, "domains": domains})
        return
    show(room, domains)


def state_of_run(fabric: Machine, directory: str, at: float | None) -> State:
    """The jobs that ran at one moment of a run."""
    state = State(fabric)
    for job in moment.read(directory, at, fabric):
        nodes = [node for low, end in job.nodes for node in range(low, end)]
        state.hold(nodes, job.share, id=job.job)
    return state


def show(room: dict[str, Any], domains: Sequence[dict[str, Any]]) -> None:
    """Prints it as tables."""
    unit = room["unit"]
    click.echo(
        f"{room['free']:,.6g} of {room['total']:,.0f} {'GPUs' if unit == 'gpus' else unit} are free; "
        f"{plural(room['idle_nodes'], 'idle node')}"
    )
    levels = room["levels"]
    heads = [f"in a\n{level}" if level != "segments" else "in\nsegments" for level in levels[:-1]]
    name = "GPUs" if unit == "gpus" else "nodes"
    rows = [[f"{fit['size']:,}", *(f"{jobs:,}" for jobs in fit["jobs"])] for fit in room["fits"]]
    common.print_table([f"jobs of\n{name}", *heads, "any-\nwhere"], rows)
    stranded = room["stranded"]
    if stranded is None:
        return
    words = (
        ("without_cores", "on nodes without enough free cores"),
        ("without_memory", "on nodes without enough free memory"),
        ("scraps", "in scraps smaller than the smallest job"),
        ("left_over_from_segments", "on idle nodes left over from whole segments"),
    )
    parts = [f"{stranded[key]:,.6g} {text}" for key, text in words if stranded[key]]
    click.echo("stranded GPUs: " + ("; ".join(parts) if parts else "none"))
    most = sorted(domains, key=lambda row: (-row["idle_nodes"], -row["free"]))[:LISTED]
    rows = [
        [
            row["name"],
            f"{row['idle_nodes']} of {row['nodes']}",
            f"{row['free']:,.6g}",
            f"{sum(row['stranded'].values()):,.6g}",
        ]
        for row in most
    ]
    common.print_table(["most room", "idle nodes", "free GPUs", "stranded"], rows)
    if len(domains) > LISTED:
        click.echo(f"and {len(domains) - LISTED:,} more; --json has all")
