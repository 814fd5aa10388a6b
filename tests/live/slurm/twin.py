"""Compares a replay with what a real Slurm did.

`run.py slurm/twin --out DIR`, as root on Debian with mmdebstrap, runs a Slurm 24.11 on this machine for an
hour: accounts with fair share, QOS with limits, two partitions that share nodes, reservations, dependencies,
nodes that fail, and 1,000 jobs that sleep. The commands that `topolane workload import --commands` prints
write the records into DIR. They are imported and replayed, and a table shows how close the replay is.

`--records DIR` measures existing records and starts no Slurm. With `--single-decisions` it counts the
recorded starts that the queue `slurm` decides too, asked in the recorded state just before each. `--shaken N`
replays them with times that differ by a second: this shows the distance of the replay from itself, which is
no target. `--synthetic` does so with the plan alone, before any Slurm runs. `--scale` measures import and
replay of a synthetic year of 1,000,000 jobs. docs/benchmarks/slurm.md explains the figures.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import slurm_sites
import twin_plan
import twin_run
import twin_scale
import twin_shaken
import twin_single
import twin_synthetic
import twin_table
from measure import Options, Result, Row
from topolane.sources import machine
from twin_command import replayed, topolane

POLICY = "slurm-cons-tres"
"""The policy that chooses the same nodes as topology/tree under select/cons_tres."""
LEAST = {"slurmds": 24, "minutes": 2, "jobs": 2, "shaken": 0}
"""The least values of the options for a valid experiment."""


def planned(options: Options) -> twin_plan.TwinPlan:
    """The plan that the options ask for. Raises InputError."""
    return twin_plan.plan(
        options.slurmds,
        options.jobs or 1000,
        options.minutes,
        options.load,
        options.seed,
        options.trace,
        options.cores_per_node,
    )


def run(options: Options) -> None:
    """Runs the experiment. Raises InputError and RuntimeError."""
    if options.out.is_dir() and any(options.out.iterdir()):
        raise RuntimeError(f"{options.out} is not empty")
    plan = planned(options)
    slurm_sites.ready(options.slurmds)
    twin_run.record(plan, options.out)


def again(records: Path, other: Path) -> list[Row]:
    """The rows on how close a second run of a plan comes to the first. Raises BenchError, OSError and
    ValueError.
    """
    nodes, interval = _facts(records / twin_run.FACTS)
    runs = []
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
        log = Path(scratch) / "log.csv"
        for directory in (records, other):
            twin_single.imported(directory, log)
            runs.append(twin_table.imported(log))
    found = twin_table.closeness(*runs, nodes, interval)
    return twin_table.rows("Slurm again", [found], interval, "a second run")


def compared(records: Path, names: Sequence[str], shaken: int = 0) -> tuple[list[Row], dict[str, Any]]:
    """Imports records and replays them under each queue. Raises BenchError, OSError and ValueError."""
    facts = _facts(records / twin_run.FACTS)
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
        log, runs = Path(scratch) / "log.csv", Path(scratch) / "runs.csv"
        print(topolane("workload", "import", records, "--out", log).output)
        twin_single.imported(records, runs)
        return _replayed(log, runs, records / twin_run.TOPOLOGY, facts, names, shaken)


def synthetic(options: Options) -> tuple[list[Row], dict[str, Any]]:
    """Like `compared`, for a plan, with the starts of the queue `slurm` as records. Raises BenchError,
    InputError, OSError and ValueError.
    """
    plan = planned(options)
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
        log, topology = Path(scratch) / "log.csv", Path(scratch) / twin_run.TOPOLOGY
        topology.write_text(twin_synthetic.topology(plan.nodes))
        twin_synthetic.write(plan, log, _how(topology))
        facts = (plan.nodes, twin_plan.BF_INTERVAL)
        return _replayed(log, log, topology, facts, options.queues, options.shaken)


def _replayed(
    log: Path, runs: Path, topology: Path, facts: tuple[int, float], names: Sequence[str], shaken: int
) -> tuple[list[Row], dict[str, Any]]:
    """The measures of replays under each queue, and of shaken ones.

    runs: the log with every run as a job, including runs that a failed node ended. The queue `recorded`
    replays it.
    """
    nodes, interval = facts
    recorded = twin_table.imported(runs)
    rows: list[Row] = []
    parts: dict[str, Any] = {}
    for queue in names:
        replay = replayed(runs if queue == "recorded" else log, queue, _how(topology))
        found = twin_table.closeness(recorded, replay, nodes, interval)
        rows += twin_table.rows(f"--queue {queue}", [found], interval)
        parts[queue] = found.utilisation
    if shaken:
        rows += twin_shaken.rows(log, _how(topology), nodes, interval, shaken)
    return rows, {"utilisation": parts}


def _how(topology: Path) -> tuple[str | Path, ...]:
    """The options for machine and policy of a replay."""
    return ("--machine", topology, "--policy", POLICY)


def single(records: Path) -> list[Row]:
    """The rows on the decisions of the queue slurm at each recorded start. Raises BenchError, InputError,
    OSError and ValueError.
    """
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
        log = Path(scratch) / "log.csv"
        twin_single.imported(records, log)
        found = twin_single.counts(log, machine(records / twin_run.TOPOLOGY), POLICY)
    return twin_single.rows(found)


def _facts(path: Path) -> tuple[int, float]:
    """The machine's number of nodes, and the seconds between two turns of backfill."""
    facts = json.loads(path.read_text())
    try:
        return int(facts["nodes"]), float(facts["bf_interval"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: not what a run of the twin writes: {error}") from error


def measure(options: Options) -> Result:
    """Runs what the options select. Raises BenchError, InputError, RuntimeError, ValueError and OSError."""
    if not (options.out or options.records or options.synthetic or options.scale):
        raise ValueError("one of --out, --records, --synthetic and --scale is required")
    for name, least in LEAST.items():
        if (value := getattr(options, name)) is not None and value < least:
            raise ValueError(f"--{name} {value}: the experiment needs at least {least}")
    if options.scale:
        return Result(twin_scale.measured(options.jobs or 1_000_000))
    if options.out:
        run(options)
    records = options.out or options.records
    if options.single_decisions:
        return Result(single(records))
    rows, more = (
        synthetic(options) if options.synthetic else compared(records, options.queues, options.shaken)
    )
    if options.again:
        rows += again(records, options.again)
    notes = []
    for queue, parts in more["utilisation"].items():
        said = ", ".join(f"{recorded:.1f}/{replayed:.1f}" for recorded, replayed in parts)
        notes.append(f"utilisation recorded/replayed under {queue}, in equal parts of the time (%): {said}")
    return Result(rows, more, notes=notes)
