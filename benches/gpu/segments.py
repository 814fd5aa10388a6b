"""Measures the cost of whole segments: the part of a machine of NVL72 racks that jobs hold under policy
segments, by segment size.

`run.py gpu/segments --trace lingjun-2023-jobs.csv.gz` draws jobs of the trace with replacement and submits
more of them than the machine can run. So jobs nearly always wait, and placement limits the nodes held. The
table has the nodes held while jobs are submitted, in per cent, without the first fifth of that time, and the
points lost against first-fit on the same jobs: the mean over the draws, and its standard error. `none` is
policy segments for jobs that name no segment: one rack if a job fits one. The exit code is 1 if segments of
16 nodes lose more than 0.5 points.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import polars
import topolane
from measure import Options, Result
from topolane import sources

SIZES = ("none", "1", "2", "4", "8", "16", "18")
SETTLED = 0.2
"""The first part of the submission time, which is not counted."""
FREE = "first-fit"
"""The policy of the run without any request for segments."""
JUDGED, MOST_LOST = "16", 0.5
"""The judged segment size, and the most points that it may lose."""


def drawn(options: Options, draw: int) -> topolane.Workload:
    """Random jobs of the trace, drawn with replacement and submitted at random times that give the load."""
    machine = sources.machine(options.machine)
    gpus = options.gpus_per_node if options.trace else None
    jobs = sources.workload(
        options.trace or options.workload, machine.nodes, shape=sources.Shape(gpus_per_node=gpus)
    )
    draws = random.Random(draw)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        path.write_text(jobs.to("csv"))
        rows = polars.read_csv(path, infer_schema=False)
        rows = rows[draws.choices(range(len(rows)), k=options.count)]
        moments = sorted(draws.random() * 1e6 for _ in range(options.count))
        rows.with_columns(
            polars.Series("id", [str(index) for index in range(options.count)]),
            polars.Series("submit", [f"{moment:.3f}" for moment in moments]),
        ).write_csv(path)
        return sources.workload(str(path), machine.nodes, shape=sources.Shape(load=options.load))


def held(options: Options, draw: int) -> dict[str, float]:
    """By segment size: the nodes held while jobs are submitted, in per cent."""
    machine, jobs = sources.machine(options.machine), drawn(options, draw)
    last = max(jobs.columns()["submit"])
    found = {}
    for size in (FREE, *SIZES):
        policy = FREE if size == FREE else "segments"
        segment = int(size) if size.isdecimal() else None
        run = topolane.simulate(jobs, machine, policy=policy, segment=segment)
        minutes = run.utilization.filter(polars.col("time").is_between(SETTLED * last, last))
        found[size] = 100 * minutes.select(polars.col("busy_nodes").mean()).item() / machine.nodes
    return found


def measure(options: Options) -> Result:
    """Runs every draw and prints the table; fails if the judged size loses too much."""
    with ProcessPoolExecutor(min(options.draws, os.cpu_count() or 1)) as pool:
        draws = list(pool.map(held, [options] * options.draws, range(options.draws)))
    lost = {size: [one[FREE] - one[size] for one in draws] for size in SIZES}
    print(f"{'segment':>10}{'nodes held %':>14}{'points lost':>13}{'+-':>7}")
    for size in (FREE, *SIZES):
        row = f"{size:>10}{statistics.mean(one[size] for one in draws):14.2f}"
        if size in lost:
            error = statistics.stdev(lost[size]) / len(draws) ** 0.5 if len(draws) > 1 else 0.0
            row += f"{statistics.mean(lost[size]):13.2f}{error:7.2f}"
        print(row)
    return Result(facts=draws, failed=statistics.mean(lost[JUDGED]) > MOST_LOST)
