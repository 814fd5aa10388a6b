"""Which jobs hold which nodes, and which nodes are out of service."""

from __future__ import annotations

import dataclasses

from topolane._engine import Machine
from topolane.slurm.records import Snapshot


def holding(snapshot: Snapshot, machine: Machine) -> dict[int, list[int]]:
    """The nodes of every job that holds nodes, in any partition."""
    return {job.id: machine.nodes_named(job.nodes) for job in snapshot.jobs.values() if job.holds_nodes}


@dataclasses.dataclass(frozen=True)
class NodeCounts:
    """How many nodes are in which state."""

    idle: int
    busy: int
    """Held by a job."""
    out_of_service: int
    """Held by no job, and closed to new jobs."""


def closed_nodes(snapshot: Snapshot, machine: Machine) -> frozenset[int]:
    """Nodes that are closed to new jobs, including hosts that Slurm does not know."""
    usable = {name for name, node in snapshot.nodes.items() if node.usable}
    return frozenset(node for node in range(machine.nodes) if machine.node_name(node) not in usable)


def count(snapshot: Snapshot, machine: Machine) -> NodeCounts:
    """Counts the nodes."""
    busy = {node for nodes in holding(snapshot, machine).values() for node in nodes}
    closed = closed_nodes(snapshot, machine) - busy
    return NodeCounts(machine.nodes - len(busy) - len(closed), len(busy), len(closed))
