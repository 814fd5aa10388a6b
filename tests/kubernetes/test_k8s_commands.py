"""`topolane k8s` on a real control plane: what it says of groups, and the shadow of another scheduler."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from control_plane import LABELS, SMALL, ControlPlane, container, missing, name
from waiting import DEADLINE, until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")
pytest.importorskip("yaml", reason="needs the extra kubernetes: PyYAML")

CODE = "import sys; from topolane.cli import main; sys.exit(main())"


def topolane(*words: object, code: int = 0) -> str:
    """What a command prints."""
    done = subprocess.run([sys.executable, "-c", CODE, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def k8s(plane: ControlPlane, command: str, *words: object, labels: list[str] = SMALL, code: int = 0) -> str:
    given = () if not labels else ("--labels", ",".join(labels))
    return topolane("k8s", command, *words, "--kubeconfig", plane.kubeconfig, *given, code=code)


def test_status_and_explain_say_what_runs_and_why_others_wait(in_chassis: ControlPlane) -> None:
    """Two groups of 9 and 17 nodes cross chassis of both blocks; a third would share links, in the scheduler's own words."""
    first, second, third, few = name(), name(), name(), name()
    in_chassis.submit(first, 9)
    in_chassis.placed(first, 9)
    in_chassis.submit(second, 17)
    nodes = in_chassis.placed(second, 17)
    in_chassis.submit(third, 20)
    in_chassis.waits_saying(third, "would share links")
    in_chassis.submit(few, 5, pods=2)
    until(lambda: "has 2 of its 5 pods" in in_chassis.events(few), "the smaller group waits")
    found = json.loads(k8s(in_chassis, "status", "--json"))
    running = {row["job"]: row for row in found["running"]}
    assert running.keys() == {f"default/{first}", f"default/{second}"}
    row = running[f"default/{second}"]
    assert (row["ranks"], row["slots"], row["policy"], row["link_use"]) == (nodes, 17, "isolated", "isolated")
    assert row["may_meet"] == [] and found["sharing"]["shared"] == 0
    waiting = {row["job"]: row for row in found["waiting"]}
    assert waiting[f"default/{third}"]["kind"] == "would-share-links"
    assert "would share links: 20 wanted" in waiting[f"default/{third}"]["why"]
    assert (waiting[f"default/{few}"]["slots"], waiting[f"default/{few}"]["kind"]) == (2, None)
    assert found["nodes"] == {"idle": 64 - 26, "busy": 26, "out_of_service": 0}
    text = k8s(in_chassis, "status")
    assert f"default/{third}" in text and "would share links: 20 wanted" in text and "2 of 5" in text
    said = k8s(in_chassis, "explain", f"default/{third}").splitlines()
    assert said[0].startswith(f"Group default/{third} waits since ") and said[0].endswith(
        "it has all its 20 pods."
    )
    assert said[1] == "Its policy is isolated (policy of the scheduler's configuration)."
    assert said[2].startswith(
        "The scheduler refused it: it asks for 20 pods under isolated and would share links: 20 wanted"
    )
    assert any(f"default/{first}" in line or f"default/{second}" in line for line in said[3:]), said
    said = k8s(in_chassis, "explain", f"default/{second}").splitlines()
    assert (
        said[0].startswith(f"Group default/{second} runs on ") and said[-1] == "No other group may use them."
    )
    assert "has 2 of its 5 pods" in k8s(in_chassis, "explain", f"default/{few}")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            CODE,
            "k8s",
            "explain",
            "default/no",
            "--kubeconfig",
            str(in_chassis.kubeconfig),
        ],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (2, "topolane: the cluster has no pod of a group default/no\n")


def test_without_a_lease_the_scheduler_is_not_active(empty: ControlPlane) -> None:
    """The lease in the scheduler's ConfigMap shows whether one decides: exit code 1 if no process holds it, else 0."""
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": True, "resourceName": "topolane-scheduler"},
        "profiles": [
            {
                "schedulerName": "topolane",
                "pluginConfig": [{"name": "Topolane", "args": {"topologyLabels": LABELS}}],
            }
        ],
    }
    body = {"metadata": {"name": "of-a-test"}, "data": {"config.yaml": json.dumps(config)}}
    empty.post("/api/v1/namespaces/default/configmaps", body)
    where = ("--config", "default/of-a-test")
    try:
        text = k8s(empty, "status", *where, labels=[], code=1)
        assert "not active" in text and "No scheduler holds lease kube-system/topolane-scheduler" in text
        empty.start_scheduler("elected", elect=True, topologyLabels=LABELS)
        until(lambda: "active, " in _status(empty, *where), "a lease")
        assert "machine: 64 nodes, by ConfigMap default/of-a-test" in k8s(empty, "status", *where, labels=[])
    finally:
        if "elected" in empty.processes:
            empty.kill("elected")
        empty.delete("/api/v1/namespaces/default/configmaps/of-a-test")


def _status(plane: ControlPlane, *words: str) -> str:
    asked = [sys.executable, "-c", CODE, "k8s", "status", "--kubeconfig", str(plane.kubeconfig), *words]
    return subprocess.run(asked, capture_output=True, text=True).stdout


def job(group: str, pods: int, gpus: int = 8, scheduler: str = "default-scheduler") -> dict[str, Any]:
    template = {
        "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container(gpus)]}
    }
    spec = {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "template": template}
    return {"metadata": {"name": group}, "spec": spec}


def end(plane: ControlPlane, group: str) -> None:
    """Lets the pods of a Job succeed, as a kubelet would say it."""
    for pod in plane.get(f"/api/v1/namespaces/default/pods?labelSelector=job-name%3D{group}")["items"]:
        ended = {
            "terminated": {
                "exitCode": 0,
                "startedAt": pod["status"].get("startTime", now()),
                "finishedAt": now(),
            }
        }
        status = {
            "phase": "Succeeded",
            "containerStatuses": [
                {
                    "name": "c",
                    "state": ended,
                    "ready": False,
                    "restartCount": 0,
                    "image": "none",
                    "imageID": "",
                }
            ],
        }
        plane.patch(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/status", {"status": status})


def now() -> str:
    import datetime

    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Shadow:
    """`topolane k8s shadow` in a process of its own."""

    def __init__(self, plane: ControlPlane, log: Path) -> None:
        words = ["k8s", "shadow", "--policy", "isolated", "--log", str(log), "--interval", "0.5", "--json"]
        words += ["--kubeconfig", str(plane.kubeconfig), "--labels", ",".join(LABELS)]
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def events(self, kind: str) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        lines = self.log.read_text().split("\n")[:-1]
        rows = [json.loads(line) for line in lines]
        return [row for row in rows if row["event"] == kind]

    def end(self, by: int = signal.SIGTERM) -> str:
        self.process.send_signal(by)
        return self.process.communicate(timeout=DEADLINE)[0]


def test_a_shadow_of_the_default_scheduler_goes_on_after_kill(empty: ControlPlane, tmp_path: Path) -> None:
    """Each job of the default scheduler is asked about once, also one that came while no shadow ran. The log is repeated to the
    same decisions, and its jobs and those of the export are workloads for compare.
    """
    path = tmp_path / "shadow.jsonl"
    first, second, third = name(), name(), name()
    shadow = Shadow(empty, path)
    try:
        until(lambda: shadow.events("shadow"), "the shadow looks")
        empty.post("/apis/batch/v1/namespaces/default/jobs", job(first, 6))
        (start,) = until(lambda: shadow.events("start"), "the first start")
        assert start["job"] == f"default/{first}" and start["pods"] == 6 and "nodes" in start["policy"]
        shadow.end(signal.SIGKILL)
        with path.open("a") as log:
            log.write('{"time": 1, "event": "st')
        empty.post("/apis/batch/v1/namespaces/default/jobs", job(second, 40))
        until(
            lambda: len(pods_of(empty, second, "Running", "Succeeded", "Pending")) == 40,
            "the second has nodes",
        )
        end(empty, first)
        until(lambda: not pods_of(empty, first, "Running"), "the first ended")
        shadow = Shadow(empty, path)
        until(lambda: len(shadow.events("start")) == 2, "the second start")
        empty.post("/apis/batch/v1/namespaces/default/jobs", job(third, 20, gpus=1))
        until(lambda: len(shadow.events("start")) == 3, "the third start")
        end(empty, second)
        until(lambda: len(shadow.events("ends")) == 2, "the second ended")
        said = shadow.end().splitlines()
    finally:
        if shadow.process.poll() is None:
            shadow.end(signal.SIGKILL)
    summary = json.loads(said[-1])["summary"]
    assert (
        summary["starts"] == 3
        and summary["cluster"]["jobs"] + sum(summary["would_have_waited"].values()) == 3
    )
    assert [start["job"] for start in shadow.events("start")] == [
        f"default/{each}" for each in (first, second, third)
    ]
    assert shadow.events("shadow")[1]["away"] > 0
    again = json.loads(topolane("k8s", "replay", path, "--csv", tmp_path / "log.csv", "--json"))
    assert again["differing"] == [] and again["starts"] == 3
    exported = tmp_path / "out"
    k8s(empty, "export", "--out", exported, labels=LABELS)
    for table, more in ((tmp_path / "log.csv", 0), (exported / "jobs.csv", 1)):
        rows = list(csv.DictReader(table.open()))
        found = [(row["nodes"], row["gpus_per_node"]) for row in rows]
        # The export has the job that still runs.
        assert found[:2] == [("6", "8"), ("40", "8")] and len(found) == 2 + more, table
    assert "64" in topolane("machine", "show", exported / "machine.toml")
    compared = topolane(
        *("compare", "--machine", exported / "machine.toml", "--trace", exported / "jobs.csv", "--no-report"),
        *("--policies", "first-fit,isolated", "--scenarios", "none", "--json"),
    )
    assert "isolated" in compared


def pods_of(plane: ControlPlane, group: str, *phases: str) -> list[str]:
    """The nodes of the pods of a Job that have one, in these phases."""
    found = plane.get(f"/api/v1/namespaces/default/pods?labelSelector=job-name%3D{group}")["items"]
    return [
        pod["spec"]["nodeName"]
        for pod in found
        if pod["spec"].get("nodeName") and pod["status"]["phase"] in phases
    ]
