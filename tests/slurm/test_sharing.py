"""What else starts, stops and shares jobs on the same nodes: other partitions, suspension, shared nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import driving, tree_of
from live_cluster import running, until
from watching import settle, watching


def test_preempted_and_suspended_jobs(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A job of an unmanaged partition of higher priority takes the nodes of ours: ours are requeued, held
    and placed again; theirs is left alone. A suspended job keeps its nodes in our books."""
    place = tmp_path_factory.mktemp("slurm")
    options = ["--partitions", "pbatch urgent", "--hold", "lua:pbatch"]
    for line in ("PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE"):
        options += ["--conf", line]
    with running(12, place, *options) as cluster:
        cluster.run("scontrol", "update", "partition=urgent", "prioritytier=10")
        machine, log = tree_of(cluster), tmp_path_factory.mktemp("log")
        with watching(cluster, machine), driving(cluster, log):
            ours = [cluster.submit("-N5", "--requeue", "--time=5", script="sleep 12") for _ in range(2)]
            until(lambda: all(cluster.job(job)["job_state"] == "RUNNING" for job in ours), "ours run")
            theirs = cluster.submit("-N10", "-p", "urgent", "--time=5", script="sleep 3")
            until(lambda: cluster.job(theirs)["job_state"] == "COMPLETED", "theirs ends", 90)
            assert sum(cluster.job(job)["restart_cnt"] for job in ours) > 0
            assert not cluster.job(theirs)["comment"]
            until(lambda: cluster.job(ours[0])["job_state"] == "RUNNING", "the first runs again", 90)
            cluster.run("scontrol", "suspend", ours[0])
            third = cluster.submit("-N4", "--time=5", script="true")
            assert settle(cluster, [third, ours[1]]) == {third: "COMPLETED", ours[1]: "COMPLETED"}
            kept = cluster.nodes(cluster.job(ours[0])["nodes"])
            assert cluster.job(ours[0])["job_state"] == "SUSPENDED"
            assert not kept & cluster.nodes(cluster.job(third)["nodes"])
            cluster.run("scontrol", "resume", ours[0])
            assert settle(cluster, ours) == dict.fromkeys(ours, "COMPLETED")


@pytest.mark.parametrize(("policy", "whole"), [("first-fit", False), ("isolated", False), ("isolated", True)])
def test_jobs_on_parts_of_nodes(
    slurm: None, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, policy: str, whole: bool
) -> None:
    """Jobs that take some cores of their nodes share them with others, never more cores than there are;
    one that wants its nodes to itself gets them so. With whole nodes here every job has its nodes to itself,
    though Slurm would share them."""
    options = ("--select", "cons_tres", "--partitions", "pbatch:ALL:NO", "--hold", "lua", "--cpus", 4)
    with running(6, tmp_path_factory.mktemp("slurm"), *options) as cluster:
        most = 0

        def look() -> None:
            nonlocal most
            jobs = [job for job in cluster.rest("jobs")["jobs"] if job["job_state"] == "RUNNING"]
            held: dict[str, list[int]] = {}
            for job in jobs:
                for node in job["job_resources"]["allocated_nodes"]:
                    held.setdefault(node["nodename"], []).append(int(node["cpus_used"]))
            assert all(sum(cores) <= 4 for cores in held.values()), held
            most = max(most, *(len(cores) for cores in held.values()), 0)
            for job in jobs:
                if job["job_id"] in alone:
                    assert all(len(held[node]) == 1 for node in cluster.nodes(job["nodes"])), held

        alone: set[int] = set()
        with driving(cluster, tmp_path, policy=policy, **{"whole-nodes": whole}):
            jobs = [cluster.submit("-N1", "-n1", "-c2", "--time=5", script="sleep 3") for _ in range(8)]
            jobs += [cluster.submit("-N2", "-n2", "--time=5", script="sleep 3") for _ in range(6)]
            jobs += [
                cluster.submit("-N1", "-n1", "--mem=20000", "--time=5", script="sleep 2") for _ in range(3)
            ]
            alone |= {cluster.submit("-N2", "--exclusive", "--time=5", script="sleep 2") for _ in range(2)}
            jobs += alone

            def all_ended() -> bool:
                look()
                return all(cluster.job(job)["job_state"] == "COMPLETED" for job in jobs)

            until(all_ended, "all jobs end", 120)
        assert most == 1 if whole else most > 1
