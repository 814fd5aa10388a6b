"""Jobs that say what they send, under the policy `least-slowdown`."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from driving import driving, running, tree_of
from live_cluster import Cluster, until
from topolane._engine import Machine, Scheduler
from topolane.live.job_request import JobTraffic
from topolane.slurm.job_traffic import TrafficOfJobs
from topolane.slurm.programs import Program
from topolane.slurm.records import Job


def leaves(nodes: list[int], machine: Machine) -> set[str]:
    """The leaves of these nodes."""
    named = {name: range(start, end) for start, end, name in machine.groups(1)}
    return {name for name, inside in named.items() if any(node in inside for node in nodes)}


def test_communicating_jobs_are_kept_off_each_others_uplinks(cluster: Cluster, tmp_path: Path) -> None:
    """A job on two leaves sends over their uplinks. One of eight nodes, which needs two leaves, gets two others, though
    first fit would give it these. The pattern is in one job's comment, the other's name is that of a known program;
    the log repeats the decision, and a wrong pattern is refused in the job's comment."""
    machine = tree_of(cluster)
    program = {"name": "milc*", "pattern": "alltoall", "communication": 0.5}
    with driving(cluster, tmp_path, policy="least-slowdown", programs=[program]):
        first = cluster.submit(
            "--nodes=2", "--ntasks=2", "--time=5", "--nodelist=node[1,7]", "--comment=mine traffic=ring"
        )
        until(lambda: first in running(cluster, machine), "the first runs")
        second = cluster.submit("--nodes=8", "--ntasks=8", "--time=5", "--job-name=milc-1")
        until(lambda: second in running(cluster, machine), "the second runs")
        wrong = cluster.submit("--nodes=2", "--ntasks=2", "--time=5", "--comment=traffic=rings")
        until(lambda: "rings" in cluster.job(wrong)["comment"], "the wrong pattern is refused")
        nodes = running(cluster, machine)
        cluster.run("scancel", first, second, wrong)
        until(lambda: not running(cluster, machine), "they end")
    assert not leaves(nodes[first], machine) & leaves(nodes[second], machine)
    for policy in ("first-fit", "slurm-tree"):
        blind = Scheduler(machine, policy, "fcfs")
        blind.adopt(first, nodes[first], 0.0, 300.0)
        blind.submit(second, 8, 300.0)
        (decision,) = blind.start(0.0)
        assert leaves(nodes[first], machine) & leaves(decision.nodes, machine), policy
    asked = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "replay"]
    again = subprocess.run([*asked, str(tmp_path / "log.jsonl")], capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stdout + again.stderr


def job(**facts: object) -> Job:
    """A job of eight processes with these facts."""
    blank = {field.name: None for field in dataclasses.fields(Job)}
    return Job(**(blank | {"comment": "", "name": "other", "processes": 8} | facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({"name": "milc-1"}, JobTraffic("stencil4d", 8, 0.4)),
        ({"name": "milc-1", "processes": 1}, None),
        ({"comment": "traffic=ring"}, JobTraffic("ring", 8, 0.3)),
        (
            {"comment": "topolane: on node[1-8] | mine; traffic=ring", "name": "milc"},
            JobTraffic("ring", 8, 0.4),
        ),
        ({"comment": "subtraffic=ring"}, None),
    ],
)
def test_the_comment_goes_before_the_description_of_the_program(
    facts: dict[str, object], expected: JobTraffic | None
) -> None:
    """What a job sends is the word of its user, or what is known of its program; nothing for one process."""
    programs = TrafficOfJobs([Program("milc*", "stencil4d", communication=0.4)])
    assert programs.of(job(**facts)) == expected
