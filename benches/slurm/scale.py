"""How much is measured."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Scale:
    """Sizes of the figures; the defaults are those that are promised."""

    nodes: int = 1296
    idle_jobs: int = 1000
    idle_seconds: float = 60
    queued: int = 2000
    churn_seconds: float = 60
    """While jobs are cancelled, so that others start."""
    rounds: int = 500
    """Ends of jobs played in process."""
    resync_jobs: int = 5000
    repeats: int = 5
    backlog: int = 2000
    """Jobs of one node, released as fast as it goes."""
    jobs: int = 500
    """Of the workload that stock Slurm and Topolane both run."""
    compress: float = 360
    """How many times shorter its times are than those of the month it is from."""


QUICK = Scale(72, 200, 10, 400, 10, 50, 1000, 2, 300, 40, 1200)
