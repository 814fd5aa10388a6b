"""`topolane k8s plan` and `apply` on a real API server with topolane-scheduler: room for a waiting group by evictions."""

from __future__ import annotations

import datetime
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
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
)  # fmt: skip
from waiting import DEADLINE, next_second, until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")
yaml = pytest.importorskip("yaml", reason="needs the extra kubernetes: PyYAML")

DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CODE = "import sys; from topolane.cli import main; sys.exit(main())"
DIES = """\
import os, sys
from topolane.cli import main
from topolane.kubernetes.client import KubernetesCluster

def dying(method):
    def call(self, *given):
        if when == "before":
            os.kill(os.getpid(), 9)
        method(self, *given)  # a node that has changed meanwhile is refused, and the command tries again
        print(method.__name__, given[0], flush=True)
        os.kill(os.getpid(), 9)
    return call

when = sys.argv[-1]
KubernetesCluster.patch, KubernetesCluster.post = dying(KubernetesCluster.patch), dying(KubernetesCluster.post)
sys.argv[1:] = sys.argv[1:-1]
sys.exit(main())
"""


class WithBudgets(ControlPlane):
    """A control plane whose controllers count what disruption budgets allow."""

    controllers = f"{ControlPlane.controllers},disruption-controller"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    plane = WithBudgets(tmp_path_factory.mktemp("kubernetes"))
    try:
        for node in range(NODES):
            labels = {"topo/block": f"b{node // BLOCK}", "topo/rack": f"r{node // RACK}"}
            plane.add_node(f"n{node:02}", labels | {"topo/chassis": f"c{node // CHASSIS}"})
        until(plane.are_nodes_ready, "all nodes are ready")
        plane.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
        yield plane
    finally:
        plane.stop()


@pytest.fixture
def quiet(empty: ControlPlane) -> Iterator[ControlPlane]:
    """No pods, no budgets, and no node that is kept for a group."""
    yield empty
    for budget in empty.get(BUDGETS)["items"]:
        empty.delete(f"{BUDGETS}/{budget['metadata']['name']}")
    assert not kept(empty)


def kept(plane: ControlPlane) -> dict[str, list[str]]:
    """The keys of the taints of each node that is kept for a group."""
    found = {}
    for node in plane.get("/api/v1/nodes")["items"]:
        keys = [
            taint["key"]
            for taint in node["spec"].get("taints") or []
            if taint["key"].startswith("topolane.io/")
        ]
        if keys:
            found[node["metadata"]["name"]] = keys
    return found


def job(plane: ControlPlane, pods: int, policy: str = "first-fit", gpus: int = 8, **spec: Any) -> str:
    """Submits a Job whose pods are a group."""
    group = name()
    notes = {"topolane.io/group-size": str(pods), "topolane.io/policy": policy}
    template = {
        "metadata": {"annotations": notes, "labels": {"app": group}},
        "spec": {
            "schedulerName": "topolane",
            "restartPolicy": "Never",
            "containers": [container(gpus)],
            **spec,
        },
    }
    body = {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "template": template}
    plane.post(JOBS, {"metadata": {"name": group}, "spec": body | {"backoffLimit": 10**6}})
    return group


def pods_of(plane: ControlPlane, group: str) -> list[Body]:
    """The pods of a Job that have not ended."""
    found = plane.get(f"/api/v1/namespaces/default/pods?labelSelector=app%3D{group}")["items"]
    return [pod for pod in found if pod["status"].get("phase") not in ("Failed", "Succeeded")]


def nodes_of(plane: ControlPlane, group: str) -> list[str]:
    return sorted(node for pod in pods_of(plane, group) if (node := pod["spec"].get("nodeName")))


def runs(plane: ControlPlane, pods: int, policy: str = "first-fit", **spec: Any) -> str:
    """A Job that runs, a second younger than what ran before."""
    next_second()
    group = job(plane, pods, policy, **spec)
    until(lambda: len(nodes_of(plane, group)) == pods, f"{group} runs")
    return group


def waits(plane: ControlPlane, pods: int, policy: str = "isolated", said: str = "does not fit now") -> str:
    """A Job that the scheduler has refused."""
    group = job(plane, pods, policy)
    until(lambda: said in plane.events(group), f"{group} is refused")
    return group


def k8s(
    plane: ControlPlane,
    *words: object,
    labels: list[str] = LABELS,
    code: int | None = 0,
    program: str = CODE,
    kubeconfig: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    given = ["k8s", *map(str, words[:1]), "--labels", ",".join(labels)]
    given += ["--kubeconfig", str(kubeconfig or plane.kubeconfig)]
    asked = [sys.executable, "-c", program, *given, *map(str, words[1:])]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=DEADLINE)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done


def plan(
    plane: ControlPlane,
    group: str,
    *words: object,
    labels: list[str] = LABELS,
    kubeconfig: Path | None = None,
) -> dict[str, Any]:
    asked = ("plan", "--room-for", f"default/{group}", "--json", *words)
    found: dict[str, Any] = json.loads(k8s(plane, *asked, labels=labels, kubeconfig=kubeconfig).stdout)
    return found


ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"


@pytest.fixture
def operator(plane: ControlPlane, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig with the rights of reader.yaml for the cluster and of operator.yaml, and no more."""
    plane.post(ACCOUNT, {"metadata": {"name": "operator"}})
    token = plane.post(f"{ACCOUNT}/operator/token", {"spec": {}})["status"]["token"]
    subjects = [{"kind": "ServiceAccount", "name": "operator", "namespace": "default"}]
    for file in ("reader", "operator"):
        (role,) = [
            one
            for one in yaml.safe_load_all((DEPLOY / f"{file}.yaml").read_text())
            if one["kind"] == "ClusterRole"
        ]
        plane.post(ROLES, role)
        named = {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role["metadata"]["name"],
        }
        plane.post(
            f"{ROLES[:-1]}bindings", {"metadata": {"name": file}, "roleRef": named, "subjects": subjects}
        )
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"]["token"] = token
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    words = [sys.executable, "-c", CODE, "k8s", "status", "--kubeconfig", str(file), "--labels", "topo/rack"]
    until(lambda: subprocess.run(words, capture_output=True).returncode == 0, "the roles count")
    yield file
    for file in ("reader", "operator"):
        plane.delete(f"{ROLES}/topolane-{file}")
        plane.delete(f"{ROLES[:-1]}bindings/{file}")
    plane.delete(f"{ACCOUNT}/operator")


def evicted(found: dict[str, Any]) -> list[str]:
    return sorted(each["name"].partition("/")[2] for each in found["evicted"])


def test_the_cheapest_groups_are_named_and_nothing_changes(quiet: ControlPlane, tmp_path: Path) -> None:
    """Groups of 20, 14, 12, 10 and 8 nodes fill the machine, the largest is the youngest; a group waits for 21 nodes. Of all sets of
    groups that free 21 nodes, none costs less than the plan, by the API server's own times.
    """
    groups = {runs(quiet, size): size for size in (8, 10, 12, 14, 20)}
    first = waits(quiet, 21, "first-fit")
    before = sorted((pod["metadata"]["uid"], pod["spec"].get("nodeName")) for pod in quiet.pods())
    found = plan(quiet, first)
    ages = {group: _node_seconds(quiet, group, found["time"]) for group in groups}
    sets = itertools.chain.from_iterable(itertools.combinations(groups, count) for count in range(6))
    best = min(
        sum(ages[group] for group in some) for some in sets if sum(groups[group] for group in some) >= 21
    )
    assert found["node_hours"] == pytest.approx(best / 3600, abs=1e-4)
    assert found["least_node_hours"] <= found["node_hours"] and len(found["nodes"]) == 21
    # Groups that are cheapest now need not be so when the command runs again: its own plan says which it means.
    text = k8s(quiet, "plan", "--room-for", f"default/{first}", "--out", tmp_path / "plan").stdout
    written = json.loads((tmp_path / "plan").read_text())
    assert f"Group default/{first} gets 21 nodes under first-fit: n[" in text
    assert (
        all(f"group default/{group}" in text for group in evicted(written)) and "Nothing is changed" in text
    )
    assert sorted((pod["metadata"]["uid"], pod["spec"].get("nodeName")) for pod in quiet.pods()) == before
    assert not kept(quiet)


def _node_seconds(plane: ControlPlane, group: str, now: float) -> float:
    total = 0.0
    for pod in pods_of(plane, group):
        (placed,) = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
        total += now - datetime.datetime.fromisoformat(placed["lastTransitionTime"]).timestamp()
    return total


def test_the_group_starts_where_the_plan_says_before_what_was_evicted(
    quiet: ControlPlane, operator: Path, tmp_path: Path
) -> None:
    """Four groups of a rack each, all of one priority. The youngest goes; its Job makes its pods again, and they wait, because the group
    that waited has their nodes. Single pods that come meanwhile do not get these nodes either. The rights of an operator are enough.
    """
    racks = [runs(quiet, RACK, "isolated") for _ in range(4)]
    first = waits(quiet, 12)
    found = plan(quiet, first, "--out", tmp_path / "plan", kubeconfig=operator)
    assert evicted(found) == [racks[-1]] and found["beside"] == []
    old = identities(quiet, racks[-1])
    for index in range(4):
        body = {"schedulerName": "default-scheduler", "containers": [container(8)]}
        quiet.post(
            "/api/v1/namespaces/default/pods", {"metadata": {"name": f"{first}-other-{index}"}, "spec": body}
        )
    said = k8s(quiet, "apply", tmp_path / "plan", "--timeout", 120, kubeconfig=operator).stdout
    assert f"Group default/{first} has the nodes of the plan." in said, said
    assert nodes_of(quiet, first) == sorted(found["nodes"]) and not kept(quiet)
    again = until(
        lambda: len(now := pods_of(quiet, racks[-1])) == RACK and now, "the Job has made its pods again"
    )
    assert not old & {pod["metadata"]["uid"] for pod in again}
    assert not nodes_of(quiet, racks[-1])
    assert all(len(nodes_of(quiet, group)) == RACK for group in racks[:-1])
    assert "carried out already" in k8s(quiet, "apply", tmp_path / "plan").stdout


def test_a_group_that_lacks_links_gets_them(quiet: ControlPlane, tmp_path: Path) -> None:
    """In chassis of 8 nodes, two isolated groups of 9 and 17 cross chassis of both blocks; a third of 20 would share links. What is
    evicted comes back in its own time, and not on nodes next to the plan's where it would take the links again.
    """
    quiet.kill("topolane-scheduler")
    quiet.start_scheduler(topologyLabels=SMALL, groupTimeoutSeconds=5)
    try:
        groups = [runs(quiet, size, "isolated") for size in (9, 17)]
        first = waits(quiet, 20, said="would share links")
        found = plan(quiet, first, "--out", tmp_path / "plan", labels=SMALL)
        assert len(evicted(found)) == 1 and found["beside"]
        said = k8s(quiet, "apply", tmp_path / "plan", "--timeout", 120, labels=SMALL).stdout
        assert f"Group default/{first} has the nodes of the plan." in said, said
        assert nodes_of(quiet, first) == sorted(found["nodes"])
        assert set(evicted(found)) < set(groups) and not kept(quiet)
    finally:
        quiet.kill("topolane-scheduler")
        quiet.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)


def test_a_budget_that_forbids_is_respected(quiet: ControlPlane, tmp_path: Path) -> None:
    """The youngest group has a budget that lets none of its pods go: the next one is named. A budget that comes after the plan makes it
    untrue. One that comes later still is enforced by the API server: nothing more goes, and nothing stays closed.
    """
    racks = [runs(quiet, RACK, "isolated") for _ in range(4)]
    first = waits(quiet, 8)
    assert evicted(plan(quiet, first)) == [racks[3]]
    budget(quiet, racks[3], RACK)
    assert evicted(plan(quiet, first, "--out", tmp_path / "plan")) == [racks[2]]
    (tmp_path / "late").write_text((tmp_path / "plan").read_text())
    # The first three changes: tolerations come before anything is evicted.
    for _ in range(3):
        k8s(quiet, "apply", tmp_path / "late", "after", code=-9, program=DIES)
    budget(quiet, racks[2], RACK)
    done = k8s(quiet, "apply", tmp_path / "plan", code=1)
    assert f"disruption budget default/{racks[2]} allows 0 of 16 evictions. Nothing is changed" in done.stderr
    done = k8s(quiet, "apply", tmp_path / "late", "--timeout", 5, code=1)
    assert "16 pods must go first" in done.stderr and "disruption budget" in done.stderr, done.stderr
    assert all(len(nodes_of(quiet, group)) == RACK for group in racks) and not nodes_of(quiet, first)
    # The group that stays is whole again when it loses a pod.
    quiet.delete(f"{BUDGETS}/{racks[2]}")
    pod, *_ = pods_of(quiet, racks[2])
    assert "topolane.io/evicted-for" not in pod["metadata"]["annotations"]
    quiet.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
    until(lambda: pod["metadata"]["uid"] not in identities(quiet, racks[2]), "its pod is gone")
    until(lambda: pod["spec"]["nodeName"] in nodes_of(quiet, racks[2]), "another has its node")


def identities(plane: ControlPlane, group: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods_of(plane, group)}


def budget(plane: ControlPlane, group: str, least: int) -> None:
    """A budget of a Job, once the controller has counted."""
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": group}}}
    plane.post(BUDGETS, {"metadata": {"name": group}, "spec": spec})

    def counted() -> bool:
        status = plane.get(f"{BUDGETS}/{group}").get("status") or {}
        return bool(status.get("expectedPods") == RACK and status.get("currentHealthy") == RACK)

    until(counted, "the budget is counted")


def test_killed_around_each_change(quiet: ControlPlane, tmp_path: Path) -> None:
    """kill -9 before and after each change of the cluster, then once more without: each was made once, in order, and the group runs."""
    old = runs(quiet, 62, "first-fit")
    young = runs(quiet, 2, "first-fit")
    first = waits(quiet, 2, "first-fit")
    found = plan(quiet, first, "--out", tmp_path / "plan")
    assert evicted(found) == [young]
    changes: list[str] = []
    for when in itertools.cycle(("before", "after")):
        done = k8s(quiet, "apply", tmp_path / "plan", "--timeout", 60, when, code=None, program=DIES)
        changes += [line for line in done.stdout.splitlines() if line.startswith(("patch", "post"))]
        if done.returncode != -9:
            break
        if len(changes) == 8:
            until(lambda: len(nodes_of(quiet, first)) == 2, "the group runs")
    assert done.returncode == 0 and f"Group default/{first} has the nodes of the plan." in done.stdout
    kinds = [(change.split("/")[0], "eviction" in change, "/nodes/" in change) for change in changes]
    pods, nodes, evictions = ("patch ", False, False), ("patch ", False, True), ("post ", True, False)
    assert kinds == [pods] * 2 + [nodes] * 2 + [pods] * 2 + [evictions] * 2 + [nodes] * 2, changes
    assert nodes_of(quiet, first) == sorted(found["nodes"]) and len(nodes_of(quiet, old)) == 62


def test_a_plan_that_is_no_longer_true(quiet: ControlPlane, tmp_path: Path) -> None:
    """The group that was to go has gone by itself; nothing is changed."""
    runs(quiet, 48)
    young = runs(quiet, 16)
    first = waits(quiet, 8, "first-fit")
    plan(quiet, first, "--out", tmp_path / "plan")
    (pod, *_) = pods_of(quiet, young)
    quiet.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
    until(lambda: pod["metadata"]["uid"] not in identities(quiet, young), "another has come")
    done = k8s(quiet, "apply", tmp_path / "plan", code=1)
    assert f"the plan is no longer true: default/{young} does not run where it did" in done.stderr
    assert "Nothing is changed" in done.stderr and not kept(quiet)
    assert not (tmp_path / "plan.journal").exists()


def test_pods_without_a_controller_stay_unless_asked(quiet: ControlPlane) -> None:
    """Single pods that nothing makes again stay; the reason is in the sentence."""
    for index in range(NODES):
        quiet.post("/api/v1/namespaces/default/pods", member(f"alone-{index}", 1, 0, policy="first-fit"))
    until(lambda: all(pod["spec"].get("nodeName") for pod in quiet.pods()), "they run")
    first = waits(quiet, 2, "first-fit")
    done = k8s(quiet, "plan", "--room-for", f"default/{first}", code=1)
    assert "64 groups and single pods must stay: 64 without a controller" in done.stderr
    assert len(plan(quiet, first, "--without-controller")["evicted"]) == 2
