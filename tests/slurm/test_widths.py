"""Cores per node chosen for jobs that say only how many processes they have, as the engine's rank-k says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from driving import driving, tree_of
from live_cluster import Cluster, until
from topolane import Machine, State
from topolane._engine import Profile, Scheduler, rank_k
from topolane.slurm.candidates import IneligibleJobError
from topolane.slurm.fabric import with_node_resources
from topolane.slurm.programs import Program, Programs
from topolane.slurm.records import Job, Node

PROGRAM = {"name": "stream*", "pattern": "alltoall(bytes=1e5)", "iterations": 10.0}
WORK = {"core_seconds": 64.0, "memory_traffic": 1e12}


def test_the_chosen_cores_per_node_are_those_of_rank_k(cluster: Cluster, tmp_path: Path) -> None:
    """On an empty machine a job gets as many nodes as rank-k says for its program, its processes spread
    evenly; one of another name fills its nodes; one that says its nodes has those."""
    written = {key.replace("_", "-"): value for key, value in (PROGRAM | WORK).items()}
    with driving(cluster, tmp_path, **{"cores-per-node": "auto", "programs": [written]}):
        out = tmp_path / "out"
        job = cluster.submit(
            "--ntasks=24", "--job-name=stream-1", "--time=5", script=f"echo $SLURM_TASKS_PER_NODE >{out}"
        )
        until(lambda: cluster.job(job)["job_state"] == "COMPLETED", "it ends")
        other = cluster.submit("--ntasks=24", "--job-name=other", "--time=5", script="sleep 1")
        said = cluster.submit("--ntasks=24", "--nodes=5", "--job-name=stream-2", "--time=5", script="sleep 1")
        until(lambda: cluster.job(said)["job_state"] == "COMPLETED", "the others end")
        until(lambda: cluster.job(other)["job_state"] == "COMPLETED", "the others end")
    machine = tree_of(cluster)
    profile = Profile(24, PROGRAM["pattern"], iterations=PROGRAM["iterations"], **WORK)
    ranks = rank_k(State(machine), machine.routing("d-mod-k"), "isolated", profile)
    (best,) = [rank for rank in ranks if rank.chosen]
    assert 1 < best.k < 16 and best.decision
    nodes = {id: len(machine.nodes_named(cluster.job(id)["nodes"])) for id in (job, other, said)}
    assert nodes == {job: len(best.decision.nodes), other: 2, said: 5}
    assert out.read_text().strip().startswith(f"{24 // len(best.decision.nodes)}(x")


def test_k_is_chosen_for_the_traffic_that_the_comment_names(slurm: None) -> None:
    """A user's `traffic=` goes before the description's pattern. A matrix says nothing of another k, so such a job has all
    cores; a pattern that cannot be is refused."""
    tree = "SwitchName=a Nodes=n[1-8]\nSwitchName=b Nodes=n[9-16]\nSwitchName=c Switches=a,b\n"
    kinds = {f"n{i}": Node(f"n{i}", frozenset(), 8, 1, 2**36, frozenset()) for i in range(1, 17)}
    machine = Machine.parse(with_node_resources(Machine.parse(tree, "t", "slurm"), kinds), "t", "toml")
    heavy, light = "alltoall(bytes=1e8)", "ring(bytes=1)"

    def chosen(pattern: str, comment: str = "") -> int | None:
        program = Program("stream", pattern, iterations=10.0, core_seconds=64.0, memory_traffic=1e12)
        programs = Programs(machine, [program], "auto", routing="d-mod-k", model="full")
        blank = {field.name: None for field in dataclasses.fields(Job)}
        facts = {"id": 1, "name": "stream", "processes": 16, "comment": comment, "most_nodes": 0}
        job = Job(**(blank | facts | {"processes_per_node": 0}))  # type: ignore[arg-type]
        scheduler = Scheduler(machine, "isolated", "fcfs")
        return programs.cores_of(job, tuple(range(16)), (), scheduler, 0.0)

    assert chosen(heavy) != chosen(light)
    assert chosen(heavy, f"mine; traffic={light}") == chosen(light)
    assert chosen(heavy, "traffic=measured.csv") is None
    with pytest.raises(IneligibleJobError, match="traffic in its comment: .*rings"):
        chosen(heavy, "traffic=rings")


def test_nodes_are_inside_as_slurm_says(slurm: None) -> None:
    """The most common kind is [node], the others are named; cores and memory are Slurm's."""
    tree = Machine.parse(
        "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[4-6]\nSwitchName=c Switches=a,b\n", "t", "slurm"
    )
    kinds = {f"n{i}": Node(f"n{i}", frozenset(), 64, 2, 2**38, frozenset()) for i in range(1, 7)}
    kinds["n5"] = Node("n5", frozenset(), 12, 1, 2**36, frozenset())
    made = Machine.parse(with_node_resources(tree, kinds), "t", "toml")
    assert made.cores() == [(64, 5), (12, 1)]
    state = State(made)
    state.hold([4], (12, 2**36))
    with pytest.raises(ValueError):
        state.hold([4], (1, 0))
