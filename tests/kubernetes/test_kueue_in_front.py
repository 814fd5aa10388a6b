"""Kueue's own controller admits Jobs on a real control plane; topolane-scheduler places them."""

from __future__ import annotations

from typing import Any

import pytest
from control_plane import RACK, Body, ControlPlane, container, missing, name
from kueue_controller import API, add_queue, add_topology, define, missing_kueue, prepare, start_kueue
from waiting import until

WHY = missing() or missing_kueue()
pytestmark = pytest.mark.skipif(WHY is not None, reason=str(WHY))
JOBS = "/apis/batch/v1/namespaces/default/jobs"
QUOTA = 40


@pytest.fixture(scope="module")
def kueue(plane: ControlPlane) -> ControlPlane:
    define(plane)
    add_topology(plane, "racks", ["topo/rack", "kubernetes.io/hostname"])
    prepare(plane)
    start_kueue(plane, chooses=False)
    add_queue(plane, "all", room(QUOTA))
    plane.kill("topolane-scheduler")
    plane.start_scheduler(profile="default-scheduler", kueueTopology="racks", groupTimeoutSeconds=5)
    return plane


def room(nodes: int) -> dict[str, int | str]:
    """A quota of all GPUs of this number of nodes, and more than enough of the rest."""
    return {"cpu": 100_000, "memory": "1000Ti", "nvidia.com/gpu": nodes * 8}


def job(group: str, pods: int, queue: str = "all", **notes: str) -> Body:
    """A Job for Kueue's queue, as a user of Kueue writes it. Without Kueue's webhook it says itself that it is suspended."""
    template: dict[str, Any] = {
        "metadata": {"annotations": {key.replace("_", "-"): value for key, value in notes.items()}},
        "spec": {"restartPolicy": "Never", "containers": [container(8)]},
    }
    template["metadata"]["annotations"] = {
        f"kueue.x-k8s.io/{key}": value for key, value in template["metadata"]["annotations"].items()
    }
    spec = {
        "suspend": True,
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "template": template,
    }
    return {"metadata": {"name": group, "labels": {"kueue.x-k8s.io/queue-name": queue}}, "spec": spec}


def nodes_of(plane: ControlPlane, group: str) -> list[str]:
    """The nodes of a Job in the order of its indices."""
    pods = plane.get(f"/api/v1/namespaces/default/pods?labelSelector=job-name%3D{group}")["items"]
    rank = "batch.kubernetes.io/job-completion-index"
    return [
        pod["spec"].get("nodeName", "")
        for pod in sorted(pods, key=lambda pod: int(pod["metadata"]["annotations"][rank]))
    ]


def waits_for_quota(plane: ControlPlane, group: str) -> bool:
    """Whether Kueue has found no quota for a Job."""
    return any(
        condition["type"] == "QuotaReserved" and condition["status"] == "False"
        for workload in plane.get(f"{API}/namespaces/default/workloads")["items"]
        if any(owner["name"] == group for owner in workload["metadata"].get("ownerReferences", []))
        for condition in workload.get("status", {}).get("conditions", [])
    )


def placed(plane: ControlPlane, group: str, pods: int) -> list[str]:
    def found() -> list[str]:
        nodes = nodes_of(plane, group)
        return nodes if len(nodes) == pods and all(nodes) else []

    return list(until(found, f"Job {group} is placed"))


def test_kueue_admits_and_the_policy_places(kueue: ControlPlane, empty: ControlPlane) -> None:
    """A suspended Job is admitted by quota and placed whole in rank order. The next waits suspended until the first is gone."""
    first, second = name(), name()
    kueue.post(JOBS, job(first, 24, podset_preferred_topology="topo/rack"))
    nodes = placed(kueue, first, 24)
    assert nodes == sorted(set(nodes))
    notes = [pod["metadata"]["annotations"]["topolane.io/placement"] for pod in kueue.pods()]
    assert len(notes) == 24 and all('"policy":"isolated"' in note for note in notes)
    kueue.post(JOBS, job(second, 24, podset_preferred_topology="topo/rack"))
    until(lambda: waits_for_quota(kueue, second), "Kueue has looked at the second")
    assert kueue.get(f"{JOBS}/{second}")["spec"]["suspend"] and not nodes_of(kueue, second)
    kueue.delete(f"{JOBS}/{first}")
    placed(kueue, second, 24)


def test_a_manifest_for_kueues_topology_runs_unchanged(kueue: ControlPlane, empty: ControlPlane) -> None:
    """Required level and slices of a manifest that names neither this scheduler nor the size of the group."""
    inside, sliced = name(), name()
    kueue.post(JOBS, job(inside, 12, podset_required_topology="topo/rack"))
    assert len({int(node[1:]) // RACK for node in placed(kueue, inside, 12)}) == 1
    slices = {"podset_slice_required_topology": "topo/rack", "podset_slice_size": "8"}
    kueue.post(JOBS, job(sliced, 24, podset_unconstrained_topology="true", **slices))
    nodes = placed(kueue, sliced, 24)
    assert len(set(nodes)) == 24
    for start in range(0, 24, 8):
        assert len({int(node[1:]) // RACK for node in nodes[start : start + 8]}) == 1


def test_a_level_that_the_topology_lacks_is_an_event(kueue: ControlPlane, empty: ControlPlane) -> None:
    """A level that the Topology of the configuration does not have is reported in an Event, in words of that Topology."""
    group = name()
    kueue.post(JOBS, job(group, 4, podset_required_topology="topo/block"))
    said = 'is "topo/block"; topologyLabels of this scheduler are topo/rack, kubernetes.io/hostname'
    until(lambda: said in kueue.events(group), "an Event says so")


def test_pods_that_kueue_has_placed_are_left_alone(kueue: ControlPlane, empty: ControlPlane) -> None:
    """With its topology switched on, Kueue names a node for each pod: the pods go there, and are no group of ours."""
    kueue.kill("kueue")
    start_kueue(kueue, chooses=True)
    add_queue(kueue, "chosen", room(32), topologyName="racks", nodeLabels={"topo/block": "b1"})
    group = name()
    kueue.post(JOBS, job(group, 12, queue="chosen", podset_required_topology="topo/rack"))
    nodes = placed(kueue, group, 12)
    assert len({int(node[1:]) // RACK for node in nodes}) == 1 and min(nodes) >= "n32"
    assert not any("topolane.io/placement" in pod["metadata"]["annotations"] for pod in kueue.pods())
