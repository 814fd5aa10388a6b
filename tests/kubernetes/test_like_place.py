"""The same group on the same cluster gets the same nodes as `topolane place` says, in the same order."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from control_plane import LABELS, SMALL, ControlPlane, missing, name
from topolane.cli import cli
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

STEPS = 14


def cluster_file(plane: ControlPlane, keys: list[str], path: Path) -> Path:
    """What `kubectl get nodes -o json` says, and the levels that the scheduler's configuration names."""
    levels = {
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"nodeLabel": k} for k in keys]},
    }
    nodes = [dict(node, kind="Node") for node in plane.get("/api/v1/nodes")["items"]]
    path.write_text(json.dumps({"kind": "List", "items": [levels, *nodes]}))
    return path


def state_of(plane: ControlPlane, cluster: Path, wanted: int) -> dict[str, Any]:
    """The groups that run, as the annotations of their pods say, and a request."""
    placements = {}
    for pod in plane.pods():
        note = pod["metadata"]["annotations"].get("topolane.io/placement")
        if note and pod["spec"].get("nodeName"):
            placements[pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"]] = json.loads(note)
    running = [
        {"id": number, "nodes": hostlist(placed["nodes"]), "links": placed.get("links", [])}
        for number, (_, placed) in enumerate(sorted(placements.items()))
    ]
    return {"machine": str(cluster), "running": running, "request": {"nodes": wanted, "id": 1000}}


def hostlist(nodes: list[str]) -> str:
    return ",".join(nodes)


@pytest.mark.parametrize("policy", ["isolated", "segments", "dedicated", "best-fit"])
@pytest.mark.parametrize("keys", [LABELS, SMALL], ids=["racks", "chassis"])
def test_the_nodes_are_those_of_topolane_place(
    empty: ControlPlane, tmp_path: Path, policy: str, keys: list[str]
) -> None:
    """Groups come and go in a random order. Each gets the nodes that the command gives, or waits where the command refuses."""
    plane = empty
    plane.kill("topolane-scheduler")
    plane.start_scheduler(topologyLabels=keys, groupTimeoutSeconds=5)
    try:
        cluster = cluster_file(plane, keys, tmp_path / "cluster.json")
        draw = random.Random(f"{policy} {keys}")
        running: list[str] = []
        placed = refused = 0
        for _ in range(STEPS):
            if len(running) > 2 and draw.random() < 0.3:
                gone = running.pop(draw.randrange(len(running)))
                plane.remove(gone)
                until(lambda gone=gone: not plane.pods(gone), f"{gone} is gone")
            size = draw.choice([1, 2, 5, 7, 9, 12, 17])
            state = tmp_path / "state.json"
            state.write_text(json.dumps(state_of(plane, cluster, size)))
            said = CliRunner().invoke(cli, ["place", str(state), "--policy", policy, "--json"])
            answer = json.loads(said.output)
            group = name()
            plane.submit(group, size, policy=policy)
            if answer["placed"]:
                assert plane.placed(group, size) == answer["hosts"]
                running.append(group)
                placed += 1
            else:
                plane.waits_saying(group, f"asks for {size} pods under {policy} and")
                plane.remove(group)
                until(lambda group=group: not plane.pods(group), "it is gone")
                refused += 1
        assert placed >= STEPS // 3, (placed, refused)
    finally:
        plane.kill("topolane-scheduler")
        plane.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
