"""The engine's names of the policies and options whose decisions are hashed.

A policy without a key in KEYED has its name as its key. After a rename, put the old name there: keys, which
`decisions/expected.json` uses, stay.
"""

from __future__ import annotations

from typing import Any

from topolane import _engine
from topolane.run import Defrag, Network

BANDWIDTH_SHARE = "min_bandwidth"
"""The option for the least share of full bandwidth, of `simulate` and of `Scheduler.submit`."""
MOVES = "defrag"
"""The option for moves of running jobs."""
SPEED_UP = "scenario"
"""The option for the reduction of run time that isolation brings."""

PLAIN: dict[str, Any] = {}
HALF: dict[str, Any] = {BANDWIDTH_SHARE: 0.5}
SEGMENT: dict[str, Any] = {"segment": 8}
MOVED: dict[str, Any] = {MOVES: Defrag(most=3, per_start=0.05, pause=10.0)}

KEYED: dict[str, tuple[str, dict[str, Any]]] = {
    "segments-8": ("segments", SEGMENT),
    "segments-dedicated-8": ("segments-dedicated", SEGMENT),
    "owned": ("dedicated", PLAIN),
    "quiet": ("quiet-neighborhoods", PLAIN),
    "owned-half": ("dedicated", HALF),
    "owned-defrag": ("dedicated", MOVED),
    "owned-half-defrag": ("dedicated", HALF | MOVED),
    "isolated-v1": ("isolated", {SPEED_UP: "v1"}),
}
"""By key: the engine's name of the policy, and the options of a run."""
RECORDED = "recorded"
"""The name of the policy, and of the queue, that repeat a log."""
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    name: (name, PLAIN)
    for name, _ in _engine.policies()
    if name != RECORDED and (name, PLAIN) not in KEYED.values()
} | KEYED
"""All of the engine's policies, as in KEYED."""
NO_TREE = ("isolated-global",)
"""Keys of policies that do not work on trees."""
DRAGONFLY = ("first-fit", "random", "level-spread", "isolated-global", "isolated", "least-slowdown")
"""Keys of policies whose decisions on a dragonfly are hashed."""

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
