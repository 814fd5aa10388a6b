"""Jobs that sleep: a made-up month of Cab, its time compressed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from pathlib import Path

from topolane import Workload

MONTH = "cab-aug"
LOAD = 1.2
SEED = 1


@dataclasses.dataclass(frozen=True)
class Job:
    """What is submitted. Seconds, the first submission being 0."""

    number: int
    nodes: int
    submit: float
    run: float
    minutes: int
    """Walltime: Slurm knows whole minutes only."""


def jobs_of(nodes: int, count: int, compress: float) -> list[Job]:
    """The first jobs of the month, at a load above 1, for a machine of so many nodes."""
    columns = Workload.generate(MONTH, SEED).shaped(nodes, limit=count, load=LOAD).columns()
    rows = zip(*(columns[name].tolist() for name in ("id", "nodes", "submit", "run", "walltime")))
    first = float(columns["submit"].min())
    return [
        Job(
            number=number,
            nodes=wide,
            submit=round((submit - first) / compress, 1),
            run=max(round(run / compress, 1), 1.0),
            minutes=max(math.ceil(walltime / compress / 60), 1),
        )
        for number, wide, submit, run, walltime in rows
    ]


def planned(jobs: Iterable[Job], path: Path, longer: float = 0.0) -> Workload:
    """The jobs for the simulator; each holds its nodes `longer` than it runs."""
    rows = (
        f"{job.number},{job.submit},{job.run + longer},{60 * job.minutes + longer},{job.nodes}"
        for job in jobs
    )
    return read(path, "id,submit,run,walltime,nodes", rows)


def happened(
    jobs: Iterable[Job], of: Callable[[Job], tuple[float, float, float, str]], path: Path
) -> Workload:
    """The jobs as they ran: `of` answers submission, start and end, and the nodes."""
    rows = []
    for job in jobs:
        submit, start, end, hosts = of(job)
        rows.append(f'{job.number},{submit},{end - start},{60 * job.minutes},{job.nodes},{start},"{hosts}"')
    return read(path, "id,submit,run,walltime,nodes,start,hosts", rows)


def read(path: Path, heading: str, rows: Iterable[str]) -> Workload:
    """A workload from rows of CSV."""
    path.write_text("\n".join([heading, *rows]) + "\n")
    return Workload.read(str(path))
