"""The room on the machine of a Slurm: how many more jobs fit now, and which GPUs no job can use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from topolane._engine import InputError, Machine, State
from topolane.slurm.client import SlurmError, connect
from topolane.slurm.fabric import with_resources_of

if TYPE_CHECKING:
    from topolane.slurm.records import SlurmNode, Snapshot


SMALLEST_MEMORY = 1 << 20
"""Bytes. Slurm counts memory in MiB, and every job takes some where it counts it at all."""


class Now(NamedTuple):
    """The state of Slurm for `topolane room`."""

    state: State
    machine: Machine
    """With what Slurm counts of each node."""
    unknown: list[str]
    """Nodes of Slurm that the machine lacks."""


def now(machine: Machine) -> Now:
    """What is held in Slurm now. Raises InputError if Slurm does not answer."""
    try:
        slurm = connect(None, None)
        try:
            snapshot = slurm.snapshot()
        finally:
            slurm.close()
    except SlurmError as error:
        raise InputError(str(error)) from error
    return at(machine, snapshot)


def at(machine: Machine, snapshot: Snapshot) -> Now:
    """What is held in a snapshot.

    Slurm's sums of each node are read, not its jobs: jobs tell their GPUs only by type, or not at all without
    AccountingStorageTRES=gres/gpu.
    """
    counted = with_resources_of(machine, snapshot.nodes, machine.name)
    state, out = State(counted), []
    for index in range(counted.nodes):
        node = snapshot.nodes.get(counted.node_name(index))
        if node is None or not node.usable:
            out.append(index)
        elif (held := _held(node)) is not None:
            state.hold([index], held)
    state.take_out(out)
    return Now(state, counted, [name for name in snapshot.nodes if counted.node_named(name) is None])


def _held(node: SlurmNode) -> dict[str, int] | None:
    """What jobs hold of a node; None if nothing. CPUs that Slurm keeps for itself are held once any job is there."""
    there = dict(node.gres)
    gres = {name: min(count, there.get(name, 0)) for name, count in node.gres_used if count}
    if not (node.cpus_used or node.memory_used or gres):
        return None
    cores = min(node.cpus_used + node.cpus_reserved, node.cpus)
    return {"cores": max(cores, 1), "memory": min(node.memory_used, node.memory), **gres}


def room_of(machine: Machine, snapshot: Snapshot) -> dict[str, Any]:
    """The figures of a snapshot, as `topolane room --slurm --json` prints them."""
    return at(machine, snapshot).state.room(smallest={"cores": 1, "memory": SMALLEST_MEMORY})
