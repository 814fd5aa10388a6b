"""Preemption by priority on a real control plane: whole groups go, or none of their pods."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from control_plane import LABELS, RACK, Body, ControlPlane, container, join, member, missing, name
from waiting import next_second, until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture(scope="module", autouse=True)
def classes(plane: ControlPlane) -> None:
    """Priority classes: low, middle, high, and one that is high and never preempts."""
    for kind, value, more in (
        ("low", 10, {}),
        ("middle", 20, {}),
        ("high", 30, {}),
        ("patient", 30, {"preemptionPolicy": "Never"}),
    ):
        plane.post(CLASSES, {"metadata": {"name": kind}, "value": value, **more})


@pytest.fixture
def frozen(empty: ControlPlane) -> Iterator[ControlPlane]:
    """KWOK stands still when the test sends it SIGSTOP, so that deleted pods stay on their nodes, and goes on after it."""
    yield empty
    empty.processes["kwok"].send_signal(signal.SIGCONT)


def fill(plane: ControlPlane, sizes: tuple[int, ...] = (16, 16, 16, 16), kind: str = "low") -> list[str]:
    """Groups on all nodes, one after another, each a second younger than the one before."""
    groups = []
    for size in sizes:
        group = name()
        plane.submit(group, size, policy="first-fit", priorityClassName=kind)
        plane.placed(group, size)
        until(lambda g=group: all(is_running(pod) for pod in plane.pods(g)), "all run")
        groups.append(group)
        next_second()
    return groups


def is_running(pod: Body) -> bool:
    return pod["status"].get("phase") == "Running"


def alone(plane: ControlPlane, pod: str, **spec: object) -> None:
    """A single pod that takes a node."""
    body = {"schedulerName": "topolane", "containers": [container(8)], **spec}
    plane.post("/api/v1/namespaces/default/pods", {"metadata": {"name": pod}, "spec": body})


def node_of(plane: ControlPlane, pod: str) -> str:
    return str(plane.get(f"/api/v1/namespaces/default/pods/{pod}")["spec"].get("nodeName", ""))


def gone(plane: ControlPlane, group: str) -> None:
    """Waits until the last pod of a group is gone. Another group may be placed before, on the nodes of the others."""
    until(lambda: not plane.pods(group), f"group {group} is gone")


def says(plane: ControlPlane, group: str, said: str) -> None:
    """Waits for an Event of a group: the scheduler writes it after it has acted."""
    until(lambda: said in plane.events(group), f"an Event of {group} says {said!r}")


def test_a_group_takes_the_place_of_the_youngest_whole_group(empty: ControlPlane) -> None:
    """Ten pods of high priority on a full machine: the youngest group of 16 goes, all of it, and no other pod."""
    groups = fill(empty)
    first = name()
    empty.submit(first, 10, priorityClassName="high")
    nodes = empty.placed(first, 10)
    assert len({int(node[1:]) // RACK for node in nodes}) == 1
    gone(empty, groups[-1])
    assert all(len(empty.pods(group)) == 16 for group in groups[:-1])
    says(empty, groups[-1], f"Preempted by group default/{first}")
    says(empty, first, f"It takes the place of default/{groups[-1]}")


def test_lower_priority_goes_before_younger(empty: ControlPlane) -> None:
    """The oldest group goes if its priority is lowest; groups of the same or a higher priority never do."""
    low = fill(empty, (16,), "low")
    middle = fill(empty, (16, 16), "middle")
    high = fill(empty, (16,), "high")
    first, second = name(), name()
    empty.submit(first, 12, priorityClassName="high")
    empty.placed(first, 12)
    gone(empty, low[0])
    empty.submit(second, 12, priorityClassName="low")
    empty.waits_saying(second, "does not fit now")
    assert all(len(empty.pods(group)) == 16 for group in middle + high)


def test_links_are_freed_by_preemption(in_chassis: ControlPlane) -> None:
    """A group that is refused for links alone takes those of one other group, and leaves the rest."""
    plane = in_chassis
    held = []
    for _ in range(4):
        held.append(name())
        plane.submit(held[-1], 9, priorityClassName="low")
        plane.placed(held[-1], 9)
    fifth = name()
    plane.submit(fifth, 10, priorityClassName="patient")
    plane.waits_saying(fifth, "would share links")
    sixth = name()
    plane.submit(sixth, 10, priorityClassName="high")
    plane.placed(sixth, 10)
    assert sorted(len(plane.pods(group)) for group in held) == [0, 9, 9, 9]


def test_a_group_that_never_preempts_waits(empty: ControlPlane) -> None:
    """With preemptionPolicy Never the group waits, and says so."""
    groups = fill(empty)
    first = name()
    empty.submit(first, 4, priorityClassName="patient")
    empty.waits_saying(first, "preemptionPolicy is Never")
    empty.has_looked()
    assert all(len(empty.pods(group)) == 16 for group in groups)


def test_budgets_are_kept_if_others_can_go(empty: ControlPlane) -> None:
    """The youngest group has a budget that allows no disruption: the next oldest goes in its place."""
    groups = fill(empty)
    selector = {"matchLabels": {"scheduling.x-k8s.io/pod-group": groups[-1]}}
    empty.post(BUDGETS, {"metadata": {"name": "all"}, "spec": {"minAvailable": "100%", "selector": selector}})
    try:
        first = name()
        empty.submit(first, 10, priorityClassName="high")
        empty.placed(first, 10)
        gone(empty, groups[-2])
        assert all(len(empty.pods(group)) == 16 for group in (*groups[:2], groups[-1]))
    finally:
        empty.delete(f"{BUDGETS}/all")


def test_single_pods_go_in_place_of_groups(empty: ControlPlane) -> None:
    """A single pod takes the place of a single pod, though the pods of the group are younger; the next takes a whole group."""
    alone(empty, "old", priorityClassName="low")
    until(lambda: node_of(empty, "old"), "it has a node")
    (group, other) = fill(empty, (31, 32))
    alone(empty, "first", priorityClassName="high")
    until(lambda: node_of(empty, "first"), "it has a node")
    assert len(empty.pods(group)) == 31 and len(empty.pods(other)) == 32
    assert "old" not in {pod["metadata"]["name"] for pod in empty.pods()}
    alone(empty, "second", priorityClassName="high")
    until(lambda: node_of(empty, "second"), "it has a node")
    until(
        lambda: sorted(len(empty.pods(g)) for g in (group, other)) in ([0, 31], [0, 32]), "a whole group goes"
    )
    empty.has_looked()
    assert sorted(len(empty.pods(g)) for g in (group, other)) in ([0, 31], [0, 32])


def test_the_freed_room_is_kept(frozen: ControlPlane) -> None:
    """While the victims end, neither a pod nor a group of the same priority gets their room, also if the scheduler is killed."""
    plane = frozen
    groups = fill(plane)
    plane.processes["kwok"].send_signal(signal.SIGSTOP)
    first, second = name(), name()
    plane.submit(first, 12, priorityClassName="middle")
    victim = groups[-1]
    until(
        lambda: all(pod["metadata"].get("deletionTimestamp") for pod in plane.pods(victim)),
        "the victims are ending",
    )
    plane.post("/api/v1/namespaces/default/pods", member(victim, 16, 16, priorityClassName="low"))
    said = f"group default/{victim} was preempted, and is placed again when its pods have ended"
    until(lambda: said in plane.events(victim), "a new pod of the victim waits")
    plane.delete(f"/api/v1/namespaces/default/pods/{victim}-16")
    plane.kill("topolane-scheduler")
    plane.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
    until(lambda: "has a place when 16 preempted pods have ended" in plane.events(first), "it says so")
    plane.submit(second, 10, policy="first-fit", priorityClassName="middle")
    until(lambda: "It takes the place of" in plane.events(second), "the second takes another place")
    assert f"It takes the place of default/{groups[-2]}." in plane.events(second), (
        groups,
        first,
        plane.events(second),
    )
    plane.has_looked()
    assert not any(plane.nodes_of(first))
    plane.processes["kwok"].send_signal(signal.SIGCONT)
    plane.placed(first, 12)
    plane.placed(second, 10)
    assert sorted(len(plane.pods(group)) for group in groups) == [0, 0, 16, 16]


def test_a_preempted_job_comes_back_whole(empty: ControlPlane) -> None:
    """A Job that was preempted waits whole, and is placed whole when the group of higher priority has ended."""
    job, first = name(), name()
    template: Body = {
        "metadata": {"annotations": {"topolane.io/group-size": "50"}},
        "spec": {
            "schedulerName": "topolane",
            "restartPolicy": "Never",
            "priorityClassName": "low",
            "containers": [container(8)],
        },
    }
    spec = {
        "parallelism": 50,
        "completions": 50,
        "completionMode": "Indexed",
        "backoffLimitPerIndex": 9,
        "template": template,
    }
    empty.post("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": job}, "spec": spec})

    def running() -> int:
        pods = empty.get(f"/api/v1/namespaces/default/pods?labelSelector=job-name%3D{job}")["items"]
        return sum(is_running(pod) and not pod["metadata"].get("deletionTimestamp") for pod in pods)

    until(lambda: running() == 50, "the Job runs")
    empty.submit(first, 20, priorityClassName="high")
    empty.placed(first, 20)
    until(lambda: running() == 0, "no pod of the Job runs")
    empty.has_looked()
    assert running() == 0
    empty.remove(first)
    until(lambda: running() == 50, "the Job runs again")


def test_podsets_preempt_together(empty: ControlPlane) -> None:
    """A launcher without GPUs and nine workers of high priority: the youngest group goes, and no other. The launcher has rank 0."""
    groups = fill(empty)
    first = name()
    join(empty, first, "launcher=1,worker=9", "launcher", 1, gpus=0, priorityClassName="high")
    join(empty, first, "launcher=1,worker=9", "worker", 9, priorityClassName="high")
    until(lambda: len(nodes := empty.nodes_of(first)) == 10 and all(nodes), "all are placed")
    ranks = {
        pod["metadata"]["name"]: pod["metadata"]["annotations"]["topolane.io/rank"]
        for pod in empty.pods(first)
    }
    workers = {f"{first}-worker-{index}": str(index + 1) for index in range(9)}
    assert ranks == {f"{first}-launcher-0": "0"} | workers
    gone(empty, groups[-1])
    assert all(len(empty.pods(group)) == 16 for group in groups[:-1])
    says(empty, first, f"It takes the place of default/{groups[-1]}")
    later = name()
    join(empty, later, "launcher=1,worker=9", "launcher", 1, gpus=0, priorityClassName="patient")
    join(empty, later, "launcher=1,worker=9", "worker", 9, priorityClassName="patient")
    empty.waits_saying(later, "preemptionPolicy is Never")


def test_podsets_count_what_the_others_take(empty: ControlPlane) -> None:
    """A leader and 16 workers, each of a whole node, need 17 nodes: two groups of 16 go at once, and not one of them first."""
    groups = fill(empty)
    first = name()
    join(empty, first, "leader=1,worker=16", "leader", 1, priorityClassName="high")
    join(empty, first, "leader=1,worker=16", "worker", 16, priorityClassName="high")
    until(lambda: len(nodes := empty.nodes_of(first)) == 17 and all(nodes), "all are placed")
    for group in groups[-2:]:
        gone(empty, group)
    assert all(len(empty.pods(group)) == 16 for group in groups[:2])
    says(empty, first, f"It takes the place of default/{groups[-1]}, default/{groups[-2]}.")


def test_pods_go_before_groups_that_are_younger(empty: ControlPlane) -> None:
    """Of victims of one priority, single pods go first, though the group has started last."""
    rack = {"topo/rack": "r3"}
    for index in range(16):
        alone(empty, f"alone-{index}", priorityClassName="low", nodeSelector=rack)
    until(lambda: all(is_running(pod) for pod in empty.pods()), "they run")
    next_second()
    (group,) = fill(empty, (48,))
    first = name()
    empty.submit(first, 16, priorityClassName="high")
    nodes = empty.placed(first, 16)
    seen = nodes, empty.events(first), empty.events(group)
    assert {int(node[1:]) // RACK for node in nodes} == {3}, seen
    assert len(empty.pods(group)) == 48, seen


def test_priorities_that_differ_in_a_group(empty: ControlPlane) -> None:
    """A group is a victim by its highest priority, and takes a place by its lowest."""
    fill(empty, (47,), "high")
    mixed, waits, first = name(), name(), name()
    empty.submit(mixed, 17, pods=16, policy="first-fit", priorityClassName="low")
    pods = "/api/v1/namespaces/default/pods"
    empty.post(pods, member(mixed, 17, 16, policy="first-fit", priorityClassName="middle"))
    empty.placed(mixed, 17)
    empty.submit(waits, 4, priorityClassName="middle")
    empty.waits_saying(waits, "does not fit now")
    empty.submit(first, 4, pods=3, priorityClassName="high")
    empty.post(pods, member(first, 4, 3, priorityClassName="low"))
    empty.waits_saying(first, "does not fit now")
    empty.has_looked()
    assert len(empty.pods(mixed)) == 17 and not any(empty.nodes_of(waits) + empty.nodes_of(first))


def test_groups_in_parts_are_not_left_behind(empty: ControlPlane) -> None:
    """Groups of three priorities come at once: in the end each is whole or has no node, and the high ones are placed."""
    sizes = {name(): (30, kind) for kind in ("low", "high", "middle", "low", "high", "middle")}
    for group, (size, kind) in sizes.items():
        empty.submit(group, size, priorityClassName=kind)
    high = [group for group, (_, kind) in sizes.items() if kind == "high"]
    for group in high:
        empty.placed(group, 30)
    empty.has_looked()

    def whole_or_not_at_all() -> dict[str, list[str]]:
        nodes = {group: empty.nodes_of(group) for group in sizes}
        return nodes if all(all(each) or not any(each) for each in nodes.values()) else {}

    found = until(whole_or_not_at_all, "no group is in parts")
    taken = [node for nodes in found.values() for node in nodes if node]
    assert len(taken) == len(set(taken))
    assert all(len(found[group]) == 30 for group in high)
