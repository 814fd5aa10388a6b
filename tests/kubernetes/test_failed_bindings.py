"""Groups whose pods the API server does not bind, on a real control plane: 64 nodes of 8 GPUs in 4 racks.

A ValidatingAdmissionPolicy refuses the bindings, as an API server that is killed does.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator

import pytest
from control_plane import RACK, Body, ControlPlane, container, missing, name
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

PODS = "/api/v1/namespaces/default/pods"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
IN_RACK = {"topo/rack": "r0"}
IN_BLOCK = {"topo/block": "b0"}
BY_HAND = "test/by-hand"


def single(pod: str) -> Body:
    """A pod without a group that takes a node of the rack."""
    return {
        "metadata": {"name": pod, "labels": {"app": pod}},
        "spec": {"schedulerName": "topolane", "nodeSelector": IN_RACK, "containers": [container(8)]},
    }


def node_of(plane: ControlPlane, pod: str) -> str:
    return str(plane.get(f"{PODS}/{pod}")["spec"].get("nodeName", ""))


def was_refused(plane: ControlPlane, pod: str) -> bool:
    """Whether the scheduler has tried a pod and found no place for it."""
    conditions = plane.get(f"{PODS}/{pod}")["status"].get("conditions", [])
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)


@contextlib.contextmanager
def refused(plane: ControlPlane, *pods: str) -> Iterator[None]:
    """The API server binds none of these pods, unless the binding says that it is by hand."""
    policy, probe = name(), name()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    by_hand = f"has(object.metadata.annotations) && '{BY_HAND}' in object.metadata.annotations"
    expression = f"!(object.metadata.name in {json.dumps([*pods, probe])}) || {by_hand}"
    plane.post(POLICIES, {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": policy},
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]},
    })  # fmt: skip
    plane.post(BINDINGS, {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": policy},
        "spec": {"policyName": policy, "validationActions": ["Deny"]},
    })  # fmt: skip
    try:

        def is_in_force() -> bool:
            plane.post(PODS, single(probe))
            until(lambda: node_of(plane, probe) or is_refused(plane, probe), "the probe was tried")
            is_bound = bool(node_of(plane, probe))
            plane.delete(f"{PODS}/{probe}")
            until(lambda: all(pod["metadata"]["name"] != probe for pod in plane.pods()), "the probe is gone")
            return not is_bound

        until(is_in_force, "the bindings are refused")
        yield
    finally:
        plane.delete(f"{BINDINGS}/{policy}")
        plane.delete(f"{POLICIES}/{policy}")


def is_refused(plane: ControlPlane, *pods: str) -> bool:
    """Whether the binding of each was refused."""
    events = plane.get("/api/v1/namespaces/default/events")["items"]
    denied = {
        event["involvedObject"]["name"] for event in events if "denied request" in event.get("message", "")
    }
    return denied >= set(pods)


def test_the_room_of_a_member_that_was_not_bound_is_kept(empty: ControlPlane) -> None:
    """A group takes a rack, and one of its pods is not bound. Neither a group nor a pod of the same priority gets that node before it.
    When a member is lost and no pod replaces it, the node is kept for a while only."""
    group, other, alone = name(), name(), name()
    lacking = f"{group}-3"
    with refused(empty, lacking):
        empty.submit(group, RACK, nodeSelector=IN_RACK)
        until(lambda: is_refused(empty, lacking), "the binding is refused")
        empty.submit(other, 1, nodeSelector=IN_RACK)
        empty.post(PODS, single(alone))
        until(lambda: all(was_refused(empty, pod) for pod in (f"{other}-0", alone)), "both were tried")
        assert sum(map(bool, empty.nodes_of(group))) == RACK - 1
        assert not any(empty.nodes_of(other)) and not node_of(empty, alone)
    nodes = empty.placed(group, RACK)
    assert len(set(nodes)) == RACK
    empty.remove(other)
    empty.delete(f"{PODS}/{lacking}")
    assert until(lambda: node_of(empty, alone), "the node is given away") == nodes[3]


def test_a_group_of_which_no_pod_was_bound_gives_its_links_back(empty: ControlPlane) -> None:
    """All bindings of a group are refused, and its pods are deleted: another group gets the rack that it would have had."""
    group, later = name(), name()
    pods = [f"{group}-{rank}" for rank in range(RACK)]
    with refused(empty, *pods):
        empty.submit(group, RACK, nodeSelector=IN_RACK)
        until(lambda: is_refused(empty, *pods), "the bindings are refused")
        empty.remove(group)
        empty.submit(later, RACK, nodeSelector=IN_RACK)
        assert len(set(empty.placed(later, RACK))) == RACK


def test_a_group_of_which_no_pod_was_bound_is_placed_whole(empty: ControlPlane) -> None:
    """All bindings of a group are refused for a while: then all of its pods get nodes, with the ranks that they have."""
    group = name()
    pods = [f"{group}-{rank}" for rank in range(RACK)]
    with refused(empty, *pods):
        empty.submit(group, RACK, nodeSelector=IN_RACK)
        until(lambda: is_refused(empty, *pods), "the bindings are refused")
    nodes = empty.placed(group, RACK)
    for rank, pod in enumerate(pods):
        note = json.loads(empty.get(f"{PODS}/{pod}")["metadata"]["annotations"]["topolane.io/placement"])
        assert (note["rank"], note["nodes"]) == (rank, nodes)


def test_a_pod_that_was_bound_without_an_answer(in_chassis: ControlPlane) -> None:
    """The API server answers that no pod of a group was bound, though one is. The group runs from then on: when the others are
    deleted, it holds its links still, and another group that needs them waits."""
    plane, group, other = in_chassis, name(), name()
    pods = [f"{group}-{rank}" for rank in range(9)]
    with refused(plane, *pods):
        plane.submit(group, 9, nodeSelector=IN_BLOCK)
        until(lambda: is_refused(plane, *pods), "the bindings are refused")
        nodes = until(lambda: placed_last(plane, group), "the nodes of the group")
        note = {"policy": "isolated", "nodes": nodes, "share": 1, "link_use": "isolated", "rank": 0}
        notes = plane.signed(f"default/{group}#PodGroup", plane.get(f"{PODS}/{pods[0]}"), json.dumps(note))
        plane.post(f"{PODS}/{pods[0]}/binding", {
            "apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": nodes[0]},
            "metadata": {"name": pods[0], "annotations": {BY_HAND: "", **notes}},
        })  # fmt: skip
        for pod in pods[1:]:
            plane.delete(f"{PODS}/{pod}")
        plane.submit(other, 17, nodeSelector=IN_BLOCK)
        assert f"default/{group}" in plane.waits_saying(other, "would share links")
        plane.remove(group)
        plane.placed(other, 17)


def placed_last(plane: ControlPlane, group: str) -> list[str]:
    """The nodes that the scheduler said last that it chose for a group."""
    said = re.findall(rf'"Group placed".* group="default/{group}" .*nodes=(\[.*?\])', plane.log())
    return list(json.loads(said[-1])) if said else []
