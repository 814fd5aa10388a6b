"""Generic resources of Slurm's jobs and nodes, from synthetic records of slurmrestd."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

from topolane._engine import Machine, Scheduler
from topolane.slurm import answers, gres
from topolane.slurm.candidates import HostLists, could_use
from topolane.slurm.fabric import with_node_resources
from topolane.slurm.records import Snapshot

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


def test_a_job_holds_what_slurm_reports_of_its_nodes() -> None:
    """The most on a node; types only if all nodes have them; sums of the job only where Slurm gives no nodes."""
    tres = "cpu=8,mem=4G,node=2,billing=8,gres/gpu=3,gres/gpu:h100=3"
    assert gres.held((), tres, 2) == (("gpu", 2), ("gpu:h100", 2))
    assert gres.held(("gpu:h100:2(IDX:1-2)", "gpu:h100:1(IDX:0)"), tres, 2) == (("gpu:h100", 2),)
    assert gres.held(("gpu:h100:4(IDX:0-3)", "gpu:1"), "cpu=2,gres/gpu=1", 2) == (("gpu", 4),)
    assert gres.held((), "", 2) == ()


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
    """One job and four nodes, two of them with GPUs, on a machine as Slurm describes it."""

    def __init__(self, path: Path, **options: str) -> None:
        answer = json.loads(path.read_text())
        partition = next(answers.partition(each) for each in answer["partitions"].values())
        nodes = []
        for number, there in enumerate(("gpu:h100:4(S:0-1)", "gpu:h100:4", "", "")):
            nodes.append(answers.node(answer["nodes"][""] | {"name": f"n{number}", "gres": there}))
        partition = dataclasses.replace(partition, name="p", nodes="n[0-3]")
        record = answer["jobs"][""] | {"partition": "p", "tasks_per_node": None} | options
        self.job = answers._job(record, {"p": partition})
        self.snapshot = Snapshot(0.0, {}, {node.name: node for node in nodes}, {"p": partition}, {})
        tree = Machine.parse("SwitchName=s Nodes=n[0-3]\n", "topology.conf", "slurm")
        self.machine = Machine.parse(with_node_resources(tree, self.snapshot.nodes), "machine", "toml")

    def could_use(self) -> tuple[set[str], list[str]]:
        return could_use(self.job, self.snapshot, HostLists(self.snapshot.nodes))


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_a_job_with_gres_could_use_the_nodes_that_have_them(path: Path) -> None:
    """Per node or per process; an option that no request to the engine can express is named as skipped."""
    found = Records(path, tres_per_node="gres:gpu:h100:2")
    assert found.machine.resources_of(0)["gpu"] == 4 and found.machine.resources_of(2)["gpu"] == 0
    assert found.could_use() == ({"n0", "n1"}, [])
    assert Records(path, tres_per_task="gres/gpu:1").could_use() == ({"n0", "n1"}, [])
    assert Records(path, tres_per_node="gres/gpu:5").could_use() == (set(), [])
    assert Records(path).could_use() == ({"n0", "n1", "n2", "n3"}, [])
    for option in (
        {"tres_per_socket": "gres/gpu:1"},
        {"tres_per_node": "license:x:y:1"},
        {"tres_per_job": "gres/gpu:4"},
    ):
        assert Records(path, **option).could_use() == ({"n0", "n1", "n2", "n3"}, [*option.values()])


def test_options_about_nodes() -> None:
    """Excluded nodes and constraints are heeded; a list of some of the nodes, and a constraint with counts, are named as left
    out."""
    path = ANSWERS[0]
    assert Records(path, excluded_nodes="n[0-1]").could_use() == ({"n2", "n3"}, [])
    assert Records(path, features="none-has-it").could_use() == (set(), [])
    assert Records(path, features="[a*2&b]").could_use()[1] == ["--constraint=[a*2&b]"]
    held = {"job_state": "RUNNING", "nodes": "n[0-1]", "job_resources": None}
    assert Records(path, required_nodes="n[0-1]", **held).could_use() == ({"n0", "n1"}, [])
    assert Records(path, required_nodes="n0", **held).could_use() == (
        {"n0", "n1", "n2", "n3"},
        ["--nodelist"],
    )


def test_a_running_job_holds_its_gres() -> None:
    found = Records(ANSWERS[0], tres_alloc_str="cpu=2,mem=1G,node=2,gres/gpu=5,gres/gpu:h100=5")
    assert found.job.gres_held == (("gpu", 3), ("gpu:h100", 3))
