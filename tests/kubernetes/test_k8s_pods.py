"""What is read of pods and nodes: amounts, groups, times; which nodes take a pod, and what a budget lets go. No cluster runs here."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")

from topolane._engine import Machine
from topolane.kubernetes import room_holds
from topolane.kubernetes.budgets import Budget
from topolane.kubernetes.client import ConflictError, NotFoundError
from topolane.kubernetes.fit import fits, held, holds, ignored, may_use, slots
from topolane.kubernetes.objects import UNITS, KubernetesNode, Pod, quantity

Body = dict[str, Any]
GROUP = "default/wide"


def node(**given: Any) -> KubernetesNode:
    """A node with labels zone=a and speed=100."""
    meta = {"name": "n0", "labels": {"zone": "a", "speed": "100"}}
    status = {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return KubernetesNode.of({"metadata": meta, "spec": given, "status": status})


def pod(meta: Body | None = None, status: Body | None = None, **spec: Any) -> Pod:
    known = {"uid": "u", "namespace": "default", "name": "p", "creationTimestamp": at(5)}
    return Pod.of({"metadata": known | (meta or {}), "spec": spec, "status": status or {}})


def at(second: int) -> str:
    return f"1970-01-01T00:00:{second:02}Z"


EFFECTS = (None, "NoSchedule", "NoExecute", "PreferNoSchedule")
WORDS = (None, "", "a", "b")


def test_a_taint_keeps_off_the_pods_that_do_not_tolerate_it() -> None:
    """Every taint against every toleration: one without an effect is for all of them, one without a key is for all keys if it says
    Exists, and one that says Exists is for all values. No value is the empty one. A taint that only prefers keeps none off.
    """
    for effect, value in itertools.product(EFFECTS[1:], WORDS):
        taint = {"key": "k", "effect": effect} | ({} if value is None else {"value": value})
        tainted = node(taints=[taint])
        assert may_use(pod(), tainted) is (effect == "PreferNoSchedule")
        for key, operator, wanted, of in itertools.product(
            (None, "", "k", "a", "z"), (None, "Equal", "Exists"), WORDS, EFFECTS
        ):
            row = {"key": key, "operator": operator, "value": wanted, "effect": of}
            given = {name: said for name, said in row.items() if said is not None}
            keys = {"k"} if key == "k" else set() if key or operator != "Exists" else {"k"}
            effects = set(EFFECTS) if of is None else {of}
            is_same = operator == "Exists" or (wanted or "") == (value or "")
            tolerated = effect == "PreferNoSchedule" or ("k" in keys and effect in effects and is_same)
            assert may_use(pod(tolerations=[given]), tainted) is tolerated, (taint, given)
    both = node(taints=[{"key": key, "effect": "NoSchedule"} for key in "ab"])
    some = [{"key": key, "operator": "Exists"} for key in "ab"]
    assert may_use(pod(tolerations=some), both) and not may_use(pod(tolerations=some[:1]), both)


@pytest.mark.parametrize(
    ("key", "operator", "values", "met"),
    [
        ("zone", "In", ["b", "a"], True),
        ("zone", "In", ["b"], False),
        ("none", "In", ["a"], False),
        ("zone", "NotIn", ["a"], False),
        ("zone", "NotIn", ["b"], True),
        ("none", "NotIn", ["a"], True),
        ("zone", "Exists", None, True),
        ("none", "Exists", None, False),
        ("zone", "DoesNotExist", None, False),
        ("none", "DoesNotExist", None, True),
        ("speed", "Gt", ["99"], True),
        ("speed", "Gt", ["100"], False),
        ("speed", "Lt", ["101"], True),
        ("speed", "Lt", ["100"], False),
        ("zone", "Gt", ["1"], False),
        ("none", "Lt", ["1"], False),
        ("speed", "Gt", [], False),
        ("speed", "Lt", ["x"], False),
        ("speed", "Like", ["99"], False),
        ("speed", "Like", ["101"], False),
    ],
)
def test_a_requirement_holds_as_kubernetes_says(
    key: str, operator: str, values: list[str] | None, met: bool
) -> None:
    """Gt and Lt compare whole numbers, and hold for no label that is none. An operator that is not known never holds."""
    wanted = {"key": key, "operator": operator, "values": values}
    assert holds(wanted, node().labels) is met
    assert may_use(pod(affinity=required({"matchExpressions": [wanted]})), node()) is met
    assert (
        Budget("default/b", {"matchExpressions": [wanted]}, 1, frozenset()).covers(
            pod(meta={"labels": dict(node().labels)})
        )
        is met
    )


def required(*terms: Body) -> Body:
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    }


def test_one_term_of_required_affinity_is_enough() -> None:
    """All requirements of a term must hold. Without terms, or with empty ones, no node is right. Affinity that only prefers is not heeded."""
    yes, no = ({"key": "zone", "operator": "In", "values": [zone]} for zone in "ab")
    named, other = ({"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n0", "n1"))
    for terms, met in (
        ([{"matchExpressions": [yes]}, {"matchExpressions": [no]}], True),
        ([{"matchExpressions": [yes, no]}], False),
        ([{"matchFields": [named]}], True),
        ([{"matchFields": [other]}], False),
        ([{"matchFields": [named], "matchExpressions": [no]}], False),
        ([{}], False),
        ([], False),
    ):
        assert may_use(pod(affinity=required(*terms)), node()) is met, terms
    assert may_use(
        pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}), node()
    )
    assert may_use(pod(nodeSelector={"kubernetes.io/hostname": "n0", "zone": "a"}), node())
    assert not may_use(pod(nodeSelector={"kubernetes.io/hostname": "n0", "zone": "b"}), node())


def test_a_node_takes_pods_if_it_is_ready_and_not_cordoned() -> None:
    assert node().takes_pods and not node(unschedulable=True).takes_pods
    for ready in ("False", "Unknown"):
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        assert not KubernetesNode.of({"metadata": {"name": "n0"}, "status": status}).takes_pods


def test_a_node_has_slots_for_the_pods_that_it_may_take() -> None:
    """Without the pods that run there, a node has room for what fits when it is empty. A cordoned node has room and no slots now; one that
    the pod may not use, and one that the cluster has lost, have neither.
    """
    names = [f"n{number}" for number in range(5)]
    machine = Machine.parse("SwitchName=s Nodes=n[0-4]\n", "topology.conf", "slurm")
    nodes = {name: dataclasses.replace(node(), name=name) for name in names[:4]}
    nodes["n1"] = dataclasses.replace(nodes["n1"], is_cordoned=True)
    nodes["n2"] = dataclasses.replace(nodes["n2"], taints=({"key": "k", "effect": "NoSchedule"},))
    wants, runs = (
        pod(containers=[requests(cpu)], **on) for cpu, on in (("2", {}), ("3", {"nodeName": "n3"}))
    )
    there = slots(machine, nodes, [runs, wants], dataclasses.replace(wants, asks={"cpu": 2000}), 9)
    assert (there.free, there.room) == ((4, 0, 0, 2, 0), (4, 4, 0, 4, 0))


@pytest.mark.parametrize(
    ("asks", "has", "taken", "count"),
    [
        ({"cpu": 2}, {"cpu": 8}, {}, 4),
        ({"cpu": 3}, {"cpu": 8}, {"cpu": 2}, 2),
        ({"cpu": 2, "gpu": 1}, {"cpu": 8, "gpu": 3}, {}, 3),
        ({"cpu": 2, "gpu": 0}, {"cpu": 8}, {}, 4),
        ({"cpu": 2, "gpu": 1}, {"cpu": 8}, {}, 0),
        ({"cpu": 1}, {"cpu": 8}, {"cpu": 9}, 0),
        ({"cpu": 1}, {"cpu": 8}, {}, 5),
        ({}, {}, {}, 5),
    ],
)
def test_as_many_pods_fit_as_the_scarcest_amount_allows(
    asks: dict[str, int], has: dict[str, int], taken: dict[str, int], count: int
) -> None:
    """Up to the number that is asked about, here 5."""
    assert fits(asks, has, taken, 5) == count


def test_pods_that_have_ended_or_have_no_node_hold_nothing() -> None:
    containers = [{"resources": {"requests": {"cpu": "2"}}}]
    runs = pod(nodeName="n0", containers=containers)
    waits = pod(containers=containers)
    ended = [
        pod(nodeName="n0", containers=containers, status={"phase": phase})
        for phase in ("Succeeded", "Failed")
    ]
    assert held([runs, waits, *ended, runs]) == {"n0": {"cpu": 4000, "pods": 2000}}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, []),
        ({"affinity": {"podAffinity": {"x": 1}}}, ["affinity to pods"]),
        ({"affinity": {"podAntiAffinity": {"x": 1}}}, ["affinity to pods"]),
        ({"topologySpreadConstraints": [{}]}, ["topology spread"]),
        ({"resourceClaims": [{}]}, ["resource claims"]),
        ({"volumes": [{"emptyDir": {}}]}, []),
        ({"volumes": [{"persistentVolumeClaim": {}}]}, ["volumes"]),
        ({"volumes": [{"ephemeral": {}}]}, ["volumes"]),
        ({"containers": [{"ports": [{"containerPort": 80}]}]}, []),
        ({"containers": [{}, {"ports": [{}, {"hostPort": 80}]}]}, ["host ports"]),
    ],
)
def test_what_is_not_looked_at_is_named(spec: Body, found: list[str]) -> None:
    assert ignored(pod(**spec)) == found
    for note in ("kueue.x-k8s.io/podset-required-topology", "topolane.io/segment-size"):
        assert ignored(pod({"annotations": {note: "1"}}, **spec)) == [*found, "topology that it asks for"]


def requests(cpu: str, **given: Any) -> Body:
    return {"resources": {"requests": {"cpu": cpu}}, **given}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [requests("1"), requests("2")]}, 3),
        ({"containers": [requests("1")], "initContainers": [requests("3"), requests("2")]}, 3),
        ({"containers": [requests("5")], "initContainers": [requests("3")]}, 5),
        ({"containers": [requests("1")], "initContainers": [requests("2", restartPolicy="Always")]}, 3),
        (
            {
                "containers": [requests("1")],
                "initContainers": [requests("2", restartPolicy="Always"), requests("4")],
            },
            6,
        ),
        (
            {
                "containers": [requests("1")],
                "initContainers": [requests("4"), requests("2", restartPolicy="Always")],
            },
            4,
        ),
        ({"containers": [requests("1")], "overhead": {"cpu": "1"}}, 2),
        ({"containers": [requests("1")], "resources": {"requests": {"cpu": "4"}}}, 4),
        ({"containers": [{"resources": {"limits": {"cpu": "7"}}}]}, 7),
        ({"containers": [{"resources": {"limits": {"cpu": "7"}, "requests": {"cpu": "2"}}}]}, 2),
    ],
)
def test_a_pod_asks_for_what_kube_scheduler_counts(spec: Body, cpu: int) -> None:
    """Its containers together, or the largest of those that prepare it if that is more. Those that prepare it and stay count with all
    that start after them. Requests of the whole pod count in their place, its overhead in addition. A limit is a request where none is.
    """
    assert pod(**spec).asks == {"cpu": cpu * 1000, "pods": 1000}


def test_amounts_of_all_units() -> None:
    """Powers of 1000 and of 1024, exponents, signs; part of a thousandth counts as one."""
    for power, letter in enumerate("kMGTPE", 1):
        assert UNITS[letter] == 1000**power and quantity(f"1{letter}") == 1000 ** (power + 1)
    for power, letter in enumerate("KMGTPE", 1):
        assert UNITS[f"{letter}i"] == 1024**power and quantity(f"2{letter}i") == 2000 * 1024**power
    for text, amount in (
        ("1000000n", 1), ("1000001n", 2), ("1000u", 1), ("1001u", 2), ("3m", 3), ("2e3", 2_000_000), ("2E-1", 200), ("+.5", 500), ("-1", -1000), ("5.", 5000), ("", None), ("1e", None), ("1ki", None), ("1 ", None), ("1" * 64, (2**63 - 1) * 1000), ("1" * 65, None),
    ):  # fmt: skip
        if amount is None:
            with pytest.raises(ValueError, match="is no amount"):
                quantity(text)
        else:
            assert quantity(text) == amount, text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("0", None),
        ("1000000", 1_000_000),
        ("1000001", None),
        ("a=1,b=0", 1),
        ("a=600000,b=600000", None),
        (" 4 - 8 ", 4),
        ("a= 3", 3),
        ("000000004", 4),
        ("0000000004", None),
        ("٣", None),
        ("a=1,b=x", None),
        ("1," * 4095 + "11", 4106),
        ("1," * 4095 + "111", None),
    ],
)
def test_the_size_of_a_group_has_bounds(text: str, size: int | None) -> None:
    """Up to a million pods, in numbers of up to nine digits and a text of up to 8 KiB."""
    assert pod({"annotations": {"topolane.io/group-size": text}}).size == size


def test_ranks() -> None:
    """The index of a Job comes before that of a StatefulSet, an annotation before a label. A worker of a LeaderWorkerSet has its own."""
    job, stateful = "batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index"
    lws = "leaderworkerset.sigs.k8s.io/"
    for notes, labels, rank in (
        ({job: "3"}, {job: "4"}, 3),
        ({}, {job: "4"}, 4),
        ({stateful: "1"}, {job: "4"}, 4),
        ({stateful: "1"}, {}, 1),
        ({job: "x"}, {}, None),
        ({job: "3"}, {f"{lws}group-key": "k", f"{lws}worker-index": "7"}, 7),
        ({job: "3"}, {f"{lws}group-key": "k"}, None),
    ):
        assert pod({"annotations": notes, "labels": labels}).rank == rank


def condition(kind: str, status: str, second: int) -> Body:
    return {"type": kind, "status": status, "lastTransitionTime": at(second), "message": "no room"}


def test_times_of_a_pod() -> None:
    """It got its node when it was scheduled, or else when it started or came. It ended with the last of its containers, or else when its
    last condition became false, when it was deleted, or when it started.
    """
    assert pod().created == 5 and pod().placed is None and pod().ended is None
    scheduled = {"conditions": [condition("PodScheduled", "True", 7)], "startTime": at(9)}
    assert pod(status=scheduled).placed is None and pod(status=scheduled, nodeName="n0").placed == 7
    assert pod(status={"startTime": at(9)}, nodeName="n0").placed == 9 and pod(nodeName="n0").placed == 5
    refused = pod(
        status={"conditions": [condition("Other", "False", 3), condition("PodScheduled", "False", 8)]}
    )
    assert (refused.refused, refused.why) == (8, "no room")
    assert pod(status=scheduled).refused is None
    finished = [{"state": {"terminated": {"finishedAt": at(second)}}} for second in (20, 30)]
    ended: Body = {"phase": "Succeeded", "startTime": at(9), "containerStatuses": [*finished, {"state": {}}]}
    ended["conditions"] = [condition("Ready", "False", 40), condition("Initialized", "True", 50)]
    for phase in ("Succeeded", "Failed"):
        assert pod(status=ended | {"phase": phase}).ended == 30
    assert pod(status=ended | {"phase": "Running"}).ended is None
    del ended["containerStatuses"]
    assert pod(status=ended).ended == 40
    del ended["conditions"]
    assert pod({"deletionTimestamp": at(11)}, ended).ended == 11 and pod(status=ended).ended == 9
    assert pod({"deletionTimestamp": at(11)}).is_ending and not pod().is_ending
    assert pod({"creationTimestamp": "yesterday"}).created == 0.0


def test_gpus_priority_and_path() -> None:
    gpus = {"nvidia.com/gpu": "2", "amd.com/gpu": "1"}
    read = pod(containers=[{"resources": {"requests": gpus}}], priority=7)
    assert (read.gpus, read.priority, read.path) == (3, 7, "/api/v1/namespaces/default/pods/p")
    assert (pod().gpus, pod().priority, pod(priority="x").priority) == (0, 0, 0)
    assert pod().scheduler == "default-scheduler" and pod(schedulerName="s").scheduler == "s"
    assert not pod().is_gated and pod(schedulingGates=[{"name": "g"}]).is_gated


def test_a_budget_counts_the_pods_that_it_covers() -> None:
    """Those of its namespace with all of its labels, unless their eviction is counted already. What it allows is no less than none."""
    spec = {"selector": {"matchLabels": {"app": "a", "tier": "x"}}}
    status = {"disruptionsAllowed": 2, "disruptedPods": {"gone": at(1)}}
    budget = Budget.of({"metadata": {"namespace": "default", "name": "b"}, "spec": spec, "status": status})
    labels = {"app": "a", "tier": "x"}
    one, gone = pod({"labels": labels}), pod({"labels": labels, "name": "gone"})
    other, elsewhere = pod({"labels": {"app": "a"}}), pod({"labels": labels, "namespace": "prod"})
    assert budget.allowed == 2 and budget.counts([one, gone, other, elsewhere, one]) == 2
    assert budget.covers(gone) and not budget.covers(other) and not budget.covers(elsewhere)
    for said, allowed in ((-1, 0), (0, 0), (None, 0), ("3", 0)):
        assert (
            Budget.of(
                {"metadata": {"namespace": "a", "name": "b"}, "status": {"disruptionsAllowed": said}}
            ).allowed
            == allowed
        )


class Objects:
    """An API server with one object, which changes under the hands of its callers a number of times."""

    def __init__(self, spec: Body | None, conflicts: int = 0) -> None:
        self.spec, self.conflicts, self.version, self.asked = spec, conflicts, 0, 0

    def get(self, _: str) -> Body:
        self.asked += 1
        if self.spec is None:
            raise NotFoundError("gone")
        return {"metadata": {"resourceVersion": str(self.version)}, "spec": dict(self.spec)}

    def patch(self, _: str, body: Body) -> None:
        assert self.spec is not None
        if self.conflicts:
            self.conflicts -= 1
            self.version += 1
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise ConflictError("changed")
        self.spec |= body["spec"]


OTHER = {"key": "other", "value": "x", "effect": "NoExecute"}


def test_a_node_is_kept_for_one_group_and_released() -> None:
    """Other taints stay as they are, also of the same key for another group. What is so already is not changed."""
    cluster: Any = Objects({"taints": [OTHER]})
    kept = room_holds.taint(room_holds.ROOM, GROUP)
    another = room_holds.taint(room_holds.ROOM, "default/z")
    assert kept == {"key": "topolane.io/room-for", "value": "default.wide", "effect": "NoSchedule"}
    for group in (GROUP, GROUP, "default/z"):
        room_holds.hold(cluster, "n0", room_holds.ROOM, group)
    assert cluster.spec["taints"] == [OTHER, kept, another] and cluster.asked == 3
    there = node(taints=cluster.spec["taints"])
    assert room_holds.is_held(there, room_holds.ROOM, GROUP)
    assert not room_holds.is_held(there, room_holds.LINKS, GROUP)
    assert not room_holds.is_held(there, room_holds.ROOM, "default/a")
    room_holds.hold(cluster, "n0", room_holds.LINKS, GROUP)
    room_holds.release(cluster, "n0", GROUP)
    assert cluster.spec["taints"] == [OTHER, another]
    last: Any = Objects({"taints": [kept]})
    room_holds.release(last, "n0", GROUP)
    assert last.spec["taints"] is None
    room_holds.release(last, "n0", GROUP)
    gone: Any = Objects(None)
    room_holds.release(gone, "n0", GROUP)
    assert gone.asked == 1


def test_an_object_that_changes_meanwhile_is_read_again() -> None:
    """Twenty times. Then it is an error."""
    cluster: Any = Objects({}, conflicts=19)
    room_holds.hold(cluster, "n0", room_holds.ROOM, GROUP)
    assert cluster.asked == 20 and len(cluster.spec["taints"]) == 1
    cluster = Objects({}, conflicts=20)
    with pytest.raises(ConflictError):
        room_holds.hold(cluster, "n0", room_holds.ROOM, GROUP)
    assert cluster.asked == 20


def test_a_pod_tolerates_the_taint_of_its_group() -> None:
    cluster: Any = Objects({"tolerations": [OTHER]})
    room_holds.tolerate(cluster, pod(), GROUP)
    row = {"key": room_holds.ROOM, "operator": "Equal", "value": "default.wide", "effect": "NoSchedule"}
    assert cluster.spec["tolerations"] == [OTHER, row]
    made = pod(tolerations=cluster.spec["tolerations"])
    assert may_use(made, node(taints=[room_holds.taint(room_holds.ROOM, GROUP)]))
    assert room_holds.tolerates(made, GROUP) and not room_holds.tolerates(made, "default/z")
    assert not room_holds.tolerates(made, "default/a") and not room_holds.tolerates(pod(), GROUP)
    gone: Any = Objects(None)
    room_holds.tolerate(gone, pod(), GROUP)


def test_the_value_of_a_taint_is_the_name_of_the_group_if_it_is_short() -> None:
    """63 letters are; of a longer name the beginning is kept, without a dot or a dash at its end, and a sum of the whole."""
    name = f"default/{'g' * 55}"
    assert room_holds.value_of(name) == f"default.{'g' * 55}"
    value = room_holds.value_of(f"{name}h")
    assert value.startswith(f"default.{'g' * 38}-") and len(value) == 63
    assert len(room_holds.value_of(f"default/{'g' * 37}-{'h' * 30}")) == 62
