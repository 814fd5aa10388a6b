"""What kube-scheduler refuses: cases for four nodes of 8 GPUs, n0 and n1 in zone z0, n2 and n3 in zone z1.

Each case says how many of two pods like its pod kube-scheduler places, and a part of the reason why it places no more.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from control_plane import Body, container

NODES = [f"n{number}" for number in range(4)]
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
APP = {"app": "case"}
WHOLE_NODE, PART = 8, 1
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLASSES, SLICES = "/apis/resource.k8s.io/v1/deviceclasses", "/apis/resource.k8s.io/v1/resourceslices"
VOLUME_CLAIMS, VOLUMES = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
PODS = "/api/v1/namespaces/default/pods"


@dataclasses.dataclass(frozen=True)
class Case:
    """A pod, what is in the cluster before it comes, and what kube-scheduler says."""

    name: str
    places: int
    """How many of two such pods kube-scheduler places."""
    reason: str = ""
    """A part of what it says where it places none or one."""
    spec: Body = dataclasses.field(default_factory=dict)
    gpus: int = PART
    node: Body = dataclasses.field(default_factory=dict)
    """The spec of nodes ..."""
    nodes: int = len(NODES)
    """... and their number."""
    objects: tuple[tuple[str, Body], ...] = ()
    blockers: tuple[str, ...] = ()
    """Nodes on which a pod of this case, with its label, already runs."""
    blocker: Body = dataclasses.field(default_factory=dict)
    """The spec of these pods."""
    claims: bool = False
    """Each pod has a resource claim of its own."""
    counted: bool = False
    """topolane-scheduler says of two pods how many have room, and no other reason."""
    not_yet: bool = False
    """kube-scheduler places both; topolane-scheduler does not yet."""
    later: tuple[tuple[str, str, Body], ...] = ()
    """Calls to the API after which both pods are placed: a method, a path, a body."""


def _in(key: str, operator: str, *values: str) -> Body:
    expression = {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
    return {"matchExpressions": [expression]}


def _node_affinity(term: Body) -> Body:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def _pod_affinity(kind: str, key: str, labels: dict[str, str] = APP) -> Body:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread(key: str, **more: Any) -> Body:
    spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [spread | {"labelSelector": {"matchLabels": APP}} | more]}


def _taint(effect: str) -> Body:
    return {"taints": [{"key": "dedicated", "value": "a", "effect": effect}]}


def _asks(**amounts: str) -> Body:
    resources = {name.replace("__", "/"): amount for name, amount in amounts.items()}
    return {
        "containers": [
            {"name": "c", "image": "none", "resources": {"requests": resources, "limits": resources}}
        ]
    }


def _port() -> Body:
    one = container(PART)
    return {"containers": [one | {"ports": [{"containerPort": 80, "hostPort": 80}]}]}


def _volume(claim: str = "v") -> Body:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def _volume_claim(mode: str = "ReadWriteMany", storage: str = "", bound: bool = True) -> tuple[str, Body]:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": storage}
    notes = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    return VOLUME_CLAIMS, {
        "metadata": {"name": "v", "annotations": notes},
        "spec": spec | ({"volumeName": "pv"} if bound else {}),
    }


def _persistent(mode: str = "ReadWriteMany", labels: Body | None = None, **more: Any) -> tuple[str, Body]:
    claim = {"namespace": "default", "name": "v"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": [mode], "claimRef": claim, "storageClassName": ""}
    return VOLUMES, {
        "metadata": {"name": "pv", "labels": labels or {}},
        "spec": spec | {"csi": {"driver": "none", "volumeHandle": "pv"}} | more,
    }


def _devices(*nodes: str) -> tuple[tuple[str, Body], ...]:
    """A class, and a device on a node for each time that it is named."""
    expression = {"cel": {"expression": 'device.driver == "driver.example"'}}
    objects: list[tuple[str, Body]] = [
        (CLASSES, {"metadata": {"name": "device"}, "spec": {"selectors": [expression]}})
    ]
    for node, listed in itertools.groupby(nodes):
        devices = [{"name": f"d{number}"} for number, _ in enumerate(listed)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "driver.example", "nodeName": node, "pool": pool, "devices": devices}
        objects.append((SLICES, {"metadata": {"name": node}, "spec": spec}))
    return tuple(objects)


def resource_claim(name: str) -> Body:
    """A claim for one device."""
    request = {"name": "r", "exactly": {"deviceClassName": "device"}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


_AFFINITY = "didn't match Pod's node affinity/selector"
_BIND = {
    "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {"volumeName": "pv"},
}
_ON_N1 = {"nodeAffinity": {"required": {"nodeSelectorTerms": [_in(HOST, "In", "n1")]}}}
_OWN_PORT = "didn't have free ports for the requested pod ports"
_TOLERATES = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}

CASES = (
    Case("a-taint", 0, "had untolerated taint", node=_taint("NoSchedule")),
    Case("a-taint-that-evicts", 0, "had untolerated taint", node=_taint("NoExecute")),
    Case("a-taint-that-is-tolerated", 2, spec=_TOLERATES, node=_taint("NoSchedule")),
    Case("a-taint-that-only-prefers", 2, node=_taint("PreferNoSchedule")),
    Case(
        "a-taint-on-all-but-one", 1, "had untolerated taint", gpus=WHOLE_NODE, node=_taint("NoSchedule"), nodes=3
    ),
    Case("cordoned-nodes", 0, "were unschedulable", node={"unschedulable": True}),
    Case("no-label-for-a-selector", 0, _AFFINITY, {"nodeSelector": {ZONE: "z9"}}),
    Case("a-selector", 2, spec={"nodeSelector": {ZONE: "z1"}}, gpus=WHOLE_NODE),
    Case("a-selector-of-one-node", 1, _AFFINITY, {"nodeSelector": {HOST: "n2"}}, WHOLE_NODE),
    Case("node-affinity-to-none", 0, _AFFINITY, _node_affinity(_in(ZONE, "NotIn", "z0", "z1"))),
    Case("node-affinity", 2, spec=_node_affinity(_in(ZONE, "NotIn", "z0")), gpus=WHOLE_NODE),
    Case("node-affinity-to-a-missing-key", 0, _AFFINITY, _node_affinity(_in("no/such", "Exists"))),
    Case(
        "pod-affinity-to-none", 0, "didn't match pod affinity rules", _pod_affinity("podAffinity", HOST, {"a": "b"})
    ),
    Case(
        "pod-affinity-to-a-full-node", 0, "didn't match pod affinity rules",
        _pod_affinity("podAffinity", HOST, {"role": "blocker"}), WHOLE_NODE, blockers=("n3",),
    ),
    Case(
        "pod-affinity-to-a-zone", 1, "didn't match pod affinity rules",
        _pod_affinity("podAffinity", ZONE, {"role": "blocker"}), WHOLE_NODE, blockers=("n3",),
    ),
    Case("pod-affinity-to-each-other", 2, spec=_pod_affinity("podAffinity", ZONE), gpus=WHOLE_NODE),
    Case(
        "anti-affinity-to-all-nodes", 0, "didn't match pod anti-affinity rules",
        _pod_affinity("podAntiAffinity", HOST, {"role": "blocker"}), blockers=tuple(NODES),
    ),
    Case(
        "anti-affinity-of-pods-that-run", 0, "didn't satisfy existing pods anti-affinity rules",
        blockers=tuple(NODES), blocker=_pod_affinity("podAntiAffinity", HOST),
    ),
    Case("anti-affinity-of-nodes", 2, spec=_pod_affinity("podAntiAffinity", HOST)),
    Case("anti-affinity-of-zones", 2, spec=_pod_affinity("podAntiAffinity", ZONE), not_yet=True),
    Case(
        "anti-affinity-in-one-zone", 1, "didn't match pod anti-affinity rules",
        _pod_affinity("podAntiAffinity", ZONE) | {"nodeSelector": {ZONE: "z0"}},
    ),
    Case("no-such-volume-claim", 0, 'persistentvolumeclaim "v" not found', _volume()),
    Case(
        "a-volume-claim-that-is-not-bound", 0, "unbound immediate PersistentVolumeClaims", _volume(),
        objects=(_volume_claim(bound=False), _persistent()),
        later=(("PATCH", f"{VOLUME_CLAIMS}/v", _BIND),),
    ),
    Case(
        "a-volume-claim-without-volumes", 0, "didn't find available persistent volumes to bind", _volume(),
        objects=(
            (STORAGE, {
                "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            }),
            _volume_claim(storage="local", bound=False),
        ),
    ),
    Case("a-volume", 2, spec=_volume(), objects=(_volume_claim(), _persistent())),
    Case(
        "a-volume-in-another-zone", 0, "had no available volume zone",
        _volume() | {"nodeSelector": {ZONE: "z0"}},
        objects=(_volume_claim(), _persistent(labels={ZONE: "z1"})),
    ),
    Case(
        "a-volume-in-a-zone", 2, spec=_volume(), gpus=WHOLE_NODE,
        objects=(_volume_claim(), _persistent(labels={ZONE: "z1"})),
    ),
    Case(
        "a-volume-on-one-node", 1, "didn't match PersistentVolume's node affinity", _volume(), WHOLE_NODE,
        objects=(_volume_claim(), _persistent(**_ON_N1)),
    ),
    Case(
        "a-volume-for-one-pod", 1, "ReadWriteOncePod access mode already in-use", _volume(),
        objects=(_volume_claim("ReadWriteOncePod"), _persistent("ReadWriteOncePod")),
    ),
    Case("no-such-resource-claim", 0, spec={
        "resourceClaims": [{"name": "r", "resourceClaimName": "none"}]
    }),
    Case(
        "a-resource-claim-without-devices", 0, "cannot allocate all claims", claims=True, objects=_devices(),
        later=tuple(("POST", path, body) for path, body in _devices("n1", "n1")[1:]),
    ),
    Case("a-device-on-one-node", 1, "cannot allocate all claims", claims=True, objects=_devices("n1")),
    Case("devices-on-two-nodes", 2, claims=True, objects=_devices("n1", "n2"), not_yet=True),
    Case("two-devices-on-a-node", 2, claims=True, objects=_devices("n1", "n1")),
    Case(
        "no-label-to-spread-over", 0, "didn't match pod topology spread constraints (missing required label)",
        _spread("no/such"),
    ),
    Case("a-spread-over-nodes", 2, spec=_spread(HOST)),
    Case("a-spread-over-zones", 2, spec=_spread(ZONE), not_yet=True),
    Case(
        "a-spread-that-leans", 0, "didn't match pod topology spread constraints",
        _spread(ZONE, nodeAffinityPolicy="Ignore") | {"nodeSelector": {ZONE: "z0"}}, blockers=("n0",),
    ),
    Case(
        "a-spread-in-one-zone", 1, "didn't match pod topology spread constraints",
        _spread(ZONE, nodeAffinityPolicy="Ignore") | {"nodeSelector": {ZONE: "z0"}},
    ),
    Case("a-port-taken-on-all-nodes", 0, _OWN_PORT, _port(), blockers=tuple(NODES), blocker=_port()),
    Case("a-port-on-one-node", 1, _OWN_PORT, _port() | {"nodeSelector": {HOST: "n2"}}, counted=True),
    Case("a-port", 2, spec=_port()),
    Case("too-many-cores", 0, "Insufficient cpu", _asks(cpu="65")),
    Case("too-much-memory", 0, "Insufficient memory", _asks(memory="513Gi")),
    Case("too-many-GPUs", 0, "Insufficient nvidia.com/gpu", gpus=9),
    Case("a-resource-that-no-node-has", 0, "Insufficient example.com/x", _asks(example__com="1") | {
        "containers": [{"name": "c", "image": "none", "resources": {"limits": {"example.com/x": "1"}}}]
    }),
    Case("a-large-first-container", 0, "Insufficient cpu", {
        "initContainers": [_asks(cpu="65")["containers"][0] | {"name": "first"}]
    }),
    Case(
        "nodes-that-are-taken", 1, "Insufficient nvidia.com/gpu", gpus=WHOLE_NODE, blockers=("n0", "n1", "n2")
    ),
    Case("two-on-a-node", 2, spec={"nodeSelector": {HOST: "n2"}}, gpus=4),
    Case(
        "three-quarters-of-a-node", 1, "Insufficient nvidia.com/gpu", {"nodeSelector": {HOST: "n2"}}, 6, counted=True
    ),
)  # fmt: skip
