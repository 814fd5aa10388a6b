"""The jobs that the benches submit, from a log or from a synthetic month of Cab."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

from topolane import Workload

MONTH = "cab-aug"
SEED = 1
NO_LIMIT = 60.0
"""Minutes for a job without a walltime in the log."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A job to submit. Times are in seconds from the first submission."""

    number: int
    nodes: int
    submit: float
    run: float
    minutes: int
    """The walltime in whole minutes, as Slurm requires."""


def workload_of(
    log: Path | None, cores_per_node: int | None, nodes: int, limit: int, load: float | None
) -> Workload:
    """The first jobs of a log or of a synthetic month that fit a machine of `nodes` nodes. If `load` is None,
    submission times are not scaled. Raises InputError.
    """
    read = (
        Workload.generate(MONTH, SEED)
        if log is None
        else Workload.read(str(log), cores_per_node=cores_per_node)
    )
    return read.shaped(nodes, limit=limit, load=load)


def jobs_of(workload: Workload, compress: float = 1.0) -> list[Job]:
    """The jobs with all times divided by a factor."""
    columns = workload.columns()
    rows = list(zip(*(columns[name].tolist() for name in ("id", "nodes", "submit", "run", "walltime"))))
    first = min(row[2] for row in rows)
    jobs = []
    for number, nodes, submit, run, walltime in rows:
        minutes = walltime / 60 if walltime and math.isfinite(walltime) and walltime > 0 else NO_LIMIT
        jobs.append(
            Job(
                number=number,
                nodes=nodes,
                submit=round((submit - first) / compress, 2),
                run=max(round(run / compress, 2), 1.0),
                minutes=max(math.ceil(max(minutes, run / 60) / compress), 1),
            )
        )
    return sorted(jobs, key=lambda job: (job.submit, job.number))
