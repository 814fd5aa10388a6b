"""The engine's names of the policies and options whose decisions are hashed.

After a rename, change the values here. The keys, which `decisions/expected.json` uses, stay.
"""

from __future__ import annotations

from typing import Any

from topolane.run import Defrag, Network

BANDWIDTH_SHARE = "min_bandwidth"
"""The option for the least share of full bandwidth, of `simulate` and of `Scheduler.submit`."""
MOVES = "defrag"
"""The option for moves of running jobs."""
SPEED_UP = "scenario"
"""The option for the reduction of run time that isolation brings."""

HALF: dict[str, Any] = {BANDWIDTH_SHARE: 0.5}
SEGMENT: dict[str, Any] = {"segment": 8}
MOVED: dict[str, Any] = {MOVES: Defrag(most=3, per_start=0.05, pause=10.0)}

POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "first-fit": ("first-fit", {}),
    "random": ("random", {}),
    "scattered": ("scattered", {}),
    "slurm-tree": ("slurm-tree", {}),
    "slurm-cons-tres": ("slurm-cons-tres", {}),
    "kueue-tas": ("kueue-tas", {}),
    "kueue-tas-best-fit": ("kueue-tas-best-fit", {}),
    "kueue-tas-least-free": ("kueue-tas-least-free", {}),
    "hop-bytes": ("hop-bytes", {}),
    "hop-bytes-exact": ("hop-bytes-exact", {}),
    "least-slowdown": ("least-slowdown", {}),
    "bunch": ("bunch", {}),
    "spread": ("spread", {}),
    "best-fit": ("best-fit", {}),
    "fgd": ("fgd", {}),
    "gpu-packing": ("gpu-packing", {}),
    "slurm-block": ("slurm-block", {}),
    "segments": ("segments", {}),
    "segments-8": ("segments", SEGMENT),
    "segments-isolated": ("segments-isolated", {}),
    "segments-dedicated": ("segments-dedicated", {}),
    "segments-dedicated-8": ("segments-dedicated", SEGMENT),
    "isolated": ("isolated", {}),
    "isolated-hop-bytes": ("isolated-hop-bytes", {}),
    "owned": ("dedicated", {}),
    "jigsaw": ("jigsaw", {}),
    "jigsaw-relaxed": ("jigsaw-relaxed", {}),
    "laas": ("laas", {}),
    "quiet": ("quiet-neighborhoods", {}),
    "owned-half": ("dedicated", HALF),
    "owned-defrag": ("dedicated", MOVED),
    "owned-half-defrag": ("dedicated", HALF | MOVED),
    "isolated-v1": ("isolated", {SPEED_UP: "v1"}),
    "level-spread": ("level-spread", {}),
    "isolated-global": ("isolated-global", {}),
}
"""By key: the engine's name of the policy, and the options of a run."""
NO_TREE = ("isolated-global",)
"""Keys of policies that do not work on trees."""
DRAGONFLY = ("first-fit", "random", "level-spread", "isolated-global", "isolated", "least-slowdown")
"""Keys of policies whose decisions on a dragonfly are hashed."""
RECORDED = "recorded"
"""The name of the policy, and of the queue, that repeat a log."""

NETWORKS: dict[str, Network | None] = {
    "none": None,
    "congestion": Network("congestion", "d-mod-k"),
    "max-min": Network("max-min", "adaptive"),
    "flows": Network("max-min-flows", "s-mod-k", kill_at_walltime=True),
    "full": Network("full", "random", cores_per_node="auto"),
}
"""By key: the model of contention and the routing."""

SITE_POLICIES = {
    name: name
    for name in (
        "stay",
        "inter-site-traffic",
        "processors",
        "paper",
        "predicted-time",
        "predicted-loss",
        "make-room",
    )
}
"""By key: the engine's name."""
