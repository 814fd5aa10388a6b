"""Names of hosts that a machine may lack."""

from __future__ import annotations

from collections.abc import Iterable

from topolane._engine import Machine


def hostlist(machine: Machine | None, names: Iterable[str]) -> str:
    """Hosts as a hostlist; those that the machine lacks by their names."""
    kept = sorted(set(names))
    known = {name: None if machine is None else machine.node_named(name) for name in kept}
    nodes = sorted(node for node in known.values() if node is not None)
    listed = [machine.hostlist(nodes)] if machine is not None and nodes else []
    return ",".join([*listed, *(name for name, node in known.items() if node is None)])


def on_machine(names: Iterable[str], machine: Machine | None) -> list[int]:
    """The nodes of these names that a machine has, ascending."""
    found = {None if machine is None else machine.node_named(name) for name in names}
    return sorted(node for node in found if node is not None)
