"""Jobs that say what they send, under the policy `least-slowdown`."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from driving import driving, running, tree_of
from live_cluster import Cluster, until
from topolane._engine import InputError, Machine, Scheduler, Traffic
from topolane.live.job_request import JobRequest, JobTraffic, for_engine
from topolane.live.journal import Recorder
from topolane.live.replay import replay
from topolane.slurm.candidates import IneligibleJobError
from topolane.slurm.job_traffic import TrafficOfJobs
from topolane.slurm.programs import Program
from topolane.slurm.records import Job


def leaves(nodes: list[int], machine: Machine) -> set[str]:
    """The leaves of these nodes."""
    named = {name: range(start, end) for start, end, name in machine.groups(1)}
    return {name for name, inside in named.items() if any(node in inside for node in nodes)}


@pytest.mark.parametrize("measured", [False, True])
def test_communicating_jobs_are_kept_off_each_others_uplinks(
    cluster: Cluster, tmp_path: Path, *, measured: bool
) -> None:
    """A job on two leaves sends over their uplinks. One of eight nodes, which needs two leaves, gets two others, though
    first fit would give it these. The pattern is in one job's comment, the other's name is that of a known program;
    the log repeats the decision, and a wrong pattern is refused in the job's comment. The same with a measured matrix
    for each pattern, also of the log, though the files are gone then."""
    machine = tree_of(cluster)
    matrices = tmp_path / "matrices"
    matrices.mkdir()
    for pattern, ranks in {"ring": 2, "alltoall": 8}.items():
        (matrices / f"{pattern}.csv").write_text(Traffic.pattern(pattern, ranks).csv())
    end = ".csv" if measured else ""
    program = {"name": "milc*", "pattern": f"alltoall{end}", "communication": 0.5}
    settings: dict[str, Any] = {"programs": [program]} | ({"matrices": str(matrices)} if measured else {})
    with driving(cluster, tmp_path, policy="least-slowdown", **settings):
        first = cluster.submit(
            "--nodes=2", "--ntasks=2", "--time=5", "--nodelist=node[1,7]", f"--comment=mine traffic=ring{end}"
        )
        until(lambda: first in running(cluster, machine), "the first runs")
        second = cluster.submit("--nodes=8", "--ntasks=8", "--time=5", "--job-name=milc-1")
        until(lambda: second in running(cluster, machine), "the second runs")
        wrong = cluster.submit("--nodes=2", "--ntasks=2", "--time=5", f"--comment=traffic=rings{end}")
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
    shutil.rmtree(matrices)
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


def test_a_matrix_is_for_jobs_of_as_many_processes_as_it_has_ranks(tmp_path: Path) -> None:
    """A description's matrix says nothing of other jobs of the program; a user who names one for such a job is told."""
    (tmp_path / "milc.csv").write_text(Traffic.pattern("ring", 8).csv())
    jobs = TrafficOfJobs([Program("milc*", "milc.csv", communication=0.4)], str(tmp_path))
    traffic = jobs.of(job(name="milc-1"))
    assert traffic is not None and traffic.communication == 0.4
    sent = for_engine(traffic)
    assert sent is not None and sent[0].csv() == Traffic.pattern("ring", 8).csv()
    assert jobs.of(job(comment="traffic=milc.csv")) == dataclasses.replace(traffic, communication=0.3)
    assert jobs.of(job(name="milc-1", processes=4)) is None
    with pytest.raises(IneligibleJobError, match="8 ranks, and the job 4 processes"):
        jobs.of(job(comment="traffic=milc.csv", processes=4))


@pytest.mark.parametrize("name", ["missing.csv", "../secret.csv", "/etc/secret.csv", ".csv", "wrong.csv"])
def test_only_matrices_of_the_directory_can_be_named(tmp_path: Path, name: str) -> None:
    """A user names a file in the administrator's directory, and no other; one that is no matrix is refused too."""
    (tmp_path / "secret.csv").write_text(Traffic.pattern("ring", 8).csv())
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "wrong.csv").write_text("no matrix\n")
    for directory in (str(inside), None):
        with pytest.raises(IneligibleJobError, match="traffic in its comment"):
            TrafficOfJobs([], directory).of(job(comment=f"traffic={name}"))
        with pytest.raises(InputError, match="programs: milc"):
            TrafficOfJobs([Program("milc", name)], directory)


def test_a_file_that_is_no_matrix_is_read_again_once_it_changes(tmp_path: Path) -> None:
    """A job that names it is refused in each round of the daemon, and must not cost a reading each. A matrix that its administrator
    has mended is used. What is no file, as a pipe that would block, is not opened."""
    jobs, asked = TrafficOfJobs([], str(tmp_path)), job(comment="traffic=one.csv")
    matrix = tmp_path / "one.csv"
    matrix.write_text("no matrix\n")
    for content in ("no matrix\n", "NO MATRIX\n"):
        as_it_was = matrix.stat()
        matrix.write_text(content)
        os.utime(matrix, ns=(as_it_was.st_atime_ns, as_it_was.st_mtime_ns))
        with pytest.raises(IneligibleJobError) as refused:
            jobs.of(asked)
        assert "NO MATRIX" not in str(refused.value)
    matrix.write_text(Traffic.pattern("ring", 8).csv())
    assert jobs.of(asked) is not None
    os.mkfifo(tmp_path / "two.csv")
    with pytest.raises(IneligibleJobError, match="two.csv is not a file"):
        jobs.of(job(comment="traffic=two.csv"))


def logged(path: Path, policy: str, traffic: JobTraffic | None) -> None:
    """A log of two jobs, one of several nodes, under a policy."""
    machine = Machine.parse(TREE, "topology", "slurm")
    with path.open("w") as log:
        recorder = Recorder(
            machine,
            policy,
            "fcfs",
            lambda event, **facts: print(json.dumps({"event": event, **facts}), file=log),
        )
        blank = JobRequest(2, 0, 60.0, 0.0, 0, 0.0, None, None, None, traffic)
        recorder.submit(1, blank)
        recorder.submit(2, dataclasses.replace(blank, nodes=1, traffic=None))
        recorder.start(0.0)


TREE = "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-8]\nSwitchName=top Switches=a,b\n"


def test_a_replay_says_what_the_policy_was_not_told(tmp_path: Path) -> None:
    """The log of a policy that looks at no traffic names neither routes nor what jobs send. Repeated under `least-slowdown`,
    one line says what was assumed. The log of `least-slowdown` itself with jobs that say what they send needs none."""
    path = tmp_path / "log.jsonl"
    logged(path, "slurm-tree", None)
    assert replay(path).assumed is None
    path.write_text(path.read_text().replace('"slurm-tree"', '"least-slowdown"'))
    assumed = replay(path).assumed
    assert assumed is not None and "\n" not in assumed
    assert all(word in assumed for word in ("d-mod-k", "1 job", "uniform(messages=4)", "30%"))
    asked = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "replay"]
    told = subprocess.run([*asked, str(path)], capture_output=True, text=True, timeout=120)
    assert assumed in told.stdout.splitlines()
    logged(path, "least-slowdown", JobTraffic("ring", 2, 0.5))
    assert replay(path).assumed is None


@pytest.mark.parametrize("policy", ["first-fit", "least-slowdown"])
def test_an_unknown_routing_is_refused_whatever_the_policy(policy: str) -> None:
    """Also of a policy that looks at no routes, for which none are built."""
    with pytest.raises(InputError, match='unknown routing "north"'):
        Scheduler(Machine.parse(TREE, "topology", "slurm"), policy, "fcfs", routing="north")
