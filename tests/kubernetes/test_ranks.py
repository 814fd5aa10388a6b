"""The examples for torchrun and mpirun as they are, on a real API server: their pods are placed, and what they read is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from control_plane import RACK, Body, ControlPlane, missing
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

EXAMPLES = Path(__file__).parents[2] / "examples" / "kubernetes"
PATHS = {
    "Service": "/api/v1/namespaces/default/services",
    "Job": "/apis/batch/v1/namespaces/default/jobs",
}


def apply(plane: ControlPlane, example: str) -> list[str]:
    """Creates what a manifest has; returns the paths of the objects."""
    made = []
    for text in re.split(r"^---$", (EXAMPLES / example).read_text(), flags=re.MULTILINE):
        path = PATHS[re.search(r"^kind: (\w+)", text, re.MULTILINE)[1]]  # type: ignore[index]
        plane.call("POST", path, text, "application/yaml")
        made.append(f"{path}/{re.search(r'^  name: (.+)', text, re.MULTILINE)[1]}")  # type: ignore[index]
    return made


def placed(plane: ControlPlane, count: int) -> list[Body]:
    def pods() -> list[Body]:
        found = [pod for pod in plane.pods() if pod["spec"].get("nodeName")]
        return found if len(found) == count else []

    return list(until(pods, f"{count} pods are placed"))


def fields(pod: Body) -> dict[str, str]:
    """What the kubelet gives to the program: each variable or file that comes from an annotation, and its value."""
    (box,) = pod["spec"]["containers"]
    refs = {entry["name"]: entry["valueFrom"]["fieldRef"]["fieldPath"] for entry in box.get("env", [])}
    for volume in pod["spec"].get("volumes", []):
        items = volume.get("downwardAPI", {}).get("items", [])
        refs |= {item["path"]: item["fieldRef"]["fieldPath"] for item in items}
    notes = pod["metadata"]["annotations"]
    keys = {
        name: re.fullmatch(r"metadata\.annotations\['(topolane.+)'\]", path) for name, path in refs.items()
    }
    return {name: notes[key[1]] for name, key in keys.items() if key}


def test_torchrun(empty: ControlPlane) -> None:
    """Each pod of the Job reads its rank, which is its index, how many there are, and the nodes of all in the order of ranks."""
    made = apply(empty, "torchrun.yaml")
    try:
        pods = placed(empty, 4)
        index = "batch.kubernetes.io/job-completion-index"
        nodes = {int(pod["metadata"]["annotations"][index]): pod["spec"]["nodeName"] for pod in pods}
        order = ",".join(nodes[rank] for rank in range(4))
        for pod in pods:
            rank = pod["metadata"]["annotations"][index]
            assert fields(pod) == {"TOPOLANE_RANK": rank, "TOPOLANE_SIZE": "4", "TOPOLANE_NODES": order}
        assert len({int(node[1:]) // RACK for node in nodes.values()}) == 1
    finally:
        for path in made:
            empty.delete(path)


def test_mpirun(empty: ControlPlane) -> None:
    """Launcher and workers are one group in one rack; the launcher reads rank 0 and the nodes of all, workers by their indices."""
    made = apply(empty, "mpirun.yaml")
    try:
        pods = placed(empty, 9)
        (launcher,) = [
            pod for pod in pods if pod["metadata"]["annotations"]["topolane.io/podset"] == "launcher"
        ]
        index = "batch.kubernetes.io/job-completion-index"
        workers = {
            int(pod["metadata"]["annotations"][index]): pod["spec"]["nodeName"]
            for pod in pods
            if pod is not launcher
        }
        order = [launcher["spec"]["nodeName"], *(workers[rank] for rank in range(8))]
        assert fields(launcher) == {"rank": "0", "nodes": ",".join(order)}
        assert len({int(node[1:]) // RACK for node in order}) == 1 and order[1:] == sorted(set(order[1:]))
    finally:
        for path in made:
            empty.delete(path)
