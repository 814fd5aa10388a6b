"""The priorities that Slurm's multifactor plugin would give to held jobs.

Slurm computes none for a held job: its priority is 0. The factors are those of
src/plugins/priority/multifactor of Slurm 22.05 (set_priority_factors and _get_priority_internal),
described in its priority_multifactor.html.
"""

from __future__ import annotations

import dataclasses
import re
import time
from typing import TypeVar

from topolane.slurm import priority_settings
from topolane.slurm.priority_settings import Settings, amounts, said
from topolane.slurm.records import Job, Partition, Snapshot

Key = TypeVar("Key", int, str)

HIGHEST = 2.0**32 - 1
TIER = 2.0**34
"""The advantage of a partition of a higher tier: more than any priority."""
UNLIMITED = 2.0**32 - 1
"""Minutes of a job without a time limit, as Slurm has them here."""


@dataclasses.dataclass(frozen=True)
class _Cluster:
    """The properties of nodes and partitions that priorities depend on."""

    nodes: int
    cpus: int
    highest_factor: int
    tiers: tuple[int, ...]


class Priorities:
    """Orders held jobs as Slurm would.

    Reads Slurm's configuration once, and the shares and priorities of associations and QOS when they are due.
    Raises InputError if the priorities of this Slurm cannot be computed, SlurmError if it does not answer.
    """

    def __init__(self) -> None:
        self.settings: Settings = priority_settings.read()
        self._epoch = time.time()
        self.read_at = 0.0
        """The time of the last refresh, or attempt."""
        self._fair_shares: dict[int, float] = {}
        self._associations: dict[int, float] = {}
        self._qos: dict[str, float] = {}
        self._met: dict[int, float] = {}
        """When the dependencies of jobs were met: a job does not age before."""
        self._snapshot: Snapshot | None = None
        self._cluster = _Cluster(1, 1, 0, ())
        self.refresh(self._epoch)

    def refresh_due(self, now: float) -> bool:
        """Whether Slurm has recalculated since the last refresh. If so, the request of every waiting job must
        be computed again.
        """
        return not 0.0 <= now - self.read_at < self.settings.period

    def refresh(self, now: float) -> None:
        """Reads the factors that Slurm changes. Raises SlurmError; then the old factors stay until the next
        refresh is due.
        """
        settings = self.settings
        self.read_at = now
        if settings.fair_share:
            shown = said("sshare", "-a", "-n", "-P", "-o", "ID,FairShare")
            pairs = re.findall(r"^(\d+)\|([\d.]+)$", shown, re.MULTILINE)
            self._fair_shares = {int(association): float(factor) for association, factor in pairs}
        if settings.association or settings.qos:
            shown = said("scontrol", "-o", "show", "assoc_mgr", "flags=assoc,qos")
            found = re.findall(r"^ClusterName=.*? Priority=(\d+) ID=(\d+) ", shown, re.MULTILINE)
            given = {int(association): float(priority) for priority, association in found}
            self._associations = self._normal(given, "NO_NORMAL_ASSOC")
            pairs = re.findall(r"^QOS=([^\n]*?)\(\d+\).*?\bPriority=(\d+)", shown, re.MULTILINE | re.DOTALL)
            self._qos = self._normal({name: float(priority) for name, priority in pairs}, "NO_NORMAL_QOS")
        if self._snapshot is not None:
            self._met = {job: met for job, met in self._met.items() if job in self._snapshot.jobs}

    def number(self, job: Job, snapshot: Snapshot, now: float) -> int:
        """The priority that squeue would show. For a job of several partitions: the one that sprio shows for
        the partition that Slurm considers first.
        """
        best = max(self._by_partition(job, snapshot, now), default=(0, 1.0))
        return int(best[1])

    def of(self, job: Job, snapshot: Snapshot, now: float) -> float:
        """A number that orders jobs by partition tier, then by priority. The highest comes first.

        All waiting jobs age at the same rate, so the gain with time is left out. The number changes only if a
        job is too old to age further, or if one of its factors changes. If a job waits for dependencies, call
        this once they are met.
        """
        tier, priority = max(self._by_partition(job, snapshot, now), default=(0, 1.0))
        rate = self.settings.age / self.settings.max_age if self.settings.age else 0.0
        gained = rate * (max(now, self._since(job, now)) - self._epoch)
        return round(TIER * tier + priority - gained, 3)

    def _by_partition(self, job: Job, snapshot: Snapshot, now: float) -> list[tuple[int, float]]:
        """For each of its partitions the rank of its tier, and the priority there."""
        if snapshot is not self._snapshot:
            self._snapshot, self._cluster = snapshot, _cluster(snapshot)
        settings = self.settings
        everywhere = (
            settings.age * self._age(job, now)
            + settings.association * self._associations.get(job.association, 0.0)
            + settings.fair_share * self._fair_shares.get(job.association, 0.0)
            + settings.qos * self._qos.get(job.qos, 0.0)
            - job.nice
        )
        if settings.size:
            everywhere += settings.size * self._size(job)
        found = []
        for partition in (
            snapshot.partitions[name] for name in job.partitions if name in snapshot.partitions
        ):
            priority = everywhere + self._partition(partition) + self._tres(job, partition)
            rank = self._cluster.tiers.index(partition.priority_tier)
            found.append((rank, min(max(priority, 1.0), HIGHEST)))
        return found

    def _since(self, job: Job, now: float) -> float:
        if "ACCRUE_ALWAYS" in self.settings.flags:
            return job.submit
        eligible = job.begin or job.submit
        return max(eligible, self._met.setdefault(job.id, now)) if job.dependency else eligible

    def _age(self, job: Job, now: float) -> float:
        if not self.settings.age:
            return 0.0
        aged = max(now - self._since(job, now), 0.0)
        return aged / self.settings.max_age if aged < self.settings.max_age else 1.0

    def _size(self, job: Job) -> float:
        """By nodes and cores of the cluster."""
        cluster, asked = self._cluster, amounts(job.tres)
        # The fewest nodes asked for, which may be less than Slurm expects to give.
        nodes, cpus = asked.get("node", float(job.fewest_nodes)), asked.get("cpu", 0.0)
        if self.settings.whole_nodes:
            # As soon as Slurm has tried to place a job it counts all cores of the nodes it would have.
            cpus = max(cpus, job.fewest_nodes * cluster.cpus / cluster.nodes)
        if "SMALL_RELATIVE_TO_TIME" in self.settings.flags:
            minutes = UNLIMITED if job.walltime is None else max(job.walltime / 60, 1.0)
            factor = max(nodes * cluster.cpus / cluster.nodes, cpus) / minutes / cluster.cpus
        else:
            factor = nodes / cluster.nodes
            if cpus:
                factor = (factor + cpus / cluster.cpus) / 2
        return min(max(1.0 - factor if self.settings.favours_small else factor, 0.0), 1.0)

    def _partition(self, partition: Partition) -> float:
        factor = float(partition.priority_factor)
        if "NO_NORMAL_PART" not in self.settings.flags:
            factor /= max(self._cluster.highest_factor, 1)
        return self.settings.partition * factor

    def _tres(self, job: Job, partition: Partition) -> float:
        if not self.settings.tres:
            return 0.0
        asked, there = amounts(job.tres), amounts(partition.tres)
        total = 0.0
        for name, weight in self.settings.tres.items():
            if "NO_NORMAL_TRES" in self.settings.flags:
                total += weight * asked.get(name, 0.0)
            elif there.get(name):
                total += weight * asked.get(name, 0.0) / there[name]
        return total

    def _normal(self, priorities: dict[Key, float], unless: str) -> dict[Key, float]:
        highest = max(priorities.values(), default=0.0)
        if unless in self.settings.flags or not highest:
            return priorities
        return {key: priority / highest for key, priority in priorities.items()}


def _cluster(snapshot: Snapshot) -> _Cluster:
    partitions = snapshot.partitions.values()
    return _Cluster(
        nodes=max(len(snapshot.nodes), 1),
        cpus=max(sum(node.cpus for node in snapshot.nodes.values()), 1),
        highest_factor=max((partition.priority_factor for partition in partitions), default=0),
        tiers=tuple(sorted({partition.priority_tier for partition in partitions})),
    )
