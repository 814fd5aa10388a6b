"""A real slurmctld whose engine cannot answer: which jobs wait, which ones stock Slurm places, and that everybody reads why.

docs/reference/slurm-plugin.md, "When the engine cannot answer", says what is held here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Inside
from plugin_site import MACHINE, Site, faulty_engine, plugin_cluster
from topolane.slurm import plugin_build
from waiting import until

RULES = """\
Partition=pbatch,pforce Policy=isolated
Partition=pwait Policy=isolated WithoutEngine=wait
"""
MAY = {"JobsMay": "isolated"}
PARTITIONS = "pbatch pwait pstock pforce:ALL:FORCE"
ASKED = ("-p", "pstock", "--topolane=isolated")
"""Options of a job that asks for isolation itself, in a partition whose rule promises none."""


class Watched(Site):
    """With Topolane's commands, and with an engine that fails when a file says so."""

    def command(self, *words: object) -> subprocess.CompletedProcess[str]:
        return self.tried(sys.executable, "-c", "from topolane.cli import main; main()", "slurm", *words)

    def comment(self, job: int) -> str:
        """What the user of a job reads of it."""
        shown = self.cluster.run("scontrol", "show", "job", job)
        found = re.search(r"SystemComment=(.*)", shown)
        return found[1].strip() if found else ""

    def held(self, *words: object) -> int:
        """The number of a job that waits because the engine cannot answer, as its user, status and explain say."""
        job = self.cluster.submit(*words, script="sleep 600")
        until(lambda: "waits for isolated nodes" in self.comment(job), f"a reason for {words}")
        assert self.cluster.run("squeue", "-h", "-o", "%t", "-j", job).strip() == "PD"
        until(lambda: job in self.published().waiting, "its record")
        said = self.command("explain", job).stdout
        assert "needs the engine, which cannot answer" in said, said
        return job

    def use(self, job: int) -> tuple[str, str] | None:
        """The policy of a running job and its use of links, as the plugin says."""
        return self.uses().get(job)

    def status(self, code: int) -> str:
        done = self.command("status")
        assert done.returncode == code, done
        return done.stdout


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    directory = tmp_path_factory.mktemp("slurm")
    options = ("--leaf", 6, "--pod", 2, "--deadline", 240, "--partitions", PARTITIONS)
    conf = (
        f"PlugStackConfig={directory}/plugstack.conf",
        "MinJobAge=10",
        "SchedulerParameters=bf_interval=5",
    )
    conf_files = {"plugstack.conf": f"optional {built / plugin_build.SPANK}\n"}
    with plugin_cluster(
        built, inside, directory, *options, rules=RULES, conf=conf, conf_files=conf_files
    ) as cluster:
        yield Watched(cluster, built)


@pytest.fixture
def quiet(site: Watched) -> Iterator[Watched]:
    """The cluster with nothing running; afterwards with its own configuration."""
    site.wait_idle()
    yield site
    site.configure(RULES, **MAY)


def test_the_engine_fails(quiet: Watched) -> None:
    """A job that asked for isolation itself waits, and so does one whose rule wants that; on one node, where no link is used, it
    starts. Other jobs start where stock Slurm puts them; nothing says that they are isolated, also after a restart. `status` ends
    with 1 while that goes on. When the engine answers again, the jobs that waited start and are isolated."""
    library, control = faulty_engine(quiet)
    quiet.configure(RULES, Engine=library, **MAY)
    good = quiet.start("-p", "pwait", "-N", 2)
    assert quiet.use(good) == ("isolated", "isolated") and quiet.comment(good) == ""
    first_line = quiet.status(0).splitlines()[0]
    assert first_line.startswith("topology/topolane: active, loaded")
    conf = quiet.cluster.directory / "topolane.conf"
    conf.write_text(conf.read_text() + "# later\n")
    assert f"{conf} has changed since slurmctld read it" in quiet.status(0)
    control.write_text("error")
    placed = quiet.start("-p", "pbatch", "-N", 7)
    alone = quiet.start("-p", "pwait", "-N", 1)
    held = [quiet.held("-p", "pwait", "-N", 7), quiet.held(*ASKED, "-N", 2)]
    assert quiet.use(placed) == ("stock", "shared")
    reason = "the engine failed"
    expected = f"topolane: not isolated: stock Slurm chose the nodes, because {reason}"
    assert quiet.comment(placed) == expected
    assert quiet.nodes(alone) and not any(quiet.nodes(job) for job in held)
    assert f"waits for isolated nodes, because {reason}" in quiet.log()
    said = quiet.status(1)
    assert said.startswith("topology/topolane: active, but the engine does not decide"), said
    assert reason in said.splitlines()[1] and "waiting for the engine" in said, said
    found = json.loads(quiet.command("status", "--json").stdout)
    assert {row["job"]: row["link_use"] for row in found["running"]}[str(placed)] == "shared"
    assert found["liveness"]["active"] and not found["liveness"]["decides"]
    quiet.saved(placed)
    control.write_text("")
    for job in held:
        until(lambda job=job: bool(quiet.nodes(job)), "the start of a job that waited for the engine")
        assert quiet.use(job) == ("isolated", "isolated") and quiet.comment(job) == ""
    quiet.restart()
    until(lambda: quiet.use(held[0]) == ("isolated", "isolated"), "what runs after the restart")
    assert quiet.use(placed) == ("stock", "shared")
    assert quiet.status(0).startswith("topology/topolane: active, loaded")


@pytest.mark.parametrize("what", ["machine", "rule"])
def test_the_plugin_is_not_active(quiet: Watched, what: str) -> None:
    """A machine file that cannot be read, and a wrong line of topolane.conf: the same jobs wait. The other lines of the
    file still say which ones."""
    wrong_line, machine = ("Colour=red\n", MACHINE) if what == "rule" else ("", "name = [\n")
    quiet.configure(RULES + wrong_line, machine, **MAY)
    placed = quiet.start("-p", "pbatch", "-N", 7)
    alone = quiet.start("-p", "pwait", "-N", 1)
    held = [quiet.held("-p", "pwait", "-N", 7), quiet.held(*ASKED, "-N", 2)]
    assert "because the plugin is not active" in quiet.comment(held[0])
    assert "stock Slurm chose the nodes, because the plugin is not active" in quiet.comment(placed)
    assert quiet.status(1).startswith("topology/topolane: not active")
    done, why = quiet.command("plan", "--room-for", held[0]), quiet.published().why or ""
    assert done.returncode == 2 and why in done.stderr and ("'Colour'" in why) == (what == "rule"), done
    rows = {row["job"]: row for row in json.loads(quiet.command("status", "--json").stdout)["running"]}
    assert (rows[str(placed)]["policy"], rows[str(placed)]["link_use"]) == ("stock", "shared")
    quiet.saved(placed)
    quiet.configure(RULES, **MAY)
    for job in held:
        until(lambda job=job: bool(quiet.nodes(job)), "the start of a job that waited")
        assert quiet.use(job) == ("isolated", "isolated") and quiet.comment(job) == ""
    assert quiet.use(placed) == ("stock", "shared") and quiet.use(alone) == ("isolated", "isolated")


def test_a_job_that_may_share_cores_is_not_isolated(quiet: Watched) -> None:
    """The engine is not asked for it: a job that asked for isolation itself waits and reads why, another one starts as stock
    Slurm says and is not called isolated."""
    placed = quiet.start("-p", "pforce", "-N", 2)
    held = quiet.held("-p", "pforce", "--topolane=isolated", "-N", 2)
    assert "because the job may share cores with other jobs" in quiet.comment(held)
    assert quiet.use(placed) == ("stock", "shared")


def test_a_job_that_asked_itself_gets_no_nodes_that_the_machine_file_does_not_name(quiet: Watched) -> None:
    """Half the nodes have no name there. Jobs of a rule go there when the others are taken, and are not called isolated; one that
    asked itself waits. `status` says that stock Slurm decides."""
    half = (
        MACHINE.replace("[6, 2, 2]", "[6, 2, 1]")
        .replace("[1, 3, 3]", "[1, 3, 1]")
        .replace("node[1-24]", "node[1-12]")
    )
    quiet.configure(RULES, half.replace("cables = [1, 1, 2]", "cables = [1, 1, 1]"), **MAY)
    first = quiet.start("-p", "pbatch", "-N", 10)
    second = quiet.start("-p", "pbatch", "-N", 10)
    assert quiet.use(first) == ("isolated", "isolated") and quiet.use(second) == ("stock", "shared")
    waiting = quiet.cluster.submit(*ASKED, "-N", 3, script="sleep 600")
    assert quiet.waits(waiting)
    third = quiet.start("-p", "pstock", "-N", 1)
    assert quiet.nodes(third)
