"""Links that fail under a real Slurm: whom that affects is said, nobody new is placed there, all others go on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from driving import COMMAND, driving, running
from live_cluster import Cluster, until
from test_owned_routes import MACHINE
from test_start import refusal
from topolane import Machine


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """What the daemon is told; nothing has failed."""
    net, fabric = tmp_path / "toy.ibnetdiscover", tmp_path / "fabric"
    net.write_text(Machine.parse(MACHINE, "toy.toml").to("ibnetdiscover"))
    fabric.write_text("# all links are there\n")
    routes = str(tmp_path / "lfts")
    return {"policy": "dedicated", "topology": str(net), "fabric": str(fabric), "routes": routes}


def events(directory: Path, name: str) -> list[dict[str, Any]]:
    log = directory / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    found = (json.loads(line) for line in lines if line.endswith("\n"))
    return [event for event in found if event["event"] == name]


def links(settings: dict[str, Any]) -> dict[int, set[int]]:
    """The links of every job that owns some, by what the daemon keeps for its tables."""
    rows = json.loads(Path(settings["routes"] + ".state").read_text())["running"]
    return {row["id"]: set(row["links"]) for row in rows}


def status(cluster: Cluster, directory: Path) -> dict[str, Any]:
    asked = [*COMMAND[:-1], "status", "--config", directory / "topolane.toml", "--json"]
    done = subprocess.run(asked, env=cluster.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def hit(cluster: Cluster, directory: Path) -> dict[int, int]:
    """How many failed links status shows, of the jobs that have any."""
    rows = status(cluster, directory)["running"]
    return {int(row["job"]): len(row["failed_links"]) for row in rows if row["failed_links"]}


def without(text: str, machine: Machine, cable: int) -> str:
    """What ibnetdiscover would say if a cable were gone: neither end has a line for it."""
    lower, _, upper, _, number = machine.link_names()[cable]
    assert number is None
    for name, peer in ((lower, upper), (upper, lower)):
        head = re.search(rf'^Switch[^\n]*# "{name}"', text, re.MULTILINE)
        assert head is not None
        own = text[head.start() :].partition("\n\n")[0]
        fewer, count = re.subn(rf'\n\[\d+\][^\n]*# "{peer}"[^\n]*', "", own)
        assert count == 1
        text = text.replace(own, fewer)
    return text


def test_a_job_on_a_link_that_fails_is_named_and_nobody_comes_there(
    cluster: Cluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    net, fabric = Path(settings["topology"]).read_text(), Path(settings["fabric"])
    machine = Machine.parse(net, settings["topology"])
    with driving(cluster, tmp_path, **settings) as daemon:
        jobs = [cluster.submit(f"--nodes={size}", "--time=5", script="sleep 300") for size in (8, 9, 4, 10)]
        until(lambda: set(jobs) <= running(cluster, machine).keys(), "all run")
        until(
            lambda: set(links(settings)) >= {jobs[0], jobs[1], jobs[3]}, "those on several leaves own links"
        )
        before = running(cluster, machine)
        failed = min(links(settings)[jobs[0]])
        fabric.write_text(f"# by its id\n{failed}\n")
        until(lambda: events(tmp_path, "affected"), "who is on it is named")
        (event,) = events(tmp_path, "affected")
        assert (event["id"], len(event["links"])) == (jobs[0], 1)
        assert events(tmp_path, "fabric")[-1]["failed"] == event["links"]
        assert hit(cluster, tmp_path) == {jobs[0]: 1} and status(cluster, tmp_path)["links_out"] == 1
        # What has failed stays so for a daemon that comes back, and so does whom it affects.
        daemon.kill()
        daemon.wait()
    with driving(cluster, tmp_path, **settings):
        more = [cluster.submit(f"--nodes={size}", "--time=5", script="sleep 300") for size in (7, 8, 8)]
        until(lambda: set(more) <= running(cluster, machine).keys(), "others come")
        assert {job: nodes for job, nodes in running(cluster, machine).items() if job in jobs} == before
        assert all(failed not in own for job, own in links(settings).items() if job != jobs[0])
        assert hit(cluster, tmp_path) == {jobs[0]: 1} and len(events(tmp_path, "affected")) == 1
        cluster.run("scancel", jobs[0])
        until(lambda: jobs[0] not in running(cluster, machine), "it has ended")
        last = cluster.submit("--nodes=8", "--time=5", script="sleep 300")
        until(lambda: last in running(cluster, machine), "one of its size comes")
        assert failed not in links(settings).get(last, set())
        until(lambda: hit(cluster, tmp_path) == {}, "nobody is affected any more")
        # The subnet as ibnetdiscover sees it: another cable is gone, the first is back.
        other = min(links(settings)[jobs[1]])
        draft = fabric.with_name("draft")
        draft.write_text(without(net, machine, other))
        draft.replace(fabric)
        until(lambda: len(events(tmp_path, "affected")) == 2, "who is on that is named")
        assert events(tmp_path, "affected")[-1]["id"] == jobs[1]
        assert (len(events(tmp_path, "fabric")[-1]["back"]), hit(cluster, tmp_path)) == (1, {jobs[1]: 1})
        # A file that cannot be used changes nothing.
        fabric.write_text("leaf0->nowhere\n")
        until(lambda: events(tmp_path, "fabric-error"), "it is said")
        assert f"{fabric}:1: machine " in events(tmp_path, "fabric-error")[-1]["error"]
        assert json.loads(Path(f"{fabric}.state").read_text())["out"] == [other]
        fabric.write_text("# all links are there\n")
        until(lambda: json.loads(Path(f"{fabric}.state").read_text())["affected"] == [], "all are back")
        assert hit(cluster, tmp_path) == {} and status(cluster, tmp_path)["links_out"] == 0
        cluster.run("scancel", *jobs[1:], *more, last)
        until(lambda: not running(cluster, machine), "all have ended")
    # What the log says, failed links included, is decided again as it was.
    replayed = subprocess.run(
        [sys.executable, *COMMAND[1:-1], "replay", tmp_path / "log.jsonl"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert replayed.returncode == 0, replayed


def test_what_cannot_be_is_said_at_the_start(
    cluster: Cluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    fabric = Path(settings["fabric"])
    for text, said in (
        ("", "the file is empty"),
        ("# one\npod9-s9\n", "fabric:2: machine toy has no link, switch or node"),
        ("Switch\t4 nonsense\n", "fabric:1: "),
    ):
        fabric.write_text(text)
        assert said in refusal(cluster, tmp_path, settings)
    fabric.unlink()
    assert "fabric: No such file" in refusal(cluster, tmp_path, settings)
    fabric.write_text("# none\n")
    Path(f"{fabric}.state").write_text("{}")
    assert "not a state of an earlier daemon" in refusal(cluster, tmp_path, settings)


def test_what_cannot_be_isolated_is_said_at_the_start_and_refused_by_name(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Pods whose switches have too many uplinks: a job that fits a pod runs, a wider one is told why it never will."""
    wide = tmp_path / "wide.toml"
    wide.write_text(MACHINE.replace("[1, 6, 6]", "[1, 6, 66]"))
    with driving(cluster, tmp_path, policy="dedicated", topology=str(wide)):
        wider = cluster.submit("--nodes=19", "--time=5")
        fits = cluster.submit("--nodes=18", "--time=5", script="sleep 1")
        until(lambda: cluster.job(fits)["job_state"] == "COMPLETED", "a pod holds 18")
        until(lambda: "can never be isolated: 19 wanted" in cluster.job(wider)["comment"], "its user is told")
        cluster.run("scancel", wider)
    (limit,) = events(tmp_path, "limit")
    assert (
        limit["policy"] == "dedicated"
        and "have 66 uplinks, more than 64: a job that owns links" in limit["says"]
    )


def test_a_dry_run_goes_by_the_file_and_writes_none(
    cluster: Cluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    """It would give nobody the links that have failed, here all those of two pods, and leaves no file behind."""
    Path(settings["fabric"]).write_text("".join(f"pod{pod}-s{n}\n" for pod in (0, 1) for n in range(6)))
    with driving(cluster, tmp_path, dry_run=True, **settings):
        job = cluster.submit("--nodes=18", "--time=5")
        until(lambda: events(tmp_path, "would-start"), "one whole pod is left for it, or two", 60)
        cluster.run("scancel", job)
    machine = Machine.parse(Path(settings["topology"]).read_text(), settings["topology"])
    nodes = machine.nodes_named(events(tmp_path, "would-start")[0]["nodes"])
    assert min(nodes) >= 36
    assert not Path(settings["fabric"] + ".state").exists()
