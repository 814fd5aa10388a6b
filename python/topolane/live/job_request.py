"""The request of one job, as a driver submits it to the scheduler."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from topolane import _engine
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
    """As `topolane patterns` names them, or the name of a matrix."""
    processes: int
    communication: float
    """The part of its time for which the job communicates, 0 to 1."""
    matrix: str | None = None
    """The matrix as CSV, with a rank for every process; None for a pattern."""

    def written(self) -> list[Any]:
        """As an event of a log has it. A matrix is an event of its own, named here by its digest."""
        digest = [] if self.matrix is None else [digest_of(self.matrix)]
        return [self.pattern, self.processes, self.communication, *digest]


@functools.lru_cache(64)
def digest_of(matrix: str) -> str:
    """The name of a matrix in a log."""
    return hashlib.sha256(matrix.encode()).hexdigest()[:16]


def for_engine(traffic: JobTraffic | None) -> tuple[Traffic, float] | None:
    """What `Scheduler.submit` takes. Raises InputError for a pattern that cannot be."""
    if traffic is None:
        return None
    if traffic.matrix is not None:
        return _parsed(traffic.matrix, traffic.pattern), traffic.communication
    return _traffic(traffic.pattern, traffic.processes), traffic.communication


def traffic_of(written: Any, matrices: Mapping[str, str]) -> JobTraffic | None:
    """The traffic in an event of a log, whose matrices have gone before, by digest."""
    if written is None:
        return None
    pattern, processes, communication, *digest = written
    return JobTraffic(pattern, processes, communication, *(matrices[one] for one in digest))


# Few, because a matrix of 4,096 processes that all send to all takes 400 MB.
@functools.lru_cache(2)
def _traffic(pattern: str, processes: int) -> Traffic:
    return Traffic.pattern(pattern, processes)


# At most 4 MiB of text each.
@functools.lru_cache(16)
def _parsed(matrix: str, name: str) -> Traffic:
    return Traffic.parse(matrix, name)


def assumed_traffic(jobs: str) -> str:
    """What the engine assumes of jobs whose traffic is not known, as a clause about `jobs`."""
    pattern, communication = _engine.assumed_traffic()
    return f"{jobs} is assumed to send by {pattern} for {communication:.0%} of its time"


def share_of(written: Any) -> dict[str, int] | None:
    """The share in an event of a log; earlier releases wrote [cores, bytes of memory]."""
    if isinstance(written, list):
        cores, memory = written
        return {"cores": cores, "memory": memory}
    if written is None or isinstance(written, dict):
        return written
    raise TypeError(f"{written!r:.60} is no share of a node")
