"""What stands in the way of a job that the plugin refused: where Slurm would let it, and stock jobs that keep off isolated ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from topolane._engine import Decision, Machine
from topolane.cluster.explain import InTheWay, Why
from topolane.cluster.hypothetical import NodeSlots
from topolane.cluster.links import LISTED, Words, crossed, jobs_named
from topolane.cluster.view import ISOLATED, View, Waiting
from topolane.slurm.inspection import SlurmInspection, names_in, on_machine
from topolane.slurm.records import SlurmJob
from topolane.slurm.wait_reasons import JobWaitReason, idle_of
from topolane.units import plural

MOST_GROUPS = 12
WORDS = Words()


def way_of(
    look: SlurmInspection, view: View, job: SlurmJob, waiting: Waiting, wait: JobWaitReason
) -> InTheWay:
    """What keeps a refused job from a place, at this moment. The machine is known."""
    machine = look.machine
    assert machine is not None
    idle = idle_of(look, wait.offered)
    why = Why(machine, view, waiting, _slots(look, view, machine, job, wait.offered), WORDS)
    is_stock = wait.refused is not None and wait.refused.kind == "no-area"
    answer = None if is_stock else why.ask()
    return InTheWay(
        machine.hostlist(wait.offered),
        machine.hostlist(idle),
        len(idle),
        where(machine, idle),
        isinstance(answer, Decision),
        list(_isolated_around(machine, view, idle)) if is_stock else why.obstacles(answer),
        why.must_end(answer) if job.exclusive else [],
    )


def _slots(
    look: SlurmInspection, view: View, machine: Machine, job: SlurmJob, nodes: Collection[int]
) -> Callable[[Collection[int]], NodeSlots]:
    """The nodes that a job may use once some jobs have ended: what Slurm offered, and what it may offer once the jobs there have
    ended. Slurm knows which nodes have room for a job that shares them.
    """
    offered = frozenset(nodes)
    may_use = offered | (_others(look, machine, job) & view.busy) if job.exclusive else offered

    def slots(gone: Collection[int]) -> NodeSlots:
        left = [one.nodes for one in view.running if one.id not in gone] if job.exclusive else []
        free = may_use.difference(look.closed, *left)
        nodes = range(machine.nodes)
        return NodeSlots(
            tuple(int(node in free) for node in nodes),
            tuple(int(node in may_use) for node in nodes),
            stacked=False,
        )

    return slots


def _others(look: SlurmInspection, machine: Machine, job: SlurmJob) -> frozenset[int]:
    """The nodes of the job's partitions that take new jobs."""
    snapshot = look.snapshot
    if snapshot is None or job.required or job.features or job.reservation:
        return frozenset()
    named = [snapshot.partitions[name].nodes for name in job.partitions if name in snapshot.partitions]
    listed = {node for hosts in named for node in on_machine(hosts, machine)}
    excluded = (machine.node_named(name) for name in names_in(job.excluded))
    return frozenset(listed - look.closed - {node for node in excluded if node is not None})


def _isolated_around(machine: Machine, view: View, idle: Collection[int]) -> Iterator[str]:
    """The groups with idle nodes whose uplinks isolated jobs have for themselves: stock Slurm's nodes keep off these."""
    jobs = [job for job in view.claiming if job.link_use == ISOLATED]
    over = crossed(machine, jobs)
    users: dict[str, list[str]] = {}
    for job in jobs:
        for one in over.get(job.id, ()):
            users.setdefault(one.name, []).append(job.name)
    counted = {name: count for _, name, count, _ in machine.outline(list(idle))}
    found = sorted((-counted[group], group) for group in users if counted.get(group))
    for less, group in found[:LISTED]:
        named = users[group]
        yield (
            f"{group} has {plural(-less, 'idle node')}, but {jobs_named(named)} "
            f"{'has' if len(named) == 1 else 'have'} {group}'s uplinks for {'itself' if len(named) == 1 else 'themselves'}."
        )
    if len(found) > LISTED:
        yield f"So it is with {len(found) - LISTED} more."


def where(machine: Machine, nodes: Collection[int]) -> str:
    """Nodes by the groups of the lowest levels: `pod1 5 (leaf1 2, leaf2 3)`."""
    rows = machine.outline(sorted(nodes))
    has_pods = any(level > 2 for level, *_ in rows)
    parts: list[tuple[str, list[str]]] = []
    for level, name, count, _ in rows:
        if level == (2 if has_pods else 1):
            parts.append((f"{name} {count}", []))
        elif level == 1:
            parts[-1][1].append(f"{name} {count}")
    said = [f"{group} ({', '.join(inside)})" if inside else group for group, inside in parts]
    return ", ".join(said[:MOST_GROUPS]) + (", ..." if len(said) > MOST_GROUPS else "")
