"""The machine of Slurm's nodes, and checks that it matches this Slurm."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import tomlkit

from topolane import sources, texts
from topolane._engine import InputError, Machine
from topolane.live.clients.scontrol import configuration, scontrol
from topolane.slurm.config import Config
from topolane.slurm.records import Node, Snapshot
from topolane.slurm.scontrol import hook_answer


def machine_of(config: Config, snapshot: Snapshot) -> Machine:
    """The machine in the configured file, or else the tree and the nodes in Slurm. Raises InputError."""
    if config.topology is not None:
        return sources.machine(config.topology)
    try:
        text = scontrol("show", "topology")
    except InputError as error:
        raise InputError(f"{error}: name a topology file") from error
    tree = Machine.parse(topology_conf(text), "scontrol show topology", "slurm")
    return Machine.parse(with_node_resources(tree, snapshot.nodes), "scontrol show topology", "toml")


def net_of(config: Config) -> str | None:
    """The output of ibnetdiscover that describes the machine; None if it comes from another format."""
    if config.topology is None or not Path(config.topology).is_file():
        return None
    text = texts.read_text(config.topology, texts.LARGE)
    return text if Machine.format_of(text, config.topology) == "ibnetdiscover" else None


def with_node_resources(tree: Machine, nodes: Mapping[str, Node]) -> str:
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


def _resources(node: Node) -> tuple[int, int, int, tuple[tuple[str, int], ...]]:
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


def check_partitions(partitions: Collection[str], snapshot: Snapshot) -> None:
    """Raises InputError if Slurm lacks one of these partitions."""
    for name in partitions:
        if name not in snapshot.partitions:
            raise InputError(f"Slurm has no partition {name}; there are {', '.join(snapshot.partitions)}")


def service_hosts(config: Config, machine: Machine) -> list[int]:
    """The hosts of storage and services. Raises InputError."""
    try:
        return [] if config.service is None else machine.nodes_named(config.service)
    except InputError as error:
        raise InputError(f"service = {config.service!r}: {error}") from error


def check_nodes(machine: Machine, snapshot: Snapshot, extra: Collection[str] = ()) -> None:
    """Raises InputError unless the machine's nodes are those of Slurm and the hosts in `extra`."""
    ours = {machine.node_name(node) for node in range(machine.nodes)} - (set(extra) - set(snapshot.nodes))
    for odd, text in (
        (sorted(ours - set(snapshot.nodes)), "is in the topology and not in Slurm"),
        (sorted(set(snapshot.nodes) - ours), "is in Slurm and not in the topology"),
    ):
        if odd:
            raise InputError(f"node {odd[0]} {text} ({len(odd)} nodes are)")


def check_rights(partitions: Collection[str]) -> None:
    """Raises InputError unless jobs are held on submission, and this user can start them."""
    told = configuration()
    plugins = told.get("JobSubmitPlugins", "")
    if "lua" not in plugins.split(","):
        raise InputError(
            f"JobSubmitPlugins={plugins} has no lua: Slurm would start the jobs before the daemon chooses their nodes "
            "(`topolane slurm install` says what to do)"
        )
    slurms = re.match(r"(\S+)\((\d+)\)", told.get("SlurmUser", ""))
    if slurms is not None and os.geteuid() not in (0, int(slurms[2])):
        raise InputError(f"user {os.geteuid()} may not start the jobs of others: run as {slurms[1]} or root")
    held = re.search(r"topolane: the jobs of ([^\n(]+) \(", hook_answer())
    for name in partitions:
        if held is None or name not in held[1].split(", "):
            raise InputError(
                f"slurmctld does not hold the jobs of partition {name} on submission: `topolane slurm install`"
            )
