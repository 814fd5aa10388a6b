"""Computes the priority that Slurm gives a job at submission, from its configuration and accounting."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

from topolane.slurm.accounting_jobs import AccountedRun, NeverStarted
from topolane.slurm.inspection import names_in

Kind = tuple[int, int | None, str, str]
"""Nodes, processors, partition and QOS of a job. Except for user, nice value and age, its priority depends
only on these.
"""
LEAST_STEP = 4
"""Ranks of fair share are inferred only if a rank changes the priority by at least 4 points: with smaller
steps, some rank fits almost any priority.
"""


def kind_of(job: AccountedRun | NeverStarted) -> Kind:
    return job.nodes, job.processors, job.partition, job.qos


@dataclasses.dataclass
class Formula:
    """Priorities at age 0 and nice value 0 under Slurm's fair tree: `_get_priority_internal` in
    priority_multifactor.c.

    Fair share is the rank of a user among all users, from 1 to `users`.
    """

    weights: dict[str, Any]
    nodes: int
    processors: int
    users: int
    partitions: dict[str, float]
    """The priority factor of each partition."""
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
        """Points of priority from one rank to the next; 0 if fair share has no weight."""
        return float(self.weights["weight_fair_share"]) / self.users

    def _of(self, kind: Kind) -> tuple[float, float, float]:
        """The points for size, partition and QOS."""
        if kind not in self._parts:
            nodes, processors, partition, qos = kind
            self._parts[kind] = (
                self._size(nodes, processors) * self.weights["weight_job_size"],
                self.partitions.get(partition, 0.0) * self.weights["weight_partition"],
                self.qos.get(qos, 0.0) * self.weights["weight_qos"],
            )
        return self._parts[kind]

    def _size(self, nodes: int, processors: int | None) -> float:
        """The size factor: the mean of the job's fractions of all nodes and of all processors."""
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
    """The formula for a configuration of the queue `slurm`; None if the configuration lacks a needed value or
    has too many users.
    """
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
