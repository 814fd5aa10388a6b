"""`topolane workload`: look at a workload, make one, convert one, import one."""

from __future__ import annotations

import dataclasses
import datetime
import gc
from pathlib import Path
from typing import Any

import click

from topolane import _engine, files, findings, sources
from topolane._engine import InputError
from topolane.cli import common, settings, values
from topolane.cli.explained import ExplainedCommand
from topolane.findings import Checked
from topolane.slurm import accounting, accounting_check, accounting_jobs, accounting_workload
from topolane.sources import reading_notes, runnable, skipped_notes
from topolane.units import plural


@click.group("workload")
def command() -> None:
    """Show a workload, generate one, convert one, check a log, or import one from Slurm."""


@command.command(
    cls=ExplainedCommand,
    examples={
        "List the synthetic workloads": "",
        "Summarise a log on its machine": "--trace log.txt --machine topology.conf",
    },
    common="workload trace machine limit days partition load shared cores-per-node json",
)
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
    fabric = common.tell(sources.machine(machine, machine_format, nodes=nodes, topology=topology, join=join))
    shape = settings.shape_alone(others)
    jobs = sources.workload(common.source_of(workload, trace), fabric.nodes, seed=seed, shape=shape)
    common.tell_notes(reading_notes(jobs))
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
        label = "skipped" if name == "left_out" else name.replace("_", " ")
        click.echo(f"{label:17} {value}")


def write(source: str, to: str, out: str | None, seed: int, options: dict[str, Any]) -> None:
    """Writes a workload, shaped for a machine if one is named; what is skipped or assumed goes to standard error."""
    shape = settings.shape_alone(options)
    nodes = None
    if common.names_machine(MACHINE):
        how = {name: options[name] for name in ("nodes", "topology", "join")}
        nodes = sources.machine(options["machine"], options["machine_format"], **how).nodes
    jobs = sources.workload(source, nodes, seed=seed, shape=shape)
    common.write_text(out, jobs.to(to))
    common.tell_notes([*skipped_notes(jobs.left_out), *reading_notes(jobs)])


MACHINE = ("machine", "machine_format", "nodes", "topology", "join")
"""Options that name a machine."""


write_options = common.options(
    click.option(
        "--to", type=click.Choice(["swf", "csv"]), default="swf", show_default=True, help="Format to write."
    ),
    click.option("--out", help="File to write to [default: standard output]."),
    common.machine_options,
    settings.seed_option,
    settings.shape_options,
)


@command.command(
    cls=ExplainedCommand,
    examples={
        "A synthetic month, as a log in SWF": "cab-aug --to swf --out month.swf",
        "The first 1000 jobs of exp-16, twice as wide": "exp-16 --limit 1000 --nodes-x 2 --out jobs.csv",
    },
    common="machine seed limit days load squeeze nodes-x shared to out",
)
@click.argument("name", type=values.WORKLOAD)
@write_options
def make(name: str, to: str, out: str | None, seed: int, **options: Any) -> None:
    """Generate the synthetic workload NAME."""
    write(name, to, out, seed, options)


@command.command(
    cls=ExplainedCommand,
    examples={
        "Turn output of sacct into CSV": "log.txt --to csv --out jobs.csv",
        "Only one partition of an SWF log": "log.swf --partition 2 --out part.csv",
    },
    common="machine limit days partition load squeeze nodes-x shared to out",
)
@click.argument("file")
@write_options
def convert(file: str, to: str, out: str | None, seed: int, **options: Any) -> None:
    """Write the log FILE in another format, after applying the options that change it.

    Without an option that names a machine, jobs of any width stay. A line on standard error counts the skipped jobs for each
    reason.
    """
    write(file, to, out, seed, options)


@command.command(
    cls=ExplainedCommand,
    examples={
        "What is wrong in a log": "log.txt",
        "What is wrong in the files of an import": "slurm",
    },
)
@click.argument("path")
@common.json_option
def check(path: str, as_json: bool) -> None:
    """List what is wrong in PATH, a log or the directory of an import, with a count for each fault.

    The exit code is 0 if nothing is wrong, 1 with faults, and 2 if PATH cannot be read or replayed.
    """
    checked = _checked(path)
    if as_json:
        common.print_json({"path": path} | dataclasses.asdict(checked))
        _end(checked)
        return
    click.echo(f"{path}: {plural(checked.runs, 'run')} that can be replayed")
    for line in [*map(str, checked.findings), *checked.unknown]:
        click.echo(line)
    if not checked.findings:
        click.echo("nothing wrong was found")
    _end(checked)


def _end(checked: Checked) -> None:
    if checked.findings:
        click.get_current_context().exit(1)


def _checked(path: str) -> Checked:
    """What is wrong in a log that an import or a replay takes. Raises InputError if it refuses the log."""
    if Path(path).is_dir():
        return accounting_check.of_directory(path)
    jobs = runnable(path, sources.workload(path))
    jobs.check_times()
    if not (Path(path).is_file() and accounting_jobs.is_printed_by_sacct(Path(path))):
        return findings.of_workload(jobs)
    try:
        return dataclasses.replace(accounting_check.of_jobs(Path(path)), runs=len(jobs))
    except InputError as error:
        checked = findings.of_workload(jobs)
        return dataclasses.replace(checked, unknown=[*checked.unknown, f"an import refuses it: {error}"])


@command.command(
    "import",
    cls=ExplainedCommand,
    examples={
        "Print the commands that write the files": "--commands --since 2026-10-01",
        "Write a workload from these files": "slurm --out october.csv --anonymize",
    },
)
@click.argument("directory", required=False)
@click.option(
    "--commands",
    "as_commands",
    is_flag=True,
    help="Print the commands that write DIRECTORY on the Slurm machine.",
)
@click.option(
    "--since",
    help=f"With --commands: the first day, in the words of sacct [default: {accounting.SINCE}].",
)
@click.option("--out", metavar="LOG.csv", help="File to write the workload to.")
@click.option("--cluster", help="Use only the jobs of this cluster.")
@click.option("--partition", help="Use only the jobs of this partition.")
@click.option(
    "--shared/--whole",
    default=None,
    help="Jobs take parts of nodes, or whole nodes [default: as partitions.txt and config.txt say, otherwise whole].",
)
@click.option("--anonymize", is_flag=True, help="Write numbers instead of the names of users and accounts.")
def import_(
    directory: str | None,
    as_commands: bool,
    since: str | None,
    out: str | None,
    cluster: str | None,
    partition: str | None,
    shared: bool | None,
    anonymize: bool,
) -> None:
    """Write one workload from what Slurm knows of its jobs, in the files of DIRECTORY.

    `--commands` prints the commands that write these files. The import also writes LOG-slurm.json, which `--queue slurm`
    finds next to the log, LOG-failures.csv, nodes that were down, for `--failures`, and LOG-runs.csv, all runs of the jobs
    that started again, for `compare --baseline`. It prints a line with a count for
    each reason why a job was skipped or changed.
    """
    if as_commands:
        click.echo(accounting.commands(accounting.SINCE if since is None else since), nl=False)
        return
    if not directory or not out:
        raise InputError("give a directory and --out LOG.csv, or --commands")
    if since is not None:
        raise InputError("--since goes with --commands: it is the first day that sacct prints")
    _check_is_no_dump(out, directory)
    # Runs make no cycles, and the collector would go through a million of them again and again.
    gc.disable()
    try:
        imported = accounting_workload.read(
            directory, cluster=cluster, partition=partition, shared=shared, anonymize=anonymize
        )
    finally:
        gc.enable()
    log = Path(out)
    queue = log.with_name(f"{log.stem}-slurm.json")
    others = {
        "nodes that were down": ("failures", imported.failures, "no node was down"),
        "runs of jobs that started again": ("runs", imported.runs, "no job started again"),
    }
    others_at = {what: log.with_name(f"{log.stem}-{name}.csv") for what, (name, _, _) in others.items()}
    contents = {log: imported.csv, queue: imported.queue}
    contents |= {others_at[what]: text for what, (_, text, _) in others.items() if text is not None}
    files.write_together(contents)
    click.echo(f"{plural(imported.jobs, 'job')}: {out}")
    click.echo(f"configuration of the queue slurm: {queue}")
    for what, (_, text, without) in others.items():
        file = others_at[what]
        if text is not None:
            click.echo(f"{what}: {file}")
        elif file.is_file():
            file.unlink()
            click.echo(f"removed: {file}, which an earlier import wrote; {without}")
    zero = datetime.datetime.fromtimestamp(imported.zero, datetime.UTC)
    click.echo(f"second 0 is {zero:%Y-%m-%dT%H:%M:%S} UTC")
    for line in imported.notes:
        click.echo(line)


def _check_is_no_dump(out: str, directory: str) -> None:
    """Raises InputError if the workload would replace a file that the import reads."""
    names = {name for dump in accounting.DUMPS for name in (dump.file, f"{dump.file}.gz")}
    target = Path(out).absolute()
    if target.name in names and target.parent.resolve() == Path(directory).resolve():
        raise InputError(f"--out {out}: the import reads this file")
