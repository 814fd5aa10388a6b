"""Users edit their waiting jobs, on a real Slurm: each is placed by what it then asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from driving import driving, running, tree_of
from live_cluster import Cluster, until
from topolane import Machine
from watching import settle, states, watching


@pytest.fixture(scope="module")
def machine(cluster: Cluster) -> Machine:
    return tree_of(cluster)


def refused(cluster: Cluster, *command: object) -> bool:
    words = [str(word) for word in command]
    return subprocess.run(words, env=cluster.environment, capture_output=True, timeout=60).returncode != 0


def test_edited_jobs_are_placed_by_what_they_ask_for_then(
    cluster: Cluster, machine: Machine, tmp_path: Path
) -> None:
    """While another job has the whole machine, waiting jobs get another node count, walltime, name,
    list of nodes, exclusion, feature, begin, dependency, or are held; one is held and released again.
    Nice and another partition are refused, and change nothing."""
    names = [
        "count",
        "walltime",
        "name",
        "list",
        "exclude",
        "feature",
        "begin",
        "after",
        "held",
        "again",
        "nice",
        "moved",
    ]
    with watching(cluster, machine), driving(cluster, tmp_path):
        whole = cluster.submit("-N72", "--time=5", script="sleep 60")
        until(lambda: whole in running(cluster, machine), "it has all nodes")
        job = {name: cluster.submit("-N2", "--time=5", script="sleep 1") for name in names}
        cluster.run("scontrol", "update", "nodename=node[70-72]", "features=big")

        def edit(name: str, *changes: str) -> None:
            cluster.run("scontrol", "update", f"job={job[name]}", *changes)

        edit("count", "numnodes=3-3")
        edit("walltime", "timelimit=9")
        edit("name", "name=another")
        edit("list", "reqnodelist=node[5,9]")
        edit("exclude", "excnodelist=node[1-66]")
        edit("feature", "features=big")
        edit("begin", "starttime=now+12")
        edit("after", f"dependency=afterany:{job['begin']}")
        cluster.run("scontrol", "hold", f"{job['held']},{job['again']}")
        cluster.run("scontrol", "release", job["again"])
        assert refused(cluster, "scontrol", "update", f"job={job['nice']}", "nice=5")
        assert refused(cluster, "scontrol", "update", f"job={job['moved']}", "partition=pdebug")
        assert set(settle(cluster, [job["held"]]).values()) == {"PENDING"}
        cluster.run("scancel", whole)
        ended = settle(cluster, list(job.values()))
        assert {name for name in names if ended[job[name]] != "COMPLETED"} == {"held"}
        cluster.run("scontrol", "release", job["held"])
        until(lambda: cluster.job(job["held"])["job_state"] == "COMPLETED", "the held one ends")
    record = {name: states(cluster, [job[name]])[job[name]] for name in names}
    hosts = {name: cluster.nodes(record[name]["nodes"]) for name in names}
    assert {name for name in names if len(hosts[name]) != 2} == {"count"} and len(hosts["count"]) == 3
    assert record["walltime"]["time_limit"] == 9 and record["name"]["name"] == "another"
    assert hosts["list"] == {"node5", "node9"}
    assert hosts["exclude"] <= {f"node{n}" for n in range(67, 73)}
    assert hosts["feature"] <= {"node70", "node71", "node72"}
    assert record["begin"]["start_time"] >= record["begin"]["submit_time"] + 11
    assert record["after"]["start_time"] >= record["begin"]["end_time"]
    assert {record[name]["partition"] for name in names} == {"pbatch"}


def test_tasks_of_an_array_are_cancelled_one_by_one(
    cluster: Cluster, machine: Machine, tmp_path: Path
) -> None:
    """Waiting and running tasks are cancelled; the others run, each once."""
    with watching(cluster, machine), driving(cluster, tmp_path):
        array = cluster.submit("-N2", "--time=5", "--array=0-7%3", script="sleep 2")
        cluster.run("scancel", f"{array}_6")
        until(lambda: len(running(cluster, machine)) == 3, "three tasks run")
        cluster.run("scancel", f"{array}_1")
        cluster.run("scancel", f"{array}_4")

        def tasks() -> dict[int, str]:
            jobs = [job for job in cluster.rest("jobs")["jobs"] if job["array_job_id"] == array]
            assert not [job for job in jobs if job["restart_cnt"]]
            return {
                -1 if job["array_task_string"] else job["array_task_id"]: job["job_state"] for job in jobs
            }

        until(lambda: set(tasks().values()) == {"COMPLETED", "CANCELLED"}, "all end")
    # Of tasks that are cancelled while they wait Slurm keeps no record.
    assert tasks() == {0: "COMPLETED", 1: "CANCELLED"} | dict.fromkeys((2, 3, 5, 7), "COMPLETED")
