"""A waiting job as a request to the scheduler, or the reason why it cannot be one."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable

from topolane._engine import InputError, Machine
from topolane.slurm.records import Job, Snapshot


@dataclasses.dataclass(frozen=True)
class Ask:
    """What the scheduler is asked for; the same ask twice means that nothing has changed."""

    nodes: int
    walltime: float
    begin: float
    share: tuple[int, int] | None
    """(cores, bytes of memory) of each node, or None for whole nodes."""
    eligible: tuple[int, ...] | None


def placed(hosts: str, *, as_asked: bool) -> str:
    """The comment on a job that is released onto `hosts`; `as_asked` if its user named them."""
    return f"topolane: on {hosts}" + (", as asked" if as_asked else "")


def placed_here(job: Job) -> bool:
    """Whether the nodes that it requires are those it was once given, not its user's wish."""
    return job.comment.startswith("topolane: on ") and not job.comment.endswith(", as asked")


class Unfit(Exception):
    """A job that is left held, and what its user is told."""


def ask_of(job: Job, snapshot: Snapshot, machine: Machine, *, whole_nodes: bool) -> Ask:
    """What `job` asks for.

    whole_nodes: whether every job of its partition has its nodes to itself. Raises Unfit.
    """
    if job.array_tasks:
        raise Unfit("job arrays are not placed: submit the tasks as jobs")
    if job.reservation:
        raise Unfit(f"jobs in a reservation ({job.reservation}) are not placed: submit without it")
    usable = _eligible(job, snapshot, machine)
    if not usable:
        raise Unfit("no node of its partitions has what it asks for")
    cores = min(snapshot.nodes[name].cpus for name in usable)
    nodes = _node_count(job, cores)
    if job.required and not placed_here(job):
        named = _names(job.required, machine)
        if len(named) != nodes:
            raise Unfit(
                f"--nodelist names {len(named)} nodes for a job of {nodes}: name all of them, or exclude others"
            )
        usable = [name for name in usable if name in named]
    indices = _indices(usable, machine)
    return Ask(
        nodes=nodes,
        walltime=math.inf if job.walltime is None else job.walltime,
        begin=job.begin,
        share=None if whole_nodes or job.exclusive else _share(job, nodes),
        eligible=None if len(indices) == machine.nodes else tuple(indices),
    )


def _eligible(job: Job, snapshot: Snapshot, machine: Machine) -> list[str]:
    """Names of the nodes that it may use at all, in the machine's order."""
    partitions = [snapshot.partitions[name] for name in job.partitions if name in snapshot.partitions]
    names: set[str] = set()
    for partition in partitions:
        names |= _names(partition.nodes, machine)
    wanted = {feature for feature in job.features.split("&") if feature}
    if any(not re.fullmatch(r"[\w.-]+", feature) for feature in wanted):
        raise Unfit(f"--constraint={job.features}: only features joined by & are understood")
    names -= _names(job.excluded, machine)
    kept = [name for name in names if name in snapshot.nodes and wanted <= snapshot.nodes[name].features]
    return sorted(kept, key=lambda name: machine.node_named(name) or 0)


def _names(hosts: str, machine: Machine) -> set[str]:
    try:
        return {machine.node_name(node) for node in machine.nodes_named(hosts)} if hosts else set()
    except InputError as error:
        raise Unfit(str(error)) from error


def _indices(names: Iterable[str], machine: Machine) -> list[int]:
    found = (machine.node_named(name) for name in names)
    return sorted(node for node in found if node is not None)


def _node_count(job: Job, cores: int) -> int:
    """The fewest nodes that hold its processes. Of a range the fewest are taken."""
    per_node = max(cores // job.cpus_per_process, 1)
    if job.processes_per_node:
        per_node = min(per_node, job.processes_per_node)
    count = max(job.fewest_nodes, math.ceil(job.processes / per_node))
    if job.most_nodes > job.fewest_nodes:
        count = min(count, job.most_nodes)
    return count


def _share(job: Job, nodes: int) -> tuple[int, int]:
    processes = job.processes_per_node or math.ceil(job.processes / nodes)
    cores = max(processes * job.cpus_per_process, 1)
    memory = job.memory_per_node if job.memory_per_cpu is None else cores * job.memory_per_cpu
    return cores, memory or 0
