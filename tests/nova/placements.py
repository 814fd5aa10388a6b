"""Settings of the scheduler, and where servers are on a tree."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

STOCK: dict[str, dict[str, Any]] = {}
"""Nova as it comes."""
NOVA_FILTERS = [
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
]
"""As `enabled_filters` is by default."""
COMPACT = {"topolane:placement": "compact"}
ISOLATED = {"topolane:placement": "isolated"}
SPREAD = {"topolane:placement": "spread"}

Tree = Mapping[str, tuple[str, ...]]
"""The groups that a host is in, from the leaf up."""


def ours(scheduler: Mapping[str, Any] | None = None, **options: object) -> dict[str, dict[str, Any]]:
    """The plugin in addition to all that Nova has, as docs/guides/nova.md says, looking at its topology every time."""
    return {
        "filter_scheduler": {
            "available_filters": [
                "nova.scheduler.filters.all_filters",
                "topolane.nova.filter.TopolaneFilter",
            ],
            "enabled_filters": [*NOVA_FILTERS, "TopolaneFilter"],
            "weight_classes": [
                "nova.scheduler.weights.all_weighers",
                "topolane.nova.weigher.TopolaneWeigher",
            ],
            **(scheduler or {}),
        },
        "topolane": {"topology_lifetime": 0.0, **options},
    }


def tree(leaves: Sequence[Sequence[str]], leaves_in_pod: int) -> Tree:
    return {
        host: (f"leaf{index}", f"pod{index // leaves_in_pod}")
        for index, hosts in enumerate(leaves)
        for host in hosts
    }


def write(path: Path, tree: Tree) -> None:
    """The tree as a topology.conf of Slurm."""
    leaves: dict[str, list[str]] = {}
    pods: dict[str, list[str]] = {}
    for host, (leaf, pod) in tree.items():
        leaves.setdefault(leaf, []).append(host)
        if leaf not in pods.setdefault(pod, []):
            pods[pod].append(leaf)
    lines = [f"SwitchName={leaf} Nodes={','.join(hosts)}" for leaf, hosts in leaves.items()]
    lines += [f"SwitchName={pod} Switches={','.join(below)}" for pod, below in pods.items()]
    lines += [f"SwitchName=core Switches={','.join(pods)}"]
    path.write_text("\n".join(lines) + "\n")


def leaves(tree: Tree, hosts: Iterable[str]) -> set[str]:
    return {tree[host][0] for host in hosts}


def pods(tree: Tree, hosts: Iterable[str]) -> set[str]:
    return {tree[host][1] for host in hosts}


def hops(tree: Tree, hosts: Collection[str]) -> int:
    """Inter-switch links over all pairs: 0 in a leaf, 2 in a pod, else 4."""
    return sum(
        0 if one[0] == other[0] else 2 if one[1] == other[1] else 4
        for one, other in itertools.combinations([tree[host] for host in hosts], 2)
    )


def crossed(tree: Tree, hosts: Collection[str]) -> set[str]:
    """Leaves and pods that a group is both inside and outside of: it may use their uplinks."""
    found = set()
    for level in (0, 1):
        groups = {tree[host][level] for host in hosts}
        found |= groups if len(groups) > 1 else set()
    return found
