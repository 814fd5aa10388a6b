"""The machine of Slurm's nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import tomlkit

from topolane._engine import InputError, Machine
from topolane.cluster.clients.scontrol import scontrol
from topolane.slurm.records import SlurmNode


def slurm_tree() -> Machine:
    """Slurm's tree of switches. Raises InputError."""
    try:
        text = scontrol("show", "topology")
    except InputError as error:
        raise InputError(f"{error}: give --machine") from error
    if "SwitchName=" not in text:
        raise InputError("`scontrol show topology` names no switch: give --machine")
    return Machine.parse(topology_conf(text), "scontrol show topology", "slurm")


def with_resources_of(machine: Machine, nodes: Mapping[str, SlurmNode], source: str) -> Machine:
    """The same machine with the cores, the memory and the generic resources that Slurm counts of each node.

    Raises InputError if it names no node of Slurm.
    """
    if all(machine.node_named(name) is None for name in nodes):
        raise InputError(f"{source} names no node of this Slurm")
    return Machine.parse(with_node_resources(machine, nodes), source, "toml")


def with_node_resources(tree: Machine, nodes: Mapping[str, SlurmNode]) -> str:
    """The tree as a machine file, with the cores, the memory and the generic resources of each node in Slurm."""
    known = {index: nodes[name] for index in range(tree.nodes) if (name := tree.node_name(index)) in nodes}
    insides = Counter(map(_resources, known.values()))
    file = tomlkit.parse(tree.to("toml"))
    others = tomlkit.aot()
    counted = any(node.gres for node in known.values())
    for rank, (inside, _) in enumerate(insides.most_common()):
        cpus, sockets, memory, gres = inside
        if cpus % sockets:
            sockets = 1
        table = tomlkit.table() if rank else file["node"]
        table.update({"sockets": sockets, "cores-per-socket": cpus // sockets, "memory": memory})
        if counted:
            table["resources"] = dict(gres)
        if rank:
            own = [index for index, node in known.items() if _resources(node) == inside]
            table["nodes"] = tree.hostlist(own)
            others.append(table)
    if others:
        file["node-kind"] = others
    return tomlkit.dumps(file)


def _resources(node: SlurmNode) -> tuple[int, int, int, tuple[tuple[str, int], ...]]:
    return node.cpus, node.sockets, node.memory, node.gres


def topology_conf(text: str) -> str:
    """The output of `scontrol show topology` as a topology.conf. There, a switch has either nodes or
    switches, and no level.
    """
    lines = []
    for line in text.splitlines():
        words = [word for word in line.split() if not word.startswith("Level=")]
        if any(word.startswith("Switches=") for word in words):
            words = [word for word in words if not word.startswith("Nodes=")]
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"
