"""How nodes are kept for a group of pods until it runs: taints that only its pods tolerate, and a note on the pods that must go."""

from __future__ import annotations

import hashlib
from typing import Any

from topolane.kubernetes.client import ConflictError, KubernetesCluster, NotFoundError
from topolane.kubernetes.machine import NODES
from topolane.kubernetes.objects import KubernetesNode, Pod

ROOM, LINKS = "topolane.io/room-for", "topolane.io/links-for"
"""Keys of taints: of nodes that a group gets, and of nodes that stay closed until it runs."""
EVICTED = "topolane.io/evicted-for"
"""The annotation by which topolane-scheduler knows that all pods of a group must go: no pod joins it any more."""
LONGEST = 63
"""Letters of the value of a taint."""
ATTEMPTS = 20
"""How often an object that changes meanwhile is changed."""


def value_of(group: str) -> str:
    """How taints name the group NAMESPACE/NAME."""
    text = group.replace("/", ".")
    if len(text) <= LONGEST:
        return text
    mark = hashlib.sha256(group.encode()).hexdigest()[:16]
    return f"{text[: LONGEST - len(mark) - 1].rstrip('.-')}-{mark}"


def taint(key: str, group: str) -> dict[str, str]:
    """The taint of a node that is kept for a group."""
    return {"key": key, "value": value_of(group), "effect": "NoSchedule"}


def is_held(node: KubernetesNode, key: str, group: str) -> bool:
    """Whether a node is kept for a group."""
    return any((one.get("key"), one.get("value")) == (key, value_of(group)) for one in node.taints)


def hold(cluster: KubernetesCluster, name: str, key: str, group: str) -> None:
    """Keeps a node for a group. Raises ClusterError."""
    _change(cluster, f"{NODES}/{name}", "taints", taint(key, group), is_wanted=True)


def release(cluster: KubernetesCluster, name: str, group: str) -> None:
    """Keeps a node for the group no longer. A node that is gone is passed over. Raises ClusterError."""
    for key in (ROOM, LINKS):
        try:
            _change(cluster, f"{NODES}/{name}", "taints", taint(key, group), is_wanted=False)
        except NotFoundError:
            return


def tolerates(pod: Pod, group: str) -> bool:
    """Whether a pod may use the nodes that are kept for a group."""
    return any(
        (one.get("key"), one.get("value")) == (ROOM, value_of(group))
        for one in pod.spec.get("tolerations") or []
    )


def tolerate(cluster: KubernetesCluster, pod: Pod, group: str) -> None:
    """Lets a pod use the nodes that are kept for a group. Kubernetes has no way to take that back. Raises ClusterError."""
    wanted = {"key": ROOM, "operator": "Equal", "value": value_of(group), "effect": "NoSchedule"}
    try:
        _change(cluster, pod.path, "tolerations", wanted, is_wanted=True)
    except NotFoundError:
        return


def mark(cluster: KubernetesCluster, pod: Pod, group: str | None) -> None:
    """Notes on a pod that it goes for a group, or for none. A pod that is gone is passed over. Raises ClusterError."""
    body = {"metadata": {"uid": pod.uid, "annotations": {EVICTED: group}}}
    try:
        cluster.patch(pod.path, body)
    except (NotFoundError, ConflictError):
        return


def _change(cluster: KubernetesCluster, path: str, field: str, row: dict[str, Any], is_wanted: bool) -> None:
    """Adds a row to a list in the spec of an object, or takes it away."""
    for attempt in range(1, ATTEMPTS + 1):
        found = cluster.get(path)
        rows = list((found.get("spec") or {}).get(field) or [])
        others = [one for one in rows if (one.get("key"), one.get("value")) != (row["key"], row["value"])]
        if is_wanted == (len(others) < len(rows)):
            return
        body = {
            "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
            "spec": {field: [*others, row] if is_wanted else others or None},
        }
        try:
            cluster.patch(path, body)
        except ConflictError:
            if attempt == ATTEMPTS:
                raise
        else:
            return
