"""Is a replay like what a real Slurm did? `make bench-twin BENCH="--out DIR"` finds out.

`python benches/slurm/twin.py --out DIR [OPTION]...`, as root on Debian with mmdebstrap, with the interpreter in which Topolane is
installed, runs a Slurm 24.11 on this machine for an hour: accounts with fair share, QOS with limits, two partitions that share
nodes, reservations, dependencies, nodes that fail, and 1,000 jobs that sleep. What `topolane workload import --commands` prints
writes the records into DIR. They are imported and replayed, and a table says how close the replay is.

`--records DIR` measures records that are there, and starts no Slurm. With `--single-decisions` it counts the recorded starts that
the queue `slurm` decides too, asked in the recorded state just before each. `--shaken N` replays them with times that differ by a second:
so far is the replay from itself, which is no target. `--made-up` does so with the plan alone, before any Slurm runs. `--scale` measures import and replay of a
made-up year of 1,000,000 jobs. docs/benchmarks/slurm.md says what the figures mean. The exit code is 1 if a target was missed, and 2
for wrong options or a missing component.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), *(str(HERE.parents[1] / "tests" / part) for part in ("slurm", ""))]

import slurm_sites
import twin_made_up
import twin_plan
import twin_run
import twin_scale
import twin_shaken
import twin_single
import twin_table
from measure import BenchError, Row
from options import finish, log_options
from topolane import InputError
from topolane._engine import queues
from topolane.sources import machine
from twin_command import replayed, topolane

POLICY = "slurm-cons-tres"
"""The policy that gives the nodes that topology/tree gives under select/cons_tres."""
KNOWN = ("easy", "slurm")
"""Queues under which the records are replayed, as far as the engine has them."""


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="twin.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, metavar="DIR", help="run Slurm and write its records here")
    what.add_argument("--records", type=Path, metavar="DIR", help="measure these records")
    what.add_argument(
        "--made-up",
        action="store_true",
        help="measure the plan, with the starts of the queue slurm as records",
    )
    what.add_argument("--scale", action="store_true", help="import and replay a made-up year")
    parser.add_argument("--jobs", type=int, help="jobs [1000; 1000000 with --scale]")
    parser.add_argument("--minutes", type=float, default=60, help="how long Slurm runs [60]")
    parser.add_argument("--slurmds", type=int, default=72, help="nodes [72]")
    parser.add_argument("--load", type=float, default=1.0, help="load while jobs are submitted [1.0]")
    parser.add_argument("--seed", type=int, default=1, help="of users, QOS and all else that is drawn [1]")
    log_options(parser)
    known = [name for name, _ in queues()]
    parser.add_argument(
        "--queues",
        nargs="+",
        choices=known,
        default=[name for name in KNOWN if name in known],
        help="queues of the replay [easy, and slurm where the engine has it]",
    )
    parser.add_argument(
        "--again",
        type=Path,
        metavar="DIR",
        help="records of a second run of the plan, measured as a replay is",
    )
    parser.add_argument(
        "--single-decisions",
        action="store_true",
        help="ask the queue slurm about each recorded start, instead of a replay",
    )
    parser.add_argument(
        "--shaken",
        type=int,
        default=0,
        metavar="N",
        help="also replay with times that differ by a second, each way N times, and measure against the replay [0]",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    options = parser.parse_args(words)
    if options.slurmds < 24:
        parser.error(f"--slurmds {options.slurmds}: the experiment needs at least 24")
    if options.minutes < 2:
        parser.error(f"--minutes {options.minutes}: the experiment needs at least 2")
    if options.shaken < 0:
        parser.error(f"--shaken {options.shaken}: a number of replays is needed")
    if options.jobs is not None and options.jobs < 2:
        parser.error(f"--jobs {options.jobs}: the experiment needs at least 2")
    return options


def planned(options: argparse.Namespace) -> twin_plan.Plan:
    """The plan that the options ask for. Raises InputError."""
    return twin_plan.plan(
        options.slurmds,
        options.jobs or 1000,
        options.minutes,
        options.load,
        options.seed,
        options.log,
        options.cores_per_node,
    )


def run(options: argparse.Namespace) -> None:
    """The experiment itself. Raises InputError and RuntimeError."""
    if options.out.is_dir() and any(options.out.iterdir()):
        raise RuntimeError(f"{options.out} is not empty")
    plan = planned(options)
    slurm_sites.enter()
    if missing := slurm_sites.missing():
        raise RuntimeError(missing)
    slurm_sites.ended_by_signals()
    twin_run.record(plan, options.out)


def again(records: Path, other: Path) -> list[Row]:
    """How close a second run of a plan comes to the first. Raises BenchError, OSError and ValueError."""
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


def made_up(options: argparse.Namespace) -> tuple[list[Row], dict[str, Any]]:
    """The same of a plan, with the starts of the queue `slurm` as records. Raises BenchError, InputError, OSError and ValueError."""
    plan = planned(options)
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
        log, topology = Path(scratch) / "log.csv", Path(scratch) / twin_run.TOPOLOGY
        topology.write_text(twin_made_up.topology(plan.nodes))
        twin_made_up.write(plan, log, _how(topology))
        facts = (plan.nodes, twin_plan.BF_INTERVAL)
        return _replayed(log, log, topology, facts, options.queues, options.shaken)


def _replayed(
    log: Path, runs: Path, topology: Path, facts: tuple[int, float], names: Sequence[str], shaken: int
) -> tuple[list[Row], dict[str, Any]]:
    """The measures of replays under each queue, and of shaken ones.

    runs: the log with every run as a job, also those that a failed node ended. The queue `recorded` repeats it.
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
    """Machine and policy of a replay, as options."""
    return ("--machine", topology, "--policy", POLICY)


def single(records: Path) -> list[Row]:
    """What the queue slurm says about each recorded start. Raises BenchError, InputError, OSError and ValueError."""
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
        log = Path(scratch) / "log.csv"
        twin_single.imported(records, log)
        found = twin_single.counts(log, records, machine(records / twin_run.TOPOLOGY), POLICY)
    return twin_single.rows(found)


def _facts(path: Path) -> tuple[int, float]:
    """Nodes of the machine, and seconds between two turns of backfill."""
    facts = json.loads(path.read_text())
    try:
        return int(facts["nodes"]), float(facts["bf_interval"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: not what a run of the twin writes: {error}") from error


def main(words: Sequence[str]) -> int:
    """Runs what the options say and prints the table."""
    options = arguments(words)
    try:
        if options.scale:
            return finish(options, twin_scale.measured(options.jobs or 1_000_000), {})
        if options.out:
            run(options)
        if options.single_decisions:
            return finish(options, single(options.out or options.records), {})
        if options.made_up:
            rows, more = made_up(options)
        else:
            rows, more = compared(options.out or options.records, options.queues, options.shaken)
        if options.again:
            rows += again(options.out or options.records, options.again)
        code = finish(options, rows, more)
        for queue, parts in more["utilisation"].items():
            said = ", ".join(f"{recorded:.1f}/{replayed:.1f}" for recorded, replayed in parts)
            print(f"utilisation recorded/replayed under {queue}, in equal parts of the time (%): {said}")
    except (BenchError, InputError, RuntimeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
        print(f"twin: {error}", file=sys.stderr)
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
