"""The priority that Slurm computes when a job is submitted, from what its configuration and accounting print."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

from topolane.slurm.accounting_jobs import NeverStarted, Run
from topolane.slurm.inspection import names_in

Kind = tuple[int, int | None, str, str]
"""Nodes, processors, partition and QOS of a job: all that its priority depends on, except whose it is, its nice value and its age."""
LEAST_STEP = 4
"""The rank of fair share is read off priorities only if ranks are at least 4 points apart: closer ranks fit most priorities."""


def kind_of(job: Run | NeverStarted) -> Kind:
    return job.nodes, job.processors, job.partition, job.qos


@dataclasses.dataclass
class Formula:
    """Priorities of jobs with age 0 and nice value 0 under Slurm's fair tree: `_get_priority_internal` in priority_multifactor.c.

    Fair share is the rank of a user among all users, 1 to `users`.
    """

    weights: dict[str, Any]
    nodes: int
    processors: int
    users: int
    partitions: dict[str, float]
    """Factors."""
    qos: dict[str, float]
    _parts: dict[Kind, tuple[float, float, float]] = dataclasses.field(default_factory=dict)

    def priority(self, kind: Kind, rank: int) -> int:
        """The priority of a job of this kind whose user has this rank, rounded down."""
        size, partition, qos = self._of(kind)
        fair_share: float = rank / self.users * self.weights["weight_fair_share"]
        return math.floor(fair_share + size + partition + qos)

    def rank(self, kind: Kind, priority: int) -> int | None:
        """The rank that gives a job of this kind this priority; None if no rank does."""
        near = math.ceil((priority - sum(self._of(kind))) / self.step) if self.step else 1
        for rank in (near, near - 1, near + 1):
            if 1 <= rank <= self.users and self.priority(kind, rank) == priority:
                return rank
        return None

    @functools.cached_property
    def step(self) -> float:
        """Points of priority from one rank to the next; 0 if fair share does not count."""
        return float(self.weights["weight_fair_share"]) / self.users

    def _of(self, kind: Kind) -> tuple[float, float, float]:
        """What size, partition and QOS add."""
        if kind not in self._parts:
            nodes, processors, partition, qos = kind
            self._parts[kind] = (
                self._size(nodes, processors) * self.weights["weight_job_size"],
                self.partitions.get(partition, 0.0) * self.weights["weight_partition"],
                self.qos.get(qos, 0.0) * self.weights["weight_qos"],
            )
        return self._parts[kind]

    def _size(self, nodes: int, processors: int | None) -> float:
        """The mean of a job's parts of all nodes and of all processors."""
        if not self.nodes:
            return 0.0
        favors_small = self.weights["favor_small"]

        def part(count: int, of: int) -> float:
            return (of - count if favors_small else count) / of

        size = part(nodes, self.nodes)
        if processors and self.processors:
            size = (size + part(processors, self.processors)) / 2
        return min(max(size, 0.0), 1.0)


def formula(config: dict[str, Any]) -> Formula | None:
    """The formula of a configuration of the queue `slurm`; None if that lacks what the formula needs, or has too many users."""
    weights = config.get("priority")
    if weights is None:
        return None
    partitions = config.get("partitions", [])
    nodes = len({name for row in partitions for name in names_in(row["nodes"])})
    if weights["weight_job_size"] and not nodes:
        return None
    users = sum(row["user"] != "" for row in config.get("associations", []))
    found = Formula(
        weights,
        nodes,
        nodes * config.get("processors_per_node", 0),
        max(users, 1),
        _over_the_highest({row["name"]: row["factor"] for row in partitions}),
        _over_the_highest({row["name"]: row["priority"] for row in config.get("qos", [])}),
    )
    is_known = found.step >= LEAST_STEP and users if found.step else True
    return found if is_known else None


def _over_the_highest(values: dict[str, int]) -> dict[str, float]:
    highest = max(values.values(), default=0)
    return {name: value / highest for name, value in values.items()} if highest else {}
