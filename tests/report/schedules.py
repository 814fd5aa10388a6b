"""Plausible schedules of random jobs on a regular tree, as the simulator would hand them over.

First come, first served with a look past the head, on free nodes in index order (`oblivious`) or on
whole leaves (`isolating`). It is a stand-in: good enough to draw, not a policy to compare with.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from math import prod

import polars
from topolane.report import MachinePicture, ReportedRun
from topolane.report.bins import size_bins
from topolane.report.data import JOB_COLUMNS

TREE = (18, 18, 4)
NUMBERS = {name: polars.Float64 for name in JOB_COLUMNS} | {
    "job_id": polars.Int64,
    "requested_number_of_resources": polars.Int64,
    "links_shared": polars.Int64,
    "allocated_resources": polars.String,
    "final_state": polars.String,
}


def interval_set(nodes: list[int]) -> str:
    """`[0, 1, 2, 7]` as `0-2 7`."""
    parts: list[list[int]] = []
    for node in sorted(nodes):
        if parts and parts[-1][1] == node - 1:
            parts[-1][1] = node
        else:
            parts.append([node, node])
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def hops(nodes: list[int], tree: tuple[int, ...]) -> float:
    """APH: twice the number of levels at which two nodes part, less the node-leaf link."""
    count, total, size = len(nodes), 0, 1
    if count < 2:
        return 0.0
    for children in tree[:-1]:
        size *= children
        together = sum(n * n for n in Counter(node // size for node in nodes).values())
        total += 2 * (count * count - together)
    return total / (count * (count - 1))


def jobs_of(
    count: int, seed: int, largest: int = 256, every: float = 260.0
) -> list[tuple[float, int, float]]:
    """(submission, nodes, run time): most fit one leaf, the rest are large, as on Cab."""
    draw = random.Random(seed)
    jobs, now = [], 0.0
    for _ in range(count):
        now += draw.expovariate(1 / every)
        nodes = (
            draw.choice((1, 1, 2, 4, 8, 12, 16)) if draw.random() < 0.84 else int(2 ** draw.uniform(4.2, 8))
        )
        jobs.append((now, min(nodes, largest), min(86400.0, 60 * 2 ** draw.uniform(0, 10))))
    return jobs


def choose(free: set[int], nodes: int, leaf: int, isolating: bool, draw: random.Random) -> list[int] | None:
    """Nodes for a job, or None."""
    if nodes > len(free):
        return None
    by_leaf: dict[int, list[int]] = {}
    for node in sorted(free):
        by_leaf.setdefault(node // leaf, []).append(node)
    if not isolating:
        some = sorted(free)
        first = draw.randrange(len(some))
        return (some[first:] + some[:first])[:nodes]
    if nodes <= leaf:
        fit = [some for some in by_leaf.values() if len(some) >= nodes]
        return min(fit, key=len)[:nodes] if fit else None
    whole = [some for some in by_leaf.values() if len(some) == leaf]
    need = -(-nodes // leaf)
    return [node for some in whole[:need] for node in some][:nodes] if len(whole) >= need else None


def make_run(
    label: str = "oblivious",
    *,
    tree: tuple[int, ...] = TREE,
    count: int = 600,
    isolating: bool = False,
    seed: int = 1,
    speed: float = 1.0,
    every: float = 260.0,
    **names: str,
) -> ReportedRun:
    """A run of `count` random jobs; `speed` multiplies the run times of jobs over four nodes."""
    machine = prod(tree)
    draw, free, waiting, running, rows = random.Random(seed), set(range(machine)), [], [], []
    arrivals = [
        (at, n, t * (speed if n > 4 else 1), i)
        for i, (at, n, t) in enumerate(jobs_of(count, seed, machine, every))
    ]
    now, held = 0.0, {}
    while arrivals or waiting or running:
        now = min(arrivals[0][0] if arrivals else float("inf"), running[0][0] if running else float("inf"))
        while running and running[0][0] <= now:
            free.update(held.pop(heapq.heappop(running)[1]))
        while arrivals and arrivals[0][0] <= now:
            waiting.append(arrivals.pop(0))
        for job in waiting[:40]:
            nodes = choose(free, job[1], tree[0], isolating, draw)
            if nodes is None:
                continue
            waiting.remove(job)
            free.difference_update(nodes)
            held[job[3]] = nodes
            heapq.heappush(running, (now + job[2], job[3]))
            rows.append(row(job, now, nodes, tree, isolating))
    frame = polars.DataFrame(rows, schema=NUMBERS, orient="row").sort("job_id")
    return finish(label, frame, machine, tree[0], names)


def row(
    job: tuple[float, int, float, int], now: float, nodes: list[int], tree: tuple[int, ...], isolating: bool
) -> tuple:
    """A job's line of jobs.csv."""
    at, count, time, number = job
    slowdown = max(1.0, (now - at + time) / max(time, 10.0))
    return (
        number, at, now, now + time, now - at, time, time * 1.5, count, slowdown,
        hops(nodes, tree), hops(list(range(count)), tree), 0.0, 0 if isolating or count == 1 else count // 3,
        interval_set(nodes), "COMPLETED_SUCCESSFULLY",
    )  # fmt: skip


def finish(label: str, jobs: polars.DataFrame, machine: int, leaf: int, names: dict[str, str]) -> ReportedRun:
    """The minute samples and the summary that belong to `jobs`."""
    size = "requested_number_of_resources"
    end = jobs["finish_time"].max() or 0.0
    busy, queue = Counter(), Counter()
    for start, stop, submitted, nodes in jobs.select(
        "starting_time", "finish_time", "submission_time", size
    ).iter_rows():
        busy[int(start // 60) + 1] += nodes
        busy[int(stop // 60) + 1] -= nodes
        queue[int(submitted // 60) + 1] += 1
        queue[int(start // 60) + 1] -= 1
    minutes = range(int(end // 60) + 1) if jobs.height else range(0)
    columns = {name: polars.Int64 for name in ("minute", "busy_nodes", "waiting_jobs")}
    changes = [(minute, busy[minute], queue[minute]) for minute in minutes]
    utilization = polars.DataFrame(changes, schema=columns, orient="row").select(
        polars.col("busy_nodes", "waiting_jobs").cum_sum(), time=polars.col("minute") * 60.0
    )
    utilization = utilization.with_columns(utilization=polars.col("busy_nodes") / machine)
    by_size = []
    for low, high in size_bins(leaf, jobs[size].max() or 1):
        inside = jobs.filter(polars.col(size).is_between(low, high or 10**9))
        by_size.append(
            {"low": low, "high": high, "jobs": inside.height, "mean_wait": inside["waiting_time"].mean()}
        )
    summary = {
        "nodes": machine,
        "jobs": jobs.height,
        "mean_wait": jobs["waiting_time"].mean(),
        "median_wait": jobs["waiting_time"].median(),
        "p95_wait": jobs["waiting_time"].quantile(0.95),
        "wait_by_size": by_size,
        "utilization": utilization["utilization"].mean(),
        "utilization_while_waiting": utilization.filter(polars.col("waiting_jobs") > 0)["utilization"].mean(),
        "makespan": end,
        "mean_slowdown": jobs["slowdown"].mean(),
        "mean_aph": jobs["aph"].mean(),
        "mean_least_aph": jobs["least_aph"].mean(),
        "jobs_sharing_links": int((jobs["links_shared"] > 0).sum()),
        "fragmentation": {"jobs": jobs.height // 40, "seconds": 2000.0},
        "without_walltime": 0,
        "left_out": {"no end time": 3, "larger than the machine": 1},
        "load": 0.93,
    }
    text = {
        "policy": label,
        "queue": "easy",
        "scenario": "none",
        "workload": "synthetic",
        "machine": "cab",
    } | names
    return ReportedRun(label=label, jobs=jobs, utilization=utilization, summary=summary, **text)


def without_jobs(label: str = "nothing") -> ReportedRun:
    """A run of an empty workload."""
    return finish(label, polars.DataFrame(schema=NUMBERS), prod(TREE), TREE[0], {})


def picture(tree: tuple[int, ...] = TREE) -> MachinePicture:
    """The machine of these runs."""
    return MachinePicture.tree(tree)
