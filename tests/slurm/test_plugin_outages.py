"""Links that fail or are reserved, under a real slurmctld with the topology plugin: no later job owns them.

Each job asks for the same nodes of a machine that is otherwise empty, so without outages each would get the same links.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_cluster import Cluster, Inside
from plugin_site import LACKS_NODES, MACHINE, NODES, PARTITIONS, Site, plugin_cluster
from topolane import Machine
from topolane._engine import DedicatedRoutes
from topolane.slurm.links_out import FILE, LinksOut, text_of
from topolane.slurm.plugin_state import sum_of
from waiting import DEADLINE, until

SIZE = 8
"""Nodes of a job: more than a leaf has, so it owns links."""


class Outages(Site):
    def __init__(self, cluster: Cluster, built: Path) -> None:
        super().__init__(cluster, built)
        self.file, self.fabric = self.state / FILE, cluster.directory / "fabric"
        self.machine_file = cluster.directory / "machine.toml"
        self.machine = Machine.parse(MACHINE, "machine.toml")
        self.sum = sum_of(self.machine_file.read_bytes())

    def command(self, *words: object, code: int = 0) -> dict[str, Any]:
        command = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", *map(str, words)]
        done = subprocess.run(
            [*self.cluster.inside.prefix, *command, "--json", "--state", str(self.state)],
            env=self.cluster.environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
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

    def wait_taken(self, links: int) -> None:
        """Waits until the plugin says that `links` links are out. It takes a new list over when Slurm calls it."""
        until(lambda: self.out() == links, f"{links} links out")

    def out(self) -> int:
        """How many links are out, as the plugin says now."""
        self.call()
        lines = (self.state / "topolane_jobs").read_text().splitlines()
        (found,) = (line.partition(" ")[2] for line in lines if line.startswith("out "))
        return int(found)

    def shows(self, job: int, what: str) -> str:
        return self.cluster.run("squeue", "-h", "-o", what, "-j", job).strip()

    def one(self, nodes: int = SIZE) -> int:
        """A job that runs."""
        return self.start("-p", "powned", f"--nodes={nodes}", "--time=5")

    def links_of_one(self, nodes: int = SIZE) -> frozenset[int]:
        """The links that a job owns which has the machine for itself."""
        job = self.one(nodes)
        links = self.owners()[job]
        self.wait_idle()
        return links


@pytest.fixture(scope="module")
def up(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outages]:
    options = ("--leaf", 6, "--pod", 2, "--deadline", 240, "--partitions", PARTITIONS)
    with plugin_cluster(built, inside, tmp_path_factory.mktemp("slurm"), *options) as cluster:
        yield Outages(cluster, built)


@pytest.fixture
def site(up: Outages) -> Outages:
    """The cluster with nothing running and every link in service."""
    up.wait_idle()
    up.call()
    up.outages()
    up.wait_taken(0)
    return up


def test_no_later_job_owns_a_failed_link(site: Outages) -> None:
    """A job that owns the link keeps it, and the command and status name it. Later jobs do not get the link, one that needs it
    waits, and starts on it when it is back."""
    links = site.links_of_one()
    assert site.links_of_one() == links, "without outages the next job has the same links"
    first = site.one()
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
    other = site.one()
    assert site.owners()[first] == links and failed not in site.owners()[other]
    site.wait_idle()
    later = [site.one() for _ in range(2)]
    owners = site.owners()
    assert all(owners[job] and failed not in owners[job] for job in later)
    site.wait_idle()
    needs_all = site.cluster.submit("-p", "powned", f"--nodes={NODES - 1}", "--time=5", script="sleep 300")
    until(lambda: site.shows(needs_all, "%r") in LACKS_NODES, "it waits, and is not refused for good")
    said = site.outages()
    assert said["back"] == [name] and said["jobs"] == []
    until(lambda: site.shows(needs_all, "%t") == "R", "the start on all links")
    assert failed in site.owners()[needs_all]
    site.wait_idle()
    assert site.links_of_one() == links


def test_a_file_that_cannot_be_used_changes_nothing(site: Outages) -> None:
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
        for _ in range(2):  # It looks at the file when it has written the counters.
            site.call()
        assert failed not in site.links_of_one()
        assert site.out() == 1
    assert "links out of service are those of before" in site.log()
    # The command replaces it.
    said = site.outages(failed)
    assert any("it is replaced" in problem for problem in said["problems"])
    site.outages()
    site.wait_taken(0)
    assert failed in site.links_of_one()


def test_the_list_outlives_slurmctld(site: Outages) -> None:
    """After `kill -9` of slurmctld the first job already keeps off the failed link."""
    failed = min(site.links_of_one())
    site.outages(failed)
    site.wait_taken(1)
    site.restart("kill")
    site.wait_idle()
    assert failed not in site.links_of_one()
    # What changes while slurmctld is away counts as well.
    site.cluster.script("kill", "slurmctld")
    site.file.write_text(text_of(LinksOut(), site.sum))
    site.cluster.script("start", "slurmctld")
    site.wait_idle()
    assert failed in site.links_of_one()


def test_no_job_owns_a_reserved_slot(site: Outages) -> None:
    """Jobs keep off the highest uplink slots. One that needs them is refused at its submission: they do not come back."""
    reserved = set(DedicatedRoutes.set_aside(site.machine, 1))
    site.outages(slots=1)
    site.wait_taken(len(reserved))
    links = site.links_of_one()
    assert links and not links & reserved
    done = site.tried("sbatch", "-p", "powned", f"--nodes={NODES - 1}", "--wrap", "true")
    assert done.returncode != 0 and "not available" in done.stderr, done
    site.outages()
    site.wait_taken(0)
    assert site.links_of_one(NODES - 1) & reserved
