"""Jobs that Slurm or the daemon has held, on a real Slurm: tried again, but not so that others wait for them."""

from __future__ import annotations

import time
from pathlib import Path

from driving import driving, running, tree_of
from live_cluster import Cluster, until
from watching import events, logged, settle


def test_a_job_that_slurm_cannot_run_is_tried_ever_more_seldom(cluster: Cluster, tmp_path: Path) -> None:
    """A job asks for what slurmrestd does not tell (a disk that no node has): Slurm does not start it on the
    nodes that it is given. It does not get them again and again; others do."""
    with driving(cluster, tmp_path):
        never = cluster.submit("-N2", "--tmp=10", "--time=5")
        logged(tmp_path, bool, "start")
        first = time.monotonic()
        other = cluster.submit("-N72", "--time=5", script="sleep 1")
        assert settle(cluster, [other]) == {other: "COMPLETED"}
        time.sleep(max(first + 6 - time.monotonic(), 0))
    tries = [event for event in events(tmp_path, "start") if event["job"] == str(never)]
    assert len(tries) == 1, tries
    assert cluster.job(never)["state_reason"] == "BadConstraints"
    cluster.run("scancel", never)


def test_a_job_that_is_held_anew_and_refused_starts_when_it_fits(cluster: Cluster, tmp_path: Path) -> None:
    """The last task of an array is requeued while a reservation keeps it off all nodes: it is held and
    refused, and the task that runs is left alone. When the reservation is gone it runs, though
    Slurm says that an administrator holds it."""
    machine = tree_of(cluster)
    with driving(cluster, tmp_path):
        array = cluster.submit("-N1", "--array=0-1", "--time=30", script="sleep 8")
        until(lambda: len(running(cluster, machine)) == 2, "both tasks run")
        cluster.run(
            *("scontrol", "create", "reservation", "ReservationName=soon", "users=root"),
            *("Flags=IGNORE_JOBS", "starttime=now+10minutes", "duration=60", "nodes=ALL"),
        )
        try:
            cluster.run("scontrol", "requeue", f"{array}_1")
            said = "topolane: with its walltime it would run into the reservation soon"
            until(lambda: cluster.job(array)["comment"] == said, "the reason is told")
            logged(tmp_path, lambda seen: len(seen) == 1, "ended")
        finally:
            cluster.run("scontrol", "delete", "ReservationName=soon")
        until(lambda: cluster.job(array)["job_state"] == "COMPLETED", "it runs again", 60)
    tasks = [job for job in cluster.rest("jobs")["jobs"] if job["array_job_id"] == array]
    assert {job["array_task_id"]: job["restart_cnt"] for job in tasks} == {0: 0, 1: 1}
    assert not events(tmp_path, "not-hold", "not-tell", "not-released")
