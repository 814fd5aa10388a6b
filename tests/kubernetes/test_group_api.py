"""The group API of Kubernetes 1.36 (scheduling.k8s.io/v1alpha2), with kube-scheduler's own gang scheduling switched on: 32 nodes in
two racks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from control_plane import LABELS, RACK, Body, ControlPlane, container, control_plane, missing, name
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

GATES = ("GenericWorkload", "GangScheduling")
API = "scheduling.k8s.io/v1alpha2"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("group-api"), GATES, API) as plane:
        for node in range(2 * RACK):
            plane.add_node(f"n{node:02}", {"topo/block": "b0", "topo/rack": f"r{node // RACK}"})
        until(plane.are_nodes_ready, "all nodes are ready")
        plane.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
        yield plane


@pytest.fixture
def empty(plane: ControlPlane) -> ControlPlane:
    for pod in plane.pods():
        plane.delete(f"{PODS}/{pod['metadata']['name']}")
    until(lambda: not plane.pods(), "no pod is left")
    return plane


def group(plane: ControlPlane, policy: Body) -> str:
    """Creates a PodGroup."""
    made = name()
    body = {
        "apiVersion": API,
        "kind": "PodGroup",
        "metadata": {"name": made},
        "spec": {"schedulingPolicy": policy},
    }
    plane.post(f"/apis/{API}/namespaces/default/podgroups", body)
    return made


def join(plane: ControlPlane, group: str, ranks: range, gpus: int = 8) -> None:
    for rank in ranks:
        labels = {"apps.kubernetes.io/pod-index": str(rank)}
        spec = {
            "schedulerName": "topolane",
            "schedulingGroup": {"podGroupName": group},
            "containers": [container(gpus)],
        }
        plane.post(PODS, {"metadata": {"name": f"{group}-{rank}", "labels": labels}, "spec": spec})


def where(plane: ControlPlane, group: str) -> dict[str, str]:
    pods = [pod for pod in plane.pods() if pod["metadata"]["name"].startswith(f"{group}-")]
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}


def all_placed(plane: ControlPlane, group: str, count: int) -> dict[str, str]:
    def nodes() -> dict[str, str]:
        found = where(plane, group)
        return found if len(found) == count and all(found.values()) else {}

    return dict(until(nodes, f"group {group} is placed"))


def test_a_gang_is_placed_by_the_policy(empty: ControlPlane) -> None:
    """Half a gang waits. All of it lies in one rack, a node each, in the order of its ranks; the PodGroup says that it is scheduled."""
    gang = group(empty, {"gang": {"minCount": 12}})
    join(empty, gang, range(6))
    empty.has_looked()
    assert not any(where(empty, gang).values())
    join(empty, gang, range(6, 12))
    nodes = all_placed(empty, gang, 12)
    order = [nodes[f"{gang}-{rank}"] for rank in range(12)]
    assert order == sorted(set(order)) and len({int(node[1:]) // RACK for node in order}) == 1
    pod = empty.get(f"{PODS}/{gang}-3")
    assert json.loads(pod["metadata"]["annotations"]["topolane.io/placement"])["nodes"] == order
    path = f"/apis/{API}/namespaces/default/podgroups/{gang}"
    until(lambda: scheduled(empty.get(path)), "it is scheduled")


def scheduled(body: Body) -> bool:
    conditions = body.get("status", {}).get("conditions", [])
    return any(one["type"] == "PodGroupScheduled" and one["status"] == "True" for one in conditions)


def test_gangs_wait_whole_and_more_join(empty: ControlPlane) -> None:
    """Two gangs of 20 do not fit together: one waits whole, and says why, until the other has gone. More members than the least join
    the gang that runs.
    """
    first, second = (group(empty, {"gang": {"minCount": 20}}) for _ in range(2))
    join(empty, first, range(20))
    all_placed(empty, first, 20)
    join(empty, second, range(20))
    said = f"group default/{second} asks for 20 pods under isolated and does not fit now"
    until(lambda: said in empty.events(second), "an Event says why")
    assert not any(where(empty, second).values())
    join(empty, first, range(20, 23))
    all_placed(empty, first, 23)
    for pod in where(empty, first):
        empty.delete(f"{PODS}/{pod}")
    all_placed(empty, second, 20)


def test_without_a_gang_policy_pods_are_placed_alone(empty: ControlPlane) -> None:
    basic, gang = group(empty, {"basic": {}}), group(empty, {"gang": {"minCount": 20}})
    join(empty, basic, range(2), gpus=1)
    all_placed(empty, basic, 2)
    assert "topolane.io/placement" not in empty.get(f"{PODS}/{basic}-0")["metadata"].get("annotations", {})
    join(empty, gang, range(20))
    all_placed(empty, gang, 20)
