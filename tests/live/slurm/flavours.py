"""Compares replays with a real Slurm under six different rules.

`run.py slurm/flavours --out DIR`, as root on Debian with mmdebstrap, runs plans of random jobs, users and
settings on real Slurms 24.11 of 24 slurmds, several at a time, each in network and process namespaces of its
own, and each plan several times. `--records DIR` measures existing records: the single decisions of the queue
`slurm`, and how far the mean wait of its replay is from the records, next to how far the runs of Slurm
itself are from each other. `--shaken N` replays each record N times with times that its whole seconds cannot
distinguish from the recorded ones: how far the replay is off without the chance of a single one, and how far
it is from itself. docs/benchmarks/slurm.md explains the figures.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import flavour_plan
import twin_command
import twin_shaken
import twin_single
import twin_table
from flavour_run import MACHINE
from measure import Options, Result, Row
from topolane.baseline.decisions import BY, Decisions, merged
from topolane.sources import machine

ROOT = Path(__file__).resolve().parents[3]
POLICY = "slurm-cons-tres"
"""The policy that chooses the same nodes as topology/tree under select/cons_tres."""
LEAST = {"main": 95, "backfill": 90}
"""The targets of single decisions, in percent."""
NOISE = 5.0
"""In percent: a mean wait that is off by at most this is close enough, however close Slurm's own runs are."""


class Recorded(NamedTuple):
    """What was measured on the records of a run."""

    recorded: float
    """The mean wait in seconds."""
    replayed: float
    decisions: dict[str, Decisions]
    shaken: tuple[float, ...]
    """The mean waits of shaken replays."""


def run(options: Options) -> None:
    """Runs the plans, each in a process of its own. Raises RuntimeError."""
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = itertools.product(range(1, options.runs + 1), options.flavours)

    def one(which: tuple[int, str]) -> str:
        number, flavour = which
        out = options.out / f"{flavour}-{options.seed}-{number}"
        if out.exists():
            return ""
        words = (ROOT / "tools" / "enclosed", sys.executable, ROOT / "tests/live/slurm/flavour_run.py")
        done = subprocess.run(
            [*words, flavour, str(options.seed), out.resolve()], capture_output=True, text=True
        )
        return f"{out.name}: {done.stderr.strip()[-500:]}" if done.returncode else ""

    with ThreadPoolExecutor(options.at_once) as pool:
        if failed := next(filter(None, pool.map(one, wanted)), None):
            raise RuntimeError(failed)


def measured(records: Path, shaken: int) -> Recorded:
    """Measures the records of a run. Raises BenchError, InputError, OSError and ValueError."""
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
        log = Path(scratch) / "log.csv"
        twin_command.topolane("workload", "import", records, "--out", log)
        found = twin_single.counts(log, machine(records / MACHINE), POLICY)
        recorded = twin_table.imported(log)

        def mean_wait(log: Path) -> float:
            how = ("--machine", records / MACHINE, "--policy", POLICY)
            replay = twin_command.replayed(log, "slurm", how)
            # A job that was ended and started again waits from its first submission to its last start, in both.
            return float((replay.last().of(recorded.ids).start - recorded.submit).mean())

        replayed = mean_wait(log)
        jobs, config = twin_shaken.read(log), json.loads(twin_shaken.config_of(log).read_text())
        other, waits = log.with_name("shaken.csv"), []
        for seed in range(1, shaken + 1):
            twin_shaken.write(other, twin_shaken.in_their_seconds(jobs, seed), config)
            waits.append(mean_wait(other))
    return Recorded(float(recorded.wait.mean()), replayed, found, tuple(waits))


def rows(flavour: str, plans: Iterable[list[Recorded]]) -> Iterator[Row]:
    """The rows of a flavour. plans: the runs of each plan."""
    name = flavour_plan.NAMES[flavour]
    plans = list(plans)
    runs = [run for of_plan in plans for run in of_plan]
    for by in BY:
        found = merged(run.decisions[by] for run in runs)
        what = f"{by}: the same of {found.asked:,}, and {found.more:,} others"
        yield Row(name, what, "%", (found.same,), LEAST[by], more_is_better=True)
    off = [100 * abs(run.replayed / run.recorded - 1) for run in runs]
    pairs = [pair for of_plan in plans for pair in itertools.permutations(of_plan, 2)]
    noise = [100 * abs(other.recorded / one.recorded - 1) for one, other in pairs]
    mean, own = sum(off) / len(off), sum(noise) / len(noise) if noise else 0.0
    yield Row(name, f"mean wait: off in {len(runs)} replays", "%", (mean,), max(own, NOISE))
    yield Row(name, f"mean wait: between {len(pairs)} pairs of Slurm's own runs", "%", (own,))
    if all(run.shaken for run in runs):
        off = [
            100 * abs(fmean(fmean(run.shaken) for run in each) / fmean(run.recorded for run in each) - 1)
            for each in plans
        ]
        yield Row(name, "mean wait: off in the mean of shaken replays", "%", (fmean(off),), max(own, NOISE))
        pairs_of_replays = [pair for run in runs for pair in itertools.permutations(run.shaken, 2)]
        itself = [100 * abs(other / one - 1) for one, other in pairs_of_replays]
        yield Row(name, "mean wait: between shaken replays of one record", "%", (fmean(itself),))


def measure(options: Options) -> Result:
    """Runs what the options select. Raises BenchError, InputError, RuntimeError, ValueError and OSError."""
    where = options.out or options.records
    if where is None:
        raise ValueError("one of --out and --records is required")
    if options.out:
        run(options)
    plans: dict[str, dict[str, list[Recorded]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(path for path in where.iterdir() if (path / MACHINE).is_file()):
        flavour, seed, _ = path.name.rsplit("-", 2)
        if flavour in options.flavours:
            plans[flavour][seed].append(measured(path, options.shaken))
    found = [row for flavour in plans for row in rows(flavour, plans[flavour].values())]
    if not found:
        raise ValueError(f"{where}: no records of a flavour")
    return Result(found)
