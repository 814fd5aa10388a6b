"""The request of one job, as a driver submits it to the scheduler."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class JobRequest:
    """What a job asks the scheduler for. If a new request equals the old one, nothing has changed."""

    nodes: int
    most: int
    walltime: float
    begin: float
    order: int
    """By submission, then by number."""
    priority: float
    share: tuple[int, int] | None
    """(cores, bytes of memory) of each node, or None for whole nodes."""
    eligible: tuple[int, ...] | None
    min_bandwidth: float | None
    """The minimum share of full bandwidth that it accepts on dedicated links; None for full bandwidth."""
