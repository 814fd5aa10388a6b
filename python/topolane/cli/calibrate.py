"""`topolane calibrate`: measure a machine with MPI and write what its contention models need."""

from __future__ import annotations

import dataclasses
import io
import tempfile
from pathlib import Path
from typing import Any

import click

from topolane import sources, texts
from topolane._engine import InputError, Machine
from topolane.calibrate import launch, measurement
from topolane.cli import common, values
from topolane.cli.explained import ExplainedCommand

OWN = ("machine.toml", "measurements.jsonl", "pairs.svg", "alltoall.svg")
INTERFACES = ["best", "fair", "infiniband", "ethernet"]


@click.command(
    "calibrate",
    cls=ExplainedCommand,
    examples={
        "Measure two nodes with 16 processes each": "--nodes 2 --processes 16",
        "Start the processes with srun": "--nodes 3 --launch 'srun -N {nodes} -n {ranks} {program}'",
    },
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 2**16),
    default=2,
    show_default=True,
    help="Number of nodes to measure on.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 2**16),
    help="Processes to start on each node [default: its cores in the machine given].",
)
@click.option(
    "--launch",
    "template",
    default=launch.DEFAULT_LAUNCH,
    show_default=True,
    help="Command that starts the program; {ranks}, {nodes} and {processes} are replaced by numbers.",
)
@click.option("--mpicc", default="mpicc", show_default=True, help="Compiler of the program.")
@click.option("--from", "kept", help="Fit these earlier measurements (measurements.jsonl); run nothing.")
@click.option(
    "--machine",
    type=values.MACHINE,
    help="Machine to add the results to, a name or a file [default: a new machine].",
)
@click.option(
    "--interface",
    type=click.Choice(INTERFACES),
    default="best",
    show_default=True,
    help="Model of the network interface.",
)
@click.option(
    "--repetitions",
    type=click.IntRange(5, 10**6),
    default=20,
    show_default=True,
    help="Most repetitions of a measurement.",
)
@click.option(
    "--largest",
    type=click.IntRange(1024, 2**30),
    default=4 << 20,
    show_default=True,
    help="Size of the largest message in bytes.",
)
@click.option("--out", default="calibration", show_default=True, help="Directory to write into.")
@common.json_option
def command(
    kept: str | None, machine: str | None, interface: str, out: str, as_json: bool, **options: Any
) -> None:
    """Measure bandwidths and all-to-all times with MPI, and write a machine file.

    Compiles a small MPI program, runs it on --nodes nodes with --processes each, and fits bandwidth,
    latency, shared memory and the interface's penalties. Writes machine.toml, measurements.jsonl and the
    figures pairs.svg and alltoall.svg. The directory must be one that all nodes see.
    """
    base = None if machine is None else sources.machine(machine)
    with common.outputs(out, OWN) as draft:
        assert draft is not None
        found = measured(draft, base, options) if kept is None else read(kept)
        result = written(draft, found, machine, base, interface)
    if as_json:
        common.print_json(result)
    else:
        print_result(result, out)


def read(kept: str) -> measurement.Measurement:
    """Reads the measurements of an earlier run."""
    found = measurement.read(io.StringIO(texts.read_text(kept, texts.SMALL)), kept)
    measurement.check_hosts(found.hosts, kept)
    return found


def measured(draft: Path, base: Machine | None, options: dict[str, Any]) -> measurement.Measurement:
    """Runs the program. It is built inside the output directory and then removed."""
    template, processes = options.pop("template"), options.pop("processes")
    if processes is None and base is not None:
        processes = most_cores(base)
    if processes is None:
        raise InputError("the number of processes per node is missing: give --processes or --machine")
    plan = launch.MeasuringPlan(processes=processes, launch=template, **options)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=draft.parent) as directory:
        with common.progress_bar("measuring", 1) as show:
            return launch.measure(
                plan, Path(directory).resolve(), lambda done, total: show(done / max(1, total))
            )


def most_cores(machine: Machine) -> int:
    """The cores of the most frequent kind of node."""
    return max(machine.cores(), key=lambda kind: kind[1])[0]


def written(
    draft: Path,
    found: measurement.Measurement,
    machine: str | None,
    base: Machine | None,
    interface: str,
) -> dict[str, Any]:
    """Fits, draws and writes the results. Returns the parameters to show."""
    from topolane.calibrate import machine_file
    from topolane.calibrate.fit import fit
    from topolane.report import calibration
    from topolane.report.with_matplotlib import drawing, to_svg

    fitted = fit(found, interface)
    if machine is None or base is None:
        text = machine_file.minimal(found, fitted)
    else:
        ours = Path(machine).suffix == ".toml" and Path(machine).is_file()
        given = texts.read_text(machine) if ours else base.to("toml")
        text = machine_file.merged(given, fitted)
    machine_file.check(text, "machine.toml")
    (draft / "machine.toml").write_text(text, encoding="utf-8")
    (draft / "measurements.jsonl").write_text("\n".join([*found.lines(), ""]), encoding="utf-8")
    with drawing():
        for name, draw in (("pairs", calibration.pairs), ("alltoall", calibration.alltoall)):
            if found.of("alltoall") if name == "alltoall" else any(fitted.rates.values()):
                (draft / f"{name}.svg").write_text(to_svg(draw(found, fitted)), encoding="utf-8")
    narrow = machine_file.narrow_cables(text, fitted)
    return {
        "nodes": found.nodes,
        "processes": found.processes,
        "node": machine_file.parameters(fitted),
        "errors": {
            "interface": fitted.interface and fitted.interface.error,
            "memory": fitted.memory and fitted.memory.error,
        },
        "rates": fitted.rates,
        "alltoall": [dataclasses.asdict(row) for rows in found.of("alltoall").values() for row in rows],
        "not_measured": fitted.unknown,
        "warnings": [narrow] if narrow else [],
    }


def print_result(result: dict[str, Any], out: str) -> None:
    """A table of what was fitted, and what was not."""
    nodes = len(result["nodes"])
    click.echo(f"{nodes} node{'s' * (nodes > 1)} of {result['processes']} processes")
    rows = []
    for key, value in result["node"].items():
        parts = value if isinstance(value, dict) else {"": value}
        rows += [(f"{key} {name}".strip(), shown(key, part)) for name, part in parts.items()]
    common.print_table(("parameter of [node]", "fitted"), rows)
    for name, error in result["errors"].items():
        if error is not None:
            click.echo(
                f"{name}: fitted bandwidths differ from the measured ones by {error:.1%} (root mean square)"
            )
    for sentence in result["not_measured"]:
        click.echo(f"not measured: {sentence}")
    for sentence in result["warnings"]:
        click.echo(f"note: {sentence}")
    click.echo(f"written: {out}/machine.toml, measurements.jsonl and the figures")


def shown(key: str, value: Any) -> str:
    """A parameter with its unit."""
    if key.endswith("bandwidth"):
        return f"{value / 1e9:.4g} GB/s"
    return f"{value * 1e6:.4g} µs" if key.endswith("latency") else str(value)
