"""`topolane slurm plan` on a real slurmctld with the plugin: room for a waiting job by requeueing running ones."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import links_in_tree as tree
import pytest
from live_cluster import Inside, running, until
from plugin_site import MACHINE, NODES, PARTITIONS, RULES, Site
from topolane.slurm import plugin_build

LEAVES = ("node[1-6]", "node[7-12]", "node[13-18]", "node[19-24]")
TOPOLANE = (sys.executable, "-c", "from topolane.cli import main; main()", "slurm")


class Room(Site):
    """A cluster with the plugin, and `topolane slurm plan` on it."""

    def command(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = self.tried(*TOPOLANE, *words)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def plan(self, job: object, *words: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.command("plan", "--json", "--room-for", job, *words).stdout)
        return found

    def fill(self, *options: tuple[object, ...]) -> list[int]:
        """Isolated jobs, each on a whole leaf, the oldest first and at least two seconds apart."""
        jobs: list[int] = []
        for nodes, words in zip(LEAVES, options):
            if jobs:
                before = self.started(jobs[-1])
                while time.time() < before + 2:
                    time.sleep(0.1)
            jobs.append(self.start("-w", nodes, *words))
        return jobs

    def started(self, job: object) -> float:
        return float(self.cluster.rest(f"job/{job}")["jobs"][0]["start_time"])

    def seen(self) -> list[str]:
        """All jobs with state and nodes, and all reservations."""
        return sorted(self.cluster.run("squeue", "-h", "-o", "%i %T %N %v").splitlines())

    def wait(self, *words: object) -> int:
        """A wide isolated job that waits, which the plugin or Slurm has looked at."""
        job = self.cluster.submit("-p", "pbatch", "--priority=2000", *words, script="sleep 600")
        until(lambda: self.reason(job) in ("Resources", "Priority"), "a look at the job")
        return job

    def reason(self, job: object) -> str:
        return self.cluster.run("squeue", "-h", "-o", "%r", "-j", job).strip()


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    files = tmp_path_factory.mktemp("conf")
    (files / "topolane.conf").write_text(
        f"Engine={built / plugin_build.ENGINE}\nMachine=machine.toml\n{RULES}"
    )
    (files / "machine.toml").write_text(MACHINE)
    options = ["--leaf", 6, "--pod", 2, "--deadline", 240, "--partitions", PARTITIONS]
    for line in (
        "TopologyPlugin=topology/topolane",
        f"PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:{built}",
        "MinJobAge=10",
    ):
        options += ["--conf", line]
    for name in ("topolane.conf", "machine.toml"):
        options += ["--beside", files / name]
    with running(NODES, tmp_path_factory.mktemp("slurm"), *options, inside=inside) as cluster:
        yield Room(cluster, built)


@pytest.fixture
def quiet(site: Room) -> Room:
    """The cluster with nothing running, whose plugin has told that it is active."""
    site.wait_idle()
    site.call()
    until((site.state / "topolane_counters").exists, "the plugin's counters")
    return site


def requeued(plan: dict[str, Any]) -> set[int]:
    return {int(each["job"]) for each in plan["requeued"]}


OLD = ("-p", "pbatch", "--priority=1000")


def test_the_cheapest_jobs_that_may_go_are_named_and_nothing_changes(quiet: Room, tmp_path: Path) -> None:
    """Four isolated jobs, each on a leaf of its own. A job of 12 nodes gets a pod, and the two younger jobs must go for it. The
    cost is what they have done. For a job of 6 nodes the youngest that may go must go: not one with Requeue=0, not one of a
    higher priority, not one of a partition that is named."""
    _, second, third, young = quiet.fill(OLD, OLD, OLD, OLD)
    wide, narrow = quiet.wait("-N", 12), quiet.wait("-N", 6)
    before = quiet.seen()
    plan = quiet.plan(wide, "--out", tmp_path / "plan")
    assert requeued(plan) == {third, young}
    done = sum(6 * (plan["time"] - quiet.started(job)) for job in (third, young))
    assert plan["node_hours"] == pytest.approx(done / 3600, abs=1e-5)
    assert plan["least_node_hours"] == pytest.approx(plan["node_hours"], abs=1e-5)
    assert tree.expanded(plan["nodes"]) == tree.expanded("node[13-24]")
    assert json.loads((tmp_path / "plan").read_text())["nodes"] == plan["nodes"]
    assert requeued(quiet.plan(narrow)) == {young}
    quiet.cluster.run("scontrol", "update", f"jobid={young}", "requeue=0")
    assert requeued(quiet.plan(narrow)) == {third}
    quiet.cluster.run("scontrol", "update", f"jobid={third}", "priority=3000")
    assert requeued(quiet.plan(narrow)) == {second}
    assert requeued(quiet.plan(narrow, "--any-priority")) == {third}
    said = quiet.command("plan", "--room-for", narrow, "--untouchable", "partition=pbatch", code=1)
    assert said.stderr == (
        f"there is no plan for job {narrow}: no jobs that may be disturbed hold what is missing "
        "(4 running jobs must stay: 3 named by --untouchable, 1 that Slurm may not requeue).\n"
    )
    assert quiet.seen() == before


def test_links_that_jobs_own_are_made_free_too(quiet: Room) -> None:
    """Three dedicated jobs own all uplinks of two leaves, and another job holds the other pod. A fourth of six nodes has enough idle
    nodes and no uplink: some jobs of the first three go, and not the one of the other pod, which costs more."""
    other = quiet.start("-p", "powned", "-w", "node[13-24]", "--priority=1000")
    small = [
        quiet.start("-p", "powned", "-w", f"node[{each},{each + 6}]", "--priority=1000") for each in (1, 2, 3)
    ]
    wide = quiet.cluster.submit("-p", "powned", "-N", 6, "--priority=2000")
    until(lambda: quiet.reason(wide) in ("Resources", "Priority"), "a look at the job")
    plan = quiet.plan(wide)
    gone = requeued(plan)
    assert gone and gone <= set(small) and other not in gone
    assert plan["least_node_hours"] <= plan["node_hours"]


def test_a_job_that_does_not_wait_for_nodes_is_refused(quiet: Room) -> None:
    """One sentence that says why, and exit code 2."""
    runs = quiet.start("-p", "pbatch", "-w", "node[1-24]")
    held = quiet.cluster.submit("-p", "pbatch", "-N", 2, "--hold")
    later = quiet.cluster.submit("-p", "pbatch", "-N", 2, f"--dependency=afterok:{runs}")
    stock = quiet.cluster.submit("-p", "pstock", "-N", 2)
    listed = quiet.cluster.submit("-p", "pbatch", "-w", "node[1-2]")
    shared = quiet.cluster.submit("-p", "pshared", "-N", 2)
    for job, sentence in (
        (99999, "Slurm knows no such job"),
        (runs, "the job does not wait: it is RUNNING"),
        (held, "the job is held"),
        (later, "not for nodes"),
        (stock, "stock Slurm chooses its nodes"),
        (listed, "plans are not made for jobs with --nodelist"),
        (shared, "may share its nodes"),
    ):
        said = quiet.command("plan", "--room-for", job, code=2).stderr
        assert f"--room-for {job}: " in said and sentence in said and said.count("\n") == 1, said


def test_a_plugin_that_does_not_decide_is_told(quiet: Room) -> None:
    quiet.start("-p", "pbatch", "-w", "node[1-24]")
    wide = quiet.wait("-N", 12)
    try:
        quiet.configure(RULES + "Partition=pbatch Policy=best\n")
        quiet.call()
        said = quiet.command("plan", "--room-for", wide, code=2).stderr
        assert "topology/topolane is not active" in said and "there is no policy 'best'" in said
    finally:
        quiet.configure()
