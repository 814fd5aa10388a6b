"""What kube-scheduler refuses, topolane-scheduler refuses too, and for the same reason; what it places is placed.

Each case is asked of the profile `default-scheduler` of the same binary, and of topolane's as a group of one and of two pods. A
group of two is placed if kube-scheduler places two such pods, and none of it if kube-scheduler places one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from control_plane import ControlPlane, control_plane, member, missing, name
from stock_cases import (
    APP,
    CASES,
    CLAIMS,
    CLASSES,
    NODES,
    PODS,
    SLICES,
    STORAGE,
    VOLUME_CLAIMS,
    VOLUMES,
    WHOLE_NODE,
    ZONE,
    Case,
    resource_claim,
)
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Four nodes in two zones."""
    with control_plane(tmp_path_factory.mktemp("kubernetes")) as plane:
        for number, node in enumerate(NODES):
            plane.add_node(node, {ZONE: f"z{number // 2}"})
        until(plane.are_nodes_ready, "all nodes are ready")
        plane.start_scheduler(topologyLabels=[ZONE, "kubernetes.io/hostname"], groupTimeoutSeconds=5)
        yield plane


@pytest.fixture
def cluster(four: ControlPlane) -> Iterator[ControlPlane]:
    yield four
    for path in (PODS, CLAIMS, VOLUME_CLAIMS, VOLUMES, STORAGE, CLASSES, SLICES):
        delete_all(four, path)
    for node in NODES:
        four.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": None, "unschedulable": None}})
    until(lambda: not four.pods(), "no pod is left")


def delete_all(cluster: ControlPlane, path: str) -> None:
    for item in cluster.get(path)["items"]:
        where = f"{path}/{item['metadata']['name']}"
        cluster.patch(where, {"metadata": {"finalizers": None}})
        cluster.delete(where)


def begin(cluster: ControlPlane, case: Case) -> None:
    """What is there before the pods come."""
    for path, body in case.objects:
        cluster.post(path, body)
    for node in NODES[: case.nodes] if case.node else []:
        cluster.patch(f"/api/v1/nodes/{node}", {"spec": case.node})
    for node in case.blockers:
        gpus = WHOLE_NODE if case.gpus == WHOLE_NODE else 0
        pod = member(f"blocker-{node}", 0, 0, gpus, scheduler="none", nodeName=node, **case.blocker)
        pod["metadata"]["labels"] = APP | {"role": "blocker"}
        cluster.post(PODS, pod)


def submit(cluster: ControlPlane, case: Case, size: int, scheduler: str) -> str:
    """The pods of a case as a group, whose name it returns."""
    group = name()
    for rank in range(size):
        spec = dict(case.spec)
        if case.claims:
            cluster.post(CLAIMS, resource_claim(f"{group}-{rank}"))
            spec["resourceClaims"] = [{"name": "r", "resourceClaimName": f"{group}-{rank}"}]
        pod = member(group, size, rank, case.gpus, scheduler=scheduler, **spec)
        pod["metadata"]["labels"] |= APP
        cluster.post(PODS, pod)
    return group


def refusals(cluster: ControlPlane, group: str) -> str:
    """What the conditions of the pods of a group and their Events say."""
    conditions = [
        condition.get("message", "")
        for pod in cluster.pods(group)
        for condition in pod["status"].get("conditions", [])
    ]
    return "\n".join([*conditions, cluster.events(group)])


def places(cluster: ControlPlane, group: str, wanted: int, reason: str) -> int:
    """How many pods of a group are placed, once that is as wanted and the others say why."""

    def is_settled() -> bool:
        nodes = cluster.nodes_of(group)
        explained = all(nodes) or reason in refusals(cluster, group)
        return explained and sum(map(bool, nodes)) == wanted

    try:
        until(is_settled, f"{wanted} pods are placed, the others say {reason!r}")
    except AssertionError as error:
        said = f"{cluster.nodes_of(group)}: {refusals(cluster, group)}"
        raise AssertionError(f"{error}; {said}") from None
    if wanted < len(cluster.nodes_of(group)):
        cluster.has_looked()
    return sum(map(bool, cluster.nodes_of(group)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_group_is_refused_as_its_pods_are_by_kube_scheduler(cluster: ControlPlane, case: Case) -> None:
    begin(cluster, case)
    for scheduler, size in (("default-scheduler", 2), ("topolane", 1), ("topolane", 2)):
        wanted, reason = min(case.places, size), case.reason
        if scheduler == "topolane" and (wanted < size or case.not_yet and size == 2):
            wanted = 0
            reason = f"(2 wanted, {case.places} in all)" if case.counted else reason
        group = submit(cluster, case, size, scheduler)
        assert places(cluster, group, wanted, reason) == wanted, (scheduler, size)
        if scheduler == "topolane" and case.later and size == 2:
            for method, path, body in case.later:
                cluster.patch(path, body) if method == "PATCH" else cluster.post(path, body)
            cluster.placed(group, size)
        cluster.remove(group)
        until(lambda gone=group: not cluster.pods(gone), "its pods are gone")
        delete_all(cluster, CLAIMS)
