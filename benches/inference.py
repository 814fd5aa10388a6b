"""Do replays say the truth about logs that name no holds and no nodes out of service?

`python benches/inference.py [--logs N] [--jobs N]` makes up logs whose truth is known. The engine runs jobs of which one in five is
held, on 128 nodes of which 16 are out of service for a third of the time. Only the recorded starts are kept. The log is then
replayed as it is, and with `--held recorded --capacity recorded`. Targets: the mean wait within 5 %, a rank correlation of the waits
of at least .9, and the change of the mean wait from first-fit to isolated within 10 %, in the sum over all logs.

`python benches/inference.py --log LOG --machine MACHINE` measures the first two on a log that records starts. The exit code is 1 if a
target was missed with inference.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars
import topolane
from measure import HEADINGS, Row, table
from numpy.typing import NDArray
from topolane import InputError, Shape, _engine, baseline
from topolane.baseline.measures import spearman

MEAN, RANK, CHANGE = 5.0, 0.9, 10.0
"""Targets: per cent of the mean wait, rank correlation, per cent of the change from first-fit to isolated."""
MACHINE = "fat-tree(radix=8)"
OUT = range(112, 128)
"""Nodes that are out of service in the middle third of the time."""
HELD, MEAN_HOLD = 0.2, 8 * 3600.0
LOAD = 0.7
INFERENCES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "held": {"held": "recorded"},
    "held, capacity": {"held": "recorded", "capacity": "recorded"},
    "held, capacity, order": {"held": "recorded", "capacity": "recorded", "order": "recorded"},
}
JUDGED = "held, capacity"


@dataclasses.dataclass(frozen=True)
class Truth:
    """A made-up log and what really happened."""

    log: Path
    first_fit: NDArray[np.float64]
    """Waits in order of submission."""
    isolated: NDArray[np.float64]
    again: float
    """Seconds: the change of the mean wait from first-fit to isolated if each hold ends up to a minute later."""

    @property
    def change(self) -> float:
        """Seconds: the change of the mean wait from first-fit to isolated."""
        return float(self.isolated.mean() - self.first_fit.mean())


def made_up(seed: int, jobs: int, directory: Path) -> Truth:
    """A log with the starts that the engine gave its jobs under first-fit, and the waits under both policies."""
    drawn = np.random.default_rng(seed)
    machine = topolane.machine(MACHINE)
    nodes = np.minimum(2 ** drawn.integers(0, 6, jobs) + drawn.integers(0, 3, jobs), 48)
    run = np.clip(np.round(drawn.lognormal(8.3, 1.2, jobs)), 30, 86_400)
    walltime = 300 * np.ceil(run * drawn.choice([1, 1.2, 2, 4], jobs) / 300)
    span = float(nodes @ run) / (machine.nodes * LOAD)
    submit = np.sort(np.round(drawn.uniform(0, span, jobs)))
    holds = np.round(drawn.exponential(MEAN_HOLD, jobs))
    held_until = np.where(drawn.uniform(size=jobs) < HELD, submit + holds, np.nan)
    log = directory / f"made-up-{seed}.csv"
    columns = {
        "id": np.arange(1, jobs + 1),
        "submit": submit,
        "run": run,
        "walltime": walltime,
        "nodes": nodes,
    }
    polars.DataFrame(columns).write_csv(log)
    workload = topolane.workload(log, machine.nodes)
    out = [(node, span / 3, 2 * span / 3) for node in OUT]

    def waits(policy: str, held_until: NDArray[np.float64]) -> NDArray[np.float64]:
        truth = workload.arranged(held_until=held_until.tolist())
        outcome = _engine.simulate(truth, machine, policy, "easy", out_of_service=out)
        return waits_of(polars.DataFrame(outcome.tables()["jobs"]))

    first_fit, isolated = waits("first-fit", held_until), waits("isolated", held_until)
    later = held_until + np.round(drawn.uniform(1, 60, jobs))
    again = float(waits("isolated", later).mean() - waits("first-fit", later).mean())
    polars.DataFrame(columns | {"start": submit + first_fit}).write_csv(log)
    return Truth(log, first_fit, isolated, again)


def waits_of(jobs: polars.DataFrame) -> NDArray[np.float64]:
    """The waits of a run, by number of the job."""
    return jobs.sort("job_id")["waiting_time"].to_numpy()


def compared(truths: Sequence[Truth], name: str) -> list[Row]:
    """How close replays with one kind of inference come to the truth."""
    machine = topolane.machine(MACHINE)
    means, ranks, changes, replayed = [], [], [], []
    for truth in truths:
        workload = topolane.workload(truth.log, machine.nodes)
        first_fit, isolated = (
            waits_of(topolane.simulate(workload, machine, policy=policy, **INFERENCES[name]).jobs)
            for policy in ("first-fit", "isolated")
        )
        means.append(100 * abs(first_fit.mean() / truth.first_fit.mean() - 1))
        ranks.append(spearman(truth.first_fit, first_fit))
        changes.append(truth.change)
        replayed.append(float(isolated.mean() - first_fit.mean()))
    each = tuple(100 * abs(one / true - 1) for one, true in zip(replayed, changes))
    whole = 100 * abs(sum(replayed) / sum(changes) - 1)
    return [
        *rows(name, tuple(means), tuple(ranks)),
        Row(name, "change from first-fit to isolated is off by, in all", "%", (whole,), target(name, CHANGE)),
        Row(name, "the same, of each log", "%", each),
    ]


def rows(name: str, means: tuple[float, ...], ranks: tuple[float, ...]) -> list[Row]:
    """The figures that need no known truth."""
    return [
        Row(name, "mean wait is off by", "%", means, target(name, MEAN)),
        Row(name, "rank correlation of waits", "", ranks, target(name, RANK), more_is_better=True),
    ]


def target(name: str, limit: float) -> float | None:
    """Only one kind of inference is judged."""
    return limit if name == JUDGED else None


def of_log(log: str, machine: str, shape: Shape) -> list[Row]:
    """How close replays of a log come to its recorded starts. Raises InputError for one that records none."""
    fabric = topolane.machine(machine)
    workload = topolane.workload(log, fabric.nodes, shape=shape)
    found = []
    for name, settings in INFERENCES.items():
        run = topolane.simulate(workload, fabric, policy="first-fit", **settings)
        measured = baseline.measured(run, workload, fabric)
        if measured is None:
            raise InputError(f"{log}: no job records a start")
        recorded, replayed = measured.waits[0].mean
        rank = measured.waits[0].rank
        found += rows(name, (100 * abs(replayed / recorded - 1),), () if rank is None else (rank,))
    return found


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logs", type=int, default=6, help="made-up logs [6]")
    parser.add_argument("--jobs", type=int, default=8000, help="jobs of each [8000]")
    parser.add_argument("--log", help="a log that records starts")
    parser.add_argument("--machine", default=MACHINE, help=f"of that log [{MACHINE}]")
    parser.add_argument("--cores-per-node", type=int, help="of that log")
    parser.add_argument("--limit", type=int, help="only so many jobs of that log")
    options = parser.parse_args()
    try:
        if options.log:
            shape = Shape(cores_per_node=options.cores_per_node, limit=options.limit)
            found = of_log(options.log, options.machine, shape)
        else:
            with tempfile.TemporaryDirectory(prefix="topolane-bench-") as directory:
                truths = [made_up(seed, options.jobs, Path(directory)) for seed in range(options.logs)]
                found = [row for name in INFERENCES for row in compared(truths, name)]
            each = tuple(100 * abs(truth.again / truth.change - 1) for truth in truths)
            found.append(
                Row("the truth again", "change if holds end up to a minute later, of each log", "%", each)
            )
    except InputError as error:
        print(f"inference: {error}", file=sys.stderr)
        return 2
    print(table([HEADINGS, *(row.cells() for row in found)]))
    return 1 if any(row.verdict == "MISSED" for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
