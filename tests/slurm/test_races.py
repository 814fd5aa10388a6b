"""A job changes between the decision and its release, and while the daemon is at work, on a real Slurm."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import driving, running, submit_many, tree_of
from live_cluster import Cluster, until
from topolane import Machine
from topolane.live.log import Log
from topolane.slurm.client import Slurm
from topolane.slurm.config import Config
from topolane.slurm.daemon import Daemon
from topolane.slurm.records import Job
from watching import events, settle, states, watching

Record = dict[str, Any]


@pytest.fixture(scope="module")
def machine(cluster: Cluster) -> Machine:
    return tree_of(cluster)


@pytest.fixture
def daemon(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """The daemon's own parts in this process, to be stopped between two of its steps."""
    monkeypatch.setenv("SLURM_CONF", cluster.facts["SLURM_CONF"])
    config = Config(f"unix:{cluster.facts['SOCKET']}", ("pbatch",))
    made = Daemon(config, Slurm(config.slurmrestd), Log(str(tmp_path / "log.jsonl")))
    yield made
    if made._claimed is not None:
        made._claimed.close()  # a test that failed would keep it, and the next daemon would be refused


def ended_well(record: Record) -> bool:
    return bool(record["job_state"] == "COMPLETED")


def held_by_user(record: Record) -> bool:
    return record["job_state"] == "PENDING" and record["comment"] == "topolane: held by its user"


@pytest.mark.parametrize(
    ("change", "then"),
    [
        (("scancel", "{job}"), lambda record: record["job_state"] == "CANCELLED"),
        (("scontrol", "hold", "{job}"), held_by_user),
        (("scontrol", "update", "job={job}", "timelimit=7"), lambda record: record["time_limit"] == 7),
        (("scontrol", "update", "job={job}", "numnodes=4-4"), lambda record: record["node_count"] == 4),
        (
            ("scontrol", "update", "job={job}", "excnodelist=node[1-3]"),
            lambda record: ended_well(record) and not {"node1", "node2", "node3"} & set(record["hosts"]),
        ),
        (
            ("scontrol", "update", "job={job}", "starttime=now+4"),
            lambda record: ended_well(record) and record["start_time"] >= record["submit_time"] + 4,
        ),
        (
            ("scontrol", "update", "job={job}", "dependency=afterany:{other}"),
            lambda record: ended_well(record) and record["start_time"] >= record["other"]["end_time"] > 0,
        ),
    ],
    ids=["cancelled", "held", "walltime", "nodes", "exclude", "begin", "dependency"],
)
def test_a_job_changes_between_decision_and_release(
    cluster: Cluster,
    machine: Machine,
    daemon: Daemon,
    tmp_path: Path,
    change: tuple[str, ...],
    then: Callable[[Record], bool],
) -> None:
    """What its user does after its nodes were chosen and before Slurm is told counts: the job is not
    started, or placed by what it then asks for. The nodes that were meant for it are not lost."""
    other = cluster.submit("-N1", "--time=5", "-p", "pdebug", script="sleep 6")
    job = cluster.submit("-N3", "--time=5", script="sleep 1")
    release, done = daemon.slurm.release, []

    def after_the_change(decided: Job, hosts: str, count: int, comment: str) -> None:
        if decided.id == job and not done:
            done.append(hosts)
            cluster.run(*(word.format(job=job, other=other) for word in change))
        release(decided, hosts, count, comment)

    daemon.slurm.release = after_the_change  # type: ignore[method-assign]

    def holds() -> bool:
        daemon.step()
        record = cluster.job(job)
        facts = {"hosts": cluster.nodes(record["nodes"]), "other": cluster.job(other)}
        return bool(done) and then(record | facts)

    until(holds, "what its user wants")
    whole = cluster.submit("-N72", "--time=5", script="true")
    if cluster.job(job)["job_state"] == "PENDING":
        cluster.run("scancel", job)

    def all_free() -> bool:
        daemon.step()
        return bool(cluster.job(whole)["job_state"] == "COMPLETED")

    until(all_free, "the whole machine is free again")
    assert cluster.job(job)["job_state"] in ("COMPLETED", "CANCELLED")


def test_jobs_are_cancelled_held_and_requeued_at_random(
    cluster: Cluster, machine: Machine, tmp_path: Path
) -> None:
    """Thirty times something is done to a job at any moment of its life, while the daemon is at work:
    all others complete, and at the end nothing is left on a node."""
    draw = random.Random(3)
    jobs = submit_many(cluster, 30, seed=41)
    touched = draw.sample(jobs, 24)
    with watching(cluster, machine), driving(cluster, tmp_path):
        until(lambda: bool(events(tmp_path, "start")), "a release")
        for job in [*touched, *touched[:6]]:
            what = draw.choice([["scancel"], ["scancel"], ["scontrol", "hold"], ["scontrol", "requeue"]])
            # Refused where the job has ended: that is one of the moments.
            subprocess.run([*what, str(job)], env=cluster.environment, capture_output=True, timeout=60)
        settle(cluster, jobs)
        for job, record in states(cluster, jobs).items():
            if record["job_state"] == "PENDING":
                cluster.run("scontrol", "release", job)
        until(lambda: "PENDING" not in settle(cluster, jobs).values(), "all end")
        ended = settle(cluster, jobs)
        until(lambda: not running(cluster, machine), "nothing runs")
    assert {ended[job] for job in jobs if job not in touched} == {"COMPLETED"}
    assert set(ended.values()) == {"COMPLETED", "CANCELLED"}
