"""Jobs on links of their own under a real Slurm: before one starts, the forwarding tables keep it on them."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from driving import driving, running
from live_cluster import Cluster, until
from test_start import refusal
from topolane import Machine
from topolane._engine import DedicatedRoutes

MACHINE = """
name = "toy"
[[site]]
name = "core"
children = [6, 3, 4]
nodes = "node[1-72]"
parents = [1, 6, 6]
"""

KEEP = 'n=$(ls "$2" | wc -l); cp "$1" "$2/$n.lfts"; cp "$1.state" "$2/$n.state"'


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """What the daemon is told: every table that it installs is kept, in order."""
    net, tables, kept = tmp_path / "toy.ibnetdiscover", tmp_path / "lfts", tmp_path / "kept"
    net.write_text(Machine.parse(MACHINE, "toy.toml").to("ibnetdiscover"))
    kept.mkdir()
    return {
        "policy": "dedicated",
        "topology": str(net),
        "routes": str(tables),
        "routes-command": ["sh", "-c", KEEP, "keep", str(tables), str(kept)],
    }


def installed(settings: dict[str, Any]) -> list[tuple[str, dict[int, dict[str, Any]]]]:
    """The tables that were installed, in order, and the jobs that each is for."""
    kept = Path(settings["routes"]).parent / "kept"
    states = sorted(kept.glob("*.state"), key=lambda path: int(path.stem))
    return [
        (
            state.with_suffix(".lfts").read_text(),
            {row["id"]: row for row in json.loads(state.read_text())["running"]},
        )
        for state in states
    ]


def check_ways(machine: Machine, net: str, tables: str, jobs: dict[int, dict[str, Any]]) -> None:
    """No link has two jobs, and no way of a job leaves its links."""
    routing = machine.tables(tables, net, "tables", "net")
    links = [link for row in jobs.values() for link in row["links"]]
    assert len(links) == len(set(links))
    for row in jobs.values():
        nodes = machine.nodes_named(row["nodes"])
        for source in nodes:
            for target in nodes:
                cables = {channel // 2 for channel in routing.path(source, target)}
                # The first cables are those of the nodes, one each.
                assert {cable for cable in cables if cable >= machine.nodes} <= set(row["links"])


def test_tables_are_there_before_a_job_starts_and_follow_it(
    cluster: Cluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    net = Path(settings["topology"]).read_text()
    machine = Machine.parse(net, settings["topology"])
    with driving(cluster, tmp_path, **settings):
        sizes = [8, 9, 4, 14, 7, 7, 3, 10, 9, 8, 20, 5, 4, 9]
        jobs = [cluster.submit(f"--nodes={size}", "--time=5", script="sleep 2") for size in sizes]
        until(lambda: all(cluster.job(job)["job_state"] == "COMPLETED" for job in jobs), "all jobs end", 300)
        until(lambda: installed(settings)[-1][1] == {}, "the last tables are those of no job")
    for tables, held in installed(settings):
        check_ways(machine, net, tables, held)
    assert max(len(held) for _, held in installed(settings)) > 2
    assert installed(settings)[-1][0] == DedicatedRoutes(machine, []).tables(net, "net").text()
    # What the log says, links of jobs included, is decided again as it was.
    replayed = subprocess.run(
        [
            sys.executable,
            "-c",
            "from topolane.cli import main; main()",
            "slurm",
            "replay",
            tmp_path / "log.jsonl",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert replayed.returncode == 0, replayed
    # Tables for a job that is on several leaves are there when it is started, and until it has ended.
    there: set[int] = set()
    live: set[int] = set()
    started = 0
    for event in map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines()):
        assert event["event"] != "routes-error"
        if event["event"] == "routes":
            there = set(event["jobs"])
        elif event["event"] == "start" and int(event["job"]) in jobs:
            started += 1
            if len({node // 6 for node in machine.nodes_named(event["nodes"])}) > 1:
                live.add(int(event["job"]))
        elif event["event"] == "ended":
            live.discard(event["id"])
            continue  # the tables follow
        assert live <= there, event
    assert started == len(jobs)


def test_a_daemon_that_comes_back_leaves_running_jobs_their_links(
    cluster: Cluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    machine = Machine.parse(Path(settings["topology"]).read_text(), settings["topology"])
    with driving(cluster, tmp_path, **settings) as daemon:
        jobs = [cluster.submit(f"--nodes={size}", "--time=5") for size in (8, 9, 8, 14)]
        until(lambda: set(jobs) <= set(running(cluster, machine)), "all run")
        until(lambda: set(installed(settings)[-1][1]) == set(jobs), "all have links")
        daemon.kill()
        daemon.wait()
    before = installed(settings)[-1][1]
    cluster.run("scancel", jobs[0])
    more = cluster.submit("--nodes=8", "--time=5")
    with driving(cluster, tmp_path, **settings):
        until(lambda: more in installed(settings)[-1][1], "a new job has links too")
        after = installed(settings)[-1][1]
    assert jobs[0] not in after
    for job in jobs[1:]:
        assert after[job] == before[job]
    for (_, one), (_, next_one) in pairwise(installed(settings)):
        assert all(one[job] == next_one[job] for job in one.keys() & next_one.keys())
    cluster.run("scancel", *jobs[1:], more)


def test_what_cannot_be_is_said_at_the_start(
    cluster: Cluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    lonely = {"routes-command": ["true"]}
    assert "routes-command installs tables: name their file" in refusal(cluster, tmp_path, lonely)
    from_slurm = {"routes": settings["routes"]}
    assert "'topology' must be a file of ibnetdiscover" in refusal(cluster, tmp_path, from_slurm)
    Path(f"{settings['routes']}.state").write_text("{}")
    assert "not a state of an earlier daemon" in refusal(cluster, tmp_path, settings)
