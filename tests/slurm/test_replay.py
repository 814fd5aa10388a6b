"""The daemon's log: what it decided is decided again, and a dry run says what Slurm did beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import topolane
from driving import driving, submit_many
from live_cluster import Cluster, until
from topolane.live.allocation import Allocation
from topolane.live.links import Links
from topolane.live.replay import outcomes
from topolane.live.replay import replay as read_again

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

TOPOLANE = [sys.executable, "-c", "from topolane.cli import main; main()"]


def replay(log: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [*TOPOLANE, "slurm", "replay", str(log), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_log_is_decided_again_the_same(cluster: Cluster, tmp_path: Path) -> None:
    """The engine, told what the log says, starts the same jobs on the same nodes; a log in which one
    start was altered is found out."""
    with driving(cluster, tmp_path):
        jobs = submit_many(cluster, 25, seed=5)
        cluster.run("scancel", jobs[-1])
        cluster.run("scontrol", "update", "nodename=node9", "state=drain", "reason=test")
        until(lambda: all(cluster.job(job)["job_state"] == "COMPLETED" for job in jobs[:-1]), "all end")
        log = tmp_path / "log.jsonl"
        until(lambda: log.read_text().count('"event": "ended"') >= 24, "the daemon has seen all of them end")
        cluster.run("scontrol", "update", "nodename=node9", "state=resume")
    done = replay(log, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["differing"] == [] and found["starts"] >= 24, done.stdout
    assert found["slurm"]["jobs"] >= 24 and found["slurm"]["crossing"] == 0
    altered = log.read_text().replace('"starts": [[', '"starts": [[9', 1)
    (tmp_path / "altered.jsonl").write_text(altered)
    assert replay(tmp_path / "altered.jsonl").returncode == 1


def test_a_dry_run_changes_nothing_and_says_what_it_would_do(cluster: Cluster, tmp_path: Path) -> None:
    """On a partition that Slurm runs itself: no job is touched, the log has a would-be start and Slurm's
    own for each, and the jobs that ran are a workload for the simulator."""
    with driving(cluster, tmp_path, dry_run=True, partitions=["pdebug"]) as daemon:
        log = tmp_path / "log.jsonl"
        until(lambda: log.exists() and '"started"' in log.read_text(), "the daemon looks on")
        arguments = ("--partition=pdebug", "--time=5", "--comment=mine")
        jobs: list[int] = []

        def would() -> set[int]:
            return {int(event["job"]) for event in events(log) if event["event"] == "would-start"} & set(jobs)

        def two_would_start() -> bool:
            """Slurm may be faster than any look: then there are more jobs to look at."""
            if len(would()) >= 2:
                return True
            if all(cluster.job(job)["job_state"] == "COMPLETED" for job in jobs):
                jobs.extend(
                    cluster.submit(*arguments, f"--nodes={1 + i % 4}", script="sleep 2") for i in range(8)
                )
            return False

        until(two_would_start, "it would have started two", 240)
        until(lambda: all(cluster.job(job)["job_state"] == "COMPLETED" for job in jobs), "all end", 120)
        until(
            lambda: sum(event["event"] == "ended" for event in events(log)) >= len(jobs),
            "it has seen them end",
        )
        assert daemon.poll() is None
    assert {cluster.job(job)["comment"] for job in jobs} == {"mine"}
    assert not [event for event in events(log) if event["event"] in ("start", "escaped", "not-released")]
    ran = {int(event["job"]) for event in events(log) if event["event"] == "running"}
    assert ran >= set(jobs)
    table = tmp_path / "jobs.csv"
    done = replay(log, "--csv", str(table))
    assert done.returncode == 0 and "all the same" in done.stdout, done.stderr
    topology = tmp_path / "topology.conf"
    topology.write_text((cluster.directory / "topology.conf").read_text())
    machine = ["--machine", str(topology), "--machine-format", "slurm"]
    command = [*TOPOLANE, "simulate", *machine, "--trace", str(table), "--policy", "isolated", "--json"]
    simulated = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert simulated.returncode == 0, simulated.stderr
    assert json.loads(simulated.stdout)["jobs"] == len(table.read_text().splitlines()) - 1 >= 8


@pytest.mark.parametrize(("policy", "meeting"), [("dedicated", 0), ("first-fit", 3)])
def test_jobs_on_links_of_their_own_meet_nobody(tmp_path: Path, policy: str, meeting: int) -> None:
    """Three jobs fill the four leaves of a pod, and so share some: with links of their own they meet nobody there, where
    the same nodes taken by Slurm, which knows no links, let them meet."""
    machine = topolane.machine("fat-tree(radix=8, pods=1)")
    sizes = {1: 6, 2: 5, 3: 5}
    scheduler = topolane.Scheduler(machine, policy, "easy")
    for job, nodes in sizes.items():
        scheduler.submit(job, nodes, 60.0)
    given = scheduler.start(0.0)
    starts = [(one.id, machine.hostlist(one.nodes)) for one in given]
    assert [job for job, _ in starts] == [1, 2, 3]
    lines: list[dict[str, Any]] = [
        {"event": "scheduler", "machine": machine.to("toml"), "policy": policy, "queue": "easy", "seed": 0},
        *({"event": "submit", "id": job, "nodes": nodes, "walltime": 60.0} for job, nodes in sizes.items()),
        {"event": "pass", "now": 0.0, "starts": starts},
        *(
            {
                "event": "running",
                "id": job,
                "job": str(job),
                "submit": 0.0,
                "start": 0.0,
                "nodes": hosts,
                "walltime": 60.0,
            }
            for job, hosts in starts
        ),
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = read_again(log)
    assert found.differing == []
    ours, slurms = outcomes(found)
    assert ours.crossing == meeting
    assert slurms.crossing >= 2
    holders = {job: machine.nodes_named(hosts) for job, hosts in starts}
    assert Links(machine, holders, {}).shared() > 0
    owned = {one.id: Allocation.of(one) for one in given if one.links}
    assert (Links(machine, holders, {}, owned).shared() == 0) == (meeting == 0)


def test_what_is_no_log_is_one_sentence(tmp_path: Path) -> None:
    """Exit code 2, and the line."""
    for text, said in (
        ("", "no daemon's log"),
        ("{}\n", ":1: no event"),
        ("x\n", ":1: not JSON"),
        ('{"event": "scheduler"}\n', ":1: not an event of this daemon: KeyError('machine')"),
    ):
        log = tmp_path / "log.jsonl"
        log.write_text(text)
        done = replay(log)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert replay(tmp_path / "none").returncode == 2
