"""Which job held which nodes at one moment of a run."""

from __future__ import annotations

import polars

from topolane.moment import busiest, running_at

from .data import MachinePicture, ReportedRun
from .holders import Held, held_by


def held(run: ReportedRun, picture: MachinePicture, at: float | None) -> Held:
    """The jobs on their nodes at `at`, or at the busiest minute."""
    time = busiest(run.utilization) if at is None else at
    nodes = {job.job: job.nodes for job in running_at(time, run.jobs, run.moves)}
    for job, ranges in nodes.items():
        for _, end in ranges:
            if end > picture.nodes:
                raise ValueError(f"run {run.label!r}: job {job} holds node {end - 1} of {picture.nodes}")
    apart = run.jobs.filter(polars.col("links_shared") == 0)["job_id"]
    return held_by(nodes, picture, time, apart=frozenset(apart).intersection(nodes))
