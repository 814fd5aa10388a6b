"""The request of one job, as a driver submits it to the scheduler."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from topolane._engine import Traffic


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
    traffic: JobTraffic | None = None
    """What it sends, for policies that look at it."""


@dataclasses.dataclass(frozen=True)
class JobTraffic:
    """What the processes of a job send, which lie on its nodes evenly and in blocks."""

    pattern: str
    """As `topolane patterns` names them."""
    processes: int
    communication: float
    """The part of its time for which the job communicates, 0 to 1."""

    def written(self) -> list[Any]:
        """As an event of a log has it."""
        return [self.pattern, self.processes, self.communication]


def for_engine(traffic: JobTraffic | None) -> tuple[Traffic, float] | None:
    """What `Scheduler.submit` takes. Raises InputError for a pattern that cannot be."""
    return None if traffic is None else (_traffic(traffic.pattern, traffic.processes), traffic.communication)


def traffic_of(written: Any) -> JobTraffic | None:
    """The traffic in an event of a log."""
    if written is None:
        return None
    pattern, processes, communication = written
    return JobTraffic(pattern, processes, communication)


# Few, because a matrix of 4,096 processes that all send to all takes 400 MB.
@functools.lru_cache(2)
def _traffic(pattern: str, processes: int) -> Traffic:
    return Traffic.pattern(pattern, processes)


def share_of(written: Any) -> dict[str, int] | None:
    """The share in an event of a log; earlier releases wrote [cores, bytes of memory]."""
    if isinstance(written, list):
        cores, memory = written
        return {"cores": cores, "memory": memory}
    if written is None or isinstance(written, dict):
        return written
    raise TypeError(f"{written!r:.60} is no share of a node")
