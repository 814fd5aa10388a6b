"""How many pods like one each node takes, as kube-scheduler's filters say as far as this reader knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from topolane._engine import Machine
from topolane.cluster.hypothetical import NodeSlots
from topolane.kubernetes.objects import Amounts, Json, KubernetesNode, Pod

HOLDS_OFF = ("NoSchedule", "NoExecute")
HOSTNAME = "kubernetes.io/hostname"
TOPOLOGY_NOTES = ("kueue.x-k8s.io/podset-", "topolane.io/segment")
"""How annotations begin that say where a group is to lie."""


def held(pods: Iterable[Pod]) -> dict[str, Amounts]:
    """What pods hold of each node."""
    found: dict[str, Amounts] = {}
    for pod in pods:
        if pod.holds_node:
            on = found.setdefault(pod.node, {})
            for name, amount in pod.asks.items():
                on[name] = on.get(name, 0) + amount
    return found


def fits(asks: Amounts, has: Amounts, taken: Amounts, most: int) -> int:
    """How many pods that ask for this fit on a node, up to `most`."""
    count = most
    for name, amount in asks.items():
        if amount > 0:
            left = has.get(name, 0) - taken.get(name, 0)
            count = min(count, max(left // amount, 0))
    return count


def may_use(pod: Pod, node: KubernetesNode) -> bool:
    """Whether a node in service may take a pod: by its taints, the pod's selector and its required affinity."""
    spec, labels = pod.spec, {HOSTNAME: node.name, **node.labels}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    tolerated = spec.get("tolerations") or []
    for taint in node.taints:
        if taint.get("effect") in HOLDS_OFF and not any(_tolerates(one, taint) for one in tolerated):
            return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = (required or {}).get("nodeSelectorTerms") or []
    return required is None or any(_meets(term, labels, node.name) for term in terms)


def ignored(pod: Pod) -> list[str]:
    """What a pod asks for that this reader does not look at."""
    spec, found = pod.spec, []
    affinity = spec.get("affinity") or {}
    if affinity.get("podAffinity") or affinity.get("podAntiAffinity"):
        found.append("affinity to pods")
    if spec.get("topologySpreadConstraints"):
        found.append("topology spread")
    if spec.get("resourceClaims"):
        found.append("resource claims")
    if any("persistentVolumeClaim" in each or "ephemeral" in each for each in spec.get("volumes") or []):
        found.append("volumes")
    if any(port.get("hostPort") for each in spec.get("containers") or [] for port in each.get("ports") or []):
        found.append("host ports")
    if any(note.startswith(TOPOLOGY_NOTES) for note in pod.notes):
        found.append("topology that it asks for")
    return found


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    is_any = bool(toleration.get("operator") == "Exists")
    if not toleration.get("key"):
        return is_any
    if toleration["key"] != taint.get("key"):
        return False
    return is_any or str(toleration.get("value") or "") == str(taint.get("value") or "")


def _meets(term: Json, labels: Mapping[str, str], name: str) -> bool:
    rows = [(labels, one) for one in term.get("matchExpressions") or []]
    rows += [({"metadata.name": name}, one) for one in term.get("matchFields") or []]
    return bool(rows) and all(holds(one, said) for said, one in rows)


def holds(expression: Json, labels: Mapping[str, str]) -> bool:
    """Whether a requirement of a selector holds for these labels."""
    value, values = labels.get(str(expression.get("key"))), expression.get("values") or []
    operator: Any = expression.get("operator")
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == bool(operator == "Exists")
    if operator in ("In", "NotIn"):
        return (value in values) == bool(operator == "In")
    try:
        number, limit = int(str(value)), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > limit if operator == "Gt" else number < limit if operator == "Lt" else False


def slots(
    machine: Machine, nodes: Mapping[str, KubernetesNode], pods: Sequence[Pod], pod: Pod, most: int
) -> NodeSlots:
    """The slots for up to `most` pods like one. pods: all of the cluster."""
    taken = held(pods)
    free, room = [0] * machine.nodes, [0] * machine.nodes
    for number in range(machine.nodes):
        node = nodes.get(machine.node_name(number))
        if node is None or not may_use(pod, node):
            continue
        room[number] = fits(pod.asks, node.has, {}, most)
        free[number] = fits(pod.asks, node.has, taken.get(node.name, {}), most) if node.takes_pods else 0
    return NodeSlots(tuple(free), tuple(room))
