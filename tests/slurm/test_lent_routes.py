"""Idle links are lent by real forwarding tables: what a daemon writes, OpenSM loads and the switches of ibsim have."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import driving
from live_cluster import Cluster, until
from test_phi import nobody_runs, replay
from test_status import command, free_port, said, scraped, status
from topolane import InputError, Machine
from topolane._engine import DedicatedRoutes
from topolane.slurm.config import read

sys.path.append(str(Path(__file__).parents[1] / "fabric"))
from subnet import ask, needs_a_subnet, sweep
from subnet import running as running_subnet
from watching import events

MACHINE = """
name = "toy"
[[site]]
name = "core"
children = [6, 3, 4]
nodes = "node[1-72]"
parents = [1, 3, 3]
"""

INSTALL = """
n=$(ls "$2" | wc -l)
timeout -k 2 50 opensm -o -R file -U "$1" -f "$OSM_TMP_DIR/opensm.log" > "$OSM_TMP_DIR/said" 2>&1 || exit 1
timeout -k 2 30 dump_fts > "$2/$n.fts" 2> "$OSM_TMP_DIR/said" || exit 1
cp "$1.state" "$2/$n.state"
"""
"""Keeps what the switches have, and the jobs that it is for."""


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What the daemon is told, for the toy of 72 hosts as a subnet."""
    (tmp_path / "toy.toml").write_text(MACHINE)
    (tmp_path / "install.sh").write_text(INSTALL)
    (tmp_path / "kept").mkdir()
    with running_subnet(tmp_path / "toy.toml", tmp_path) as environment:
        sweep(environment, "ftree")
        (tmp_path / "toy.ibnetdiscover").write_text(ask(environment, "ibnetdiscover").stdout)
        names = ("LD_PRELOAD", "IBSIM_SOCKNAME", "OSM_TMP_DIR", "OSM_CACHE_DIR")
        here = [f"{name}={environment[name]}" for name in names]
        script, tables, kept = (str(tmp_path / name) for name in ("install.sh", "lfts", "kept"))
        yield {
            "policy": "dedicated",
            "topology": str(tmp_path / "toy.ibnetdiscover"),
            "routes": tables,
            "routes-command": ["env", "-C", str(tmp_path), *here, "sh", script, tables, kept],
        }


def installed(directory: Path) -> list[tuple[str, dict[int, dict[str, Any]]]]:
    """What the switches had, in order, and the jobs that it was for."""
    states = sorted((directory / "kept").glob("*.state"), key=lambda path: int(path.stem))
    return [
        (
            state.with_suffix(".fts").read_text(),
            {row["id"]: row for row in json.loads(state.read_text())["running"]},
        )
        for state in states
    ]


def used(machine: Machine, net: str, tables: str, row: dict[str, Any]) -> set[int]:
    """The cables between switches that a job's packets go over."""
    routing, nodes = machine.tables(tables, net, "tables", "net"), machine.nodes_named(row["nodes"])
    cables = {
        channel // 2
        for one in nodes
        for other in nodes
        for channel in routing.path(one, other)
        if one != other
    }
    return {cable for cable in cables if cable >= machine.nodes}


def lent(row: dict[str, Any]) -> list[int]:
    cables: list[int] = row.get("lent", [])
    return cables


@needs_a_subnet
def test_a_job_goes_over_idle_links_until_somebody_is_placed_there(
    cluster: Cluster, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaves of six nodes and three uplinks: three nodes on each of two leaves need two uplink slots, and with half of the
    bandwidth one. Then the second is lent; who takes the other nodes with all bandwidth gets it, before he starts; when
    he has gone it is lent again. No packet of a job ever leaves what it owns and is lent, no link has two jobs."""
    monkeypatch.setenv("SLURM_CONF", cluster.facts["SLURM_CONF"])
    config, net = tmp_path / "topolane.toml", Path(settings["topology"]).read_text()
    machine, port = Machine.parse(net, "net"), free_port()

    def last() -> dict[int, dict[str, Any]]:
        found = installed(tmp_path)
        return found[-1][1] if found else {}

    def submit(place: str, *asked: str) -> int:
        return cluster.submit("--nodes=6", "--time=5", f"--nodelist={place}", *asked)

    with driving(cluster, tmp_path, **settings, metrics=f"127.0.0.1:{port}"):
        first = submit("node[1-3,7-9]", "--comment=min-bandwidth=0.5")
        until(lambda: first in last() and len(lent(last()[first])) == 2, "it is lent an uplink of each leaf")
        until(lambda: cluster.job(first)["job_state"] == "RUNNING", "it runs")
        row = next(row for row in status(cluster, config)["running"] if row["job"] == str(first))
        assert (row["links"], row["bandwidth_share"]) == (2, 0.5)
        assert (row["lent"], row["mean_bandwidth_share"]) == (2, 1.0)
        printed = command(cluster, "status", "--config", config).stdout
        assert "and 2 lent, bandwidth share 0.5 (1.00 so far)" in printed
        assert "It is lent 2 links in addition" in said(read(config), first)
        until(lambda: scraped(port)["topolane_links_lent"] == 2, "the metrics tell")
        for name in ("topolane_links_dedicated", "topolane_links_owned"):
            assert scraped(port)[name] == 2
        second = submit("node[4-6,10-12]")
        until(lambda: cluster.job(second)["job_state"] == "RUNNING", "the other runs")
        assert len(last()[second]["links"]) == 4 and lent(last()[first]) == []
        time.sleep(2)  # Slurm counts whole seconds
        cluster.run("scancel", second)
        until(lambda: second not in last() and len(lent(last()[first])) == 2, "it is lent again")
        cluster.run("scancel", first)
        until(lambda: nobody_runs(cluster) and last() == {}, "all are gone")
        until(lambda: len(events(tmp_path, "ended")) == 2, "the daemon has seen it")
        for name in ("topolane_job_bandwidth_share_count", "topolane_job_phi_count"):
            until(lambda name=name: scraped(port)[name] == 2, "the metrics have counted both")
    for tables, held in installed(tmp_path):
        cables = [cable for row in held.values() for cable in [*row["links"], *lent(row)]]
        assert len(cables) == len(set(cables)) and all(cable >= machine.nodes for cable in cables)
        for row in held.values():
            # Those that it is lent too: both uplinks of both leaves carry what it sends.
            assert used(machine, net, tables, row) == {*row["links"], *lent(row)}
    assert not events(tmp_path, "routes-error", "state-error")
    # What was lent was taken back in the switches before the other was released.
    log = events(tmp_path, "routes", "start")
    start = next(
        at for at, event in enumerate(log) if event["event"] == "start" and event["job"] == str(second)
    )
    assert log[start - 1]["event"] == "routes" and "lent" not in log[start - 1]
    had = {event["id"]: event["bandwidth_share"] for event in events(tmp_path, "ended")}
    assert 0.5 < had[first] < 1.0 and had[second] == 1.0


@needs_a_subnet
def test_a_daemon_that_comes_back_knows_what_was_lent(
    cluster: Cluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    with driving(cluster, tmp_path, **settings, **{"min-bandwidth": 0.5}) as daemon:
        job = cluster.submit("--nodes=6", "--time=5", "--nodelist=node[1-3,7-9]")
        until(lambda: cluster.job(job)["job_state"] == "RUNNING", "it runs")
        before = json.loads(Path(f"{settings['routes']}.state").read_text())
        daemon.kill()
        daemon.wait()
    assert before["running"][0]["share"]["bandwidth_share"] == 1.0
    with driving(cluster, tmp_path, **settings, **{"min-bandwidth": 0.5}):
        until(lambda: len(events(tmp_path, "routes")) > 1, "the next one has looked")
        assert json.loads(Path(f"{settings['routes']}.state").read_text()) == before
        cluster.run("scancel", job)
        until(lambda: nobody_runs(cluster) and bool(events(tmp_path, "ended")), "it has ended")
    assert [event["bandwidth_share"] for event in events(tmp_path, "ended")] == [1.0]


def test_uplink_slots_reserved_for_storage_go_to_no_job(cluster: Cluster, tmp_path: Path) -> None:
    """Hosts of storage that Slurm does not know, and the highest uplink slot of every switch for them: no job owns or is lent one,
    routes to and from storage pass over no job's links, and the log is decided again as it was."""
    net, tables = tmp_path / "toy.ibnetdiscover", tmp_path / "lfts"
    text = MACHINE.replace("children = [6, 3, 4]", "children = [6, 3, 5]").replace("node[1-72]", "node[1-90]")
    net.write_text(Machine.parse(text, "toy.toml").to("ibnetdiscover"))
    machine = Machine.parse(net.read_text(), "net")
    given = {"policy": "dedicated", "topology": str(net), "routes": str(tables)}
    given |= {"service": "node[73-90]", "service-uplinks": 1, "min-bandwidth": 0.3}
    with driving(cluster, tmp_path, **given):
        jobs = [cluster.submit("--nodes=6", "--time=5", "--nodelist=node[1-3,7-9]")]
        jobs += [cluster.submit("--nodes=8", "--time=5", "--exclude=node[1-12]") for _ in range(3)]
        for job in jobs:
            until(lambda job=job: cluster.job(job)["job_state"] == "RUNNING", "it runs")
        found = status(cluster, tmp_path / "topolane.toml")
        assert found["nodes"] == {"idle": 42, "busy": 30, "out_of_service": 18}
        rows = json.loads(Path(f"{tables}.state").read_text())["running"]
        routing = machine.tables(tables.read_text(), net.read_text(), "tables", "net")
        cluster.run("scancel", *jobs)
        until(lambda: nobody_runs(cluster), "all are gone")
    assert {row["id"] for row in rows} == set(jobs) and any(lent(row) for row in rows)
    aside = set(DedicatedRoutes.set_aside(machine, 1))
    assert aside and not any(aside & {*row["links"], *lent(row)} for row in rows)
    for row in rows:
        for host in machine.nodes_named("node[73-90]"):
            for node in machine.nodes_named(row["nodes"]):
                for one, other in ((host, node), (node, host)):
                    cables = {channel // 2 for channel in routing.path(one, other)}
                    others = {
                        cable for each in rows if each is not row for cable in [*each["links"], *lent(each)]
                    }
                    assert not cables & others
    assert replay(tmp_path / "log.jsonl").returncode == 0


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            "service-uplinks = 1",
            "3: service-uplinks reserves uplink slots for hosts: name these hosts with service",
        ),
        ('service = "n1"\nservice-lanes = 65', "4: service-uplinks must be a number from 0 to 64, not 65"),
        ('service = "n1"', "3: service needs forwarding tables: name a file for them with routes"),
    ],
)
def test_a_setting_that_is_none_is_one_sentence(tmp_path: Path, lines: str, sentence: str) -> None:
    config = tmp_path / "topolane.toml"
    config.write_text(f'slurmrestd = "unix:/nowhere"\npartitions = ["pbatch"]\n{lines}\n')
    with pytest.raises(InputError) as error:
        read(config)
    assert str(error.value) == f"{config}:{sentence}"
