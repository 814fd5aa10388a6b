"""What status, explain, the picture and the metrics say is so: beside what Slurm says, and what then happens."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import COMMAND, driving
from live_cluster import Cluster, until

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")
pytest.importorskip("prometheus_client", reason="needs the extra slurm: prometheus-client")

from topolane import InputError, Machine, Refusal, State
from topolane.live.links import Links, in_the_way
from topolane.slurm.config import Config, read
from topolane.slurm.explain import explain
from topolane.slurm.preview import preview

TOPOLANE = [*COMMAND[:-1]]
POD1, POD2, ELSE = "--exclude=node[19-72]", "--exclude=node[1-18,37-72]", "--exclude=node[1-36]"


def command(cluster: Cluster, *words: object) -> subprocess.CompletedProcess[str]:
    asked = [*TOPOLANE, *map(str, words)]
    return subprocess.run(asked, env=cluster.environment, capture_output=True, text=True, timeout=60)


def status(cluster: Cluster, config: Path) -> dict[str, Any]:
    done = command(cluster, "status", "--config", config, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


def scraped(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


@contextlib.contextmanager
def drained(cluster: Cluster, nodes: str) -> Iterator[None]:
    cluster.run("scontrol", "update", f"nodename={nodes}", "state=drain", "reason=test")
    try:
        yield
    finally:
        cluster.run("scontrol", "update", f"nodename={nodes}", "state=resume")


@pytest.fixture
def config(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration, and in this process the environment in which scontrol finds the cluster."""
    monkeypatch.setenv("SLURM_CONF", cluster.facts["SLURM_CONF"])
    file = tmp_path / "look.toml"
    file.write_text(f'slurmrestd = "unix:{cluster.facts["SOCKET"]}"\npartitions = ["pbatch"]\n')
    return file


def said(config: Config, job: object) -> str:
    return "\n".join(explain(preview(config), str(job)).sentences)


def test_looking_needs_no_daemon_and_changes_nothing(cluster: Cluster, config: Path) -> None:
    """Without a daemon a held job that could start is said to be about to; it stays as it is."""
    job = cluster.submit("--nodes=2", "--time=5")
    try:
        before = cluster.job(job)
        (row,) = [row for row in status(cluster, config)["waiting"] if row["job"] == str(job)]
        assert (row["kind"], row["nodes"]) == ("starts", 2) and row["expected_start"] is not None
        assert "if nothing happens, the daemon does not run" in said(read(config), job)
        assert cluster.job(job) | {"last_sched_evaluation": 0} == before | {"last_sched_evaluation": 0}
    finally:
        cluster.run("scancel", job)


def test_everything_waits_for_the_reason_that_is_told(cluster: Cluster, config: Path, tmp_path: Path) -> None:
    """One daemon, and jobs that wait for every kind of reason: the words name it, the metrics and the counts
    are those of squeue, the picture has every running job; and then each starts no later than forecast, all
    jobs having ended by their walltimes."""
    go, port = tmp_path / "go", free_port()
    until_go = f"while [ ! -e {go} ]; do sleep 0.2; done"
    jobs: dict[str, int] = {}

    def submit(name: str, *asked: object, script: str = "sleep 1") -> None:
        jobs[name] = cluster.submit(f"--job-name={name}", *asked, script=script)

    with drained(cluster, "node[70-72]"), driving(cluster, tmp_path, metrics=f"127.0.0.1:{port}"):
        submit("one", POD1, "--nodes=8", "--time=2", script=until_go)
        submit("two", POD2, "--nodes=8", "--time=2", script=until_go)
        for name in jobs:
            until(lambda name=name: cluster.job(jobs[name])["job_state"] == "RUNNING", "it runs")
        submit("head", POD1, "--nodes=14", "--time=2")
        submit("links", POD2, "--nodes=8", "--time=2")
        submit("delays", POD1, "--nodes=6", "--time=30")
        submit("after", ELSE, "--nodes=1", "--time=1", f"--dependency=afterok:{jobs['one']}")
        submit("begin", ELSE, "--nodes=1", "--time=1", "--begin=now+1hour")
        submit("never", "--nodes=99", "--time=1")
        submit("held", "--nodes=1", "--time=1", "--hold")
        submit("array", ELSE, "--nodes=1", "--time=2", "--array=0-2%1", script=until_go)
        submit("other", "--partition=pdebug", "--nodes=1", "--time=1", "--hold")
        first_task = f"{jobs['array']}_0"
        until(lambda: cluster.run("squeue", "-h", "-t", "R", "-j", first_task) != "", "a task runs")
        until(lambda: cluster.job(jobs["never"])["comment"] != "", "the daemon has seen the last of them")

        found = status(cluster, config)
        check_rows(found, jobs)
        check_counts(cluster, found, port)
        check_sentences(read(config), {name: str(job) for name, job in jobs.items()})
        check_picture(cluster, config, tmp_path)

        go.touch()
        waited = ("head", "links", "delays", "after")
        for name in waited:
            until(lambda name=name: cluster.job(jobs[name])["job_state"] == "COMPLETED", f"{name} ends")
        expected = {row["job"]: row["expected_start"] for row in found["waiting"]}
        for name in waited:
            assert cluster.job(jobs[name])["start_time"] <= expected[str(jobs[name])] + 1, name
        assert f"Job {jobs['head']} has ended: COMPLETED." == said(read(config), jobs["head"])
        cluster.run("scancel", *(jobs[name] for name in ("begin", "never", "held", "array", "other")))


def check_rows(found: dict[str, Any], jobs: dict[str, int]) -> None:
    rows = {row["job"]: row for row in found["waiting"]}
    why = {name: rows[str(job)]["why"] for name, job in jobs.items() if str(job) in rows}
    assert why["head"] == "does not fit now: 14 wanted, 10 to be had"
    assert why["links"].startswith("would share links: 8 wanted, 10 free")
    assert why["delays"] == "behind others in the queue"
    assert why["after"] == f"waits for afterok:{jobs['one']}"
    assert why["begin"].startswith("begins at ")
    assert why["never"] == "refused: never fits: 99 wanted, 72 in all"
    assert why["held"] == "held by its user"
    assert rows[f"{jobs['array']}_1"]["why"] == "its array runs 1 tasks at once"
    running = {row["name"]: row for row in found["running"]}
    ends = {name: row["expected_end"] for name, row in running.items()}
    assert [rows[str(jobs[name])]["latest_start"] for name in ("head", "links")] == [ends["one"], None]
    expected = {name: rows[str(jobs[name])]["expected_start"] for name in why}
    assert (expected["head"], expected["links"]) == (ends["one"], ends["two"])
    assert (expected["after"], expected["delays"]) == (ends["one"], ends["one"] + 120)
    assert expected["never"] is expected["held"] is None
    assert (running["one"]["level"], running["one"]["home"], running["one"]["may_meet"]) == (2, "pod1", [])
    order = [row["job"] for row in found["waiting"]][:3]
    assert order == [str(jobs[name]) for name in ("head", "links", "delays")]


def check_counts(cluster: Cluster, found: dict[str, Any], port: int) -> None:
    def listed(state: str) -> list[list[str]]:
        lines = cluster.run("squeue", "-h", "-r", "-p", "pbatch", "-t", state, "-o", "%i %D").splitlines()
        return [line.split() for line in lines]

    running, pending = listed("R"), listed("PD")
    busy = sum(int(nodes) for _, nodes in running)
    assert {row["job"] for row in found["running"]} == {job for job, _ in running}
    assert {row["job"] for row in found["waiting"]} == {job for job, _ in pending}
    assert found["nodes"] == {"idle": 72 - 3 - busy, "busy": busy, "out_of_service": 3}
    assert found["links_shared"] == 0
    values = scraped(port)
    jobs = {state: values[f'topolane_jobs{{state="{state}"}}'] for state in ("waiting", "held", "refused")}
    assert values['topolane_jobs{state="running"}'] == len(running)
    assert jobs == {"waiting": 4, "held": 4, "refused": 1} and sum(jobs.values()) == len(pending)
    for state, nodes in found["nodes"].items():
        assert values[f'topolane_nodes{{state="{state}"}}'] == nodes
    assert values["topolane_starts_total"] == 3 <= values["topolane_decision_seconds_count"]
    assert values["topolane_links_shared"] == values["topolane_slurm_errors_total"] == 0
    # The daemon counts from the release, which is a moment before Slurm's start.
    assert abs(values["topolane_reserved_start_time_seconds"] - found["waiting"][0]["latest_start"]) <= 3
    assert 0 <= values["topolane_last_look_age_seconds"] < 30


def check_sentences(config: Config, jobs: dict[str, str]) -> None:
    for name, parts in {
        "one": (
            "RUNNING on node[1-8]",
            "are in pod1 (T2): it may use the uplinks of leaf1, leaf2.",
            "No other",
        ),
        "head": (
            "may use 18 of 72: node[1-18]",
            "10 are idle: pod1 10 (leaf2 4, leaf3 6)",
            "first in the queue",
        ),
        "links": (
            "would share links",
            "To share no link, 8 nodes must lie in one pod.",
            f"leaf5 has 4 idle nodes, but job {jobs['two']} uses leaf5's uplinks.",
            f"Until then must end: job {jobs['two']} (by ",
        ),
        "delays": (f"There is room for it, but job {jobs['head']} is promised a start by", "would delay it"),
        "after": (f"waits for afterok:{jobs['one']}", "is expected to start by"),
        "begin": ("begins at", "is expected to start by"),
        "never": ("refused: never fits", "It stays held until it is changed"),
        "held": ("held by its user", f"scontrol release {jobs['held']}"),
        "array": ("Of the 3 tasks", f"Job {jobs['array']}_1 waits", "its array runs 1 tasks at once"),
        "other": ("waits in partition pdebug, not managed here: Slurm decides", "JobHeldUser"),
    }.items():
        text = said(config, jobs[name])
        assert all(part in text for part in parts), text
    assert said(config, f"{jobs['array']}_2").startswith(f"Job {jobs['array']}_2 waits since")
    assert said(config, f"{jobs['array']}_0").startswith(f"Job {jobs['array']}_0 is RUNNING")


def check_picture(cluster: Cluster, config: Path, directory: Path) -> None:
    """The table in a pipe, and the picture: every running job is there, drained nodes too, no red line."""
    drawn = directory / "tree.svg"
    done = command(cluster, "status", "--config", config, "--svg", drawn)
    assert done.returncode == 0 and "3 out of service; 0 links may carry" in done.stdout, done
    assert re.search(r"\d+_\[1\.\.2\] +array ", done.stdout), "tasks that wait for the same are one row"
    tree = ET.parse(drawn).getroot()
    parts = {group.get("id"): group for group in tree.iter("{http://www.w3.org/2000/svg}g")}
    running = cluster.rest("jobs")["jobs"]
    for job in (job for job in running if job["job_state"] == "RUNNING"):
        number = (
            job["job_id"]
            if job["array_task_id"] is None
            else job["array_job_id"] << 26 | job["array_task_id"]
        )
        title = parts[f"job-{number}"][0].text
        assert title is not None and title.endswith(
            f"{job['node_count']} node" + "s" * (job["node_count"] > 1) + f", {job['nodes']}"
        )
    assert "out-of-service" in parts and len(re.findall("#d0021b", drawn.read_text())) == 1  # the legend's


def test_links_that_jobs_share_are_seen(cluster: Cluster, config: Path, tmp_path: Path) -> None:
    """Under a policy that does not isolate, jobs on nodes 1-8, 9-16 and 17-24 meet on the uplinks of the two
    leaves that they share, and of no pod: so say the table, the sentences, the metrics and the picture."""
    port = free_port()
    jobs = []
    with driving(cluster, tmp_path, policy="first-fit", metrics=f"127.0.0.1:{port}"):
        for nodes in ("node[1-8]", "node[9-16]", "node[17-24]"):
            jobs.append(cluster.submit("--nodes=8", "--time=5"))
            until(lambda: cluster.job(jobs[-1])["job_state"] == "RUNNING", "it runs")
            assert cluster.job(jobs[-1])["nodes"] == nodes
        first, second, third = map(str, jobs)
        until(lambda: scraped(port)["topolane_links_shared"] == 2, "the metrics tell")
        found = status(cluster, config)
        assert found["links_shared"] == 2
        met = {row["job"]: row["may_meet"] for row in found["running"]}
        assert met == {first: [second], second: sorted([first, third]), third: [second]}
        sentences = said(read(config), second)
        assert f"On those of leaf2 it may meet job {first}." in sentences
        assert f"On those of leaf3 it may meet job {third}." in sentences
        assert command(cluster, "status", "--config", config, "--svg", tmp_path / "t.svg").returncode == 0
        assert (tmp_path / "t.svg").read_text().count(
            "#d0021b"
        ) == 2  # the links', one path, and the legend's
        cluster.run("scancel", *jobs)
        until(lambda: scraped(port)['topolane_jobs{state="running"}'] == 0, "they are gone")


def test_what_cannot_be_is_one_sentence(cluster: Cluster, config: Path, tmp_path: Path) -> None:
    """Exit code 2 for a job that Slurm does not know, an address that others can reach, a port in use."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        used = taken.getsockname()[1]
        text = config.read_text()
        for number, (metrics, words, sentence) in enumerate(
            (
                (None, ("explain", 99999), "Slurm knows no job 99999"),
                (None, ("explain", "x"), "Slurm knows no job x"),
                ("0.0.0.0:9753", ("run",), "must be HOST:PORT on a loopback address"),
                ("example.org:9753", ("status",), "must be HOST:PORT on a loopback address"),
                ("127.0.0.1", ("run",), "must be HOST:PORT on a loopback address"),
                (f"127.0.0.1:{used}", ("run",), f"metrics = 127.0.0.1:{used}: nothing can listen there"),
            )
        ):
            file = tmp_path / f"{number}.toml"
            file.write_text(text + ("" if metrics is None else f"metrics = {json.dumps(metrics)}\n"))
            done = command(cluster, *words, "--config", file)
            assert done.returncode == 2 and sentence in done.stderr and done.stderr.count("\n") == 1, done
    with pytest.raises(InputError, match="no job 12_99"):
        said(read(config), "12_99")


TWO = "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-8]\nSwitchName=top Switches=a,b\n"
FOUR = (
    "".join(f"SwitchName=l{i} Nodes=n[{4 * i + 1}-{4 * i + 4}]\n" for i in range(8))
    + "".join(f"SwitchName=p{i} Switches=l[{2 * i}-{2 * i + 1}]\n" for i in range(4))
    + "".join(f"SwitchName=z{i} Switches=p[{2 * i}-{2 * i + 1}]\n" for i in range(2))
    + "SwitchName=top Switches=z[0-1]\n"
)


@pytest.mark.parametrize(
    ("tree", "holders", "wanted", "sentences"),
    [
        # Two levels: the job spans both leaves; a is crossed by job 1.
        (
            TWO,
            {1: [0, 4]},
            5,
            [
                "a has 3 idle nodes, but job 1 uses a's uplinks.",
                "b has 3 idle nodes, but job 1 uses b's uplinks.",
            ],
        ),
        (
            TWO,
            {1: [0], 2: [4]},
            4,
            ["To share no link, 4 nodes must lie in one leaf.", "No leaf has 4 idle: a has the most, 3."],
        ),
        # Four levels: 12 nodes lie in one half; its pod p0 is crossed as a whole, in p1 only a leaf is.
        (
            FOUR,
            {1: [0, 8], 2: list(range(16, 32))},
            12,
            [
                "To share no link, 12 nodes must lie in one level-3 group.",
                "p0 has 7 idle nodes, but job 1 uses p0's uplinks.",
                "p1 has 7 idle nodes, but job 1 uses p1's uplinks.",
            ],
        ),
    ],
)
def test_the_links_in_the_way_are_named_on_trees_of_any_depth(
    tree: str, holders: dict[int, list[int]], wanted: int, sentences: list[str]
) -> None:
    machine = Machine.parse(tree, "tree", "slurm")
    state = State(machine)
    for job, nodes in holders.items():
        state.hold(nodes, id=job)
    refusal = state.place("isolated", wanted)
    assert isinstance(refusal, Refusal) and refusal.name == "would-share-links"
    assert in_the_way(refusal, wanted, {job: str(job) for job in holders}) == sentences


def test_links_of_two_jobs_are_counted() -> None:
    """Both may use the one uplink of each leaf; a third that lies in a leaf meets nobody."""
    machine = Machine.parse(TWO, "tree", "slurm")
    links = Links(machine, {1: [0, 4], 2: [1, 5], 3: [2, 3]}, {1: "1", 2: "2_7", 3: "3"})
    assert links.shared() == 2
    assert links.of(1) == [("a", ["2_7"]), ("b", ["2_7"])] and links.of(3) == []
    assert Links(machine, {1: [0, 4], 3: [2, 3]}, {1: "1", 3: "3"}).shared() == 0
