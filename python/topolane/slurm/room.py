"""The room on the machine of a Slurm: how many more jobs fit now, and which GPUs no job can use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topolane._engine import InputError, Machine, State
from topolane.slurm.client import SlurmError, connect
from topolane.slurm.fabric import with_resources_of
from topolane.slurm.inspection import names_in, on_machine
from topolane.slurm.shadow import share_of

if TYPE_CHECKING:
    from topolane.slurm.records import Snapshot


def state_now(machine: Machine) -> tuple[State, int]:
    """Who holds what in Slurm now, and how many jobs could not be told. Raises InputError if Slurm does not answer."""
    try:
        slurm = connect(None, None)
        try:
            snapshot = slurm.snapshot()
        finally:
            slurm.close()
    except SlurmError as error:
        raise InputError(str(error)) from error
    return state_of(machine, snapshot)


def state_of(machine: Machine, snapshot: Snapshot) -> tuple[State, int]:
    """Who holds what in a snapshot, with what Slurm counts of each node; and how many jobs hold nodes that the machine does not
    have, or that others hold already.
    """
    counted = with_resources_of(machine, snapshot.nodes, machine.name)
    state, skipped = State(counted), 0
    for job in snapshot.jobs.values():
        if not job.holds_nodes:
            continue
        nodes = on_machine(job.nodes, counted)
        cpus = [node.cpus for name in names_in(job.nodes) if (node := snapshot.nodes.get(name)) is not None]
        try:
            state.hold(nodes, share_of(job, cpus), id=job.id)
        except InputError:
            skipped += 1
        else:
            skipped += not nodes
    usable = {name for name, node in snapshot.nodes.items() if node.usable}
    state.take_out([node for node in range(counted.nodes) if counted.node_name(node) not in usable])
    return state, skipped


def room_of(machine: Machine, snapshot: Snapshot) -> dict[str, Any]:
    """The figures of a snapshot, as `topolane room --slurm --json` prints them."""
    state, _ = state_of(machine, snapshot)
    return state.room()
