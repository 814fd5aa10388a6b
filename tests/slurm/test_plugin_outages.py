"""Links that fail or are reserved, under a real slurmctld with the topology plugin: no later job owns them.

Each job asks for the same nodes of a machine that is otherwise empty, so without outages each would get the same links.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_cluster import Cluster, Inside, running, until
from test_plugin import built, inside, source  # noqa: F401
from topolane import Machine
from topolane._engine import DedicatedRoutes
from topolane.slurm import plugin_build
from topolane.slurm.links_out import FILE, LinksOut, text_of
from topolane.slurm.plugin_state import sum_of

NODES = 24
"""Four leaves of six nodes and three uplinks, two of them to a pod."""
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
SIZE = 8
"""Nodes of a job: more than a leaf has, so it owns links."""


class Site:
    def __init__(self, cluster: Cluster, files: Path) -> None:
        self.cluster, self.state = cluster, cluster.directory / "state"
        self.file, self.fabric = self.state / FILE, files / "fabric"
        self.machine_file = files / "machine.toml"
        self.machine = Machine.parse(MACHINE, "machine.toml")
        self.sum = sum_of(self.machine_file.read_bytes())

    def command(self, *words: object, code: int = 0) -> dict[str, Any]:
        command = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", *map(str, words)]
        done = subprocess.run(
            [*self.cluster.inside.prefix, *command, "--json", "--state", str(self.state)],
            env=self.cluster.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def outages(self, *failed: int, slots: int = 0) -> dict[str, Any]:
        """What the command says of such failed links."""
        self.fabric.write_text("# failed links\n" + "".join(f"{link}\n" for link in failed))
        return self.command(
            "outages", "--machine", self.machine_file, "--fabric", self.fabric, "--service-uplinks", slots
        )

    def told(self, name: str) -> list[str]:
        """The lines of topolane_jobs that begin with a word, without it."""
        lines = (self.state / "topolane_jobs").read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.startswith(f"{name} ")]

    def wait_taken(self, links: int) -> None:
        """Waits until the plugin says that so many links are out. It takes a new list over when Slurm calls it."""

        def is_taken() -> bool:
            self.cluster.run("sbatch", "--test-only", "-N1", "--wrap", "true")
            time.sleep(1)
            return self.told("out") == [str(links)]

        until(is_taken, f"{links} links out", 60)

    def owners(self) -> dict[int, set[int]]:
        """The links of jobs in the plugin's file."""
        found = {}
        for line in (self.state / "topolane_links").read_text().splitlines()[1:-1]:
            job, _, count, *rest = line.split()
            found[int(job)] = {int(link) for link in rest[int(count) + 1 :]}
        return found

    def shows(self, job: int, what: str) -> str:
        return self.cluster.run("squeue", "-h", "-o", what, "-j", job).strip()

    def submit(self, nodes: int) -> int:
        return self.cluster.submit(f"--nodes={nodes}", "--time=5", script="sleep 300")

    def start(self, nodes: int = SIZE) -> int:
        job = self.submit(nodes)
        until(lambda: self.shows(job, "%t") == "R", f"the start of job {job}", 120)
        return job

    def links_of_one(self, nodes: int = SIZE) -> set[int]:
        """The links that a job owns which has the machine for itself."""
        job = self.start(nodes)
        links = self.owners()[job]
        self.wait_idle()
        return links

    def wait_idle(self) -> None:
        self.cluster.run("scancel", "--user=root")
        until(lambda: not self.cluster.run("squeue", "-h"), "an empty queue", 120)
        idle = f"{NODES} idle"
        until(lambda: self.cluster.run("sinfo", "-h", "-o", "%D %t").strip() == idle, "idle nodes", 120)

    def log(self) -> str:
        return (self.cluster.directory / "log" / "slurmctld.log").read_text()


@pytest.fixture(scope="module")
def engine() -> Path:
    """The engine: a library that is named, or else compiled here."""
    given = os.environ.get("TOPOLANE_TEST_ENGINE")
    return Path(given) if given else plugin_build.compiled_engine()


@pytest.fixture(scope="module")
def cluster(
    built: Path,  # noqa: F811
    inside: Inside,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    files = tmp_path_factory.mktemp("conf")
    (files / "topolane.conf").write_text(
        f"Engine={built / plugin_build.ENGINE}\nMachine=machine.toml\nPolicy=dedicated\n"
    )
    (files / "machine.toml").write_text(MACHINE)
    options: list[object] = ["--leaf", 6, "--pod", 2]
    for name in ("topolane.conf", "machine.toml"):
        options += ["--beside", files / name]
    plugins = f"PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:{built}"
    for line in ("TopologyPlugin=topology/topolane", plugins):
        options += ["--conf", line]
    with running(NODES, tmp_path_factory.mktemp("slurm"), *options, inside=inside) as found:
        yield Site(found, files)


@pytest.fixture
def site(cluster: Site) -> Site:
    """The cluster with nothing running and every link in service."""
    cluster.wait_idle()
    cluster.outages()
    cluster.wait_taken(0)
    return cluster


def test_no_later_job_owns_a_failed_link(site: Site) -> None:
    """A job that owns the link keeps it, and the command and status name it. Later jobs do not get the link, one that needs it
    waits, and starts on it when it is back."""
    links = site.links_of_one()
    assert site.links_of_one() == links, "without outages the next job has the same links"
    first = site.start()
    failed = min(links)
    name = "->".join(site.machine.link_names()[failed][0:3:2])
    said = site.outages(failed)
    assert said["newly_failed"] == [name] and said["jobs"] == [
        {"job": str(first), "owns": [name], "may_use": []}
    ]
    site.wait_taken(1)
    assert failed in site.owners()[first]
    shown = site.command("status")["outages"]
    assert (shown["failed"], shown["taken_over"], shown["jobs"]) == ([name], 1, said["jobs"])
    other = site.start()
    assert site.owners()[first] == links and failed not in site.owners()[other]
    site.wait_idle()
    later = [site.start() for _ in range(2)]
    owners = site.owners()
    assert all(owners[job] and failed not in owners[job] for job in later)
    site.wait_idle()
    needs_all = site.submit(NODES - 1)
    time.sleep(8)
    assert site.shows(needs_all, "%t %r") == "PD Resources", "it waits, and is not refused for good"
    said = site.outages()
    assert said["back"] == [name] and said["jobs"] == []
    until(lambda: site.shows(needs_all, "%t") == "R", "the start on all links", 120)
    assert failed in site.owners()[needs_all]
    site.wait_idle()
    assert site.links_of_one() == links


def test_a_file_that_cannot_be_used_changes_nothing(site: Site) -> None:
    """Cut short, of another machine, or with a link that there is not: the log says so, and the former list stays."""
    failed = min(site.links_of_one())
    site.outages(failed)
    site.wait_taken(1)
    whole = site.file.read_text()
    none = LinksOut()
    for text in (
        whole[: len(whole) // 2],
        text_of(none, site.sum ^ 1),
        text_of(LinksOut(frozenset({10**6})), site.sum),
    ):
        draft = site.file.with_suffix(".draft")
        draft.write_text(text)
        draft.replace(site.file)
        time.sleep(12)
        assert failed not in site.links_of_one()
        assert site.told("out") == ["1"]
    assert "links out of service are those of before" in site.log()
    # The command replaces it.
    said = site.outages(failed)
    assert any("it is replaced" in problem for problem in said["problems"])
    site.outages()
    site.wait_taken(0)
    assert failed in site.links_of_one()


def test_the_list_outlives_slurmctld(site: Site) -> None:
    """After `kill -9` of slurmctld the first job already keeps off the failed link."""
    failed = min(site.links_of_one())
    site.outages(failed)
    site.wait_taken(1)
    site.cluster.script("kill", "slurmctld")
    site.cluster.script("start", "slurmctld")
    site.wait_idle()
    assert failed not in site.links_of_one()
    # What changes while slurmctld is away counts as well.
    site.cluster.script("kill", "slurmctld")
    site.file.write_text(text_of(LinksOut(), site.sum))
    site.cluster.script("start", "slurmctld")
    site.wait_idle()
    assert failed in site.links_of_one()


def test_no_job_owns_a_reserved_slot(site: Site) -> None:
    """Jobs keep off the highest uplink slots. One that needs them is refused at its submission: they do not come back."""
    reserved = set(DedicatedRoutes.set_aside(site.machine, 1))
    site.outages(slots=1)
    site.wait_taken(len(reserved))
    links = site.links_of_one()
    assert links and not links & reserved
    asked = ["sbatch", "--parsable", f"--nodes={NODES - 1}", "--wrap", "true"]
    done = subprocess.run(
        [*site.cluster.inside.prefix, *asked],
        env=site.cluster.environment,
        cwd=site.cluster.directory,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0 and "not available" in done.stderr, done
    site.outages()
    site.wait_taken(0)
    assert site.links_of_one(NODES - 1) & reserved
