"""Who held what at one moment of a run."""

from __future__ import annotations

import re

import polars

from .data import MachinePicture, Run
from .holders import Held, held_by

INTERVAL = re.compile(r"(\d+)(?:-(\d+))?")


def intervals(text: str | None) -> list[tuple[int, int]]:
    """Batsim's interval set as half-open ranges: `0-3 7` is [(0, 4), (7, 8)]. Commas do as well."""
    ranges = []
    for part in (text or "").replace(",", " ").split():
        match = INTERVAL.fullmatch(part)
        if match is None:
            raise ValueError(f"not an interval of nodes: {part!r}")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise ValueError(f"an interval of nodes ends before it begins: {part!r}")
        ranges.append((low, high + 1))
    return ranges


def busiest(run: Run) -> float:
    """The first minute with the most busy nodes, or 0 where there is none."""
    samples = run.utilization
    if samples.is_empty():
        return 0.0
    return float(samples["time"][samples["busy_nodes"].arg_max() or 0])


def held(run: Run, picture: MachinePicture, at: float | None) -> Held:
    """The jobs running at `at`, or at the busiest minute, on their nodes."""
    time = busiest(run) if at is None else at
    running = run.jobs.filter((polars.col("starting_time") <= time) & (polars.col("finish_time") > time))
    nodes = {
        job: intervals(text)
        for job, text in running.sort("job_id").select("job_id", "allocated_resources").iter_rows()
    }
    for job, ranges in nodes.items():
        for _, end in ranges:
            if end > picture.nodes:
                raise ValueError(f"run {run.label!r}: job {job} holds node {end - 1} of {picture.nodes}")
    apart = running.filter(polars.col("links_shared") == 0)["job_id"]
    return held_by(nodes, picture, time, apart=frozenset(apart))
