"""`topolane workload`: look at a workload, make one, convert one."""

from __future__ import annotations

from typing import Any

import click

import topolane
from topolane import _engine
from topolane.cli import common, settings


@click.group("workload")
def command() -> None:
    """Show a workload, generate one, or convert one."""


@command.command()
@common.machine_options
@settings.workload_options
@settings.seed_option
@common.json_option
def show(
    machine: str,
    machine_format: str | None,
    nodes: str | None,
    topology: str | None,
    join: str | None,
    workload: str | None,
    trace: str | None,
    seed: int,
    as_json: bool,
    **others: Any,
) -> None:
    """Summarise a workload. Without a name, list the synthetic workloads."""
    if workload is None and trace is None:
        common.print_known(_engine.workload_presets(), as_json)
        return
    fabric = common.tell(topolane.machine(machine, machine_format, nodes=nodes, topology=topology, join=join))
    shape = settings.shape_alone(others)
    jobs = topolane.workload(common.source_of(workload, trace), fabric.nodes, seed=seed, shape=shape)
    columns = jobs.columns()
    widths, runs = columns["nodes"], columns["run"]
    facts = {
        "name": jobs.name,
        "jobs": len(jobs),
        "span_hours": jobs.span / common.HOUR,
        "load": jobs.load(fabric.nodes) if jobs.span else None,
        "machine": fabric.name,
        "cores_per_node": jobs.cores_per_node,
        "mean_nodes": float(widths.mean()) if len(jobs) else None,
        "widest": int(widths.max()) if len(jobs) else None,
        "mean_run_hours": float(runs.mean()) / common.HOUR if len(jobs) else None,
        "without_walltime": jobs.without_walltime,
        "names_nodes": jobs.names_nodes,
        "left_out": jobs.left_out,
    }
    if as_json:
        common.print_json(facts)
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{count:,} {reason}" for reason, count in value.items()) or "nothing"
        elif isinstance(value, float):
            value = f"{value:,.2f}"
        elif isinstance(value, int) and not isinstance(value, bool):
            value = f"{value:,}"
        click.echo(f"{name.replace('_', ' '):17} {value}")


def write(source: str, to: str, out: str | None, seed: int, options: dict[str, Any]) -> None:
    """Writes a workload, shaped for a machine if one is named."""
    shape = settings.shape_alone(options)
    fabric = topolane.machine(
        options["machine"],
        options["machine_format"],
        nodes=options["nodes"],
        topology=options["topology"],
        join=options["join"],
    )
    common.write_text(out, topolane.workload(source, fabric.nodes, seed=seed, shape=shape).to(to))


@command.command()
@click.argument("name")
@click.option(
    "--to", type=click.Choice(["swf", "csv"]), default="swf", show_default=True, help="Format to write."
)
@click.option("--out", help="File to write to [default: standard output].")
@common.machine_options
@settings.seed_option
@settings.shape_options
def make(name: str, to: str, out: str | None, seed: int, **options: Any) -> None:
    """Generate the synthetic workload NAME."""
    write(name, to, out, seed, options)


@command.command()
@click.argument("file")
@click.option(
    "--to", type=click.Choice(["swf", "csv"]), default="swf", show_default=True, help="Format to write."
)
@click.option("--out", help="File to write to [default: standard output].")
@common.machine_options
@settings.seed_option
@settings.shape_options
def convert(file: str, to: str, out: str | None, seed: int, **options: Any) -> None:
    """Write the log FILE in another format, after applying the options that change it."""
    write(file, to, out, seed, options)
