"""Groups whose members are not alike, come later or are lost, on a real control plane: 64 nodes of 8 GPUs in 4 racks."""

from __future__ import annotations

import json

import pytest
from control_plane import BLOCK, RACK, Body, ControlPlane, container, join, member, missing, name
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

WORKER: Body = {"gpus": 8}
LAUNCHER: Body = {"gpus": 0}


def rack(node: str) -> int:
    return int(node[1:]) // RACK


def where(plane: ControlPlane, group: str) -> dict[str, str]:
    """The node of each pod of a group by what follows the group's name; empty for a pod that has none."""
    return {
        pod["metadata"]["name"].removeprefix(f"{group}-"): pod["spec"].get("nodeName", "")
        for pod in plane.pods(group)
    }


def all_placed(plane: ControlPlane, group: str, count: int) -> dict[str, str]:
    def nodes() -> dict[str, str]:
        found = where(plane, group)
        return found if sum(map(bool, found.values())) == count else {}

    return dict(until(nodes, f"{count} pods of group {group} have nodes"))


def notes_of(plane: ControlPlane, group: str) -> dict[str, Body]:
    """What the scheduler wrote on each pod."""
    return {
        pod["metadata"]["name"].removeprefix(f"{group}-"): json.loads(
            pod["metadata"]["annotations"]["topolane.io/placement"]
        )
        for pod in plane.pods(group)
    }


def says(plane: ControlPlane, group: str, said: str) -> str:
    return str(
        until(
            lambda: said in (text := plane.events(group)) and text, f"an Event of group {group} says {said!r}"
        )
    )


def test_podsets_lie_together_and_keep_their_ranks(empty: ControlPlane) -> None:
    """A launcher without GPUs and 15 workers lie in one rack; the launcher has rank 0, the workers the ranks after it in their order."""
    group, sizes = name(), "launcher=1,worker=15"
    join(empty, group, sizes, "worker", 15, **WORKER)
    says(empty, group, f"group default/{group} has 0 of its 1 pods of podset launcher")
    join(empty, group, sizes, "launcher", 1, **LAUNCHER)
    nodes = all_placed(empty, group, 16)
    assert len({rack(node) for node in nodes.values()}) == 1
    workers = [nodes[f"worker-{index}"] for index in range(15)]
    assert workers == sorted(set(workers))
    ranks = {pod: note["rank"] for pod, note in notes_of(empty, group).items()}
    assert ranks == {"launcher-0": 0} | {f"worker-{index}": index + 1 for index in range(15)}


def test_podsets_with_other_selectors_are_near_each_other(empty: ControlPlane) -> None:
    """A launcher that may run on one node only, in the third rack: the workers are in that rack, though others are as empty."""
    group, sizes = name(), "worker=8,launcher=1"
    join(empty, group, sizes, "launcher", 1, nodeSelector={"kubernetes.io/hostname": "n40"}, **LAUNCHER)
    join(empty, group, sizes, "worker", 8, **WORKER)
    nodes = all_placed(empty, group, 9)
    assert nodes["launcher-0"] == "n40" and {rack(node) for node in nodes.values()} == {2}


def test_podsets_are_placed_all_or_nothing(empty: ControlPlane) -> None:
    """A launcher for which there is no node keeps its workers from starting; their nodes go to others."""
    group, other, sizes = name(), name(), "launcher=1,worker=40"
    join(empty, group, sizes, "launcher", 1, nodeSelector={"no": "such"}, **LAUNCHER)
    join(empty, group, sizes, "worker", 40, **WORKER)
    says(empty, group, f"group default/{group} asks for 41 pods under isolated and never fits")
    empty.submit(other, 40)
    empty.placed(other, 40)
    assert not any(where(empty, group).values())


def test_isolation_holds_for_all_podsets_together(in_chassis: ControlPlane) -> None:
    """A launcher in one chassis and workers in another use the links of both: the group waits if another group has one of them."""
    plane, first, second, sizes = in_chassis, name(), name(), "launcher=1,worker=4"
    plane.submit(first, 9)
    crossed = {int(node[1:]) // 8 for node in plane.placed(first, 9)}
    assert len(crossed) == 2
    taken = {
        f"c{chassis}": 8 - [int(node[1:]) // 8 for node in plane.nodes_of(first)].count(chassis)
        for chassis in crossed
    }
    (chassis,) = [chassis for chassis, free in taken.items() if free > 0]
    block = int(chassis[1:]) // 4 * 4
    other = next(f"c{index}" for index in range(block, block + 4) if f"c{index}" not in taken)
    join(plane, second, sizes, "launcher", 1, nodeSelector={"topo/chassis": chassis}, **LAUNCHER)
    join(plane, second, sizes, "worker", 4, nodeSelector={"topo/chassis": other}, **WORKER)
    says(plane, second, "would share links")
    assert not any(where(plane, second).values())
    plane.remove(first)
    all_placed(plane, second, 5)


@pytest.mark.parametrize(
    ("sizes", "podset", "said"),
    [
        ("launcher=1,worker=", "worker", 'a size is a number from 1 to 1000000, not ""'),
        ("launcher=1,4", "worker", "it is a number, or a number for each podset"),
        ("worker=2,worker=2", "worker", "podset worker is there twice"),
        ("a=1-2,worker=2", "worker", "only the last podset may have a range"),
        ("8-4", "worker", "4 is less than 8"),
        ("launcher=1,worker=1", "master", 'is of podset "master", which topolane.io/group-size'),
    ],
)
def test_podsets_that_contradict_are_an_event(
    empty: ControlPlane, sizes: str, podset: str, said: str
) -> None:
    group = name()
    join(empty, group, sizes, podset, 2, **WORKER)
    says(empty, group, said)
    assert not any(where(empty, group).values())


def test_members_that_give_other_sizes_contradict(empty: ControlPlane) -> None:
    group = name()
    join(empty, group, "2", "", 1, **WORKER)
    join(empty, group, "3", "", 1, first=1, **WORKER)
    says(empty, group, "contradicts itself: topolane.io/group-size is")


def jobs_of_jobset(plane: ControlPlane, jobset: str, size: str) -> None:
    """The Jobs that JobSet's controller makes of a JobSet: a replicated job `driver` of one Job with one pod, and `worker` of three
    Jobs with four pods each.
    """
    order = 0
    for replicated, replicas, pods, gpus in (("worker", 3, 4, 8), ("driver", 1, 1, 0)):
        for index in range(replicas):
            labels = {
                "jobset.sigs.k8s.io/jobset-name": jobset,
                "jobset.sigs.k8s.io/replicatedjob-name": replicated,
                "jobset.sigs.k8s.io/replicatedjob-replicas": str(replicas),
                "jobset.sigs.k8s.io/job-index": str(index),
                "jobset.sigs.k8s.io/job-global-index": str(order),
            }
            order += 1
            template = {
                "metadata": {"labels": labels, "annotations": {"topolane.io/group-size": size}},
                "spec": {
                    "schedulerName": "topolane",
                    "restartPolicy": "Never",
                    "containers": [container(gpus)],
                },
            }
            spec = {
                "parallelism": pods,
                "completions": pods,
                "completionMode": "Indexed",
                "template": template,
            }
            body = {"metadata": {"name": f"{jobset}-{replicated}-{index}", "labels": labels}, "spec": spec}
            plane.post("/apis/batch/v1/namespaces/default/jobs", body)


@pytest.mark.parametrize("size", ["13", "worker=12,driver=1"])
def test_a_jobset_is_one_group(empty: ControlPlane, size: str) -> None:
    """Its pods lie in one rack; ranks go by replicated job, then by job, then by completion index."""
    jobset = name()
    jobs_of_jobset(empty, jobset, size)

    def placed() -> list[Body]:
        pods = [pod for pod in empty.pods() if pod["spec"].get("nodeName")]
        return pods if len(pods) == 13 else []

    pods = until(placed, "the JobSet is placed")
    assert len({rack(pod["spec"]["nodeName"]) for pod in pods}) == 1
    for pod in pods:
        labels, notes = pod["metadata"]["labels"], pod["metadata"]["annotations"]
        rank = int(labels["jobset.sigs.k8s.io/job-index"]) * 4 + int(
            notes["batch.kubernetes.io/job-completion-index"]
        )
        if labels["jobset.sigs.k8s.io/replicatedjob-name"] == "driver":
            rank = 12
        placement = json.loads(notes["topolane.io/placement"])
        assert placement["rank"] == rank and placement["nodes"][rank] == pod["spec"]["nodeName"]
    workers = placement["nodes"][:12]
    assert workers == sorted(set(workers))


def test_an_elastic_group_starts_with_the_least_and_grows_near_itself(empty: ControlPlane) -> None:
    """Of a group of 4 to 8 five pods start at once; three more join in the same rack; a ninth waits; the others go on if one ends."""
    group = name()
    join(empty, group, "4-8", "", 3, **WORKER)
    says(empty, group, f"group default/{group} has 3 of its 4 pods")
    assert not any(where(empty, group).values())
    join(empty, group, "4-8", "", 2, first=3, **WORKER)
    before = all_placed(empty, group, 5)
    join(empty, group, "4-8", "", 3, first=5, **WORKER)
    nodes = all_placed(empty, group, 8)
    assert len(set(nodes.values())) == 8 and len({rack(node) for node in nodes.values()}) == 1
    assert nodes.items() >= before.items()
    join(empty, group, "4-8", "", 1, first=8, **WORKER)
    says(empty, group, f"all 8 places of group default/{group} are taken")
    empty.delete(f"/api/v1/namespaces/default/pods/{group}-x-2")
    after = all_placed(empty, group, 8)
    assert (
        after["x-8"] == nodes["x-2"]
        and {k: v for k, v in after.items() if k != "x-8"}.items() <= nodes.items()
    )


def test_an_elastic_group_takes_what_there_is(empty: ControlPlane) -> None:
    """Six nodes are free: of a group of 4 to 8, with 8 pods, six start; the others follow when there is room. After kill -9 of the
    scheduler it is known where all of them are.
    """
    full, group = name(), name()
    empty.submit(full, 58, policy="first-fit")
    empty.placed(full, 58)
    join(empty, group, "launcher=1,worker=3-7", "launcher", 1, **LAUNCHER)
    join(empty, group, "launcher=1,worker=3-7", "worker", 7, **WORKER)
    all_placed(empty, group, 7)
    says(empty, group, "finds no node near the others")
    empty.kill("topolane-scheduler")
    empty.start_scheduler(
        topologyLabels=["topo/block", "topo/rack", "kubernetes.io/hostname"], groupTimeoutSeconds=5
    )
    empty.has_looked()
    empty.remove(full)
    nodes = all_placed(empty, group, 8)
    assert len({node for pod, node in nodes.items() if pod != "launcher-0"}) == 7
    ranks = sorted(note["rank"] for note in notes_of(empty, group).values())
    assert ranks == list(range(8))


def test_min_member_of_a_pod_group_is_the_least(empty: ControlPlane) -> None:
    """A PodGroup of scheduler-plugins with minMember 4 starts with four, and takes more."""
    version = {"name": "v1alpha1", "served": True, "storage": True}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"}
    definition = {
        "metadata": {
            "name": "podgroups.scheduling.x-k8s.io",
            "annotations": {
                "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins"
            },
        },
        "spec": {
            "group": "scheduling.x-k8s.io",
            "scope": "Namespaced",
            "names": names,
            "versions": [version | {"schema": schema}],
        },
    }
    empty.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    group, path = name(), "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
    body = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    body |= {"metadata": {"name": group}, "spec": {"minMember": 4}}
    until(lambda: exists(empty, f"{path}/{group}") or empty.post(path, body), "the PodGroup is there")
    for rank in range(3):
        empty.post("/api/v1/namespaces/default/pods", member(group, 0, rank))
    says(empty, group, f"group default/{group} has 3 of its 4 pods")
    for rank in range(3, 7):
        empty.post("/api/v1/namespaces/default/pods", member(group, 0, rank))
    assert len({rack(node) for node in empty.placed(group, 7)}) == 1


def exists(plane: ControlPlane, path: str) -> bool:
    try:
        plane.get(path)
    except OSError:
        return False
    return True


def lose(plane: ControlPlane, group: str, size: int, *ranks: int) -> None:
    """Deletes pods of a group and creates them again in this order, as their controller would."""
    paths = [f"/api/v1/namespaces/default/pods/{group}-{rank}" for rank in ranks]
    for path in paths:
        plane.delete(path)
    until(lambda: not any(exists(plane, path) for path in paths), "the pods are gone")
    for rank in ranks:
        plane.post("/api/v1/namespaces/default/pods", member(group, size, rank))


def test_a_lost_pod_gets_its_node_back_or_one_as_near_as_there_is(empty: ControlPlane) -> None:
    """Back to its own node, though another in the rack is the first that is free; in the rack if its own is cordoned; in the other
    rack of the block if the rack is full. Two that are lost and come in another order get their own nodes too.
    """
    before, group, rest = name(), name(), name()
    empty.submit(before, 4)
    first = empty.placed(before, 4)
    empty.submit(group, 6)
    moved = nodes = empty.placed(group, 6)
    assert {rack(node) for node in first + nodes} == {rack(nodes[0])} and max(first) < min(nodes)
    empty.remove(before)
    until(lambda: not empty.pods(before), "it is gone")
    lose(empty, group, 6, 2)
    assert empty.placed(group, 6) == nodes
    lose(empty, group, 6, 4, 1)
    assert empty.placed(group, 6) == nodes
    try:
        empty.patch(f"/api/v1/nodes/{nodes[2]}", {"spec": {"unschedulable": True}})
        lose(empty, group, 6, 2)
        moved = empty.placed(group, 6)
        assert moved[2] not in nodes and rack(moved[2]) == rack(nodes[2])
        assert moved[:2] + moved[3:] == nodes[:2] + nodes[3:]
        empty.submit(rest, 9, nodeSelector={"topo/rack": f"r{rack(nodes[2])}"})
        empty.placed(rest, 9)
        empty.patch(f"/api/v1/nodes/{moved[2]}", {"spec": {"unschedulable": True}})
        lose(empty, group, 6, 2)
        away = empty.placed(group, 6)
        assert rack(away[2]) != rack(nodes[2]) and int(away[2][1:]) // BLOCK == int(nodes[2][1:]) // BLOCK
        note = notes_of_rank(empty, group, 2)
        assert note["nodes"] == away and note["revision"] == 2
    finally:
        for node in {nodes[2], moved[2]}:
            empty.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})


def notes_of_rank(plane: ControlPlane, group: str, rank: int) -> Body:
    pod = plane.get(f"/api/v1/namespaces/default/pods/{group}-{rank}")
    return dict(json.loads(pod["metadata"]["annotations"]["topolane.io/placement"]))


def test_a_lost_pod_goes_only_where_its_group_may_lie(in_chassis: ControlPlane) -> None:
    """An isolated group fills a chassis. A lost pod of it goes to a chassis whose links no group has, and the group then holds links, also
    after kill -9: another group that would need them waits.
    """
    plane, group, crossing, later = in_chassis, name(), name(), name()
    plane.submit(group, 8, nodeSelector={"topo/chassis": "c0"})
    nodes = plane.placed(group, 8)
    plane.submit(crossing, 9, nodeSelector={"topo/block": "b0"})
    others = plane.placed(crossing, 9)
    taken = {int(node[1:]) // 8 for node in others}
    (free,) = {1, 2, 3} - taken
    try:
        plane.patch(f"/api/v1/nodes/{nodes[3]}", {"spec": {"unschedulable": True}})
        lose(plane, group, 8, 3)
        moved = plane.placed(group, 8)
        assert int(moved[3][1:]) // 8 == free
        plane.kill("topolane-scheduler")
        plane.start_scheduler(
            topologyLabels=["topo/block", "topo/chassis", "kubernetes.io/hostname"], groupTimeoutSeconds=5
        )
        plane.submit(later, 10, nodeSelector={"topo/block": "b0"})
        plane.waits_saying(later, "would share links")
    finally:
        plane.patch(f"/api/v1/nodes/{nodes[3]}", {"spec": {"unschedulable": None}})


def test_a_pod_of_a_node_that_is_gone_comes_back_elsewhere(empty: ControlPlane) -> None:
    """The node is deleted, and its pod with it; the new pod gets the nearest free node."""
    empty.add_node("n64", {"topo/block": "b0", "topo/rack": "r0"})
    group = name()
    try:
        empty.submit(group, 17, policy="first-fit")
        nodes = empty.placed(group, 17)
        rank = nodes.index("n64") if "n64" in nodes else pytest.fail(f"the group is not on the node: {nodes}")
        empty.delete("/api/v1/nodes/n64")
        lose(empty, group, 17, rank)
        moved = empty.placed(group, 17)
        assert moved[rank] != "n64" and moved[:rank] + moved[rank + 1 :] == nodes[:rank] + nodes[rank + 1 :]
    finally:
        empty.delete("/api/v1/nodes/n64")
