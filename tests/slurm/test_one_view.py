"""One situation as Slurm and as Kubernetes: the same facts come out. Neither runs here."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import plugin_files
import pytest
import room_records
from plugin_files import write_jobs
from room_records import NOW, TREE

pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")
pytest.importorskip("yaml", reason="needs the extra kubernetes: PyYAML")


from topolane.cluster.explain import Explanation
from topolane.cluster.status import Status
from topolane.kubernetes import explain as kubernetes_explain
from topolane.kubernetes import inspection
from topolane.kubernetes import view as kubernetes_view
from topolane.kubernetes.objects import PLACEMENT, RECORD, KubernetesNode, Pod
from topolane.kubernetes.proofs import PROOF, Proofs, seal
from topolane.kubernetes.settings import SchedulerSettings
from topolane.slurm import explain as slurm_explain
from topolane.slurm import inspection as inspection_of_slurm
from topolane.slurm import plugin_state
from topolane.slurm import view as slurm_view

KEY = b"of this test alone, thirty-two bytes"
RUNNING = {1: [0, 1, 2, 3, 6, 7], 2: [12, 13, 18], 3: [8, 9]}
"""Isolated jobs: 1 crosses two leaves of the first pod, 2 two leaves of the second."""
WAITING, WANTED, CLOSED = 9, 5, 23


def in_slurm(state: Path) -> inspection_of_slurm.SlurmInspection:
    """The jobs as Slurm and the plugin have them."""
    jobs = [
        room_records.runs(job, TREE.hostlist(nodes), 1, fewest_nodes=len(nodes))
        for job, nodes in RUNNING.items()
    ]
    look = room_records.look_at(
        state, *jobs, room_records.waits(WAITING, WANTED, reason="Resources", submit=NOW)
    )
    held = {node for nodes in RUNNING.values() for node in nodes}
    offered = ",".join(str(node) for node in range(TREE.nodes) if node not in held)
    running = [
        f"machine machine.toml {TREE.nodes}",
        *(plugin_files.running(job, "isolated", "isolated") for job in RUNNING),
    ]
    write_jobs(
        state,
        *running,
        plugin_files.waiting(WAITING, "isolated", "would-share-links", WANTED, offered, time=NOW),
    )
    assert look.snapshot is not None
    nodes, down = dict(look.snapshot.nodes), TREE.node_name(CLOSED)
    nodes[down] = dataclasses.replace(nodes[down], words=frozenset({"down"}))
    snapshot = dataclasses.replace(look.snapshot, nodes=nodes)
    return dataclasses.replace(look, state=plugin_state.read(state), snapshot=snapshot)


def in_kubernetes() -> inspection.KubernetesInspection:
    """The same as groups of pods that take a node each."""
    names = [TREE.node_name(node) for node in range(TREE.nodes)]
    pods = [
        pod(str(job), rank, names[node], [names[each] for each in nodes])
        for job, nodes in RUNNING.items()
        for rank, node in enumerate(nodes)
    ]
    said = f"group default/{WAITING} asks for {WANTED} pods under isolated and would share links ({WANTED} wanted)"
    refusal = {"kind": "would-share-links", "wanted": WANTED}
    said += RECORD + json.dumps({"policy": "isolated", "share": 1, "refusal": refusal})
    pods += [pod(str(WAITING), rank, "", [], said) for rank in range(WANTED)]
    nodes = {name: node(name, is_closed=name == names[CLOSED]) for name in names}
    proofs = Proofs(KEY)
    seen = proofs.bound(tuple(map(Pod.of, pods)))
    return inspection.KubernetesInspection(
        NOW, "here", SchedulerSettings(None), nodes, seen, TREE, None, (), proofs
    )


def node(name: str, is_closed: bool) -> KubernetesNode:
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": {"cpu": "8", "pods": "9"}, "conditions": ready}
    return KubernetesNode.of(
        {"metadata": {"name": name}, "spec": {"unschedulable": is_closed}, "status": status}
    )


def pod(group: str, rank: int, at: str, nodes: list[str], said: str = "") -> dict[str, Any]:
    owned = {"kind": "Job", "name": group, "uid": f"uid-{group}", "controller": True}
    meta: dict[str, Any] = {"name": f"{group}-{rank}", "namespace": "default", "uid": f"uid-{group}-{rank}"}
    meta |= {"ownerReferences": [owned], "creationTimestamp": "2026-01-01T00:00:00Z"}
    meta["annotations"] = {"topolane.io/group-size": str(len(nodes) or WANTED)}
    condition = {"type": "PodScheduled", "status": "True" if at else "False", "message": said}
    containers = [{"resources": {"requests": {"cpu": "8"}}}]
    spec = {"schedulerName": "topolane", "containers": containers, **({"nodeName": at} if at else {})}
    made = {"metadata": meta, "spec": spec}
    made["status"] = {"phase": "Running" if at else "Pending", "conditions": [condition]}
    if at:
        given = {"policy": "isolated", "nodes": nodes, "links": [], "share": 1, "link_use": "isolated"}
        text, key = json.dumps(given | {"rank": rank, "revision": 1}), str(Pod.of(made).key)
        meta["annotations"] |= {PLACEMENT: text, PROOF: f"{key} {seal(KEY, key, meta['uid'], text)}"}
    return made


def facts(found: Status) -> dict[str, Any]:
    """What does not depend on how a system calls its jobs."""
    same = ("nodes", "slots", "size", "level", "home", "policy", "link_use", "links", "bandwidth_share")
    running = {
        row.job.rpartition("/")[2]: [row.may_meet, row.hosts, *(getattr(row, name) for name in same)]
        for row in found.running
    }
    waiting = [
        (row.job.rpartition("/")[2], row.slots, row.size, row.kind, row.policy) for row in found.waiting
    ]
    return {"running": running, "waiting": waiting, "nodes": found.nodes, "sharing": found.sharing}


def reasons(found: Explanation) -> dict[str, Any]:
    """The same of an explanation."""
    way = found.in_the_way
    assert way is not None and found.refused is not None
    words = {"group default/": "job ", "groups default/": "jobs ", "default/": "", "pods must": "nodes must"}
    said = list(way.obstacles)
    for word, other in (words | {"free slot": "idle node", " free:": " idle:"}).items():
        said = [sentence.replace(word, other) for sentence in said]
    must_end = [one.job.rpartition("/")[2] for one in way.must_end]
    return {"idle": way.idle, "said": said, "must_end": must_end, "kind": found.refused.kind}


def test_status_says_the_same_of_both(tmp_path: Path) -> None:
    """Rows, counts of nodes and links are the same, and no isolated job meets another one."""
    found = [
        facts(Status.of(TREE, slurm_view.view(in_slurm(tmp_path)))),
        facts(Status.of(TREE, kubernetes_view.view(in_kubernetes()))),
    ]
    assert found[0] == found[1]
    assert found[0]["running"].keys() == {"1", "2", "3"} and found[0]["nodes"].busy == 11
    assert found[0]["nodes"].out_of_service == 1 and found[0]["sharing"].isolated_sharing == []


def test_explanations_say_the_same_of_both(tmp_path: Path) -> None:
    """A refused job has the same free nodes, the same jobs are in its way, and the same ones must end."""
    found = [
        reasons(slurm_explain.explain(in_slurm(tmp_path), str(WAITING))),
        reasons(kubernetes_explain.explain(in_kubernetes(), f"default/{WAITING}")),
    ]
    assert found[0] == found[1]
    assert found[0]["said"] and found[0]["must_end"]


def test_where_a_job_runs_is_the_same_in_both(tmp_path: Path) -> None:
    """Home, links and neighbours."""
    here, there = in_slurm(tmp_path), in_kubernetes()
    for job in RUNNING:
        one = slurm_explain.explain(here, str(job))
        other = kubernetes_explain.explain(there, f"default/{job}")
        assert (one.level, one.home, one.links, one.may_meet) == (
            other.level,
            other.home,
            other.links,
            other.may_meet,
        )
