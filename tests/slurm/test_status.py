"""What status, explain, the picture and the metrics say of a real slurmctld with the plugin is so: compared with squeue, with the
plugin's files, and with what then happens.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_cluster import Cluster, Inside
from plugin_site import plugin_cluster
from waiting import DEADLINE, until

pytest.importorskip("prometheus_client", reason="needs the extra slurm: prometheus-client")
from metrics_page import exported
from prometheus_client.parser import text_string_to_metric_families
from prometheus_server import check_quiet, check_scraped, scraping

HERE = Path(__file__).parent
NODES = 24
"""Four leaves of six nodes, two to a pod; every leaf has three uplinks."""
MACHINE = f"""\
name = "node"
[node]
sockets = 2
cores-per-socket = 8
[[site]]
name = "core"
children = [6, 2, 2]
parents = [1, 3, 3]
cables = [1, 1, 4]
nodes = "node[1-{NODES}]"
"""
RULES = """\
Partition=pbatch Policy=isolated
Partition=powned Policy=dedicated MinBandwidth=0.5
Partition=ptree Policy=slurm-tree
"""
HOSTILE = "x\x1b[2J</title><script>&\"'"
"""A name of a job that clears terminals and ends elements, if it is let."""


class Site:
    """A cluster whose slurmctld runs the plugin, and Topolane's commands there."""

    def __init__(self, cluster: Cluster, inside: Inside) -> None:
        self.cluster, self.inside = cluster, inside
        self.state = cluster.directory / "state"

    def words(self, *words: object) -> list[str]:
        command = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm"]
        return [*self.inside.prefix, *command, *map(str, words)]

    def command(self, *words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*words), env=self.cluster.environment, capture_output=True, text=True, timeout=DEADLINE
        )

    def status(self, *words: object, code: int = 0) -> dict[str, Any]:
        done = self.command("status", "--json", *words)
        assert done.returncode == code, (done.stdout, done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def explain(self, job: object) -> dict[str, Any]:
        done = self.command("explain", "--json", job)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def state_of(self, job: object) -> str:
        return self.cluster.run("squeue", "-h", "-t", "all", "-o", "%T", "-j", job).strip()

    def start(self, *words: object) -> str:
        """The number of a job that runs."""
        job = str(self.cluster.submit(*words, script="sleep 900"))
        until(lambda: self.state_of(job) == "RUNNING", f"the start of {words}")
        return job

    def wait_idle(self) -> None:
        self.cluster.run("scancel", "--user=root")
        until(lambda: not self.cluster.run("squeue", "-h"), "an empty queue")
        until(
            lambda: self.cluster.run("sinfo", "-h", "-p", "pbatch", "-o", "%D %t").strip() == f"{NODES} idle",
            "idle nodes",
        )

    def asks(self) -> bool:
        """Whether Slurm has nodes for a job: then it has asked the plugin."""
        words = [*self.inside.prefix, "sbatch", "--test-only", "-N1", "--wrap", "true"]
        return not subprocess.run(words, env=self.cluster.environment, capture_output=True).returncode

    def written(self, words: str) -> None:
        """Waits until the plugin has written these words about its jobs."""
        until(lambda: words in (self.state / "topolane_jobs").read_text(), f"`{words}` in topolane_jobs")


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    options = ("--leaf", 6, "--pod", 2, "--deadline", 240, "--partitions", "pbatch powned ptree pstock")
    given = {"machine": MACHINE, "rules": RULES, "conf": ("MinJobAge=10",)}
    directory = tmp_path_factory.mktemp("slurm")
    with plugin_cluster(built, inside, directory, *options, **given) as cluster:
        yield Site(cluster, inside)


@pytest.fixture
def quiet(site: Site) -> Site:
    """The cluster with nothing running, and with the plugin's files."""
    site.wait_idle()
    until(site.asks, "nodes")
    until((site.state / "topolane_counters").exists, "the plugin's counters")
    return site


def test_a_refusal_is_reported_and_ends_when_the_jobs_named_have_ended(quiet: Site, tmp_path: Path) -> None:
    """Two isolated jobs leave four idle nodes in a leaf of each pod. A third of five nodes, jobs outside, an array and a held one
    wait: each for the reason that is reported. The third starts once the job that must end has ended."""
    first = quiet.start("-p", "pbatch", "-N8", "-t30")
    second = quiet.start("-p", "pbatch", "-N8", "-t60")
    third = str(quiet.cluster.submit("-p", "pbatch", "-N5", "-t5", script="sleep 900"))
    outside = str(quiet.cluster.submit("-p", "pstock", "-N5", "-t5", script="sleep 900"))
    array = str(quiet.cluster.submit("-p", "pbatch", "-N6", "-t5", "--array=0-2", script="sleep 900"))
    held = str(
        quiet.cluster.submit("-p", "pbatch", "-N3", "--hold", f"--job-name={HOSTILE}", f"--comment={HOSTILE}")
    )
    for job in (third, outside):
        quiet.written(f'"job":{job},')

    found = quiet.status()
    assert found["liveness"]["active"] and not found["liveness"]["stale"] and found["problems"] == []
    assert found["liveness"]["machine"] == "machine.toml" and found["liveness"]["machine_nodes"] == NODES
    assert found["calls"]["calls"] > 0 and found["calls"]["ends"]["refused"] > 0
    check_running(quiet, found, {first: 2, second: 2})
    rows = {row["job"]: row for row in found["waiting"]}
    kinds = {job: (row["kind"], row["policy"], row["reason"]) for job, row in rows.items() if row["kind"]}
    assert kinds[third][:2] == ("would-share-links", "isolated")
    assert kinds[outside][:2] == ("no-area", "stock")
    assert rows[third]["why"] == "would share links: 5 nodes wanted, 8 of 8 offered idle"
    assert (rows[held]["kind"], rows[held]["why"], rows[held]["name"]) == (None, "its user holds it", HOSTILE)
    assert {f"{array}_{task}" for task in range(3)} <= rows.keys()

    check_explanations(quiet, first, second, third, outside, f"{array}_2", held)
    check_rows_of_squeue(quiet, array)
    check_hostile_names(quiet, tmp_path, held)
    check_stale(quiet, tmp_path)
    check_metrics(quiet, found)

    must_end = [one["job"] for one in quiet.explain(third)["in_the_way"]["must_end"]]
    assert must_end == [first]
    quiet.cluster.run("scancel", outside, array)
    quiet.cluster.run("scancel", *must_end)
    until(lambda: quiet.state_of(third) == "RUNNING", "the start of the job that was refused")
    assert quiet.state_of(second) == "RUNNING"


def check_running(site: Site, found: dict[str, Any], levels: dict[str, int]) -> None:
    """The running jobs are those of squeue, on its nodes, and no link is shared."""
    lines = site.cluster.run("squeue", "-h", "-t", "R", "-o", "%A %N %D").splitlines()
    listed = {job: (hosts, int(nodes)) for job, hosts, nodes in map(str.split, lines)}
    rows = {row["job"]: row for row in found["running"]}
    assert {job: (row["hosts"], row["nodes"]) for job, row in rows.items()} == listed
    assert {job: row["level"] for job, row in rows.items()} == levels
    assert all(row["may_meet"] == [] and row["link_use"] == "isolated" for row in rows.values())
    busy = sum(nodes for _, nodes in listed.values())
    assert found["nodes"] == {"idle": NODES - busy, "busy": busy, "out_of_service": 0}
    assert found["sharing"]["shared"] == 0 and found["sharing"]["isolated_sharing"] == []


def check_explanations(
    site: Site, first: str, second: str, third: str, outside: str, task: str, held: str
) -> None:
    for job, parts in {
        first: (
            "Its policy is isolated (topolane.conf line 3).",
            "(T2): it may use the uplinks of",
            "No other job may",
        ),
        third: (
            f"Job {third} waits since",
            "asks for 5 nodes under isolated and would share links.",
            "8 of them are idle now: pod0 4 (leaf1 4), pod1 4 (leaf3 4).",
            "No leaf has 5 idle: leaf1 has the most, 4.",
            f"Until then must end: job {first} (by ",
        ),
        outside: (
            "Its policy is stock (no line of",
            "asks for 5 nodes under stock and would use links of isolated jobs.",
            f"leaf1 has 4 idle nodes, but job {first} has leaf1's uplinks for itself.",
            f"leaf3 has 4 idle nodes, but job {second} has leaf3's uplinks for itself.",
        ),
        task: (f"Job {task} waits since",),
        task.partition("_")[0]: ("Of the 3 tasks of job",),
        held: ("Slurm says JobHeldUser: its user holds it.", "The plugin has not refused it."),
    }.items():
        text = "\n".join(site.explain(job)["sentences"])
        assert all(part in text for part in parts), text
        # What Slurm says may change between two calls.
        until(lambda job=job: plain(site, job) == site.explain(job)["sentences"][0], "text and JSON agree")
    expected = site.cluster.run("squeue", "-h", "--start", "-o", "%S", "-j", third).strip()
    if expected != "N/A":
        announced = site.explain(third)["expected_start"]
        assert abs(announced - time.mktime(time.strptime(expected, "%Y-%m-%dT%H:%M:%S"))) < 120


def plain(site: Site, job: object) -> str:
    """The first line of an explanation in text."""
    return site.command("explain", job).stdout.splitlines()[0]


def check_rows_of_squeue(site: Site, array: str) -> None:
    """What squeue prints in the column of numbers names the job of its row: also the waiting tasks of an array, and the parts of a
    heterogeneous job."""
    batch = ("sbatch", "--parsable", "-p", "pstock", "--hold", "-N1", ":", "-N2", "--wrap", "true")
    parts = site.cluster.run(*batch).strip()
    rows = [row.split() for row in site.cluster.run("squeue", "-h", "-o", "%i %A").splitlines()]
    assert {f"{array}_[0-2]", f"{parts}+0", f"{parts}+1"} <= {text for text, _ in rows}
    for text, number in rows:
        named = text.partition("_")[0] + "_0" if "_" in text else number
        assert site.explain(text)["job"] == named, text
    site.cluster.run("scancel", parts)


def check_hostile_names(site: Site, directory: Path, held: str) -> None:
    """Neither the terminal nor the picture does what a job's name says. The picture has the running jobs."""
    drawn = directory / "tree.svg"
    result = site.command("status", "--svg", drawn)
    assert result.returncode == 0 and "\x1b" not in result.stdout and "\\x1b[2J" in result.stdout
    assert "\x1b" not in site.command("explain", held).stdout
    tree = ET.parse(drawn).getroot()
    titles = [title.text or "" for title in tree.iter("{http://www.w3.org/2000/svg}title")]
    for job in site.cluster.run("squeue", "-h", "-t", "R", "-o", "%A").split():
        assert any(title.startswith(f"job {job} ") for title in titles), titles
    assert not list(tree.iter("{http://www.w3.org/2000/svg}script"))


def check_stale(site: Site, directory: Path) -> None:
    """Files that are old while jobs wait for nodes are said to be: exit code 1."""
    copy = directory / "old"
    copy.mkdir()
    for path in site.state.glob("topolane_*"):
        (copy / path.name).write_bytes(path.read_bytes())
    counters = copy / "topolane_counters"
    text = counters.read_text()
    counters.write_text(re.sub(r"(?m)^written (\d+)", lambda found: f"written {int(found[1]) - 600}", text))
    found = site.status("--state", copy, code=1)["liveness"]
    assert found["stale"] and "has written nothing for 10 min, while slurmctld answers and" in found["why"]
    assert "topology/topolane: stale" in site.command("status", "--state", copy).stdout
    assert "topolane_slurm_stale 1.0" in site.command("metrics", "--once", "--state", copy).stdout


def samples(text: str) -> dict[tuple[str, str], float]:
    """Values by name and labels."""
    return {
        (
            sample.name.removeprefix("topolane_slurm_"),
            " ".join(value for _, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def check_metrics(site: Site, found: dict[str, Any]) -> None:
    """The metrics say what status said, printed once, on a loopback port and on a Unix socket."""
    printed = site.command("metrics", "--once")
    assert printed.returncode == 0 and "script" not in printed.stdout, printed.stderr
    once = samples(printed.stdout)
    waiting = [row for row in found["waiting"] if row["policy"] == "isolated"]
    assert once["up", ""] == once["active", ""] == 1 and once["stale", ""] == once["problems", ""] == 0
    assert once["jobs", "isolated running"] == 2 and once["jobs", "isolated waiting"] == len(waiting) == 5
    assert once["refused_jobs", "would-share-links"] >= 1 and once["refused_jobs", "no-area"] == 1
    assert once["nodes", "busy"] == found["nodes"]["busy"] and once["isolated_jobs_sharing_links", ""] == 0
    assert once["calls_total", "refused"] >= found["calls"]["ends"]["refused"]
    assert once["call_seconds_bucket", "+Inf"] == once["call_seconds_count", ""] > 0
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    path = site.cluster.directory / "metrics.socket"
    for address in (f"127.0.0.1:{port}", f"unix:{path}"):
        with serving(site, address):
            text = scraped(port) if address[0] == "1" else scraped_at(path)
            exported("slurm", text)
            assert samples(text)["nodes", "busy"] == found["nodes"]["busy"]
            if address[0] == "1":
                taken = site.command("metrics", "--listen", address)
                assert taken.returncode == 2 and "nothing can listen there" in taken.stderr, taken


@contextlib.contextmanager
def serving(site: Site, address: str) -> Iterator[None]:
    server = subprocess.Popen(site.words("metrics", "--listen", address), env=site.cluster.environment)
    try:
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(DEADLINE)


def scraped(port: int) -> str:
    def ask() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE) as answer:
            text: str = answer.read().decode()
            return text

    return until(ask, "the metrics are served")


def scraped_at(path: Path) -> str:
    until(path.is_socket, "the socket")
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(DEADLINE)
        one.connect(str(path))
        one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: one.recv(65536), b""))
    return answer.partition(b"\r\n\r\n")[2].decode()


def test_prometheus_scrapes_the_plugin(prometheus: str, quiet: Site, tmp_path: Path) -> None:
    """Prometheus reads all metrics, and evaluates all rules and panels; no alert is about to fire while jobs run and wait."""
    quiet.start("-p", "pbatch", "-N8", "-t30")
    quiet.cluster.submit("-p", "pbatch", f"-N{NODES}", "-t30", script="sleep 900")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    address = f"127.0.0.1:{port}"
    with serving(quiet, address), scraping(prometheus, tmp_path, "slurm", address) as server:
        check_scraped(server, "slurm", scraped(port))
        check_quiet(server)


def test_own_links_are_those_of_the_file(quiet: Site) -> None:
    """Jobs with links of their own: their number and share as in topolane_links, and no other job may use them."""
    jobs = [quiet.start("-p", "powned", "-N9", "-t30") for _ in range(2)]
    rows = {}
    for line in (quiet.state / "topolane_links").read_text().splitlines()[1:-1]:
        job, share, count, *rest = line.split()
        rows[job] = (len(rest) - int(count) - 1, float(share))
    found = quiet.status()
    assert {row["job"]: (row["links"], row["bandwidth_share"]) for row in found["running"]} == rows
    assert rows.keys() == set(jobs) and found["sharing"] == {
        "owned": sum(links for links, _ in rows.values()),
        "shared": 0,
        "isolated_sharing": [],
    }
    for job, (links, share) in rows.items():
        text = "\n".join(quiet.explain(job)["sentences"])
        assert f"it owns {links} links of leaf" in text and "No other job may use them." in text, text
        assert (f"{share:g} of full bandwidth" if share < 1 else "full bandwidth") in text
    assert f"own links, bandwidth share {share:g}" in quiet.command("status").stdout


def test_links_that_jobs_share_are_seen(quiet: Site) -> None:
    """Two jobs outside, on nodes 1-8 and 9-16, meet on the uplinks of the leaf that both use: so say table and sentences, by
    scontrol and by slurmrestd."""
    first, second = (quiet.start("-p", "pstock", "-w", nodes, "-N8") for nodes in ("node[1-8]", "node[9-16]"))
    for job in (first, second):
        quiet.written(f'"job":{job},')
    found = quiet.status()
    assert {row["job"]: row["may_meet"] for row in found["running"]} == {first: [second], second: [first]}
    assert found["sharing"]["shared"] > 0 and found["sharing"]["isolated_sharing"] == []
    text = "\n".join(quiet.explain(second)["sentences"])
    assert f"On those of leaf1 it may meet job {first}." in text, text
    facts = quiet.cluster.facts
    token = ("--token-file", facts["TOKEN_FILE"]) if "TOKEN_FILE" in facts else ()
    by_rest = quiet.status("--slurmrestd", f"unix:{facts['SOCKET']}", *token)
    assert by_rest["running"] == found["running"]


def test_what_is_not_active_or_down_is_said(quiet: Site) -> None:
    """A machine file that cannot be read, and a slurmctld that is down: one sentence, exit code 1, and what is known."""
    job = quiet.start("-p", "pstock", "-N2")
    machine = quiet.cluster.directory / "machine.toml"
    quiet.cluster.script("stop", "slurmctld")
    try:
        down = quiet.command("status")
        assert (
            down.returncode == 1 and "slurmctld does not answer" in down.stdout and "calls: " in down.stdout
        )
        refused = quiet.command("explain", job)
        assert refused.returncode == 2 and "slurmctld" in refused.stderr and refused.stderr.count("\n") == 1
        assert "topolane_slurm_up 0.0" in quiet.command("metrics", "--once").stdout
        machine.write_text("nodes = 'garbled")
        quiet.cluster.script("start", "slurmctld")
        until(quiet.asks, "nodes")
        until(lambda: quiet.command("status").returncode == 1, "an answer")
        until(
            lambda: (quiet.state / "topolane_counters").read_text().startswith("active 0\n"), "new counters"
        )
        found = quiet.status(code=1)
        assert found["liveness"]["active"] is False and "machine.toml" in found["liveness"]["why"], found[
            "liveness"
        ]
        assert [row["job"] for row in found["running"]] == [job]
        assert "topology/topolane: not active" in quiet.command("status").stdout
        assert "topolane_slurm_active 0.0" in quiet.command("metrics", "--once").stdout
    finally:
        quiet.cluster.script("stop", "slurmctld")
        machine.write_text(MACHINE)
        quiet.cluster.script("start", "slurmctld")


def test_counters_name_the_slurmctld_that_wrote_them(quiet: Site, tmp_path: Path) -> None:
    """Counters of a slurmctld that has ended are not taken for those of the present one, even if the plugin was loaded the
    very second in which the present one started. Counters of an earlier release do not name theirs, and are still read.
    """
    counters = quiet.state / "topolane_counters"
    named = re.compile(r"(?m)^booted \d+\n")
    [former] = named.findall(counters.read_text())
    quiet.cluster.script("stop", "slurmctld")
    quiet.cluster.script("start", "slurmctld")
    until(quiet.asks, "nodes")
    until(lambda: former not in counters.read_text(), "new counters")
    assert quiet.status()["liveness"]["active"] is True
    for path in quiet.state.glob("topolane_*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    now = counters.read_text()
    assert len(named.findall(now)) == 1
    (tmp_path / counters.name).write_text(named.sub(former, now))
    found = quiet.status("--state", tmp_path, code=1)["liveness"]
    assert found["active"] is None and "has not asked the plugin for nodes yet" in found["why"], found
    (tmp_path / counters.name).write_text(named.sub("booted 18446744073709551615\n", now))
    assert quiet.status("--state", tmp_path, code=1)["liveness"]["active"] is None
    (tmp_path / counters.name).write_text(named.sub("", now))
    assert quiet.status("--state", tmp_path)["liveness"]["active"] is True


def test_a_job_that_slurm_does_not_know(quiet: Site) -> None:
    for job, says in (
        ("99999", "Slurm knows no job 99999"),
        ("x", "JOBID: 'x' is no number of a job, such as 97"),
    ):
        done = quiet.command("explain", job)
        assert done.returncode == 2 and done.stderr.startswith(f"topolane: {says}"), done
