"""Generic resources of Slurm's jobs and nodes, from made-up records of slurmrestd."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

from topolane._engine import Machine, Scheduler
from topolane.live.job_request import share_of
from topolane.live.replay import replay
from topolane.slurm import client, gres
from topolane.slurm.candidates import IneligibleJobError, NodeSelector
from topolane.slurm.fabric import with_node_resources
from topolane.slurm.records import Snapshot
from topolane.slurm.requests import RequestSettings, request_of

ANSWERS = sorted((Path(__file__).parent / "answers").glob("*.json"))


@pytest.mark.parametrize(
    ("option", "name", "count"),
    [
        ("gres:gpu:2", "gpu", 2),
        ("gres/gpu:2", "gpu", 2),
        ("gres/gpu=2", "gpu", 2),
        ("gres:gpu", "gpu", 1),
        ("gres:gpu:h100:4", "gpu:h100", 4),
        ("gres/gpu:h100=4", "gpu:h100", 4),
        ("gpu:h100", "gpu:h100", 1),
        ("gres/gpu:1g.5gb:3", "gpu:1g.5gb", 3),
        ("cpu=2", None, 0),
        ("gres:gpu:-2", None, 0),
        ("gres:a b:2", None, 0),
        ("gres:gpu:h100:4:1", None, 0),
        ("", None, 0),
    ],
)
def test_an_option_is_a_name_and_a_count(option: str, name: str | None, count: int) -> None:
    found = gres.requested(option, per_process=False)
    assert (found and (found.name, found.count)) == (None if name is None else (name, count))


def test_a_node_has_counts_by_name() -> None:
    assert gres.of_node("gpu:h100:4(S:0),gpu:h100:4(S:1),nic:2") == (("gpu:h100", 8), ("nic", 2))
    assert gres.of_node("bandwidth:lustre:no_consume:4G,gpu:1") == (("gpu", 1),)
    assert gres.of_node("") == ()
    held = gres.held("cpu=8,mem=4G,node=2,billing=8,gres/gpu=3,gres/gpu:h100=3", 2)
    assert held == (("gpu", 2), ("gpu:h100", 2))


def test_what_a_log_of_the_last_release_says_of_shares_is_read(tmp_path: Path) -> None:
    assert share_of([4, 1000]) == {"cores": 4, "memory": 1000}
    assert share_of({"cores": 4, "gpu": 1}) == {"cores": 4, "gpu": 1}
    assert share_of(None) is None
    for wrong in ("4", 4, True):
        with pytest.raises(TypeError):
            share_of(wrong)
    machine = 'name = "m"\n[node]\nresources = { gpu = 2 }\n[[site]]\nname = "s"\nchildren = [4]\n'
    events = [
        {"event": "scheduler", "machine": machine, "policy": "first-fit", "queue": "fcfs", "seed": 0},
        {"event": "adopt", "id": 1, "nodes": "m1", "start": 0.0, "walltime": 60.0, "share": [15, 1000]},
        {"event": "submit", "id": 2, "nodes": 1, "walltime": 60.0, "share": [2, 0]},
        {"event": "submit", "id": 3, "nodes": 1, "walltime": 60.0, "share": {"cores": 1, "gpu": 2}},
        {"event": "submit", "id": 4, "nodes": 1, "walltime": 60.0, "share": {"cores": 1, "gpu": 1}},
        {"event": "pass", "now": 0.0, "starts": [[2, "m2"], [3, "m1"], [4, "m2"]]},
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert replay(log).differing == []


def test_a_scheduler_places_and_refuses_resources() -> None:
    text = 'name = "m"\n[node]\nresources = { "gpu:h100" = 2 }\n[[site]]\nname = "s"\nchildren = [2]\n'
    machine = Machine.parse(text, "m.toml", "toml")
    assert machine.resources == ["cores", "memory", "gpu", "gpu:h100"]
    assert machine.resources_of(0) == {"cores": 16, "memory": 32 << 30, "gpu": 2, "gpu:h100": 2}
    scheduler = Scheduler(machine, "first-fit", "fcfs")
    refusal = scheduler.submit(9, 1, 60.0, share={"gpu:a100": 1})
    assert refusal is not None and refusal.name == "never" and "gpu:a100" in refusal.why
    for job in (1, 2, 3):
        assert scheduler.submit(job, 1, 60.0, share={"cores": 1, "gpu": 1 + (job == 2)}) is None
    assert [(one.id, one.nodes) for one in scheduler.start(0.0)] == [(1, [0]), (2, [1]), (3, [0])]


class Records:
    """One job and four nodes, two of them with GPUs, on a machine as Slurm tells it."""

    def __init__(self, path: Path, **options: str) -> None:
        answer = json.loads(path.read_text())
        partition = next(client._partition(each) for each in answer["partitions"].values())
        nodes = []
        for number, there in enumerate(("gpu:h100:4(S:0-1)", "gpu:h100:4", "", "")):
            nodes.append(client._node(answer["nodes"][""] | {"name": f"n{number}", "gres": there}))
        partition = dataclasses.replace(partition, name="p", nodes="n[0-3]")
        record = answer["jobs"][""] | {"partition": "p", "tasks_per_node": None} | options
        self.job = client._job(record, {"p": partition})
        self.snapshot = Snapshot(0.0, {}, {node.name: node for node in nodes}, {"p": partition}, {})
        tree = Machine.parse("SwitchName=s Nodes=n[0-3]\n", "topology.conf", "slurm")
        self.machine = Machine.parse(with_node_resources(tree, self.snapshot.nodes), "machine", "toml")

    def ask(self, *, whole: bool = False, counted: bool = True):
        machine = self.machine
        if not counted:
            machine = Machine.parse("SwitchName=s Nodes=n[0-3]\n", "topology.conf", "slurm")
        terms, nodes = RequestSettings(machine, whole_nodes=whole), NodeSelector(machine, self.snapshot)
        job = dataclasses.replace(self.job, exclusive=False)
        return request_of(job, self.snapshot, nodes, terms, priority=0.0, cores_of=lambda *_: None)


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_a_job_with_gres_is_asked_for_as_its_share(path: Path) -> None:
    """Per node or per process; whole nodes must have them; what the machine does not count is refused in the words for
    all options that are not supported."""
    found = Records(path, tres_per_node="gres:gpu:h100:2")
    assert found.machine.resources_of(0)["gpu"] == 4 and found.machine.resources_of(2)["gpu"] == 0
    assert found.job.unsupported_option == ""
    ask = found.ask()
    assert ask.share is not None and ask.share["gpu:h100"] == 2 and ask.share["cores"] >= 1
    assert ask.eligible == (0, 1)
    whole = found.ask(whole=True)
    assert (whole.share, whole.eligible) == (None, (0, 1))
    with pytest.raises(
        IneligibleJobError, match="^gres:gpu:h100:2 is not understood here: submit without it$"
    ):
        found.ask(counted=False)
    each = Records(path, tres_per_task="gres/gpu:1").ask()
    assert each.share is not None and each.share["gpu"] == 1
    with pytest.raises(IneligibleJobError, match="no node of its partitions has what it asks for"):
        Records(path, tres_per_node="gres/gpu:5").ask()
    for option in (
        {"tres_per_socket": "gres/gpu:1"},
        {"tres_per_node": "license:x:y:1"},
        {"tres_per_job": "gres/gpu:4"},
    ):
        with pytest.raises(IneligibleJobError, match="is not understood here"):
            Records(path, **option).ask()


def test_a_running_job_holds_its_gres() -> None:
    found = Records(ANSWERS[0], tres_alloc_str="cpu=2,mem=1G,node=2,gres/gpu=5,gres/gpu:h100=5")
    assert found.job.gres_held == (("gpu", 3), ("gpu:h100", 3))
