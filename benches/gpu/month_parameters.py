"""Prints the parameters of the workload `gpu-month` as Rust tables, from the traces that they are fitted to.

    python benches/gpu/month_parameters.py TRACES > crates/simulator/src/workload/synthetic/gpu_month/tables.rs

TRACES is a directory with philly-2017.csv.gz and lingjun-2023-jobs.csv.gz (arrival, GPUs, duration; as redistributed with
RFold) and openb-2023-pods.csv.gz (Alibaba, cluster-trace-gpu-v2023). docs/reference/workloads.md says what each table is.
"""

from __future__ import annotations

import csv
import gzip
import math
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

SHORTEST = 300
"""In seconds. Shorter runs are skipped: a third of the jobs, and less than 1 % of the work."""
LONGEST = 7 * 86_400
"""In seconds. Longer runs are cut to this, the usual longest walltime of a partition."""
POSITIONS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
"""The positions at which quantiles of run times are taken."""
SMALL = ((1, 1), (2, 2), (4, 4))
"""Size classes of jobs that fit a node with four GPUs, from Philly."""
LARGE = ((8, 8), (9, 16), (17, 32), (33, 64), (65, 128), (129, 744))
"""Size classes of wider jobs, from Lingjun."""
FAIR_CORES = 12
"""Cores of openb's nodes per GPU (96 cores and 8 GPUs)."""


class Job(NamedTuple):
    submit: float
    gpus: int
    run: float


def trace(path: Path) -> list[Job]:
    """The jobs of a trace in RFold's format: id, arrival, topology, shape, GPUs, duration."""
    with gzip.open(path, "rt") as lines:
        rows = [row for row in csv.reader(lines) if not row[0].startswith("#")]
    return [Job(float(row[1]), int(row[4]), float(row[5])) for row in rows]


def quantiles(runs: list[float]) -> list[int]:
    """The run times at `POSITIONS`. Between two jobs, the lower run time is taken."""
    runs = sorted(runs)
    return [round(runs[int(position * (len(runs) - 1))]) for position in POSITIONS]


def classes(name: str, what: str, jobs: list[Job], bounds: tuple[tuple[int, int], ...]) -> str:
    """The Rust table of some size classes."""
    rows = []
    for low, high in bounds:
        inside = [job for job in jobs if low <= job.gpus <= high and job.run >= SHORTEST]
        sizes = sorted(Counter(-(-job.gpus // 4) * 4 if job.gpus > 4 else job.gpus for job in inside).items())
        runs = quantiles([min(job.run, LONGEST) for job in inside])
        rows.append(
            "    Class {\n"
            f"        sizes: &[{', '.join(f'({gpus}, {count:_})' for gpus, count in sizes)}],\n"
            f"        runs: [{', '.join(f'{run:_}.0' for run in runs)}],\n"
            "    },\n"
        )
    return f"/// {what}\npub(super) const {name}: [Class; {len(rows)}] = [\n{''.join(rows)}];\n"


def demands(pods: Path) -> str:
    """The cores that tasks with one GPU request, relative to their share of a node's cores."""
    with gzip.open(pods, "rt") as lines:
        rows = [row for row in csv.DictReader(lines) if row["num_gpu"] == "1" and row["gpu_milli"] == "1000"]
    nearest = (0.25, 1.0, 1.5, 2.0)
    wanted = [int(row["cpu_milli"]) / 1000 / FAIR_CORES for row in rows]
    counts = Counter(min(nearest, key=lambda step: abs(math.log(max(times, 0.1) / step))) for times in wanted)
    table = ", ".join(f"({step}, {counts[step]:_})" for step in nearest)
    return (
        "/// How many times a GPU's part of the node's cores and memory small jobs ask for, and how many tasks do (openb).\n"
        f"pub(super) const DEMANDS: [(f64, u32); {len(nearest)}] = [{table}];\n"
    )


def cycle(jobs: list[Job]) -> str:
    """The depth of the daily cycle, and the ratio of a weekend day to a weekday."""
    angles = [2 * math.pi * job.submit / 86_400 for job in jobs]
    depth = 2 * math.hypot(sum(map(math.cos, angles)), sum(map(math.sin, angles))) / len(jobs)
    days = Counter(int(job.submit % (7 * 86_400) // 86_400) for job in jobs)
    # The trace does not name its weekdays, so the two quietest consecutive days count as the weekend.
    quiet = min(days[day] + days[(day + 1) % 7] for day in range(7))
    weekend = quiet / 2 / ((len(jobs) - quiet) / 5)
    return (
        "/// Depth of the daily cycle of submissions (Philly).\n"
        f"pub(super) const DAILY: f64 = {depth:.2f};\n"
        "/// Submissions of a day of the weekend over those of a weekday (Philly).\n"
        f"pub(super) const WEEKEND: f64 = {weekend:.2f};\n"
    )


def main() -> None:
    folder = Path(sys.argv[1])
    philly, lingjun = trace(folder / "philly-2017.csv.gz"), trace(folder / "lingjun-2023-jobs.csv.gz")
    print("//! Printed by `benches/gpu/month_parameters.py`; not changed by hand.\n")
    print("use super::Class;\n")
    print("/// Where the quantiles of run times are taken.")
    print(f"pub(super) const POSITIONS: [f64; {len(POSITIONS)}] = [{', '.join(map(str, POSITIONS))}];")
    print(classes("SMALL", "Jobs of up to a node (Philly).", philly, SMALL), end="")
    print(classes("LARGE", "Wider jobs (Lingjun).", lingjun, LARGE), end="")
    print(demands(folder / "openb-2023-pods.csv.gz"), end="")
    print(cycle(philly), end="")


if __name__ == "__main__":
    main()
