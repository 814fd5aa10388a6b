"""The request of one job, as a driver submits it to the scheduler."""

from __future__ import annotations

import dataclasses
from typing import Any


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
    share: dict[str, int] | None
    """Resources and counts of each node, or None for whole nodes."""
    eligible: tuple[int, ...] | None
    min_bandwidth: float | None
    """The minimum share of full bandwidth that it accepts on dedicated links; None for full bandwidth."""


def share_of(written: Any) -> dict[str, int] | None:
    """The share in an event of a log; earlier releases wrote [cores, bytes of memory]."""
    if isinstance(written, list):
        cores, memory = written
        return {"cores": cores, "memory": memory}
    if written is None or isinstance(written, dict):
        return written
    raise TypeError(f"{written!r:.60} is no share of a node")
