"""`topolane map`: which rank goes where, for the fewest hop-bytes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from topolane import sources
from topolane._engine import InputError, Machine, Refusal, State, Traffic, efforts, patterns
from topolane.cli import common, settings, values
from topolane.cli.explained import ExplainedCommand
from topolane.cli.place import read, state_of
from topolane.mapping import FORMATS, Mapped, place_ranks
from topolane.policy import resolve
from topolane.traffic import read_traffic

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command(
    "map",
    cls=ExplainedCommand,
    examples={
        "Map a stencil onto free nodes": "--traffic stencil4d --ranks 512 --ranks-per-node 16",
        "Write a hostfile for a recorded matrix": "--traffic matrix.csv --format hostfile --out hosts",
    },
    common="machine traffic ranks ranks-per-node hosts state policy format out",
)
@common.machine_options
@click.option(
    "--traffic",
    "source",
    type=values.PATTERN,
    required=True,
    help="A matrix (from,to,bytes CSV or Matrix Market), or a pattern (`topolane patterns` lists them).",
)
@click.option("--ranks", type=click.IntRange(1, 65_536), help="Number of ranks [default: as in the matrix].")
@click.option(
    "--ranks-per-node",
    type=click.IntRange(1, 2**16),
    default=1,
    show_default=True,
    help="Most ranks on a node.",
)
@click.option("--hosts", help="Nodes of the job in order, as a host list [default: free nodes are chosen].")
@click.option("--state", help="Running jobs and their nodes: JSON as `topolane place` reads it.")
@click.option(
    "--policy",
    type=values.POLICY,
    default="hop-bytes",
    show_default=True,
    help="Policy that chooses the nodes.",
)
@click.option(
    "--effort",
    type=click.Choice(efforts()),
    default="eco",
    show_default=True,
    help="Effort to spend, counted in steps, not in time.",
)
@settings.seed_option
@click.option(
    "--threads",
    type=click.IntRange(0, 1024),
    default=0,
    help="Number of threads, 0 for one per core; the map does not depend on it.",
)
@click.option("--node-links", is_flag=True, help="Also count the links of the nodes as hops: 2, 4, 6.")
@click.option(
    "--format", "form", type=click.Choice([*FORMATS, "json"]), help="Format of the map, for a launcher."
)
@click.option("--out", help="File to write the map to [default: standard output].")
@common.json_option
def command(
    machine: str,
    machine_format: str | None,
    nodes: str | None,
    topology: str | None,
    join: str | None,
    source: str,
    ranks: int | None,
    ranks_per_node: int,
    hosts: str | None,
    state: str | None,
    policy: str,
    effort: str,
    seed: int,
    threads: int,
    node_links: bool,
    form: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Map the ranks of a job to its nodes for the fewest hop-bytes.

    Without --hosts, the policy chooses free nodes. If it finds none, the command says why (exit code 1).

    Hop-bytes are the bytes of one iteration times the links between switches they cross. The map
    is compared with rank order: ranks fill the nodes one after the other.
    """
    if out is not None and form is None:
        raise InputError("--out needs --format: name the format to write")
    if hosts is not None and state is not None:
        raise InputError("--hosts and --state exclude each other: the nodes are either given or chosen")
    fabric = common.tell(sources.machine(machine, machine_format, nodes=nodes, topology=topology, join=join))
    traffic = traffic_of(source, ranks, seed)
    ranks = ranks or traffic.ranks
    if traffic.ranks > ranks:
        raise InputError(f"{source}: the matrix has {traffic.ranks} ranks, but the job has {ranks}")
    if not ranks:
        raise InputError(f"{source}: the matrix has no ranks")
    if hosts is not None:
        held = fabric.nodes_named(hosts)
    else:
        held = chosen(fabric, state, -(-ranks // ranks_per_node), policy, seed)
    mapped = place_ranks(
        fabric,
        traffic,
        held,
        ranks,
        ranks_per_node=ranks_per_node,
        effort=effort,
        seed=seed,
        threads=threads,
        node_links=node_links,
    )
    if form is not None:
        common.write_text(out, as_text(form)(mapped))
    if as_json and not (form is not None and out is None):
        common.print_json(mapped.facts())
    elif form is None or out is not None:
        print_summary(mapped)


def as_text(form: str) -> Callable[[Mapped], str]:
    """The function that writes a format."""
    if form == "json":
        return lambda mapped: json.dumps(mapped.facts(), indent=2) + "\n"
    return FORMATS[form]


def traffic_of(source: str, ranks: int | None, seed: int) -> Traffic:
    """The traffic of a pattern for `ranks` ranks, or that in a file."""
    if source.split("(")[0].strip() in [name for name, _, _ in patterns()]:
        if ranks is None:
            raise InputError(f"the pattern {source!r} needs a number of ranks: give --ranks")
        return Traffic.pattern(source, ranks, seed)
    return read_traffic(source)


def chosen(machine: Machine, file: str | None, nodes: int, policy: str, seed: int) -> list[int]:
    """Free nodes, chosen by a policy."""
    state = State(machine) if file is None else state_of(machine, read(file))
    found = state.place(resolve(policy), nodes, seed=seed)
    if isinstance(found, Refusal):
        click.echo(f"not placed, {found.name}: {found.why}")
        sys.exit(1)
    return found.nodes


def print_summary(mapped: Mapped) -> None:
    """Prints the gain of the map."""
    mapping = mapped.mapping
    saved = 1 - mapping.hop_bytes / mapping.rank_order if mapping.rank_order else 0.0
    hosts = mapped.machine.hostlist(sorted(set(mapped.nodes)))
    click.echo(f"ranks      {len(mapped.nodes):,} on {hosts}")
    click.echo(f"hop-bytes  {mapping.hop_bytes:,.15g}; in rank order {mapping.rank_order:,.15g}")
    click.echo(f"saved      {saved:.1%}, found by {mapping.by}")
    rows = [
        ["inside nodes" if hops is None else f"{hops} hops", f"{before:,.15g}", f"{after:,.15g}"]
        for hops, before, after in mapping.crossed
    ]
    common.print_table(("bytes over", "in rank order", "as mapped"), rows)
