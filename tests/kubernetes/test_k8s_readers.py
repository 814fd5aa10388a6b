"""What `topolane k8s` says without a cluster: kubeconfigs, amounts, filters, and the history of jobs."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")
pytest.importorskip("yaml", reason="needs the extra kubernetes: PyYAML")

from topolane._engine import InputError, Machine
from topolane.cluster.answers import Placement
from topolane.cluster.hypothetical import Holder, Hypothetical, Question
from topolane.cluster.view import ISOLATED, Refused
from topolane.kubernetes import view as view_of
from topolane.kubernetes.explain import explain
from topolane.kubernetes.export import JobRecord, workload
from topolane.kubernetes.fit import fits, may_use, slots
from topolane.kubernetes.history import GroupEnded, GroupHistory, GroupStarted
from topolane.kubernetes.inspection import KubernetesInspection, groups_of
from topolane.kubernetes.kubeconfig import access
from topolane.kubernetes.machine import of_labels
from topolane.kubernetes.objects import RECORD, KubernetesNode, Pod, quantity
from topolane.kubernetes.settings import SchedulerSettings
from topolane.kubernetes.status import status
from topolane.kubernetes.view import view
from topolane.kubernetes.waiting import GroupWaitReason, wait_reason

SERVER = "https://127.0.0.1:1"


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from topolane.cli import main; sys.exit(main())"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, env={**kept, **environment}
    )


def kubeconfig(folder: Path, user: dict[str, Any] | None = None, **cluster: Any) -> str:
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **cluster}}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize(
    "command", [("status",), ("explain", "default/a"), ("shadow", "--policy", "isolated")]
)
def test_a_cluster_that_cannot_be_reached_is_one_sentence(command: tuple[str, ...], tmp_path: Path) -> None:
    """No kubeconfig, a context that is not there, a file that is no YAML, a server that does not answer: exit code 2."""
    file = kubeconfig(tmp_path)
    broken = tmp_path / "broken"
    broken.write_text("a: b\n  c: [")
    for words, said in (
        ((), "there is no kubeconfig: name one with --kubeconfig or KUBECONFIG"),
        (("--kubeconfig", str(tmp_path / "no")), "no"),
        (("--kubeconfig", str(broken)), f"{broken}:2: no YAML"),
        (("--kubeconfig", file, "--context", "two"), "there is no context 'two'; there are one"),
        (("--kubeconfig", file), f"the API server at {SERVER} does not answer"),
    ):
        done = run("k8s", *command, *words, HOME=str(tmp_path))
        assert done.returncode == 2 and done.stdout == "", done
        assert done.stderr.count("\n") == 1 and said in done.stderr, done.stderr
        assert "secret" not in done.stderr


def test_an_export_that_fails_writes_nothing(tmp_path: Path) -> None:
    done = run("k8s", "export", "--out", str(tmp_path / "out"), "--kubeconfig", kubeconfig(tmp_path))
    assert done.returncode == 2 and not (tmp_path / "out").exists()


def test_users_of_a_kubeconfig(tmp_path: Path) -> None:
    """A token, a file with one that changes, a name with a password, and a program that prints one."""
    (tmp_path / "token").write_text("first\n")
    program = tmp_path / "login"
    program.write_text(
        f"#!{sys.executable}\nimport json\nprint(json.dumps({{'status': {{'token': 'printed'}}}}))\n"
    )
    program.chmod(0o755)
    basic = base64.b64encode(b"me:pw").decode()
    for user, header in (
        ({"token": "t"}, "Bearer t"),
        ({"tokenFile": "token"}, "Bearer first"),
        ({"username": "me", "password": "pw"}, f"Basic {basic}"),
        (
            {"exec": {"command": str(program), "apiVersion": "client.authentication.k8s.io/v1"}},
            "Bearer printed",
        ),
    ):
        assert access(kubeconfig(tmp_path, user)).login.header() == header
    login = access(kubeconfig(tmp_path, {"tokenFile": "token"})).login
    (tmp_path / "token").write_text("second\n")
    assert login.header() == "Bearer second"
    for user, said in (
        ({"exec": {"command": str(tmp_path / "no")}}, "No such file"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider is not supported"),
        ({"client-certificate-data": "!", "client-key-data": "!"}, "client-certificate-data is not base64"),
    ):
        with pytest.raises(InputError, match=said):
            access(kubeconfig(tmp_path, user))
    with pytest.raises(InputError, match="server is http"):
        access(kubeconfig(tmp_path, server="ftp://x"))


def test_the_first_of_several_kubeconfigs_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    first, second = kubeconfig(tmp_path / "a", server="https://first:1"), kubeconfig(tmp_path)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([first, second]))
    assert access().server == "https://first:1"


def test_amounts() -> None:
    """In thousandths, rounded up."""
    for text, amount in (
        ("500m", 500),
        ("64Gi", (64 << 30) * 1000),
        ("1e3", 10**6),
        ("8", 8000),
        ("1.5", 1500),
        ("1n", 1),
    ):
        assert quantity(text) == amount
    for text in ("", "x", "1Q", "Gi"):
        with pytest.raises(ValueError, match="is no amount"):
            quantity(text)


LABELS = ("topo/block", "topo/rack", "kubernetes.io/hostname")


def item(name: str, **more: Any) -> dict[str, Any]:
    number = int(name[1:])
    labels = {"topo/block": f"b{number // 8}", "topo/rack": f"r{number // 4}", "kubernetes.io/hostname": name}
    room = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": more,
        "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


ITEMS = [item(f"n{number:02}") for number in range(16)]
NODES = {node.name: node for node in map(KubernetesNode.of, ITEMS)}
UNABLE = '{"policy":"isolated","share":1,"refusal":{"kind":"no-engine","wanted":2,"why":"x"}}'
WOULD_SHARE = (
    '{"policy":"isolated","rule":"annotation topolane.io/policy","share":0.5,"refusal":{"kind":"would-share-links","wanted":10,'
    '"why":"10 wanted, 10 free but not on links of its own","in_the_way":[{"at":"b0","jobs":["default/a","default/b"]}]}}'
)


def pod(
    name: str,
    node: str = "",
    *,
    group: str = "",
    at: float = 10.0,
    ended: float | None = None,
    gpus: int = 8,
    why: str = "",
    **spec: Any,
) -> Pod:
    """A pod that came at a second, got its node then, and ended."""

    def time(seconds: float) -> str:
        return f"1970-01-01T00:{int(seconds) // 60:02}:{int(seconds) % 60:02}Z"

    owner = {"kind": "Job", "name": group or name, "controller": True}
    amounts = {"cpu": str(gpus * 4), "memory": "8Gi", "nvidia.com/gpu": str(gpus)}
    placed = {
        "type": "PodScheduled",
        "status": "True" if node else "False",
        "message": why,
        "lastTransitionTime": time(at),
    }
    status: dict[str, Any] = {"phase": "Running" if node else "Pending", "conditions": [placed]}
    if ended is not None:
        status["phase"] = "Succeeded"
        status["containerStatuses"] = [{"state": {"terminated": {"finishedAt": time(ended)}}}]
    return Pod.of(
        {
            "metadata": {
                "uid": name,
                "namespace": "default",
                "name": name,
                "creationTimestamp": time(at - 5),
                "ownerReferences": [owner],
            },
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": amounts}}], **spec},
            "status": status,
        }
    )


def test_hostile_annotations_are_no_error() -> None:
    """What users write on pods cannot end the reader: deep nesting, long numbers, other types, control characters."""
    deep, long = "[" * 100_000, "9" * 5_000
    for placement in (
        deep,
        long,
        "[1]",
        '{"policy": ["x"], "links": "y", "rank": "z", "share": "w"}',
        "{" * 3000,
    ):
        notes = {"topolane.io/placement": placement, "topolane.io/group-size": long}
        notes["batch.kubernetes.io/job-completion-index"] = long
        meta = {"uid": "u", "namespace": "default", "name": "p", "annotations": notes}
        labels = {"scheduling.x-k8s.io/pod-group": "g"}
        body = {
            "metadata": {**meta, "labels": labels},
            "spec": {"nodeName": "n00", "schedulerName": "topolane"},
        }
        read = Pod.of(body)
        assert (read.size, read.rank, read.group) == (None, None, "default/g")
        look = KubernetesInspection(
            0.0, SERVER, SchedulerSettings(None), NODES, (read,), of_labels(LABELS, ITEMS), None, ()
        )
        (row,) = status(look).running
        assert (row.links, row.policy) == (0, "isolated")
        assert explain(look, "default/g").state == "running"


def test_sizes_and_names_of_groups() -> None:
    """The names and sizes are those of topolane-scheduler: a PodGroup of Kubernetes, a label, a JobSet, a controller."""
    for text, size in (
        ("8", 8),
        ("4-8", 4),
        ("launcher=1,worker=4-8", 5),
        ("x", None),
        ("", None),
        ("a=b", None),
    ):
        notes = {"topolane.io/group-size": text} if text else {}
        owner = {"kind": "Job", "name": "j", "controller": True}
        meta = {"uid": "u", "namespace": "s", "name": "p", "annotations": notes, "ownerReferences": [owner]}
        read = Pod.of({"metadata": meta, "spec": {}})
        assert (read.size, read.group, read.is_grouped) == (size, "s/j", bool(text))
        label = {"labels": {"jobset.sigs.k8s.io/jobset-name": "set"}}
        read = Pod.of({"metadata": {**meta, **label}, "spec": {}})
        assert (read.group, read.is_grouped) == ("s/set", bool(text))
        gang = {"schedulingGroup": {"podGroupName": "gang"}}
        read = Pod.of({"metadata": {**meta, **label}, "spec": gang})
        assert (read.group, read.is_grouped) == ("s/gang", True)


def test_filters_of_nodes() -> None:
    """Taints, selectors and required affinity are looked at as kube-scheduler does."""
    tainted = KubernetesNode.of(item("n00", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]))
    assert not may_use(pod("a"), tainted)
    assert may_use(pod("a", tolerations=[{"key": "k", "operator": "Exists"}]), tainted)
    assert may_use(pod("a", tolerations=[{"key": "k", "value": "v", "effect": "NoSchedule"}]), tainted)
    assert not may_use(pod("a", tolerations=[{"key": "k", "value": "w"}]), tainted)
    assert may_use(pod("a", tolerations=[{"operator": "Exists"}]), tainted)
    node = NODES["n05"]
    assert may_use(pod("a", nodeSelector={"topo/rack": "r1"}), node)
    assert not may_use(pod("a", nodeSelector={"topo/rack": "r2"}), node)
    for operator, values, fine in (
        ("In", ["r1"], True), ("NotIn", ["r1"], False), ("Exists", [], True), ("DoesNotExist", [], False), ("Gt", ["1"], False),
    ):  # fmt: skip
        term = {"matchExpressions": [{"key": "topo/rack", "operator": operator, "values": values}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        assert may_use(pod("a", affinity={"nodeAffinity": required}), node) == fine, operator
    assert fits({"cpu": 8000, "pods": 1000}, node.has, {"cpu": 20_000}, 100) == 5
    assert fits({"none": 1000}, node.has, {}, 100) == 0


def test_the_engine_is_asked_with_slots_and_links() -> None:
    """Two pods of 4 GPUs fit on a node; a group that crosses racks keeps another isolated one off, and is named."""
    machine = of_labels(LABELS, ITEMS)
    asked = Hypothetical(machine, "isolated", counts_slots=True)
    there = slots(machine, NODES, [], pod("a", gpus=4), 32)
    assert there.free == (2,) * 16 == there.room
    answer = asked.ask(Question(1, 16, slots=there))
    assert isinstance(answer, Placement) and len(set(answer.nodes)) == 8
    asked.hold(7, Holder(tuple(range(6)), link_use=ISOLATED))
    busy = slots(machine, NODES, [pod(f"p{node}", f"n{node:02}") for node in range(6)], pod("a"), 32)
    refused = asked.decide(Question(1, 10, slots=busy))
    assert refused.name == "would-share-links" and {
        job for each in refused.obstacles for job in each.jobs
    } == {7}


def test_why_a_group_waits() -> None:
    """The plugin's sentence and record are taken out of what kube-scheduler says. A record that cannot be read is left in its message."""
    text = (
        "0/16 nodes are available: group default/g asks for 10 pods under isolated and would share links (10 wanted, 10 free but "
        "not on links of its own); in the way at b0: default/a, default/b"
        + RECORD
        + WOULD_SHARE
        + ". no new claims to deallocate, preemption: 0/16 nodes are available: 16 Preemption is "
        "not helpful for scheduling."
    )
    (group,) = groups_of([pod("g-0", group="g", why=text)]).values()
    found = wait_reason(group)
    numbers = "10 wanted, 10 free but not on links of its own"
    assert found.words == f"would share links: {numbers}"
    in_the_way = ("b0: default/a, default/b",)
    assert found.refused == Refused("would-share-links", 10, 10.0, 0.5, numbers, in_the_way)
    assert found.sentence == text.partition(": ")[2].partition(RECORD)[0]
    unable = "group default/g waits: the engine cannot answer, and the choice of kube-scheduler would not keep what isolated promises: x"
    both = [
        pod("g-0", group="g", why="group default/g has 1 of its 2 pods"),
        pod("g-1", group="g", why=f"0/16 nodes are available: {unable}{RECORD}{UNABLE}. preemption: y", at=5),
    ]
    assert wait_reason(groups_of(both)["default/g"]).sentence == unable
    bad = WOULD_SHARE.replace("would-share-links", "does-not-like-it")
    (group,) = groups_of([pod("g-0", group="g", why=f"group default/g waits{RECORD}{bad}. x")]).values()
    assert wait_reason(group) == GroupWaitReason(f"waits{RECORD}{bad}", f"group default/g waits{RECORD}{bad}")
    few = groups_of(
        [
            pod(
                "g-0",
                group="g",
                why="0/16 nodes are available: group default/g has 1 of its 3 pods. preemption: x",
            )
        ]
    )
    assert wait_reason(few["default/g"]).words == "has 1 of its 3 pods"
    stock = groups_of([pod("g-0", group="g", why="0/16 nodes are available: 16 Insufficient cpu.")])
    assert wait_reason(stock["default/g"]).words == "0/16 nodes are available: 16 Insufficient cpu"
    assert (
        wait_reason(groups_of([pod("g-0", group="g")])["default/g"]).words
        == "the scheduler has not looked at it yet"
    )


def test_a_service_makes_nodes_busy_and_has_no_row() -> None:
    """Status lists what topolane-scheduler places. Pods of a service hold their nodes and may use any link; those of a DaemonSet, which
    come and go with their node, hold nothing."""
    service, daemon = pod("web", "n03", gpus=1), pod("proxy", "n04", gpus=1)
    service.owner.update(kind="ReplicaSet")
    daemon.owner.update(kind="DaemonSet")
    machine = of_labels(LABELS, ITEMS)
    look = KubernetesInspection(
        20.0,
        SERVER,
        SchedulerSettings(None),
        NODES,
        tuple(map(without_group, (service, daemon))),
        machine,
        None,
        (),
    )
    found = status(look)
    assert not found.running and found.nodes is not None and found.nodes.busy == 1
    [job] = view(look).running
    assert (job.nodes, job.link_use, job.is_ours) == ((3,), "none", False)


def test_only_forecasts_look_for_the_nodes_that_pods_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may give each of 10,000 pods constraints of its own. No command asks each node about each of them."""
    asked: list[str] = []
    monkeypatch.setattr(view_of, "may_use", lambda pod, node: asked.append(pod.name) or node.name < "n04")
    waits = dataclasses.replace(pod("g-0", group="g", schedulerName="topolane"), is_grouped=True)
    look = KubernetesInspection(
        20.0, SERVER, SchedulerSettings(None), NODES, (waits,), of_labels(LABELS, ITEMS), None, ()
    )
    assert [row.job for row in status(look).waiting] == [explain(look, "default/g").job] == ["default/g"]
    assert not asked
    [job] = view(look, {}).waiting
    assert job.eligible == (0, 1, 2, 3) and asked


def test_pods_that_borrow_the_name_of_a_group_hold_their_nodes() -> None:
    """A pod of another scheduler, or without the group's annotation, is not of the group whose label it has. It hides no busy node, and
    has a name of its own."""
    ours = [
        pod(f"g-{rank}", node, group="g", schedulerName="topolane") for rank, node in enumerate(("n00", ""))
    ]
    waits = dataclasses.replace(ours[1], uid="w", group="default/w", key="default/w#Job")
    pods = [dataclasses.replace(one, is_grouped=True) for one in (ours[0], waits)]
    pods += [pod("g-1", "n05", group="g"), pod("w-1", "n06", group="w")]
    look = KubernetesInspection(
        20.0, SERVER, SchedulerSettings(None), NODES, tuple(pods), of_labels(LABELS, ITEMS), None, ()
    )
    seen = view(look)
    assert {(job.name, job.nodes, job.is_ours) for job in seen.running} == {
        ("default/g", (0,), True),
        ("default/g (its other pods)", (5,), False),
        ("default/w (its other pods)", (6,), False),
    }
    assert [job.name for job in seen.waiting] == ["default/w"] and len(seen.names) == 4
    counted = status(look).nodes
    assert counted is not None and counted.busy == 3


def without_group(one: Pod) -> Pod:
    return dataclasses.replace(one, group=None, key=None, job=None)


def test_jobs_that_ran_become_a_workload() -> None:
    """Whole groups that ended are rows; others are counted by why; pods one after another are jobs of their own."""
    machine = of_labels(LABELS, ITEMS)
    group = [pod(f"a-{rank}", f"n{rank:02}", group="a", at=10 + rank, ended=100) for rank in range(3)]
    queue = [
        pod("q-0", "n08", group="q", at=10, ended=20, gpus=1),
        pod("q-1", "n08", group="q", at=30, ended=40, gpus=1),
    ]
    still = [pod("s-0", "n09", group="s")]
    records = {"default/a": JobRecord(2.0, 600.0, 3), "default/gone": JobRecord(1.0, None, 1)}
    half = [pod("h-0", "n10", group="h"), pod("h-1", group="h")]
    found = workload([*group, *queue, *still, *half], records, NODES, machine, 110.0)
    rows = [line.split(",") for line in found.csv.splitlines()]
    assert rows[0] == [
        "id",
        "submit",
        "run",
        "nodes",
        "walltime",
        "cores",
        "memory",
        "gpus_per_node",
        "start",
        "hosts",
    ]
    assert rows[1] == ["1", "2.0", "88.0", "3", "600.0", "32", str(8 << 30), "8", "12.0", "n[00-02]"]
    assert [row[2] for row in rows[2:]] == ["10.0", "100.0", "10.0"]
    assert dict(found.skipped) == {"have not got a node for each pod": 1, "Jobs whose pods are gone": 1}
    assert "1 job has not ended: the time so far counts as the run time" in found.notes


def test_starts_and_ends_between_two_looks() -> None:
    """A job starts when its last pod got a node, is seen though it ended meanwhile, and is new if it comes again."""
    history, records = GroupHistory(), {"default/a": JobRecord(2.0, 60.0, 2)}
    first = [pod("a-0", "n00", group="a")]
    assert history.follow(first, records, 11) == []
    both = [*first, pod("a-1", "n01", group="a", at=12)]
    (start,) = history.follow(both, records, 13)
    assert isinstance(start, GroupStarted) and (start.number, start.at, start.submit, start.walltime) == (
        1,
        12,
        5,
        60,
    )
    done = [pod("a-0", "n00", group="a", ended=20), pod("a-1", "n01", group="a", at=12, ended=21)]
    brief = pod("b", "n02", at=15, ended=18)
    events = history.follow([*done, brief], records, 30)
    assert [(type(event), event.at) for event in events] == [
        (GroupStarted, 15),
        (GroupEnded, 18),
        (GroupEnded, 21),
    ]
    again = [pod(f"a-{rank}x", "n03", group="a", at=40) for rank in range(2)]
    (start,) = history.follow([*done, *again], records, 41)
    assert isinstance(start, GroupStarted) and start.number == 3
    (end,) = history.follow([], records, 50)
    assert end == GroupEnded(3, 50)


def test_what_ended_before_the_first_shadow_is_not_new_to_the_next() -> None:
    """A history that goes on from a log: a job that had ended when the log began is not there; one that came in between is new, also
    if it has ended."""
    history = GroupHistory({}, {}, since=15.0)
    before, brief = pod("a", "n00", at=8, ended=14), pod("b", "n01", at=20, ended=25)
    events = history.follow([before, brief], {}, 30)
    assert [(type(event), event.at) for event in events] == [(GroupStarted, 20), (GroupEnded, 25)]
    assert history.follow([before, brief], {}, 31) == []


def test_the_machine_of_labels_is_read() -> None:
    machine = of_labels(LABELS, ITEMS)
    assert isinstance(machine, Machine) and (machine.nodes, machine.depth) == (16, 3)
    with pytest.raises(InputError, match="no nodes"):
        of_labels(LABELS, [])
