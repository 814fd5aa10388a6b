"""What `topolane k8s` takes for true of what is written on pods: which pods are one group, and what topolane-scheduler signed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")

from topolane._engine import InputError
from topolane.kubernetes.explain import explain, explanations
from topolane.kubernetes.history import GroupHistory, GroupStarted
from topolane.kubernetes.inspection import KubernetesInspection
from topolane.kubernetes.machine import of_labels
from topolane.kubernetes.objects import PLACEMENT, KubernetesNode, Pod
from topolane.kubernetes.proofs import EARLIER, PROOF, Proofs, seal
from topolane.kubernetes.settings import SchedulerSettings
from topolane.kubernetes.status import status

HERE = Path(__file__).parent
KEY = b"of this test alone, thirty-two bytes"
Body = dict[str, Any]


def cases(name: str) -> list[Any]:
    """Cases that the tests of native/kubernetes go through as well."""
    return list(json.loads((HERE / name).read_text()))


@pytest.mark.parametrize("one", cases("group_cases.json"), ids=lambda one: str(one["what"]))
def test_which_pods_are_one_group(one: Body) -> None:
    """The rule is that of topolane-scheduler. Pods that are placed one by one are jobs too, but no groups."""
    read = Pod.of(one["pod"])
    assert (read.key, read.is_grouped) == (one["group"], one["together"])
    assert read.group == (None if one["group"] is None else one["group"].partition("#")[0])


@pytest.mark.parametrize("one", cases("proof_cases.json"), ids=lambda one: str(one["what"]))
def test_seals_are_those_of_the_scheduler(one: Body) -> None:
    assert seal(one["key"].encode(), one["group"], one["pod"], one["text"], one["starts"]) == one["seal"]


def node(number: int) -> Body:
    labels = {"rack": f"r{number // 2}", "kubernetes.io/hostname": f"n{number}"}
    room = {"cpu": "64", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": f"n{number}", "labels": labels},
        "status": {"allocatable": room, "conditions": ready},
    }


NODES = [node(number) for number in range(8)]
MACHINE = of_labels(["rack", "kubernetes.io/hostname"], NODES)


def pod(name: str, owner: str, at: str | None = None, kind: str = "Job", **notes: str) -> Body:
    """A pod of an owner that runs on a node, or waits."""
    owned = {"kind": kind, "name": owner, "uid": f"uid-of-{kind}-{owner}", "controller": True}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": [owned]}
    meta |= {"creationTimestamp": "2026-01-01T00:00:00Z", "labels": {}}
    meta["annotations"] = {"topolane.io/group-size": "2"} | {
        f"topolane.io/{key}": text for key, text in notes.items()
    }
    spec = {"schedulerName": "topolane", "containers": [], **({"nodeName": at} if at else {})}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running" if at else "Pending"}}


def signed(body: Body, key: bytes = KEY, group: str = "", **placement: Any) -> Body:
    """A pod with a placement that the scheduler wrote."""
    text = json.dumps(placement)
    of = group or str(Pod.of(body).key)
    body["metadata"]["annotations"] |= {
        PLACEMENT: text,
        PROOF: f"{of} {seal(key, of, body['metadata']['uid'], text)}",
    }
    return body


def placed(**given: Any) -> list[Body]:
    """An isolated group on two nodes of two racks, with two links."""
    written = {
        "policy": "isolated",
        "nodes": ["n0", "n2"],
        "links": [0, 1],
        "share": 1,
        "link_use": "isolated",
        "revision": 1,
    }
    return [
        signed(pod(f"a-{rank}", "a", f"n{2 * rank}"), rank=rank, **(written | given)) for rank in range(2)
    ]


def look(pods: Sequence[Body], proofs: Proofs | None = None) -> KubernetesInspection:
    proofs = proofs or Proofs(KEY)
    known = {each.name: each for each in map(KubernetesNode.of, NODES)}
    read = proofs.bound(tuple(map(Pod.of, pods)))
    return KubernetesInspection(0.0, "here", SchedulerSettings(None), known, read, MACHINE, None, (), proofs)


def test_what_was_signed_counts() -> None:
    (row,) = status(look(placed())).running
    assert (row.job, row.ranks, row.links, row.link_use, row.policy) == (
        "default/a",
        ["n0", "n2"],
        2,
        "isolated",
        "isolated",
    )


@pytest.mark.parametrize(
    ("policy", "is_isolated", "link_use"),
    [("isolated", True, "isolated"), ("first-fit", False, "shared"), ("stock", True, "unknown")],
)
def test_what_an_earlier_release_signed_counts(policy: str, is_isolated: bool, link_use: str) -> None:
    """It wrote isolated in place of link_use, some releases also of what kube-scheduler chose."""
    pods = placed(policy=policy, isolated=is_isolated, link_use=None, links=[])
    for body in pods:
        notes, of = body["metadata"]["annotations"], str(Pod.of(body).key)
        notes[PROOF] = f"{of} {seal(KEY, of, body['metadata']['uid'], notes[PLACEMENT], EARLIER)}"
    (row,) = status(look(pods)).running
    assert (row.policy, row.link_use) == (policy, link_use)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(
            {PLACEMENT: '{"links": [0, 1, 2, 3], "policy": "mine", "isolated": true, "share": 1}'},
            id="other-text",
        ),
        pytest.param({PLACEMENT: "[" * 100_000}, id="deep"),
        pytest.param({PLACEMENT: " " * (300 * 1024)}, id="long"),
        pytest.param({PROOF: ""}, id="no-proof"),
        pytest.param({PROOF: "default/a#Job.uid-of-Job-a " + "0" * 64}, id="wrong"),
        pytest.param({PROOF: "kube-system/a#Job.1 \u00e4"}, id="no-checksum"),
        pytest.param({PROOF: "x" * 250_000}, id="long-proof"),
    ],
)
def test_what_was_not_signed_counts_as_nothing(write: dict[str, str]) -> None:
    """Users write something else on one pod of the group: only the nodes on which its pods run count. Others keep off its links."""
    pods = placed()
    pods[0]["metadata"]["annotations"] |= write
    seen = look(pods)
    (row,) = status(seen).running
    assert (sorted(row.ranks), row.links, row.link_use) == (["n0", "n2"], 0, "unknown")
    assert set(seen.closed) == {1}
    assert explain(seen, "default/a").links == []


def test_a_placement_of_another_pod_or_place_proves_nothing() -> None:
    """It is copied to another pod, or to one of the same name that came later, or the pod runs elsewhere."""
    one, two = placed()
    copied = {**two, "metadata": {**two["metadata"], "annotations": one["metadata"]["annotations"]}}
    again = {**two, "metadata": {**two["metadata"], "uid": "another"}}
    moved = {**two, "spec": {**two["spec"], "nodeName": "n5"}}
    for other in (copied, again, moved):
        (row,) = status(look([one, other])).running
        assert row.links == 0


def test_without_the_key_only_nodes_count() -> None:
    """A user who may not read the key sees where pods run, and not which links groups own."""
    seen = look(placed(), Proofs(None, "it cannot be read"))
    (row,) = status(seen).running
    assert (sorted(row.ranks), row.links, row.link_use) == (["n0", "n2"], 0, "unknown")
    assert set(seen.closed) == {1}


def test_a_pod_stays_in_the_group_that_it_was_bound_for() -> None:
    """Labels and annotations that are changed later hide no pod that runs."""
    pods = placed()
    pods[1]["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "other"
    del pods[0]["metadata"]["annotations"]["topolane.io/group-size"]
    (row,) = status(look(pods)).running
    assert (row.job, row.slots, row.links) == ("default/a", 2, 2)


def test_the_last_signed_revision_counts() -> None:
    pods = placed()
    written = {
        "policy": "isolated",
        "nodes": ["n0", "n2"],
        "links": [0],
        "share": 1,
        "link_use": "isolated",
        "revision": 2,
    }
    signed(pods[1], rank=1, **written)
    (row,) = status(look(pods)).running
    assert row.links == 1


def test_two_owners_of_one_name_are_two_groups() -> None:
    """A Job and a PyTorchJob of one name wait: `explain` says of both what is there, and names all their pods."""
    pods = [
        pod("j-0", "train"),
        pod("p-0", "train", kind="PyTorchJob"),
        pod("p-1", "train", kind="PyTorchJob"),
    ]
    seen = look(pods)
    assert {row.job: row.slots for row in status(seen).waiting} == {
        "default/train (Job)": 1,
        "default/train (PyTorchJob)": 2,
    }
    said = [sentence for each in explanations(seen, "default/train") for sentence in each.sentences]
    assert any(
        line.startswith("Group default/train (Job) waits") and "it has 1 of its 2 pods" in line
        for line in said
    )
    assert any(
        line.startswith("Group default/train (PyTorchJob) waits") and "all its 2 pods" in line
        for line in said
    )
    with pytest.raises(InputError, match=r"2 groups are called default/train: name one of .*\(Job\)"):
        explain(seen, "default/train")
    assert explain(seen, "default/train (Job)").job == "default/train (Job)"


def test_pods_of_the_name_that_are_in_no_group_are_named() -> None:
    """One template lacks the size: its pods wait for nothing, and `explain` says so."""
    alone = pod("j-2", "train")
    alone["metadata"]["annotations"] = {}
    (said,) = explanations(look([pod("j-0", "train"), alone]), "default/train")
    assert (
        said.sentences[-1] == "1 pod of that name is in no group: neither a label nor an annotation says so."
    )


def test_jobs_of_one_name_are_two_jobs_in_the_history() -> None:
    """Both start and end by themselves."""
    pods = [pod("j-0", "train", "n0"), pod("p-0", "train", "n1", kind="PyTorchJob")]
    for body in pods:
        body["metadata"]["annotations"] = {"topolane.io/group-size": "1"}
    found = GroupHistory({}).follow(tuple(map(Pod.of, pods)), {}, 1e10)
    assert [(type(each), each.name) for each in found if isinstance(each, GroupStarted)] == [
        (GroupStarted, "default/train")
    ] * 2
