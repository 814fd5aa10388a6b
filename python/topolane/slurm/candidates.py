"""The nodes that a job may use at all: its partitions, its wishes, and reservations."""

from __future__ import annotations

import dataclasses
import re

from topolane._engine import InputError, Machine
from topolane.slurm.comments import placed_here
from topolane.slurm.records import Job, Node, Partition, Reservation, Snapshot

MOST_KNOWN = 4096
"""Answers that are kept: users who each exclude other nodes must not fill the memory."""


class Unfit(Exception):
    """A job that is left held, and what its user is told."""


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Nodes of the machine, ascending, and the fewest cores that one of them has."""

    nodes: tuple[int, ...]
    cores: int


class Nodes:
    """Answers for one state of Slurm's partitions and nodes; most jobs ask for one of a few things."""

    def __init__(self, machine: Machine, snapshot: Snapshot) -> None:
        self._machine = machine
        self._partitions = snapshot.partitions
        self._reservations = snapshot.reservations
        self._what = what_they_are(snapshot)
        by_index = sorted(snapshot.nodes.items(), key=lambda item: machine.node_named(item[0]) or 0)
        self._nodes = [node for name, node in by_index if machine.node_named(name) is not None]
        self._index = {node.name: machine.node_named(node.name) or 0 for node in self._nodes}
        self._known: dict[tuple[object, ...], Candidates | Unfit] = {}

    def still_hold(self, snapshot: Snapshot) -> bool:
        """Whether the answers are those for this snapshot as well."""
        return what_they_are(snapshot) == self._what

    def of(self, job: Job, closed: frozenset[str]) -> Candidates:
        """The nodes that `job` may use; `closed` names reservations that keep it off. Raises Unfit."""
        required = "" if placed_here(job) else job.required
        memory = job.memory_per_node or 0
        cores = job.cpus_per_process * max(job.processes_per_node, 1)
        key = (job.partitions, job.excluded, job.features, required, job.reservation, closed, memory, cores)
        if key not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            try:
                self._known[key] = self._find(job, required, closed, memory, cores)
            except Unfit as reason:
                self._known[key] = reason
        found = self._known[key]
        if isinstance(found, Unfit):
            raise found
        return found

    def _find(self, job: Job, required: str, closed: frozenset[str], memory: int, cores: int) -> Candidates:
        usable = [
            node
            for node in self._nodes
            if node.cpus >= cores and node.memory >= memory and _has(node, job.features)
        ]
        wanted = {node.name for node in usable} - self._names(job.excluded)
        if job.reservation and self._reservations[job.reservation].nodes:
            wanted &= self._names(self._reservations[job.reservation].nodes)
        if required:
            wanted &= self._names(required)
        known = [self._partitions[name] for name in job.partitions if name in self._partitions]
        # Of several partitions a job runs in one: in that which has most for it.
        wanted = max((wanted & self._names(each.nodes) for each in known if each.up), key=len, default=set())
        if not wanted:
            raise Unfit("no node of its partitions has what it asks for")
        cores = min(node.cpus for node in usable if node.name in wanted)
        for name in closed:
            wanted -= self._names(self._reservations[name].nodes)
        return Candidates(tuple(self._index[node.name] for node in usable if node.name in wanted), cores)

    def _names(self, hosts: str) -> set[str]:
        try:
            nodes = self._machine.nodes_named(hosts) if hosts else []
        except InputError as error:
            raise Unfit(str(error)) from error
        return {self._machine.node_name(node) for node in nodes}


def what_they_are(snapshot: Snapshot) -> tuple[dict[str, Partition], dict[str, Reservation], object]:
    """All that the answers depend on, and not whether a node is up."""
    nodes = {name: (node.cpus, node.memory, node.features) for name, node in snapshot.nodes.items()}
    return snapshot.partitions, snapshot.reservations, nodes


def _has(node: Node, features: str) -> bool:
    """Whether it has the features joined by &, or one of those joined by |."""
    if not features:
        return True
    words = re.split(r"[&|]", features)
    if not all(re.fullmatch(r"[\w.:=-]+", word) for word in words) or {"&", "|"} <= set(features):
        raise Unfit(f"--constraint={features}: only features joined by & or by | are understood")
    return (any if "|" in features else all)(word in node.features for word in words)


def closed_to(job: Job, walltime: float, snapshot: Snapshot) -> frozenset[str]:
    """Names of the reservations whose nodes it must not touch if it starts now."""
    return frozenset(
        each.name
        for each in snapshot.reservations.values()
        if each.name != job.reservation and each.start < snapshot.time + walltime and each.end > snapshot.time
    )
