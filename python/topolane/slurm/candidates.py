"""The nodes that a job may use, by its partitions, its options, and reservations."""

from __future__ import annotations

import dataclasses
import re

from topolane._engine import InputError, Machine
from topolane.slurm.comments import placed_by_daemon
from topolane.slurm.records import Job, Node, Partition, Reservation, Snapshot

MOST_KNOWN = 4096
"""Limit of cached answers: jobs that each exclude different nodes must not fill the memory."""


class IneligibleJobError(Exception):
    """A job that the driver cannot place and leaves held, with the reason for its user."""


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Nodes of the machine, ascending, and the fewest cores that one of them has."""

    nodes: tuple[int, ...]
    cores: int


class NodeSelector:
    """Selects candidate nodes for one state of Slurm's partitions and nodes. Caches answers, since many jobs
    ask for the same.
    """

    def __init__(self, machine: Machine, snapshot: Snapshot) -> None:
        self._machine = machine
        self._partitions = snapshot.partitions
        self._reservations = snapshot.reservations
        self._what = selection_inputs(snapshot)
        by_index = sorted(snapshot.nodes.items(), key=lambda item: machine.node_named(item[0]) or 0)
        self._nodes = [node for name, node in by_index if machine.node_named(name) is not None]
        self._index = {node.name: machine.node_named(node.name) or 0 for node in self._nodes}
        self._known: dict[tuple[object, ...], Candidates | IneligibleJobError] = {}

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether the cached answers are also valid for this snapshot."""
        return selection_inputs(snapshot) == self._what

    def of(self, job: Job, closed: frozenset[str]) -> Candidates:
        """The nodes that `job` may use; `closed` names the reservations that exclude it. Raises
        IneligibleJobError.
        """
        required = "" if placed_by_daemon(job) else job.required
        memory = job.memory_per_node or 0
        cores = job.cpus_per_process * max(job.processes_per_node, 1)
        place = (job.partitions, job.excluded, job.features, required, job.reservation, closed)
        key = (*place, memory, cores, job.gres, job.processes_per_node)
        if key not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            try:
                self._known[key] = self._find(job, required, closed, memory, cores)
            except IneligibleJobError as reason:
                self._known[key] = reason
        found = self._known[key]
        if isinstance(found, IneligibleJobError):
            raise found
        return found

    def _find(self, job: Job, required: str, closed: frozenset[str], memory: int, cores: int) -> Candidates:
        usable = [
            node
            for node in self._nodes
            if node.cpus >= cores
            and node.memory >= memory
            and _has(node, job.features)
            and self._gives(node, job)
        ]
        wanted = {node.name for node in usable} - self._names(job.excluded)
        if job.reservation and self._reservations[job.reservation].nodes:
            wanted &= self._names(self._reservations[job.reservation].nodes)
        if required:
            wanted &= self._names(required)
        known = [self._partitions[name] for name in job.partitions if name in self._partitions]
        # A job of several partitions runs in one: the one with the most candidate nodes.
        wanted = max((wanted & self._names(each.nodes) for each in known if each.up), key=len, default=set())
        if not wanted:
            raise IneligibleJobError("no node of its partitions has what it asks for")
        cores = min(node.cpus for node in usable if node.name in wanted)
        for name in closed:
            wanted -= self._names(self._reservations[name].nodes)
        return Candidates(tuple(self._index[node.name] for node in usable if node.name in wanted), cores)

    def _gives(self, node: Node, job: Job) -> bool:
        """Whether the node has the generic resources that the job takes of each."""
        if not job.gres:
            return True
        there, processes = self._machine.resources_of(self._index[node.name]), max(job.processes_per_node, 1)
        return all(
            there.get(one.name, 0) >= one.count * (processes if one.per_process else 1) for one in job.gres
        )

    def _names(self, hosts: str) -> set[str]:
        try:
            nodes = self._machine.nodes_named(hosts) if hosts else []
        except InputError as error:
            raise IneligibleJobError(str(error)) from error
        return {self._machine.node_name(node) for node in nodes}


def selection_inputs(snapshot: Snapshot) -> tuple[dict[str, Partition], dict[str, Reservation], object]:
    """Everything that the answers depend on; whether a node is up does not matter."""
    nodes = {name: (node.cpus, node.memory, node.features) for name, node in snapshot.nodes.items()}
    return snapshot.partitions, snapshot.reservations, nodes


def _has(node: Node, features: str) -> bool:
    """Whether it has all features joined by &, or one of those joined by a vertical bar."""
    if not features:
        return True
    words = re.split(r"[&|]", features)
    if not all(re.fullmatch(r"[\w.:=-]+", word) for word in words) or {"&", "|"} <= set(features):
        raise IneligibleJobError(f"--constraint={features}: only features joined by & or by | are understood")
    return (any if "|" in features else all)(word in node.features for word in words)


def closed_to(job: Job, walltime: float, snapshot: Snapshot) -> frozenset[str]:
    """Names of the reservations that exclude it from their nodes if it starts now."""
    return frozenset(
        each.name
        for each in snapshot.reservations.values()
        if each.name != job.reservation and each.start < snapshot.time + walltime and each.end > snapshot.time
    )
