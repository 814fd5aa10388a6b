"""Nodes and pods of a cluster, with what placement needs of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from topolane import texts, untrusted
from topolane.cluster import decided
from topolane.cluster.decided import Decided

Amounts = dict[str, int]
"""What a pod asks for, or a node has, in thousandths: cpu, memory, nvidia.com/gpu, pods, ..."""
ONE = 1000
Json = Mapping[str, Any]

POD_GROUP = "scheduling.x-k8s.io/pod-group"
JOB_SET = "jobset.sigs.k8s.io/jobset-name"
JOB_SET_UID = "jobset.sigs.k8s.io/jobset-uid"
LWS = "leaderworkerset.sigs.k8s.io/"
"""How labels of a LeaderWorkerSet begin."""
KUEUE_TAS, KUEUE_WORKLOAD = "kueue.x-k8s.io/tas", "kueue.x-k8s.io/workload"
"""What pods have only if Kueue chooses their nodes."""
KUEUE_TOPOLOGY = tuple(
    f"kueue.x-k8s.io/podset-{word}-topology"
    for word in ("required", "preferred", "unconstrained", "slice-required")
)
SIZE = "topolane.io/group-size"
POLICY = "topolane.io/policy"
BANDWIDTH = "topolane.io/min-bandwidth-share"
PLACEMENT = "topolane.io/placement"
RECORD = " topolane="
"""What stands before the record in the message of a pod that waits."""
RANKS = (
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
    "training.kubeflow.org/replica-index",
)
GPUS = ("nvidia.com/gpu", "amd.com/gpu")
"""Names of GPUs among amounts."""
SERVICES = frozenset({"ReplicaSet", "ReplicationController", "DaemonSet", "StatefulSet", "Node"})
"""Owners whose pods are no job: they hold room, and run until a user ends them."""
LARGEST_GROUP = 1_000_000
"""Pods of a group, as topolane-scheduler takes them."""
LONGEST_NUMBER = 10
"""Digits of a number in an annotation that is read."""
LONGEST_SIZES = 8 * 1024
"""Letters of topolane.io/group-size that are read."""
PLAIN = re.compile(r"[A-Za-z0-9._:-]{0,253}")
"""What names and UIDs are made of. The API server does not check those of owners."""
LONGEST_NOTES = 256 * 1024
"""Bytes of all annotations of an object, by the rules of Kubernetes."""
LONGEST_QUANTITY = 64
"""Letters of an amount that is read."""
LARGEST = (2**63 - 1) * ONE
"""The largest amount: Kubernetes lowers larger ones to it."""
LONGEST_MESSAGE = 4096
"""Letters of a scheduler's sentence on a pod."""
MOST_SAID = 64 * 1024
"""Letters of a condition's message, more than Kubernetes allows."""
UNITS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?")


@functools.lru_cache(maxsize=4096)
def quantity(text: str) -> int:
    """The thousandths of an amount as Kubernetes writes it, 500m, 64Gi or 8, rounded up. Raises ValueError if it is none."""
    found = QUANTITY.fullmatch(text) if len(text) <= LONGEST_QUANTITY and text.isascii() else None
    if found is None:
        raise ValueError(f"{texts.shown(text)} is no amount")
    number, unit, power = found.groups()
    exact = Fraction(number) * UNITS[unit or ""] * Fraction(10) ** int(power or 0) * ONE
    return min(max(math.ceil(exact), -LARGEST), LARGEST)


@dataclasses.dataclass(frozen=True)
class KubernetesNode:
    """A node, as the API server has it."""

    name: str
    labels: Mapping[str, str]
    has: Amounts
    """What pods may take of it."""
    taints: tuple[Json, ...]
    is_ready: bool
    is_cordoned: bool

    @staticmethod
    def of(item: Json) -> KubernetesNode:
        """A node of the API."""
        meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        conditions = {one["type"]: one["status"] for one in status.get("conditions") or []}
        return KubernetesNode(
            meta["name"],
            meta.get("labels") or {},
            _amounts(status.get("allocatable")),
            tuple(spec.get("taints") or ()),
            conditions.get("Ready") == "True",
            bool(spec.get("unschedulable")),
        )

    @property
    def takes_pods(self) -> bool:
        """Whether it is in service."""
        return self.is_ready and not self.is_cordoned


@dataclasses.dataclass(frozen=True)
class Pod:
    """A pod. Times in seconds since 1970."""

    uid: str
    namespace: str
    name: str
    scheduler: str
    node: str
    """Empty if it has none."""
    phase: str
    created: float
    placed: float | None
    """When it got its node."""
    ended: float | None
    asks: Amounts
    group: str | None
    """NAMESPACE/NAME of the job that it is a part of; None for a part of a service. Two jobs may have the same."""
    key: str | None
    """Which job that is: NAMESPACE/NAME#KIND, or NAMESPACE/NAME#KIND.UID."""
    size: int | None
    """How many pods its group has, if it says so."""
    job: str | None
    """NAMESPACE/NAME of the Job that made it."""
    is_grouped: bool
    """Whether topolane-scheduler places it with a group."""
    rank: int | None
    notes: Mapping[str, str]
    is_gated: bool
    why: str
    """What its scheduler says of a pod that waits."""
    refused: float | None
    """Since when it says that it cannot be placed."""
    said: Decided | None
    """What it decided about the group of a pod that waits. It stands in a condition of the pod, and nothing proves it."""
    spec: Json
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    owner: Json | None = None
    """The controller that replaces it when it is gone."""
    is_ending: bool = False
    """Whether it is being deleted."""

    @staticmethod
    def of(item: Json) -> Pod:
        """A pod of the API."""
        meta, spec, status = item["metadata"], item["spec"], item.get("status") or {}
        notes, labels = meta.get("annotations") or {}, meta.get("labels") or {}
        scheduled: Json = next(
            (one for one in status.get("conditions") or [] if one["type"] == "PodScheduled"), {}
        )
        created = untrusted.when(meta.get("creationTimestamp")) or 0.0
        node = spec.get("nodeName") or ""
        placed = (
            untrusted.when(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else None
        )
        key, is_grouped = _group(meta, spec, labels, notes)
        why, said = _said(scheduled.get("message"))
        return Pod(
            uid=meta["uid"],
            namespace=meta["namespace"],
            name=meta["name"],
            scheduler=spec.get("schedulerName") or "default-scheduler",
            node=node,
            phase=status.get("phase") or "Pending",
            created=created,
            placed=(placed or untrusted.when(status.get("startTime")) or created) if node else None,
            ended=_end(meta, status),
            asks=_asked(spec),
            group=None if key is None else key.partition("#")[0],
            key=key,
            size=_size(notes.get(SIZE, "")),
            job=_job(meta),
            is_grouped=is_grouped,
            rank=_rank(notes, labels),
            notes=notes,
            is_gated=bool(spec.get("schedulingGates")),
            why=why,
            refused=untrusted.when(scheduled.get("lastTransitionTime"))
            if scheduled.get("status") == "False"
            else None,
            said=said,
            spec=spec,
            labels=labels,
            owner=_controller(meta),
            is_ending=meta.get("deletionTimestamp") is not None,
        )

    @property
    def priority(self) -> int:
        """Its priority."""
        found = self.spec.get("priority")
        return found if isinstance(found, int) else 0

    @property
    def path(self) -> str:
        """Where the API server has it."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.phase not in ("Succeeded", "Failed")

    @property
    def holds_node(self) -> bool:
        """Whether it has a node and has not ended."""
        return bool(self.node) and self.is_alive

    @property
    def gpus(self) -> int:
        """How many GPUs it asks for."""
        return sum(self.asks.get(name, 0) for name in GPUS) // ONE

    @property
    def policy(self) -> str | None:
        """The policy that it asks for."""
        return untrusted.line(self.notes.get(POLICY), untrusted.LONGEST_WORD) or None

    @property
    def share(self) -> float | None:
        """The least share of full bandwidth that it asks for; None for one that topolane-scheduler refuses."""
        text = self.notes.get(BANDWIDTH) or "1"
        found = float(text) if len(text) <= LONGEST_QUANTITY and DECIMAL.fullmatch(text) else 0.0
        return found if 0 < found <= 1 else None


def _said(message: Any) -> tuple[str, Decided | None]:
    """A scheduler's message without the record in it, and that record."""
    text = message if isinstance(message, str) else ""
    before, mark, record = text.partition(RECORD)
    if mark:
        with contextlib.suppress(ValueError):
            said, after = untrusted.first_table(record, MOST_SAID)
            return untrusted.line(before + after, LONGEST_MESSAGE), decided.of(said)
    return untrusted.line(text, LONGEST_MESSAGE), None


def _group(
    meta: Json, spec: Json, labels: Mapping[str, str], notes: Mapping[str, str]
) -> tuple[str | None, bool]:
    """The key of the group of a pod, and whether topolane-scheduler knows it as one.

    The rule is that of native/kubernetes/plugin/identity.go: tests/kubernetes/group_cases.json holds the two together.
    """
    owner, asks_kueue = _controller(meta), any(notes.get(each) for each in KUEUE_TOPOLOGY)
    is_kueues = KUEUE_TAS in labels or bool(notes.get(KUEUE_WORKLOAD) and asks_kueue)
    is_sized = bool(notes.get(SIZE))
    gang = (spec.get("schedulingGroup") or {}).get("podGroupName")
    found, is_grouped = None, True
    if gang:
        found = _key(meta, gang, "SchedulingGroup")
    elif labels.get(POD_GROUP):
        found = _key(meta, labels[POD_GROUP], "PodGroup")
    elif labels.get(JOB_SET):
        found, is_grouped = _key(meta, labels[JOB_SET], "JobSet", labels.get(JOB_SET_UID, "")), is_sized
    elif labels.get(f"{LWS}group-key") and is_sized:
        name = f"{labels.get(f'{LWS}name', '')}-{labels.get(f'{LWS}group-index', '')}"
        found = _key(meta, name, "LeaderWorkerSet", labels[f"{LWS}group-key"])
    elif owner and (is_sized or owner.get("kind") not in SERVICES):
        found = _key(meta, owner["name"], str(owner.get("kind")), str(owner.get("uid") or ""))
        is_job = owner.get("kind") == "Job" and str(owner.get("apiVersion")).startswith("batch/")
        is_grouped = is_sized or (is_job and asks_kueue)
    elif owner:
        return None, False
    if found is None:
        return _key(meta, meta["name"], "Pod", meta["uid"]), False
    return found, is_grouped and not is_kueues


def _key(meta: Json, name: str, kind: str, uid: str = "") -> str | None:
    """Which group it is; None for a name that no object of Kubernetes can have."""
    if not all(PLAIN.fullmatch(word) for word in (name, kind, uid)):
        return None
    return f"{meta['namespace']}/{name}#{kind}{f'.{uid}' if uid else ''}"


def _size(text: str) -> int | None:
    """How many pods a group needs, as its annotation says: 8, 4-8, or launcher=1,worker=4-8."""
    total = 0
    for part in text.split(",") if len(text) <= LONGEST_SIZES else ():
        least = _number(part.partition("=")[2].strip() if "=" in part else part.strip())
        if least is None:
            return None
        total += least
    return total if 0 < total <= LARGEST_GROUP else None


def _number(text: str) -> int | None:
    digits = text.partition("-")[0].strip()
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < LONGEST_NUMBER else None


def _job(meta: Json) -> str | None:
    owner = _controller(meta)
    return f"{meta['namespace']}/{owner['name']}" if owner and owner.get("kind") == "Job" else None


def _controller(meta: Json) -> Json | None:
    return next((one for one in meta.get("ownerReferences") or [] if one.get("controller")), None)


def _rank(notes: Mapping[str, str], labels: Mapping[str, str]) -> int | None:
    if labels.get(f"{LWS}group-key"):
        return _number(labels.get(f"{LWS}worker-index", ""))
    for key in RANKS:
        for said in (notes, labels):
            if (rank := _number(said.get(key, ""))) is not None:
                return rank
    return None


def _end(meta: Json, status: Json) -> float | None:
    """When a pod that has ended did so."""
    if status.get("phase") not in ("Succeeded", "Failed"):
        return None
    ends = [
        end
        for one in status.get("containerStatuses") or []
        if (end := untrusted.when(((one.get("state") or {}).get("terminated") or {}).get("finishedAt")))
    ]
    changes = [
        untrusted.when(one.get("lastTransitionTime"))
        for one in status.get("conditions") or []
        if one["status"] == "False"
    ]
    known = [each for each in changes if each is not None]
    return max(
        ends or known,
        default=untrusted.when(meta.get("deletionTimestamp")) or untrusted.when(status.get("startTime")),
    )


def _asked(spec: Json) -> Amounts:
    """What kube-scheduler counts for a pod: its containers together, or the largest of those that prepare it."""
    total = _sum(map(_requests, spec.get("containers") or []))
    sidecars: Amounts = {}
    for one in spec.get("initContainers") or []:
        if one.get("restartPolicy") == "Always":
            sidecars = _sum([sidecars, _requests(one)])
            continue
        for name, amount in _sum([sidecars, _requests(one)]).items():
            total[name] = max(total.get(name, 0), amount)
    total = _most(total, _sum([_sum(map(_requests, spec.get("containers") or [])), sidecars]))
    whole = _amounts((spec.get("resources") or {}).get("requests"))
    total |= whole
    return _sum([total, _amounts(spec.get("overhead")), {"pods": ONE}])


def _requests(container: Json) -> Amounts:
    asked = container.get("resources") or {}
    return _amounts({**(asked.get("limits") or {}), **(asked.get("requests") or {})})


def _amounts(resources: Any) -> Amounts:
    found = {}
    for name, text in (resources or {}).items():
        try:
            found[name] = max(quantity(str(text)), 0)
        except ValueError:
            continue
    return found


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _most(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
