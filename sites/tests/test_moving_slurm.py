"""A site manager's mover, on real slurmds: a job that runs on one node is requeued onto another."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from live_cluster import Cluster
from topolane_sites.model import Guest, Host
from topolane_sites.movers import GuestLost, MoveFailed, OutcomeUnknown, mover, slurm
from waiting import until

HERE, THERE = (
    Host(name, name, 16, 1 << 30, "slurm", node) for name, node in (("a", "node1"), ("b", "node4"))
)


@pytest.fixture
def job(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guest]:
    """A job on node1, that may be requeued."""
    for name, value in cluster.facts.items():
        monkeypatch.setenv(name, value)
    number = cluster.submit("--partition=pdebug", "--requeue", "--nodelist=node1", script="exec sleep 600")
    until(lambda: cluster.job(number)["job_state"] == "RUNNING", "the job runs")
    yield Guest(str(number), "c", 16, 1 << 30, "a")
    cluster.run("scancel", number)


def _runs_on(cluster: Cluster, guest: Guest) -> str:
    found = cluster.job(int(guest.name))
    return str(found["nodes"]) if found["job_state"] == "RUNNING" else str(found["job_state"])


def test_a_moved_job_runs_at_its_target(cluster: Cluster, job: Guest) -> None:
    measured = mover("slurm").move(job, HERE, THERE, lambda _: None)
    assert _runs_on(cluster, job) == "node4"
    assert mover("slurm").where(job, (HERE, THERE)) == ("b",)
    assert measured["downtime"] > 0


def test_a_cancelled_move_runs_the_job_where_it_ran(cluster: Cluster, job: Guest) -> None:
    def cancel(_: float) -> None:
        if _runs_on(cluster, job) != "node1":
            raise MoveFailed("cancelled")

    with pytest.raises(MoveFailed, match="stays at a: cancelled"):
        mover("slurm").move(job, HERE, THERE, cancel)
    assert _runs_on(cluster, job) == "node1"


def test_a_job_that_ends_at_once_is_not_refused_by_its_node(cluster: Cluster, job: Guest) -> None:
    """slurmd refuses a job that starts in the second in which it ended there, and slurmctld then fails it."""
    time.sleep(2 - time.time() % 1)  # A second has just begun, and the job ends within it.
    cluster.run("scontrol", "requeuehold", job.name)
    assert mover("slurm").settle(job, HERE, THERE) == "a"
    time.sleep(2)
    assert _runs_on(cluster, job) == "node1"


def test_a_node_that_is_none_runs_the_job_where_it_ran(cluster: Cluster, job: Guest) -> None:
    with pytest.raises(MoveFailed, match="stays at a"):
        mover("slurm").move(job, HERE, Host("z", "z", 1, 1, "slurm", "nosuch"), lambda _: None)
    assert _runs_on(cluster, job) == "node1"


def test_what_a_killed_mover_left_waiting_runs_again(cluster: Cluster, job: Guest) -> None:
    cluster.run("scontrol", "requeuehold", job.name)
    assert mover("slurm").settle(job, HERE, THERE) == "a"
    assert _runs_on(cluster, job) == "node1"


def test_a_job_that_waits_is_not_lost_and_runs_when_there_is_room(
    cluster: Cluster, job: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both nodes are drained while it waits: that it waits is said; and when one is back it runs there."""
    monkeypatch.setattr(slurm, "STARTS", 5.0)
    cluster.run("scontrol", "requeuehold", job.name)
    cluster.run("scontrol", "update", "NodeName=node1,node4", "State=DRAIN", "Reason=test")
    try:
        with pytest.raises(OutcomeUnknown, match=f"job {job.name} waits: it starts on neither a nor b"):
            mover("slurm").settle(job, HERE, THERE)
    finally:
        cluster.run("scontrol", "update", "NodeName=node1,node4", "State=RESUME")
    monkeypatch.undo()
    for name, value in cluster.facts.items():
        monkeypatch.setenv(name, value)
    assert mover("slurm").settle(job, HERE, THERE) in ("a", "b")
    assert _runs_on(cluster, job) in ("node1", "node4")


def test_a_job_that_has_ended_is_lost(cluster: Cluster, job: Guest) -> None:
    cluster.run("scancel", job.name)
    until(lambda: cluster.job(int(job.name))["job_state"] == "CANCELLED", "the job ends")
    with pytest.raises(GuestLost, match="is CANCELLED"):
        mover("slurm").settle(job, HERE, THERE)
