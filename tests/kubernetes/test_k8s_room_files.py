"""Plans that make room in Kubernetes, from objects made by hand: costs, what may go, budgets, death at each change. No cluster runs here."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import fcntl
import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")
pytest.importorskip("yaml", reason="needs the extra kubernetes: PyYAML")

from topolane._engine import Decision, InputError, Machine, State
from topolane.cli import k8s_plan
from topolane.cluster import room_files
from topolane.cluster.hypothetical import Holder, Hypothetical, Question
from topolane.cluster.room_files import NoPlanError, NotAppliedError, journal_of
from topolane.cluster.view import SHARED
from topolane.kubernetes import room_apply, room_holds, room_plan
from topolane.kubernetes.budgets import Budget
from topolane.kubernetes.client import BudgetError, ConflictError, NotFoundError
from topolane.kubernetes.fit import slots
from topolane.kubernetes.inspection import KubernetesInspection, Where
from topolane.kubernetes.machine import of_labels
from topolane.kubernetes.objects import PLACEMENT, SIZE, KubernetesNode, Pod
from topolane.kubernetes.proofs import PROOF, Proofs, seal
from topolane.kubernetes.room_apply import ClusterHost, EvictionApplying
from topolane.kubernetes.room_plan import ProtectedPods, Unit, make_plan, share_of, units_of
from topolane.kubernetes.settings import SchedulerSettings

Body = dict[str, Any]
TOPOLANE = (sys.executable, "-c", "from topolane.cli import main; main()", "k8s")
NOW = float(int(time.time()))
KEYS = ("topo/block", "topo/rack", "kubernetes.io/hostname")
NODES, RACK, BLOCK = 24, 4, 12
WAITS = "default/wide"
TAINT = {"key": "broken", "effect": "NoSchedule"}
KEY = b"of this test alone, thirty-two bytes"


def node(number: int) -> Body:
    """A node with 8 GPUs."""
    name, has = f"n{number:02}", {"cpu": "64", "nvidia.com/gpu": "8", "pods": "110"}
    labels = {"topo/block": f"b{number // BLOCK}", "topo/rack": f"r{number // RACK}"}
    labels["kubernetes.io/hostname"] = name
    status = {"allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


def stamp(when: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))


def pod(name: str, at: int | None = None, hours: float = 0.0, gpus: int = 8, **given: Any) -> Body:
    """A pod of a controller that has had a node for `hours` hours, or waits."""
    when = stamp(NOW - 3600 * hours)
    meta: Body = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": when}
    meta["labels"], meta["annotations"] = given.pop("labels", {}), given.pop("notes", {})
    owner = given.pop("owner", {"kind": "Job", "name": name})
    meta["ownerReferences"] = [] if owner is None else [{**owner, "controller": True}]
    meta |= given.pop("meta", {})
    asks = {"cpu": str(4 * gpus), "nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    containers = [{"name": "c", "resources": {"requests": asks}}]
    spec: Body = {"schedulerName": "topolane", "containers": containers, "priority": 10, **given}
    said: Body = {"type": "PodScheduled", "status": "False", "lastTransitionTime": when}
    if at is not None:
        spec["nodeName"], said["status"] = f"n{at:02}", "True"
    status = {"phase": "Running" if at is not None else "Pending", "conditions": [said]}
    return {"metadata": meta, "spec": spec, "status": status}


def group(name: str, nodes: Sequence[int | None], hours: float = 0.0, **given: Any) -> list[Body]:
    """The pods of a group. placement: what topolane-scheduler wrote and signed on them."""
    placement, notes = given.pop("placement", None), {"topolane.io/group-size": str(len(nodes))}
    notes |= given.pop("notes", {})
    owner = given.pop("owner", {"kind": "Job", "name": name})
    made = [
        pod(f"{name}-{rank}", at, hours, notes=dict(notes), owner=owner, **given)
        for rank, at in enumerate(nodes)
    ]
    for rank, each in enumerate(made if placement else ()):
        text = json.dumps({"share": 1, "rank": rank, "nodes": [f"n{at:02}" for at in nodes], **placement})
        meta, of = each["metadata"], str(Pod.of(each).key)
        meta["annotations"] |= {PLACEMENT: text, PROOF: f"{of} {seal(KEY, of, meta['uid'], text)}"}
    return made


def wide(size: int, policy: str = "isolated", **given: Any) -> list[Body]:
    """The group that waits."""
    return group("wide", [None] * size, notes={"topolane.io/policy": policy}, **({"priority": 20} | given))


def budget(name: str, allowed: int, labels: dict[str, str]) -> Body:
    meta = {"namespace": "default", "name": name}
    return {
        "metadata": meta,
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }


def look_at(
    pods: Sequence[Body], nodes: Sequence[Body] | None = None, machine: Machine | None = None
) -> KubernetesInspection:
    """A cluster with these pods. machine: without one, that of the labels."""
    nodes = [node(number) for number in range(NODES)] if nodes is None else nodes
    known = {each.name: each for each in map(KubernetesNode.of, nodes)}
    machine = machine or of_labels(KEYS, nodes)
    pods_read = Proofs(KEY).bound(list(map(Pod.of, pods)))
    return KubernetesInspection(
        NOW, "here", SchedulerSettings(None), known, pods_read, machine, None, (), Proofs(KEY)
    )


def full() -> list[Body]:
    """Six groups, each on a rack; the later, the younger."""
    racks = [list(range(4 * rack, 4 * rack + 4)) for rack in range(6)]
    return [each for rack, nodes in enumerate(racks) for each in group(f"g{rack}", nodes, 6 - rack)]


TWO_LINKS = Machine.parse(
    'name = "n"\n[[site]]\nname = "s"\nchildren = [4, 3, 2]\nparents = [1, 2, 2]\nnodes = "n[00-23]"\n',
    "m.toml",
)
"""The same racks and blocks, with two links for each where the labels give one: so two groups may have links of their own there."""


def gone(pods: Sequence[Body], *budgets: Body, untouchable: ProtectedPods | None = None) -> list[str]:
    plan = make_plan(look_at(pods), list(map(Budget.of, budgets)), WAITS, untouchable)
    return [each.name.partition("/")[2] for each in plan.evicted]


def test_the_cost_is_the_work_since_the_start() -> None:
    """Nodes times hours, and half of that for pods with half of the GPUs. The plan is for the cheapest two of six racks."""
    plan = make_plan(look_at([*full(), *wide(8)]), (), WAITS)
    assert [(each.name, each.node_hours) for each in plan.evicted] == [
        ("default/g4", 8.0),
        ("default/g5", 4.0),
    ]
    assert (plan.node_hours, plan.least_node_hours) == (12.0, 12.0)
    assert plan.nodes == tuple(f"n{number}" for number in range(16, 24))
    assert plan.beside == tuple(f"n{number}" for number in range(12, 16)), "the rest of the block"
    half = [pod("a", 0, 2, gpus=4), pod("b", 0, 0.5, gpus=4), *group("rest", [1, 2, 3], 9)]
    plan = make_plan(look_at([*half, *full()[4:20], *wide(1)]), (), WAITS)
    assert plan.evicted == () and plan.node_hours == 0, "the last rack is free"
    plan = make_plan(look_at([*half, *full()[4:], *wide(1)]), (), WAITS)
    assert {each.name: each.node_hours for each in plan.evicted} == {"default/a": 1.0, "default/b": 0.25}
    assert (plan.node_hours, plan.least_node_hours, plan.beside) == (1.25, 1.25, ())


def test_a_pod_costs_the_largest_share_of_its_node() -> None:
    """Of any resource that the node has, but for the number of pods; all of a node that is not known, and no more than all."""
    there = KubernetesNode.of(node(0))
    for asks, share in (
        ({"cpu": 16_000, "pods": 1000}, 0.25),
        ({"cpu": 16_000, "nvidia.com/gpu": 4000}, 0.5),
        ({"cpu": 16_000, "other": 1000}, 0.25),
        ({"cpu": 128_000}, 1.0),
        ({"pods": 1000}, 0.0),
    ):
        read = dataclasses.replace(Pod.of(pod("a", 0)), asks=asks)
        assert share_of(read, there) == share
        assert share_of(read, None) == 1.0
        young, old = (dataclasses.replace(read, placed=NOW - seconds) for seconds in (-9, 600))
        assert Unit("a", None, (young, old)).cost(look_at([])) == share * 600


def test_pods_of_the_same_priority_may_go() -> None:
    """They go if those of a lower priority are not enough. The lowest priority of the pods that wait counts."""
    young = group("g5", [20, 21, 22, 23], 1, priority=20)
    assert gone([*full()[:20], *young, *wide(4)]) == ["g4"]
    few = [*full()[:4], *group("g1", [*range(4, 20)], 2, priority=21), *young]
    assert gone([*few, *wide(8, "first-fit")]) == ["g0", "g5"]
    with pytest.raises(NoPlanError, match="2 of higher priority"):
        gone([*few, *wide(7, "first-fit"), wide(8, "first-fit", priority=19)[7]])


def test_lower_priorities_and_single_pods_go_first() -> None:
    """The oldest group goes if its priority is lowest, and of one priority single pods before a younger group, as topolane-scheduler
    preempts."""
    low = group("g0", [0, 1, 2, 3], 6, priority=5)
    assert gone([*low, *full()[4:], *wide(4)]) == ["g0"]
    singles = [pod(f"s{at}", at, 6) for at in range(4)]
    assert gone([*singles, *full()[4:], *wide(4)]) == ["s0", "s1", "s2", "s3"]


def test_pods_that_are_being_deleted_go_by_themselves() -> None:
    """No plan evicts them. It is as if they were gone already."""
    young = group("g5", [20, 21, 22, 23], 1, meta={"deletionTimestamp": stamp(NOW)})
    plan = make_plan(look_at([*full()[:20], *young, *wide(4)]), (), WAITS)
    assert (plan.evicted, plan.nodes) == ((), ("n20", "n21", "n22", "n23"))
    assert not room_plan.still_places(look_at([*full()[:20], *young, *wide(4)]), plan)


def test_the_rest_of_a_group_of_nodes_stays_closed_if_the_waiting_group_could_lose_links() -> None:
    """Not if it lies in one rack, whose links it does not use, and not under a policy that shares links."""
    for size, policy, closed in (
        (3, "isolated", 0),
        (5, "isolated", 7),
        (5, "first-fit", 0),
        (13, "isolated", 11),
    ):
        plan = make_plan(look_at(wide(size, policy)), (), WAITS)
        assert (len(plan.nodes), len(plan.beside)) == (size, closed)
        assert not set(plan.nodes) & set(plan.beside)


@pytest.mark.parametrize(
    ("change", "untouchable"),
    [
        ({"priority": 21}, None),
        ({"priority": 2_000_000_000}, ProtectedPods(any_priority=True)),
        ({"owner": None}, None),
        ({"owner": {"kind": "DaemonSet", "name": "d"}}, ProtectedPods(without_controller=True)),
        ({"owner": {"kind": "Node", "name": "n20"}}, None),
        ({"notes": {"topolane.io/untouchable": "true"}}, None),
        ({"notes": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}, None),
        ({"priorityClassName": "prod"}, ProtectedPods.of(["priorityclass=prod"])),
        ({}, ProtectedPods.of(["group=default/g5"])),
    ],
)
def test_untouchable_pods_stay(change: dict[str, Any], untouchable: Any) -> None:
    """The youngest group would go first, but must stay: the next goes."""
    owner = {"owner": {"kind": "Job", "name": "g5"}}
    young = group("g5", [20, 21, 22, 23], 1, **(owner | change))
    assert gone([*full()[:20], *group("g5", [20, 21, 22, 23], 1), *wide(4)]) == ["g5"]
    assert gone([*full()[:20], *young, *wide(4)], untouchable=untouchable) == ["g4"]


def test_what_stays_is_counted_if_there_is_no_plan() -> None:
    stays = ProtectedPods.of(["namespace=default"])
    with pytest.raises(
        NoPlanError, match=r"it needs 4 nodes, and may use 0 \(6 groups .* must stay: 6 named by"
    ):
        gone([*full(), *wide(4)], untouchable=stays)


def test_a_group_that_is_larger_than_an_empty_cluster_has_no_plan() -> None:
    with pytest.raises(NoPlanError, match=r"it needs 25 nodes, and may use 24 \(nothing is in its place\)$"):
        gone(wide(25))
    with pytest.raises(NoPlanError, match="it needs 25 nodes, and may use 24$"):
        gone([*full(), *wide(25)])


def test_pods_that_may_go_if_asked() -> None:
    young = group(
        "g5", [20, 21, 22, 23], 1, priority=30, owner=None, labels={"scheduling.x-k8s.io/pod-group": "g5"}
    )
    said = ProtectedPods(any_priority=True, without_controller=True)
    others = group("g0", [*range(20)], 6, notes={"topolane.io/untouchable": "true"})
    assert gone([*others, *young, *wide(4)], untouchable=said) == ["g5"]


def test_pods_of_daemon_sets_leave_room() -> None:
    """A small pod of a DaemonSet is on each node: the group fits on the same nodes, and the pod stays."""
    daemons = [pod(f"d{at}", at, gpus=0, owner={"kind": "DaemonSet", "name": "d"}) for at in range(NODES)]
    assert gone([*full(), *daemons, *wide(8)]) == ["g4", "g5"]


def test_pods_that_leave_exactly_enough_stay() -> None:
    """The pod on the first node has half of its cores and no GPU. Another core would be too many."""
    others = [*group("rest", [1, 2, 3], 9), *full()[4:]]
    for cores, evicted in (("32", []), ("33", ["a"])):
        small = pod("a", 0, 0.1, containers=[{"resources": {"requests": {"cpu": cores}}}])
        assert gone([small, *others, *wide(1)]) == evicted


def test_a_group_that_leaves_room_keeps_its_links() -> None:
    """Small pods in two racks of the first block: an isolated group that crosses racks as well is placed in the second."""
    small = group("small", [0, 4], 1, gpus=0, placement={"policy": "isolated", "link_use": "isolated"})
    assert min(make_plan(look_at(wide(5)), (), WAITS).nodes) < "n12"
    plan = make_plan(look_at([*small, *wide(5)]), (), WAITS)
    assert min(plan.nodes) >= "n12" and not plan.evicted


def test_a_budget_that_forbids_is_respected() -> None:
    """A budget that allows three of the four pods of a group keeps the group; two budgets for one pod keep it as well."""
    pods = [*full()[:20], *group("g5", [20, 21, 22, 23], 1, labels={"app": "a"}), *wide(4)]
    assert gone(pods, budget("a", 4, {"app": "a"})) == ["g5"]
    assert gone(pods, budget("a", 3, {"app": "a"})) == ["g4"]
    assert gone(pods, budget("a", 4, {"app": "a"}), budget("b", 4, {"app": "a"})) == ["g4"]
    assert gone(pods, budget("a", 0, {"app": "b"})) == ["g5"]
    nothing, everything = budget("a", 0, {}), budget("a", 0, {})
    nothing["spec"]["selector"] = None
    assert gone(pods, nothing) == ["g5"]
    with pytest.raises(NoPlanError, match="kept by a disruption budget"):
        gone(pods, everything)


def test_budgets_count_pods_and_not_groups() -> None:
    """Room for one rack and a half: of three groups under one budget two may go only if their pods together are allowed."""
    label = {"labels": {"app": "a"}}
    pods = [*full()[:12], *group("g3", [12, 13, 14, 15], 3), *group("g4", [16, 17, 18, 19], 2, **label)]
    pods += [*group("g5", [20, 21], 1, **label), *group("g6", [22, 23], 0.5, **label), *wide(8, "first-fit")]
    assert gone(pods, budget("a", 8, {"app": "a"})) == ["g4", "g5", "g6"]
    assert gone(pods, budget("a", 7, {"app": "a"})) == ["g3", "g5", "g6"]
    assert gone(pods, budget("a", 2, {"app": "a"})) == ["g2", "g3"]


def test_the_plan_is_the_cheapest_of_all_sets() -> None:
    """Random groups and single pods, some together on a node, under budgets, against every set of them: none that makes room has a
    lower rank, or costs less, and the plan's bound is below it. Some nodes are cordoned or tainted, and the plan has none of them.
    """
    draw, compared, impossible = random.Random(5), 0, 0
    for _ in range(80):
        machine = draw.choice((of_labels(KEYS, [node(number) for number in range(NODES)]), TWO_LINKS))
        pods, budgets = _random(draw, machine)
        policy = draw.choice(("isolated", "first-fit", "kueue-tas", "dedicated"))
        nodes, barred = (
            [node(number) for number in range(NODES)],
            draw.sample(range(NODES), draw.choice((0, 2))),
        )
        for number in barred:
            nodes[number]["spec"] = draw.choice(({"unschedulable": True}, {"taints": [TAINT]}))
        look = look_at([*pods, *wide(draw.randint(2, 9), policy)], nodes, machine)
        best = min(_costs(look, budgets, policy), default=None)
        if best is None:
            impossible += 1
            with pytest.raises(NoPlanError):
                make_plan(look, budgets, WAITS)
            continue
        plan = make_plan(look, budgets, WAITS)
        rank, cost = best
        names = {each.name for each in plan.evicted}
        ranks = [unit.rank for unit in units_of(look, WAITS) if unit.name in names]
        assert max(ranks, default=LEAST) == rank
        assert plan.least_node_hours <= cost + 1e-5
        assert plan.node_hours == pytest.approx(cost, abs=1e-4)
        assert not {f"n{number:02}" for number in barred} & set(plan.nodes)
        compared += cost > 0
    assert compared > 25 and impossible > 3


def _random(draw: random.Random, machine: Machine) -> tuple[list[Body], list[Budget]]:
    """Groups are of no policy that is known, isolated, on links that others may use, or on links of their own, where there are some."""
    free, pods, links = list(range(NODES)), list[Body](), State(machine)
    for number in range(7):
        size = draw.choice((1, 2, 3, 4, 5, 6))
        at = draw.randrange(max(len(free) - size, 0) + 1)
        held, free = free[at : at + size], free[:at] + free[at + size :]
        given: Body = {"priority": draw.choice((5, 20, 25)), "labels": {"app": draw.choice("ab")}}
        hours = draw.uniform(0, 5)
        if size == 1 and held:
            pods += [pod(f"s{number}", held[0], hours, gpus=4, **given)]
            pods += [pod(f"t{number}", held[0], draw.uniform(0, 5), gpus=4, **given)]
        elif held:
            policy, placed = draw.choice((None, "isolated", "first-fit", "dedicated")), None
            if policy == "dedicated":
                found = links.place(policy, len(held), id=number, eligible=held)
                if isinstance(found, Decision):
                    links.hold(held, None, found.links, 1.0, id=number)
                    placed = {"policy": policy, "links": list(found.links)}
            elif policy is not None:
                placed = {"policy": policy, "link_use": "isolated" if policy == "isolated" else "shared"}
            pods += group(f"g{number}", held, hours, placement=placed, **given)
    said = [budget("a", draw.choice((0, 2, 6)), {"app": "a"})] if draw.random() < 0.5 else []
    return pods, [Budget.of(each) for each in said]


LEAST = (-1, False)
"""The rank of no unit."""


def _costs(
    look: KubernetesInspection, budgets: Sequence[Budget], policy: str
) -> Iterator[tuple[tuple[int, bool], float]]:
    """The highest rank of each set that may go and makes room, and what it costs, node-hours."""
    may_go = [
        unit for unit in units_of(look, WAITS) if not any(ProtectedPods().why(pod, 20) for pod in unit.pods)
    ]
    for count in range(len(may_go) + 1):
        for some in itertools.combinations(may_go, count):
            pods = [pod for unit in some for pod in unit.pods]
            if all(each.counts(pods) <= each.allowed for each in budgets) and _fits(look, some, policy):
                cost = sum(unit.cost(look) for unit in some) / 3600
                yield max((unit.rank for unit in some), default=LEAST), cost


def _fits(look: KubernetesInspection, some: Sequence[Unit], policy: str) -> bool:
    """Whether the scheduler's own question has an answer once these are gone."""
    assert look.machine is not None
    waiting, out = look.groups[WAITS], {pod.uid for unit in some for pod in unit.pods}
    asked = Hypothetical(look.machine, policy, 1.0, counts_slots=True)
    for number, nodes in look.holders.items():
        if number not in {unit.group for unit in some}:
            own = look.allocations.get(number)
            links, share = (own.links, own.bandwidth_share) if own else ((), 1.0)
            asked.hold(number, Holder(tuple(nodes), links, share, look.closed.get(number, SHARED)))
    stay = [pod for pod in look.pods if pod.uid not in out]
    there = slots(look.machine, look.nodes, stay, waiting.first, waiting.size)
    return isinstance(asked.decide(Question(waiting.number, waiting.size, slots=there)), Decision)


@pytest.mark.parametrize(
    ("pods", "sentence"),
    [
        ([], "the cluster has no pod of a group default/wide"),
        (group("wide", [0, 1]), "the group does not wait: 2 of its 2 pods have a node"),
        (wide(4)[:3], "the group has 3 of its 4 pods"),
        (wide(4, schedulingGates=[{"name": "g"}]), "its pods have scheduling gates"),
        ([*wide(3), wide(4, gpus=4)[3]], "its pods differ"),
        (wide(4, gpus=4), "several of its pods fit on n00"),
        ([*wide(4), *wide(4, owner={"kind": "PyTorchJob", "name": "wide"})], "several groups have that name"),
        (group("wide", [None] * 4, notes={SIZE: "a=2,b=2"}), "its pods differ"),
        (group("wide", [0, None]), "the group does not wait: 1 of its 2 pods have a node"),
        (wide(4, topologySpreadConstraints=[{}]), "plans are not made for groups with topology spread"),
    ],
)
def test_a_group_for_which_no_plan_can_be_made(pods: list[Body], sentence: str) -> None:
    with pytest.raises(InputError, match=f"(?s)--room-for .*default/wide.*{sentence}"):
        make_plan(look_at(pods), (), WAITS)


def test_without_a_scheduler_or_a_machine_there_is_no_plan() -> None:
    look = look_at([*full(), *wide(4)])
    for change, sentence in (
        (
            {"settings": SchedulerSettings(None, lease="a/b")},
            "^No scheduler holds lease a/b: pods of its groups wait$",
        ),
        ({"machine": None}, "^the machine is not known$"),
        ({"machine": None, "problems": ("one.", "two.")}, "^one; two$"),
    ):
        with pytest.raises(InputError, match=sentence):
            make_plan(dataclasses.replace(look, **change), (), WAITS)


def test_a_plan_is_written_and_read(tmp_path: Path) -> None:
    plan = make_plan(look_at([*full(), *wide(8)]), (), WAITS)
    file = tmp_path / "plan"
    room_files.write(file, plan)
    assert room_plan.read(file) == plan
    good = json.loads(file.read_text())
    assert good["version"] == 1, "plans of earlier releases are read"
    bad_pod = copy.deepcopy(good["evicted"])
    bad_pod[0]["pods"][0]["name"] = "default/../nodes/n00"
    for change, sentence in (
        ({"format": "topolane-room-plan"}, "it is no plan of `topolane k8s plan --out`"),
        ({"version": 2}, "version 2 of plans is not known"),
        ({"evicted": 3}, "evicted is no list"),
        ({"evicted": [7]}, r"evicted\[0\]: it is no object"),
        ({"evicted": [{}]}, r"evicted\[0\]: pods is no list"),
        ({"evicted": bad_pod}, "is not NAMESPACE/NAME"),
        ({"group": "wide"}, "'wide' is not NAMESPACE/NAME|wide is not NAMESPACE/NAME"),
        ({"nodes": ["n00/status"]}, "is no name of a node"),
        ({"nodes": "n00"}, "nodes is no list of words"),
        ({"size": "4"}, "size is '?4'?, which is no int"),
        ({"more": 1}, "more'? is not known"),
    ):
        file.write_text(json.dumps(good | change))
        with pytest.raises(InputError, match=sentence):
            room_plan.read(file)
    file.write_bytes(random.Random(3).randbytes(500))
    with pytest.raises(InputError):
        room_plan.read(file)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["plan"], "--room-for"),
        (["apply"], "PLAN"),
        (["plan", "--room-for", "default/a", "--kubeconfig", "/nowhere/config"], "/nowhere/config"),
        (["apply", "/nowhere/plan", "--kubeconfig", "/nowhere/config"], "/nowhere/"),
    ],
)
def test_bad_input_is_reported_in_a_sentence(words: list[str], sentence: str) -> None:
    done = subprocess.run([*TOPOLANE, *words], capture_output=True, text=True)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr


def test_values_of_taints_name_one_group() -> None:
    """They have at most 63 letters, as Kubernetes wants it."""
    long = [f"{'n' * 40}/{'g' * 40}{end}" for end in "ab"]
    values = [room_holds.value_of(each) for each in long]
    assert len(set(values)) == 2 and all(len(value) <= 63 for value in values)
    assert room_holds.value_of("default/wide") == "default.wide"


class Killed(BaseException):
    """In the place of kill -9."""


class Cluster:
    """An API server that remembers each change. `dies`: raises at that change, before or after it. A pod that is evicted is gone at
    once, and its controller makes another. The group that waits gets nodes that only it may use, once they are free.
    """

    def __init__(self, pods: Sequence[Body], *budgets: Body) -> None:
        self.objects = {f"/api/v1/nodes/{each['metadata']['name']}": each for each in map(node, range(NODES))}
        self.objects |= {self.path(each): each for each in pods}
        self.budgets, self.changes = list(budgets), list[str]()
        self.dies: tuple[int, bool] | None = None
        self.starts, self.version = True, 0

    @staticmethod
    def path(pod: Body) -> str:
        return f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"

    def look(self, *_: Any) -> KubernetesInspection:
        return look_at(self._all("/pods/"), self._all("/nodes/"))

    def _all(self, kind: str) -> list[Body]:
        return [copy.deepcopy(each) for path, each in self.objects.items() if kind in path]

    def items(self, _: str) -> list[Body]:
        return self.budgets

    def get(self, path: str) -> Body:
        if path not in self.objects:
            raise NotFoundError(path)
        found = copy.deepcopy(self.objects[path])
        found["metadata"]["resourceVersion"] = str(self.version)
        return found

    def patch(self, path: str, body: Body) -> None:
        meta = self.objects[path]["metadata"]
        if body["metadata"].get("resourceVersion", str(self.version)) != str(self.version):
            raise ConflictError(path)
        if "annotations" in body["metadata"]:
            assert body["metadata"]["uid"] == meta["uid"]
            self._change(f"mark {meta['name']}", lambda: self._mark(meta, body["metadata"]["annotations"]))
            return
        self._change(
            f"patch {path.rpartition('/')[2]}", lambda: self.objects[path]["spec"].update(body["spec"])
        )

    @staticmethod
    def _mark(meta: Body, notes: Body) -> None:
        merged = {**meta["annotations"], **notes}
        meta["annotations"] = {key: value for key, value in merged.items() if value is not None}

    def marked(self) -> list[str]:
        return [
            each["metadata"]["name"]
            for each in self._all("/pods/")
            if room_holds.EVICTED in each["metadata"]["annotations"]
        ]

    def post(self, path: str, body: Body) -> None:
        of = path.removesuffix("/eviction")
        if (
            of not in self.objects
            or self.objects[of]["metadata"]["uid"] != body["deleteOptions"]["preconditions"]["uid"]
        ):
            raise NotFoundError(path)
        for each in self.budgets:
            if Budget.of(each).covers(Pod.of(self.objects[of])):
                if each["status"]["disruptionsAllowed"] == 0:
                    raise BudgetError(
                        f"the API server refuses POST {path}: the budget {each['metadata']['name']} needs it"
                    )
                each["status"]["disruptionsAllowed"] -= 1
        self._change(f"evict {of.rpartition('/')[2]}", lambda: self._replace(of))

    def _replace(self, path: str) -> None:
        old = self.objects.pop(path)
        new = copy.deepcopy(old)
        new["metadata"]["annotations"].pop(room_holds.EVICTED, None)
        new["metadata"] |= {
            "name": old["metadata"]["name"] + "-again",
            "uid": old["metadata"]["uid"] + "-again",
        }
        del new["spec"]["nodeName"]
        new["status"] = pod("x")["status"]
        self.objects[self.path(new)] = new

    def _change(self, what: str, does: Any) -> None:
        now = self.dies is not None and self.dies[0] == len(self.changes)
        if now and self.dies is not None and not self.dies[1]:
            raise Killed
        self.version += 1
        self.changes.append(what)
        does()
        self._start()
        if now:
            raise Killed

    def _start(self) -> None:
        """Gives the waiting group its nodes if all of them are kept and free."""
        pods = [each for each in self._all("/pods/") if each["metadata"]["name"].startswith("wide-")]
        kept = [
            each["metadata"]["name"]
            for each in self._all("/nodes/")
            if self.keys_of(each) == ["topolane.io/room-for"]
        ]
        busy = {each["spec"].get("nodeName") for each in self._all("/pods/")}
        if self.starts and pods and len(kept) == len(pods) and not busy & set(kept):
            for each, name in zip(pods, kept):
                self.objects[self.path(each)]["spec"]["nodeName"] = name

    @staticmethod
    def keys_of(node: Body) -> list[str]:
        return [taint["key"] for taint in node["spec"].get("taints") or []]

    def held(self) -> list[str]:
        return [each["metadata"]["name"] for each in self._all("/nodes/") if self.keys_of(each)]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Six groups on a rack each, and one of two racks that waits; its plan is in the file `plan`."""
    made = Cluster([*full(), *wide(8)])
    monkeypatch.setattr(room_apply, "inspect", made.look)
    monkeypatch.setattr(EvictionApplying, "PAUSE", 0.01)
    room_files.write(tmp_path / "plan", make_plan(made.look(), (), WAITS))
    return made


def carry_out(cluster: Any, folder: Path, seconds: float = 5, undo: bool = False) -> list[str]:
    said: list[str] = []
    host = ClusterHost(cluster, Where())
    EvictionApplying.apply(folder / "plan", host, seconds=seconds, undo=undo, tell=said.append)
    return said


CHANGES = [f"patch wide-{rank}" for rank in range(8)] + [f"patch n{at}" for at in range(16, 24)]
CHANGES += [f"patch n{at}" for at in range(12, 16)]
CHANGES += [f"{what} g{at}-{rank}" for at in (4, 5) for what in ("mark", "evict") for rank in range(4)]
CHANGES += [f"patch n{at}" for at in range(12, 24)]


def test_a_death_at_any_change_leaves_what_apply_goes_on_with(cluster: Cluster, tmp_path: Path) -> None:
    """Before and after each change: pods may use the nodes before these are kept, and nodes are kept before anything is evicted.
    Afterwards each change has been made once, in this order, and nothing is kept any more.
    """
    for number in range(len(CHANGES)):
        for after in (False, True):
            cluster.dies = (number, after)
            with pytest.raises(Killed):
                carry_out(cluster, tmp_path)
            cluster.dies = None
    assert carry_out(cluster, tmp_path)[-1] == "Group default/wide has the nodes of the plan."
    assert cluster.changes == CHANGES and not cluster.held()
    assert carry_out(cluster, tmp_path) == [
        "The plan has been carried out already, or given up: nothing is changed."
    ]
    assert cluster.changes == CHANGES


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: c.objects.pop(Cluster.path(pod("g4-1"))), "default/g4 does not run where it did"),
        (lambda c: c.objects[Cluster.path(pod("g4-1"))]["metadata"].update(uid="new"), "default/g4 does not run"),
        (lambda c: c.objects.update({"/pods/x": group("g5", [20], meta={"uid": "x"})[0]}), "group default/g5 has other pods"),
        (lambda c: c.objects[Cluster.path(pod("wide-0"))]["spec"].update(nodeName="n00"), "group default/wide does not wait"),
        (lambda c: [c.objects[Cluster.path(pod(f"wide-{at}"))]["metadata"].update(uid=f"{at}") for at in range(8)], "does not wait"),
        (lambda c: c.objects["/api/v1/nodes/n17"]["spec"].update(unschedulable=True), "n17 has no room for a pod of default/wide"),
        (lambda c: c.objects.update({"/pods/x": pod("x", 17, gpus=1)}), "n17 has no room"),
        (lambda c: c.budgets.append(budget("all", 7, {})), "disruption budget default/all allows 7 of 8 evictions"),
    ],
)  # fmt: skip
def test_a_plan_that_is_no_longer_true_changes_nothing(
    cluster: Cluster, tmp_path: Path, change: Any, sentence: str
) -> None:
    change(cluster)
    with pytest.raises(NotAppliedError, match=f"the plan is no longer true: .*{sentence}"):
        carry_out(cluster, tmp_path)
    assert not cluster.changes and not journal_of(tmp_path / "plan").exists()


def test_a_group_that_does_not_start_keeps_no_nodes(cluster: Cluster, tmp_path: Path) -> None:
    """After the time is over, the taints are gone and the plan is at its end."""
    cluster.starts = False
    with pytest.raises(
        NotAppliedError, match=r"has not started in time \(the scheduler says: .*make a new plan"
    ):
        carry_out(cluster, tmp_path, seconds=0.05)
    assert not cluster.held() and len(cluster.changes) == len(CHANGES)
    assert carry_out(cluster, tmp_path) == [
        "The plan has been carried out already, or given up: nothing is changed."
    ]


def test_a_budget_that_forbids_meanwhile_is_waited_for(cluster: Cluster, tmp_path: Path) -> None:
    """The API server refuses the third eviction until the budget allows it; if it never does, that is said."""
    posts: list[str] = []
    cluster.budgets.append(budget("all", 8, {}))
    post = cluster.post
    cluster.post = lambda *given: (cluster.budgets[0]["status"].update(disruptionsAllowed=0) if len(posts) == 2 else None, posts.append(""), post(*given))  # type: ignore[method-assign,func-returns-value,assignment]  # fmt: skip
    with pytest.raises(
        NotAppliedError, match=r"6 pods must go first: default/g4-2, .* and 1 more; the budget all needs it"
    ):
        carry_out(cluster, tmp_path, seconds=0.05)
    assert not cluster.held() and [each for each in cluster.changes if "evict" in each] == [
        "evict g4-0",
        "evict g4-1",
    ]


def test_a_plan_that_was_begun_can_be_given_up(cluster: Cluster, tmp_path: Path) -> None:
    assert carry_out(cluster, tmp_path, undo=True) == [
        "The plan is not being carried out: nothing is changed."
    ]
    cluster.dies = (CHANGES.index("evict g4-2"), False)
    with pytest.raises(Killed):
        carry_out(cluster, tmp_path)
    cluster.dies = None
    assert len(cluster.held()) == 12
    assert carry_out(cluster, tmp_path, undo=True)[-1] == "The plan is given up."
    assert not cluster.held() and not cluster.marked() and "evict g4-2" not in cluster.changes


def test_a_group_that_is_deleted_meanwhile_keeps_no_nodes(cluster: Cluster, tmp_path: Path) -> None:
    cluster.dies = (CHANGES.index("evict g4-0"), True)
    with pytest.raises(Killed):
        carry_out(cluster, tmp_path)
    cluster.dies = None
    for rank in range(8):
        del cluster.objects[Cluster.path(pod(f"wide-{rank}"))]
    with pytest.raises(NotAppliedError, match="group default/wide is not there any more"):
        carry_out(cluster, tmp_path)
    assert not cluster.held() and [each for each in cluster.changes if "evict" in each] == ["evict g4-0"]


def test_a_node_that_is_deleted_meanwhile_does_not_end_apply(cluster: Cluster, tmp_path: Path) -> None:
    """The group cannot start then: after the time is over, the other nodes are open again."""
    evict = cluster._replace

    def and_delete(path: str) -> None:
        cluster.objects.pop("/api/v1/nodes/n12", None)
        evict(path)

    cluster._replace = and_delete  # type: ignore[method-assign]
    cluster.starts = False
    with pytest.raises(NotAppliedError, match="has not started in time"):
        carry_out(cluster, tmp_path, seconds=0.05)
    assert not cluster.held()


def test_two_at_once_are_not_let(cluster: Cluster, tmp_path: Path) -> None:
    with (tmp_path / "plan").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another `topolane k8s apply` carries it out now"):
            carry_out(cluster, tmp_path)
    assert not cluster.changes


@pytest.mark.parametrize("starts", [True, False])
def test_what_was_done_is_printed_as_json(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starts: bool
) -> None:
    """With --json, `apply` prints one object: whether the plan is done, a sentence for each step, and why it is not done. The exit code is that
    without --json."""
    cluster.starts = starts
    monkeypatch.setattr(k8s_plan, "connected", lambda *_: contextlib.nullcontext(cluster))
    done = CliRunner().invoke(k8s_plan.apply, [str(tmp_path / "plan"), "--timeout", "1", "--json"])
    said = json.loads(done.stdout)
    assert done.exit_code == (0 if starts else 1) and set(said) == {"done", "steps", "why"}
    assert said["done"] is starts and said["steps"][0].startswith("8 nodes are kept for default/wide")
    assert said["why"] is None if starts else "has not started in time" in said["why"]
