"""topolane-scheduler on a real control plane with KWOK's nodes: 64 nodes of 8 GPUs in 4 racks, two racks in a block."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from control_plane import (
    BLOCK,
    CHASSIS,
    LABELS,
    NODES,
    RACK,
    SMALL,
    Body,
    ControlPlane,
    container,
    member,
    missing,
    name,
)
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def of(node: str, size: int) -> int:
    return int(node[1:]) // size


def crossed(nodes: list[str]) -> set[str]:
    """The groups of nodes whose uplinks a group of pods may use: those that hold some of its nodes and not all."""
    found = set()
    for kind, size in (("chassis", CHASSIS), ("block", BLOCK)):
        groups = {of(node, size) for node in nodes}
        found |= {f"{kind}{group}" for group in groups} if len(groups) > 1 else set()
    return found


def test_a_group_is_placed_whole_and_in_rank_order(empty: ControlPlane) -> None:
    """A group that fits in a rack lies in one, a node each, in the order of its ranks; the note says where. Its pods come in the
    reverse order.
    """
    group = name()
    for rank in reversed(range(12)):
        empty.post("/api/v1/namespaces/default/pods", member(group, 12, rank))
    nodes = empty.placed(group, 12)
    assert len({of(node, RACK) for node in nodes}) == 1 and nodes == sorted(set(nodes))
    notes = [pod["metadata"]["annotations"]["topolane.io/placement"] for pod in empty.pods(group)]
    assert all('"link_use":"isolated"' in note and f'"{nodes[0]}"' in note for note in notes)


def test_small_pods_share_nodes(empty: ControlPlane) -> None:
    """Pods of 2 GPUs: four on a node, and none more than it has, in addition to pods of another scheduler."""
    empty.post(
        "/api/v1/namespaces/default/pods", member("other", 0, 0, gpus=4, scheduler="default-scheduler")
    )
    empty.placed("other", 1)
    group = name()
    empty.submit(group, 16, gpus=2)
    nodes = empty.placed(group, 16)
    assert len(set(nodes)) <= 5
    (taken,) = empty.nodes_of("other")
    assert all(nodes.count(node) <= (2 if node == taken else 4) for node in nodes)


def whole_or_not_at_all(plane: ControlPlane, groups: Iterable[str]) -> dict[str, list[str]]:
    """The nodes of groups once each has all of its nodes or none."""
    nodes = {group: plane.nodes_of(group) for group in groups}
    return nodes if all(all(found) or not any(found) for found in nodes.values()) else {}


def test_isolated_groups_share_no_link(in_chassis: ControlPlane) -> None:
    """Groups of many sizes: those placed cross no group of nodes in common, and the others wait whole, and say why."""
    sizes = {name(): size for size in (9, 9, 10, 9, 9, 3, 10)}
    for group, size in sizes.items():
        in_chassis.submit(group, size)
    said = "under isolated and"
    for group, size in sizes.items():
        until(lambda g=group, n=size: all(in_chassis.nodes_of(g)) or said in in_chassis.events(g), group)
    in_chassis.has_looked()
    nodes = until(lambda: whole_or_not_at_all(in_chassis, sizes), "no group is in parts")
    placed = [found for found in nodes.values() if all(found)]
    assert len(placed) >= 4
    taken = list(itertools.chain(*placed))
    assert len(taken) == len(set(taken))
    for one, other in itertools.combinations(placed, 2):
        assert not crossed(one) & crossed(other), (one, other)


def test_links_outlive_kill_9(in_chassis: ControlPlane) -> None:
    """Four groups cross all chassis of both blocks. After kill -9 a fifth, for which there are nodes, still waits for links;
    it starts when one has ended.
    """
    plane = in_chassis
    held = [name() for _ in range(4)]
    for group in held:
        plane.submit(group, 9)
        plane.placed(group, 9)
    nodes = plane.nodes_of(held[0])
    plane.kill("topolane-scheduler")
    plane.start_scheduler(topologyLabels=SMALL, groupTimeoutSeconds=5)
    fifth = name()
    plane.submit(fifth, 10)
    events = plane.waits_saying(fifth, "would share links")
    assert "in the way at" in events and any(f"default/{group}" in events for group in held)
    assert plane.nodes_of(held[0]) == nodes
    plane.remove(held[0])
    plane.placed(fifth, 10)


def test_a_group_in_parts_is_never_bound(empty: ControlPlane) -> None:
    """Half a group waits, and says so; it starts when the other half comes."""
    group = name()
    empty.submit(group, 6, pods=3)
    empty.waits_saying(group, f"group default/{group} has 3 of its 6 pods")
    empty.has_looked()
    assert not any(empty.nodes_of(group))
    for rank in range(3, 6):
        empty.post("/api/v1/namespaces/default/pods", member(group, 6, rank))
    empty.placed(group, 6)


def test_members_that_find_no_node_give_all_back(empty: ControlPlane) -> None:
    """A member that asks for what no node has keeps its group from starting; the nodes go to another group, though the first still
    waits for them.
    """
    group, other = name(), name()
    empty.submit(group, 40, pods=39)
    empty.post("/api/v1/namespaces/default/pods", member(group, 40, 39, nodeSelector={"no": "such"}))
    empty.submit(other, 40)
    empty.placed(other, 40)
    assert not any(empty.nodes_of(group))


def test_a_group_that_never_fits_waits_and_others_go_on(empty: ControlPlane) -> None:
    large, small = name(), name()
    empty.submit(large, 65)
    empty.waits_saying(large, "never fits, even on the empty machine (65 wanted, 64 in all)")
    empty.submit(small, 4)
    empty.placed(small, 4)


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        (
            {"topolane.io/group-size": "many"},
            'topolane.io/group-size is "many": a size is a number from 1 to 1000000, not "many"',
        ),
        ({"topolane.io/group-size": ""}, "neither topolane.io/group-size nor a PodGroup"),
        ({"topolane.io/policy": "best"}, "best"),
        ({"topolane.io/min-bandwidth-share": "2"}, 'over 0 and up to 1, not "2"'),
        (
            {"kueue.x-k8s.io/podset-required-topology": "row"},
            'is "row"; topologyLabels of this scheduler are',
        ),
    ],
)
def test_bad_input_is_an_event(empty: ControlPlane, notes: Body, said: str) -> None:
    group = name()
    empty.submit(group, 2, notes=notes)
    empty.waits_saying(group, said)


def test_kueue_annotations(empty: ControlPlane) -> None:
    """A required rack is one rack, also for a policy that knows no levels; 17 nodes in a rack never fit; preferred: a block."""
    for policy in ("kueue-tas", "first-fit"):
        blocker, required, preferred = name(), name(), name()
        empty.submit(blocker, 10, policy="first-fit")
        empty.placed(blocker, 10)
        rack = {"kueue.x-k8s.io/podset-required-topology": "topo/rack"}
        empty.submit(required, 12, policy=policy, notes=rack)
        assert len({of(node, RACK) for node in empty.placed(required, 12)}) == 1
        preference = {"kueue.x-k8s.io/podset-preferred-topology": "topo/rack"}
        empty.submit(preferred, 18, policy=policy, notes=preference)
        assert len({of(node, BLOCK) for node in empty.placed(preferred, 18)}) == 1
        for group in (blocker, required, preferred):
            empty.remove(group)
    never = name()
    empty.submit(never, 17, notes=rack)
    empty.waits_saying(never, "never fits")


def test_stock_filters_come_first(empty: ControlPlane) -> None:
    """Taints, cordons, selectors, affinity and anti-affinity: nodes that kube-scheduler refuses are not offered."""
    empty.patch("/api/v1/nodes/n00", {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})
    empty.patch("/api/v1/nodes/n01", {"spec": {"unschedulable": True}})
    try:
        keyed: Body = {"matchExpressions": [{"key": "topo/rack", "operator": "In", "values": ["r0"]}]}
        affinity = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [keyed]}}
        }
        group = name()
        empty.submit(group, 14, affinity=affinity)
        nodes = empty.placed(group, 14)
        assert {of(node, RACK) for node in nodes} == {0} and not {"n00", "n01"} & set(nodes)
        waits = name()
        empty.submit(waits, 1, nodeSelector={"topo/rack": "r0"})
        events = empty.waits_saying(waits, f"group default/{waits} asks for 1 pods under isolated and")
        assert "; kube-scheduler's filters: " in events and "1 node(s) were unschedulable" in events
        empty.patch("/api/v1/nodes/n01", {"spec": {"unschedulable": None}})
        assert empty.placed(waits, 1) == ["n01"]
        apart = name()
        selector = {"matchLabels": {"scheduling.x-k8s.io/pod-group": apart}}
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        empty.submit(apart, 6, gpus=1, affinity=anti)
        assert len(set(empty.placed(apart, 6))) == 6
    finally:
        empty.patch("/api/v1/nodes/n00", {"spec": {"taints": None}})
        empty.patch("/api/v1/nodes/n01", {"spec": {"unschedulable": None}})


def test_groups_do_not_wait_for_cordoned_nodes(empty: ControlPlane) -> None:
    """With a cordoned node in every rack no rack can hold 16 pods, so an isolated group of 16 lies in two of them."""
    cordoned = [f"n{node:02}" for node in range(0, NODES, RACK)]
    try:
        for node in cordoned:
            empty.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
        group = name()
        empty.submit(group, RACK, policy="isolated")
        nodes = empty.placed(group, RACK)
        assert len({of(node, RACK) for node in nodes}) == 2 and not {*cordoned} & {*nodes}
    finally:
        for node in cordoned:
            empty.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})


def test_pods_without_a_group_are_left_alone(empty: ControlPlane) -> None:
    """A single pod of this scheduler is placed by the stock rules."""
    pod: Body = {
        "metadata": {"name": "alone"},
        "spec": {"schedulerName": "topolane", "containers": [container(1)]},
    }
    empty.post("/api/v1/namespaces/default/pods", pod)
    path = "/api/v1/namespaces/default/pods/alone"
    until(lambda: empty.get(path)["spec"].get("nodeName"), "it has a node")
    assert "topolane.io/placement" not in empty.get(path)["metadata"].get("annotations", {})


def test_a_job_with_ranks_gets_a_lost_pod_back_in_its_place(empty: ControlPlane) -> None:
    """An indexed Job with the annotation is a group; a pod that is deleted comes back on the node of its rank."""
    group = name()
    template: dict[str, Any] = {
        "metadata": {"annotations": {"topolane.io/group-size": "5"}},
        "spec": {"schedulerName": "topolane", "restartPolicy": "Never", "containers": [container(8)]},
    }
    spec = {
        "parallelism": 5,
        "completions": 5,
        "completionMode": "Indexed",
        "backoffLimit": 9,
        "template": template,
    }
    empty.post("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": group}, "spec": spec})

    def nodes() -> dict[str, str]:
        pods = empty.get(f"/api/v1/namespaces/default/pods?labelSelector=job-name%3D{group}")["items"]
        rank = "batch.kubernetes.io/job-completion-index"
        found = {
            pod["metadata"]["annotations"][rank]: pod["spec"].get("nodeName", "")
            for pod in pods
            if pod["status"].get("phase") not in ("Failed", "Succeeded")
            and not pod["metadata"].get("deletionTimestamp")
        }
        return found if len(found) == 5 and all(found.values()) else {}

    before = until(nodes, "the Job is placed")
    assert len(set(before.values())) == 5
    pods = empty.get(f"/api/v1/namespaces/default/pods?labelSelector=job-name%3D{group}")["items"]
    lost = pods[2]["metadata"]["name"]
    empty.delete(f"/api/v1/namespaces/default/pods/{lost}")
    names = lambda: {pod["metadata"]["name"] for pod in empty.pods()}
    until(lambda: lost not in names(), "the pod is gone")
    assert until(nodes, "it came back") == before


def test_nodes_come_and_go(empty: ControlPlane) -> None:
    """A new node of a rack is used; after it is deleted, groups are still placed, and links of running groups stay theirs."""
    full, more = name(), name()
    empty.submit(full, 64, policy="first-fit")
    empty.placed(full, 64)
    empty.submit(more, 1)
    empty.waits_saying(more, "does not fit now")
    empty.add_node("n64", {"topo/block": "b1", "topo/rack": "r3"})
    assert empty.placed(more, 1) == ["n64"]
    empty.delete("/api/v1/nodes/n64")
    empty.remove(full)
    later = name()
    empty.submit(later, 40)
    empty.placed(later, 40)


def test_another_scheduler_takes_the_lease_over(empty: ControlPlane, tmp_path: Path) -> None:
    """Of two with leader election one places; after kill -9 the other does, and knows whose links are taken."""
    empty.kill("topolane-scheduler")
    empty.start_scheduler("one", elect=True, topologyLabels=LABELS)
    first, second, third = name(), name(), name()
    empty.submit(first, 20)
    empty.placed(first, 20)
    empty.start_scheduler("two", elect=True, topologyLabels=LABELS)
    empty.submit(second, 20)
    empty.placed(second, 20)
    empty.kill("one")
    try:
        empty.submit(third, 17)
        events = empty.waits_saying(third, "would share links")
        assert "in the way at" in events and any(f"default/{group}" in events for group in (first, second))
        empty.remove(first)
        empty.placed(third, 17)
    finally:
        empty.kill("two")
        empty.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
