"""What users write on pods, on a real control plane: 64 nodes of 8 GPUs in 8 chassis, four chassis in a block."""

from __future__ import annotations

import json
from typing import Any

import pytest
from control_plane import SMALL, Body, ControlPlane, container, member, missing, name
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

PODS = "/api/v1/namespaces/default/pods"
PLACEMENT, PROOF = "topolane.io/placement", "topolane.io/placement-proof"
FIRST, SECOND = {"topo/block": "b0"}, {"topo/block": "b1"}


def restart(plane: ControlPlane) -> None:
    plane.kill("topolane-scheduler")
    plane.start_scheduler(topologyLabels=SMALL, groupTimeoutSeconds=5)


def write(plane: ControlPlane, group: str, **notes: Any) -> None:
    """Writes annotations on all pods of a group, as a user of the namespace may."""
    for pod in plane.pods(group):
        plane.patch(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"annotations": notes}})


def test_written_placements_reserve_nothing(in_chassis: ControlPlane) -> None:
    """A user claims all nodes, all links and a later revision for a group of one block, and for a pod that was put on a node by hand.
    After kill -9 a group of the other block is placed. One that would use links of the first group's block waits, because which of them
    are its own is not known. An Event says so.
    """
    plane, group, alone, other, crossing = in_chassis, name(), name(), name(), name()
    plane.submit(group, 9, nodeSelector=FIRST)
    plane.placed(group, 9)
    nodes = [f"n{number:02}" for number in range(64)] * 100
    claim = {
        "policy": "isolated",
        "nodes": nodes,
        "links": list(range(96)),
        "share": 1,
        "link_use": "isolated",
    }
    claim |= {"rank": 0, "revision": 10**9}
    text = json.dumps(claim)
    write(plane, group, **{PLACEMENT: text})
    by_hand = member(
        alone,
        1,
        0,
        gpus=1,
        notes={PLACEMENT: text, PROOF: f"default/{alone}#PodGroup {'0' * 64}"},
        nodeName="n63",
    )
    plane.post(PODS, by_hand)
    restart(plane)
    plane.submit(other, 9, nodeSelector=SECOND)
    plane.placed(other, 9)
    plane.submit(crossing, 9, nodeSelector=FIRST | {"topo/chassis": "c3"})
    until(lambda: all("nothing proves" in plane.events(each) for each in (group, alone)), "the Events")
    plane.remove(crossing)
    plane.submit(later := name(), 17, nodeSelector=FIRST)
    assert f"default/{group}" in plane.waits_saying(later, "would share links")


def test_what_the_scheduler_signed_counts_after_a_restart(in_chassis: ControlPlane) -> None:
    """The readers take the same for proved as the scheduler does, with the key of its Secret; a pod that is given another label stays in its
    group for both.
    """
    pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")
    pytest.importorskip("yaml", reason="needs the extra kubernetes: PyYAML")
    from topolane.kubernetes.client import KubernetesCluster
    from topolane.kubernetes.inspection import Where, inspect
    from topolane.kubernetes.kubeconfig import access

    plane, group, other = in_chassis, name(), name()
    plane.submit(group, 9, policy="dedicated", nodeSelector=FIRST)
    nodes = plane.placed(group, 9)
    note = json.loads(plane.get(f"{PODS}/{group}-0")["metadata"]["annotations"][PLACEMENT])
    plane.patch(f"{PODS}/{group}-4", {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": other}}})
    restart(plane)
    cluster = KubernetesCluster(access(str(plane.kubeconfig)))
    look = inspect(cluster, Where(labels=tuple(SMALL)))
    found = look.groups[f"default/{group}"]
    assert found.is_proved and found.hosts == nodes and list(look.groups) == [f"default/{group}"]
    assert look.allocations[found.number].links == tuple(note["links"]) and note["links"]
    assert look.problems == ()
    # The scheduler knows nothing else: a member that comes back gets its node.
    plane.delete(f"{PODS}/{group}-2")
    until(lambda: len(plane.pods(group)) == 7, "it is gone")
    plane.post(PODS, member(group, 9, 2, policy="dedicated", nodeSelector=FIRST))
    assert until(lambda: plane.get(f"{PODS}/{group}-2")["spec"].get("nodeName"), "its node") == nodes[2]


def owned(plane: ControlPlane, owner: Body, rank: int) -> None:
    """Creates a pod of a controller whose pods are a group of two."""
    kind, meta = owner["kind"], owner["metadata"]
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": meta["name"], "uid": meta["uid"]}
    pod = {
        "metadata": {
            "name": f"{meta['name']}-{kind.lower()}-{rank}",
            "annotations": {"topolane.io/group-size": "2"},
            "ownerReferences": [{**reference, "controller": True}],
        },
        "spec": {"schedulerName": "topolane", "containers": [container(8)]},
    }
    plane.post(PODS, pod)


def controllers(plane: ControlPlane, owner: str) -> list[Body]:
    """A StatefulSet and a ReplicaSet of one name. Their controllers do not run here, so the test makes their pods."""
    template = {"metadata": {"labels": {"app": owner}}, "spec": {"containers": [container(8)]}}
    spec = {"selector": {"matchLabels": {"app": owner}}, "replicas": 0, "template": template}
    path = "/apis/apps/v1/namespaces/default"
    return [
        {
            **plane.post(f"{path}/{kind.lower()}s", {"metadata": {"name": owner}, "spec": spec | more}),
            "kind": kind,
        }
        for kind, more in (("StatefulSet", {"serviceName": owner}), ("ReplicaSet", {}))
    ]


def nodes_by_name(plane: ControlPlane, start: str) -> dict[str, str]:
    """The pods with names that start so, and their nodes."""
    found = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in plane.pods()}
    return {pod: node for pod, node in found.items() if pod.startswith(start)}


def test_owners_of_one_name_are_two_groups(empty: ControlPlane) -> None:
    """Two controllers of different kinds have one name and two pods each. The pods of the first start when both are there; one of the
    second waits for the other, and then these start too.
    """
    owner = name()
    one, two = controllers(empty, owner)
    try:
        owned(empty, two, 0)
        owned(empty, one, 0)
        for pod in (f"{owner}-statefulset-0", f"{owner}-replicaset-0"):
            until(lambda pod=pod: f"{pod} has 1 of its 2 pods" in said(empty, owner), "it waits")
        owned(empty, one, 1)
        until(lambda: sum(map(bool, nodes_by_name(empty, owner).values())) == 2, "the first runs")
        assert not nodes_by_name(empty, f"{owner}-replicaset")[f"{owner}-replicaset-0"]
        owned(empty, two, 1)
        until(lambda: sum(map(bool, nodes_by_name(empty, owner).values())) == 4, "the second runs")
    finally:
        for each in (one, two):
            empty.delete(f"/apis/apps/v1/namespaces/default/{each['kind'].lower()}s/{owner}")


def said(plane: ControlPlane, owner: str) -> str:
    """The Events of the pods of an owner, each with the name of its pod in front of what the group lacks."""
    return "\n".join(
        event["involvedObject"]["name"] + event["message"].partition(f"group default/{owner}")[2]
        for event in plane.get("/api/v1/namespaces/default/events")["items"]
    )


def test_a_leader_and_its_workers_are_placed_together(empty: ControlPlane) -> None:
    """The leader and the workers of each group of a LeaderWorkerSet have different owners. They start together, in the order of their
    worker index, and the two groups are placed each by itself.
    """
    lws = name()

    def worker(group: int, index: int) -> None:
        start = "leaderworkerset.sigs.k8s.io/"
        labels = {
            f"{start}name": lws,
            f"{start}group-index": str(group),
            f"{start}group-key": f"key-of-{group}",
        }
        labels |= {f"{start}worker-index": str(index), "apps.kubernetes.io/pod-index": str(index or group)}
        notes = {f"{start}size": "4", "topolane.io/group-size": "4"}
        pod = f"{lws}-{group}" + (f"-{index}" if index else "")
        spec = {"schedulerName": "topolane", "containers": [container(8)]}
        empty.post(PODS, {"metadata": {"name": pod, "labels": labels, "annotations": notes}, "spec": spec})

    for index in (3, 1, 0):
        worker(0, index)
        worker(1, index)
    until(lambda: f"group default/{lws}-0 has 3 of its 4 pods" in empty.events(lws), "they wait")
    worker(1, 2)
    second = until(lambda: all((found := nodes_by_name(empty, f"{lws}-1")).values()) and found, "all run")
    assert not any(nodes_by_name(empty, f"{lws}-0").values())
    ranks = {
        pod["metadata"]["name"]: pod["metadata"]["annotations"]["topolane.io/rank"]
        for pod in empty.pods()
        if pod["metadata"]["name"] in second
    }
    assert ranks == {f"{lws}-1": "0", **{f"{lws}-1-{index}": str(index) for index in (1, 2, 3)}}
    assert len(set(second.values())) == 4 and list(second.values()) == sorted(second.values())
