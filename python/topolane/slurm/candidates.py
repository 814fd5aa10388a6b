"""Finds the nodes that Slurm could have given to a job, as far as its records show."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from topolane._engine import InputError, Machine
from topolane.slurm.records import Reservation, SlurmJob, SlurmNode, Snapshot


class HostLists:
    """Converts host lists of all of Slurm's nodes, including nodes that the machine does not name."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self.names = tuple(nodes)
        self._all = Machine.of("slurm", [(["slurm"], list(self.names))]) if self.names else None

    def read(self, hosts: str) -> set[str] | None:
        """The names in a host list; None if one of them is not a node of Slurm."""
        if not hosts:
            return set()
        try:
            return set() if self._all is None else {self.names[node] for node in self._all.nodes_named(hosts)}
        except InputError:
            return None

    def text(self, names: Iterable[str]) -> str:
        """The host list of these nodes of Slurm."""
        if self._all is None:
            return ""
        found = (self._all.node_named(name) for name in names)
        return self._all.hostlist(sorted(node for node in found if node is not None))


def could_use(job: SlurmJob, snapshot: Snapshot, lists: HostLists) -> tuple[set[str], list[str]]:
    """The nodes, idle or not, that a job may use, and the options that are ignored. With several
    reservations, a job may use the nodes of each.
    """
    ignored: list[str] = [job.unsupported_option] if job.unsupported_option else []
    nodes: set[str] = set()
    for name in job.partitions:
        if name in snapshot.partitions:
            nodes |= lists.read(snapshot.partitions[name].nodes) or set()
    nodes -= lists.read(job.excluded) or set()
    nodes = {name for name in nodes if _has_room(snapshot.nodes[name], job)}
    has = _features(job.features)
    if has is None:
        ignored.append(f"--constraint={job.features}")
    else:
        nodes = {name for name in nodes if has(snapshot.nodes[name].features)}
    given = lists.read(job.allocated) or set()
    required = lists.read(job.required)
    if required and len(required) == len(given):
        nodes &= required
    elif job.required:
        ignored.append("--nodelist")
    if job.switches:
        ignored.append("--switches")
    named = job.reservation.split(",")
    own = [snapshot.reservations[name] for name in named if name in snapshot.reservations]
    if own and all(each.nodes for each in own):
        nodes &= {name for each in own for name in lists.read(each.nodes) or ()}
    for other in snapshot.reservations.values():
        if other not in own and _meets(other, job):
            nodes -= lists.read(other.nodes) or set()
    return nodes | given, ignored


def _has_room(node: SlurmNode, job: SlurmJob) -> bool:
    """Whether the idle node has the cores, memory and generic resources that the job takes of each node."""
    processes = max(job.processes_per_node, 1)
    there = dict(node.gres)
    for name, count in node.gres:
        kind, _, model = name.partition(":")
        if model:
            there[kind] = there.get(kind, 0) + count
    return (
        node.cpus >= job.cpus_per_process * processes
        and node.memory >= (job.memory_per_node or 0)
        and all(
            there.get(one.name, 0) >= one.count * (processes if one.per_process else 1) for one in job.gres
        )
    )


def _features(text: str) -> Callable[[frozenset[str]], bool] | None:
    """A function that checks a node's features against a constraint with & (all) or | (any); None if the
    constraint is not understood.
    """
    if not text:
        return lambda _: True
    words = re.split(r"[&|]", text)
    if not all(re.fullmatch(r"[\w.:=-]+", word) for word in words) or {"&", "|"} <= set(text):
        return None
    chosen = any if "|" in text else all
    return lambda features: chosen(word in features for word in words)


def _meets(reservation: Reservation, job: SlurmJob) -> bool:
    walltime = float("inf") if job.walltime is None else job.walltime
    return (
        bool(reservation.nodes) and reservation.start < job.start + walltime and reservation.end > job.start
    )
