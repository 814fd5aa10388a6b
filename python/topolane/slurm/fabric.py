"""The tree that Slurm's nodes are on, and whether it is that of this Slurm."""

from __future__ import annotations

import subprocess

import topolane
from topolane._engine import InputError, Machine
from topolane.slurm.config import Config
from topolane.slurm.records import Snapshot


def machine_of(config: Config) -> Machine:
    """The fabric: the configured file, or what Slurm itself says. Raises InputError."""
    if config.topology is not None:
        return topolane.machine(config.topology)
    try:
        done = subprocess.run(["scontrol", "show", "topology"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"scontrol show topology cannot be run ({error}): name a topology file") from error
    if done.returncode or not done.stdout.strip():
        said = done.stderr.strip() or "nothing"
        raise InputError(f"scontrol show topology says {said}: name a topology file")
    return Machine.parse(topology_conf(done.stdout), "scontrol show topology", "slurm")


def topology_conf(shown: str) -> str:
    """What `scontrol show topology` prints as a topology.conf: there a switch has nodes or switches, and
    its level is not named."""
    lines = []
    for line in shown.splitlines():
        words = [word for word in line.split() if not word.startswith("Level=")]
        if any(word.startswith("Switches=") for word in words):
            words = [word for word in words if not word.startswith("Nodes=")]
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


def check(config: Config, machine: Machine, snapshot: Snapshot) -> None:
    """Whether machine and partitions are Slurm's. Raises InputError."""
    for name in config.partitions:
        if name not in snapshot.partitions:
            raise InputError(f"Slurm has no partition {name}; there are {', '.join(snapshot.partitions)}")
    ours = {machine.node_name(node) for node in range(machine.nodes)}
    for odd, text in (
        (sorted(ours - set(snapshot.nodes)), "is in the topology and not in Slurm"),
        (sorted(set(snapshot.nodes) - ours), "is in Slurm and not in the topology"),
    ):
        if odd:
            raise InputError(f"node {odd[0]} {text} ({len(odd)} nodes are)")
