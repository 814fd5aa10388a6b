"""The daemon drives a real Slurm: held jobs start where and when the policy and the queue say."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

import pytest
from driving import check_isolated, driving, follow, running, submit_many, tree_of
from live_cluster import Cluster, until
from topolane import Decision, Machine, State


@pytest.fixture(scope="module")
def machine(cluster: Cluster) -> Machine:
    return tree_of(cluster)


def test_all_held_jobs_run_isolated_and_in_order(cluster: Cluster, machine: Machine, tmp_path: Path) -> None:
    """Every job runs to its end, on as many nodes as it asked for; while they run no two share a node
    or a link. The log names a start for each."""
    with driving(cluster, tmp_path):
        jobs = submit_many(cluster, 40, seed=1)
        follow(cluster, machine, jobs)
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    started = [event["job"] for event in events if event["event"] == "start"]
    assert sorted(int(job) for job in started if int(job) in jobs) == jobs
    assert not [event for event in events if event["event"] in ("escaped", "not-released")]


def test_a_killed_daemon_is_followed_by_one_that_knows_all(
    cluster: Cluster, machine: Machine, tmp_path: Path
) -> None:
    """After kill -9 in the midst of it a new daemon takes over: no node twice, no link shared, no job
    lost."""
    jobs = submit_many(cluster, 30, seed=2)
    for _ in range(3):
        with driving(cluster, tmp_path) as daemon:
            until(lambda: bool(running(cluster, machine)), "a job runs")
            daemon.kill()
            daemon.wait()
        check_isolated(running(cluster, machine), machine)
    with driving(cluster, tmp_path):
        follow(cluster, machine, jobs)


def test_what_cannot_be_placed_says_so_and_the_rest_goes_on(
    cluster: Cluster, machine: Machine, tmp_path: Path
) -> None:
    """A job wider than the machine's eligible part stays held with the reason in its comment; a job of
    another partition is left alone."""
    wide = cluster.submit("--nodes=4", "--exclude=node[4-72]", "--time=5")
    small = cluster.submit("--nodes=2", "--exclude=node[1-60]", "--time=5", script="sleep 1")
    other = cluster.submit("--partition=pdebug", "--nodes=1", "--time=5", script="sleep 1")
    with driving(cluster, tmp_path):
        until(lambda: cluster.job(small)["job_state"] == "COMPLETED", "the small job ends")
        until(lambda: cluster.job(wide)["comment"].startswith("topolane: never fits"), "the reason is told")
        until(lambda: cluster.job(other)["job_state"] == "COMPLETED", "the other partition's job ends")
    assert set(machine.nodes_named(cluster.job(small)["nodes"])) <= set(range(60, 72))
    assert cluster.job(wide)["job_state"] == "PENDING"
    cluster.run("scancel", wide)


def test_what_was_held_again_and_refused_is_placed_when_it_is_changed(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The daemon's own hold of a requeued job counts in Slurm as an administrator's. A job that it then
    refuses is placed once it asks for what can be had, also by a daemon that comes later."""

    def is_refused() -> bool:
        found = cluster.job(job)
        return found["state_reason"] == "JobHeldAdmin" and found["comment"].startswith("topolane: never fits")

    with driving(cluster, tmp_path):
        job = cluster.submit("--nodes=4", "--time=5")
        until(lambda: cluster.job(job)["job_state"] == "RUNNING", "it runs")
        cluster.run("scontrol", "requeue", job)
        until(lambda: cluster.job(job)["state_reason"] == "JobHeldAdmin", "it is held")
        cluster.run("scontrol", "update", f"jobid={job}", "excnodelist=node[4-72]")
        until(is_refused, "it is refused")
    with driving(cluster, tmp_path):
        cluster.run("scontrol", "update", f"jobid={job}", "excnodelist=node[5-72]")
        until(lambda: cluster.job(job)["job_state"] == "RUNNING", "it runs again")
        cluster.run("scancel", job)


def test_dependencies_and_begin_times_are_kept(cluster: Cluster, machine: Machine, tmp_path: Path) -> None:
    """A job starts after those it depends on have ended, one with a begin time not before it; a job
    whose dependency never comes true waits."""
    with driving(cluster, tmp_path):
        first = cluster.submit("--nodes=2", "--time=5", script="sleep 3")
        fails = cluster.submit("--nodes=1", "--time=5", script="exit 3")
        second = cluster.submit("--nodes=2", "--time=5", f"--dependency=afterok:{first}", script="sleep 1")
        never = cluster.submit("--nodes=1", "--time=5", f"--dependency=afterok:{fails}", script="sleep 1")
        instead = cluster.submit(
            "--nodes=1", "--time=5", f"--dependency=afternotok:{fails}", script="sleep 1"
        )
        before = int(time.time())  # sbatch reckons from its own clock, before slurmctld has the job
        later = cluster.submit("--nodes=1", "--time=5", "--begin=now+8", script="sleep 1")
        for job in (second, instead, later):
            until(lambda job=job: cluster.job(job)["job_state"] == "COMPLETED", f"job {job} ends", 120)
        asked, ended = cluster.job(second), cluster.job(first)
        assert asked["start_time"] >= ended["end_time"]
        assert cluster.job(later)["start_time"] >= before + 8
        assert cluster.job(never)["job_state"] == "PENDING"
        cluster.run("scancel", never)


def test_a_requeued_job_is_placed_anew(cluster: Cluster, machine: Machine, tmp_path: Path) -> None:
    """Slurm would start a requeued job by itself on its old nodes; it is held and placed again, on as
    many nodes, and runs to its end."""
    with driving(cluster, tmp_path):
        job = cluster.submit("--nodes=3", "--time=5", script="sleep 6")
        until(lambda: cluster.job(job)["job_state"] == "RUNNING", "it runs")
        cluster.run("scontrol", "requeue", job)
        until(lambda: cluster.job(job)["restart_cnt"] == 1, "it is requeued")
        until(lambda: cluster.job(job)["job_state"] == "COMPLETED", "it ends", 300)
        assert len(machine.nodes_named(cluster.job(job)["nodes"])) == 3
        check_isolated(running(cluster, machine), machine)


def test_the_policy_refuses_as_the_simulator_does(machine: Machine) -> None:
    """The machine that Slurm describes is the tree it was set up as: 12 leaves of 6, 4 pods of 3."""
    assert [len(machine.groups(level)) for level in range(1, machine.depth + 1)] == [12, 4, 1]
    assert isinstance(State(machine).place("isolated", 72), Decision)


def test_tasks_of_an_array_are_placed_one_by_one(cluster: Cluster, machine: Machine, tmp_path: Path) -> None:
    """Every task of an array runs on nodes of its own, at most as many at once as its user said; the
    tasks run in order, and a job that waits for the whole array starts after the last."""
    with driving(cluster, tmp_path):
        array = cluster.submit("--nodes=2", "--time=5", "--array=0,2-5%2", script="sleep 2")
        after = cluster.submit("--nodes=1", "--time=5", f"--dependency=afterok:{array}", script="sleep 1")
        most = 0

        def ended() -> bool:
            nonlocal most
            now = running(cluster, machine)
            check_isolated(now, machine)
            most = max(most, len(now))
            return bool(cluster.job(after)["job_state"] == "COMPLETED")

        until(ended, "all tasks and the job after them end", 120)
    tasks = [job for job in cluster.rest("jobs")["jobs"] if job["array_job_id"] == array]
    assert sorted(job["array_task_id"] for job in tasks) == [0, 2, 3, 4, 5]
    assert {job["job_state"] for job in tasks} == {"COMPLETED"} and most == 2
    started = sorted(tasks, key=lambda job: job["array_task_id"])
    assert [job["start_time"] for job in started] == sorted(job["start_time"] for job in tasks)
    assert cluster.job(after)["start_time"] >= max(job["end_time"] for job in tasks)
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    steps = [{"start": 1, "ended": -1}.get(event["event"], 0) for event in events]
    assert max(itertools.accumulate(steps)) == 2, "a third task was released, for Slurm to keep waiting"


def test_reservations_are_kept(cluster: Cluster, machine: Machine, tmp_path: Path) -> None:
    """A job in a reservation runs on its nodes, any other job stays off them: while it lasts, and
    before it where the walltime would reach into it."""
    cluster.run(
        *("scontrol", "create", "reservation", "ReservationName=now", "users=root", "Flags=IGNORE_JOBS"),
        *("starttime=now", "duration=60", "nodes=node[1-60]"),
    )
    cluster.run(
        *("scontrol", "create", "reservation", "ReservationName=soon", "users=root", "Flags=IGNORE_JOBS"),
        *("starttime=now+10minutes", "duration=60", "nodes=node[61-69]"),
    )
    try:
        with driving(cluster, tmp_path):
            inside = cluster.submit("--nodes=3", "--time=5", "--reservation=now", script="sleep 2")
            short = cluster.submit("--nodes=4", "--time=5", script="sleep 2")
            long = cluster.submit("--nodes=4", "--time=30", script="sleep 2")
            small = cluster.submit("--nodes=1", "--time=30", script="sleep 2")
            for job in (inside, short, small):
                until(lambda job=job: cluster.job(job)["job_state"] == "COMPLETED", f"job {job} ends")
            said = "topolane: with its walltime it would run into the reservation now, soon"
            until(lambda: cluster.job(long)["comment"] == said, "the reason is told")
            cluster.run("scontrol", "delete", "ReservationName=soon")
            until(lambda: cluster.job(long)["job_state"] == "COMPLETED", "it starts when the nodes are free")
    finally:
        cluster.run("scontrol", "delete", "ReservationName=now")
    where = {job: set(machine.nodes_named(cluster.job(job)["nodes"])) for job in (inside, short, small)}
    assert where[inside] <= set(range(60)) and where[short] <= set(range(60, 72))
    assert where[small] <= {69, 70, 71}


def test_what_users_change_and_ask_for(cluster: Cluster, machine: Machine, tmp_path: Path) -> None:
    """A range of nodes is filled as far as there are nodes; a changed walltime of a waiting and of a
    running job counts; the user's comment stays; srun and salloc start like sbatch; a drained node gets
    no job and is used again when it is back; two nodes named by the user are the two it gets."""
    with driving(cluster, tmp_path):
        cluster.run("scontrol", "update", "nodename=node[1-6]", "state=drain", "reason=test")
        wide = cluster.submit("--nodes=2-70", "--time=5", "--comment=mine", script="sleep 3")
        head = cluster.submit("--nodes=72", "--time=1", script="sleep 1")
        until(lambda: cluster.job(wide)["job_state"] == "RUNNING", "the range starts")
        assert machine.nodes_named(cluster.job(wide)["nodes"]) == list(range(6, 72))
        assert cluster.job(wide)["comment"] == "topolane: on node[7-72] | mine"
        cluster.run("scontrol", "update", f"jobid={head}", "timelimit=9")
        cluster.run("scontrol", "update", f"jobid={wide}", "timelimit=7")
        cluster.run("scontrol", "update", "nodename=node[1-6]", "state=resume")
        until(lambda: cluster.job(head)["job_state"] == "COMPLETED", "the whole machine is used again")
        named = cluster.submit("--nodes=2", "--nodelist=node[40,51]", "--time=5", script="sleep 1")
        printed = cluster.run("srun", "--nodes=2", "--time=5", "--partition=pbatch", "hostname")
        assert len(printed.split()) == 2
        cluster.run("salloc", "--nodes=2", "--time=5", "--partition=pbatch", "true")
        until(lambda: cluster.job(named)["job_state"] == "COMPLETED", "the named nodes are used")
    assert cluster.job(named)["nodes"] == "node[40,51]"
    assert cluster.job(named)["comment"] == "topolane: as asked on node[40,51]"
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    # Where Slurm is slow the change is seen together with the start.
    seen = ("adopt", "walltime")
    times = [event["walltime"] for event in events if event["event"] in seen and event["id"] == wide]
    assert times[-1] == 420.0
    asked = [event["walltime"] for event in events if event["event"] == "submit" and event["id"] == head]
    assert asked == [60.0, 540.0]


def test_a_partition_that_is_down_gets_no_job(cluster: Cluster, tmp_path: Path) -> None:
    """Jobs of a partition that is set down wait; they start when it takes no new jobs (drain), as in Slurm."""
    log = tmp_path / "log.jsonl"
    with driving(cluster, tmp_path):
        cluster.run("scontrol", "update", "partition=pbatch", "state=down")
        job = cluster.submit("--nodes=2", "--time=5", script="sleep 1")
        until(lambda: log.exists() and '"pass"' in log.read_text(), "the daemon looks on")
        passes = log.read_text().count('"pass"')
        cluster.run("scontrol", "update", f"jobid={job}", "timelimit=6")
        until(lambda: log.read_text().count('"pass"') > passes, "it has seen the job")
        assert cluster.job(job)["priority"] == 0
        cluster.run("scontrol", "update", "partition=pbatch", "state=drain")
        until(lambda: cluster.job(job)["job_state"] == "COMPLETED", "it starts when the partition drains")
        cluster.run("scontrol", "update", "partition=pbatch", "state=up")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert not [event for event in events if event["event"] in ("escaped", "unfit")]
