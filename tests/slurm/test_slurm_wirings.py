"""The plugin inside a real slurmctld of a dragonfly, a torus and a HyperX. What jobs may use is computed from the cables in the machine
file, without the engine (tests/wirings).
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from closure import Cables, shared_links
from hyperx_closure import HyperX
from live_cluster import Inside
from plugin_site import NODES, Site, plugin_cluster
from topolane import sources
from topolane.cluster.view import ISOLATED, ISOLATED_GLOBAL
from torus_closure import Torus
from waiting import DEADLINE, until

PRESETS = {
    "slingshot": f"slingshot(nodes={NODES}, groups=3, switches=4, cables=2)",
    "torus": "torus(size=3x2x2, nodes=2)",
    "hyperx": "hyperx(size=3x4, nodes=2)",
}
"""Two nodes on each switch."""
MACHINES = {
    name: sources.machine(preset).to("toml").replace(f"{name}[", "node[") for name, preset in PRESETS.items()
}
RULES = {
    name: f"""\
Partition=pbatch,pshared Policy=isolated
Partition=pglobal Policy={"isolated-global" if name == "slingshot" else "isolated"}
Partition=ptree Policy=first-fit
"""
    for name in PRESETS
}
on_a_dragonfly = pytest.mark.parametrize("wiring", ["slingshot"], indirect=True)
MIX = (
    ("pbatch", lambda draw: ["-N", draw.choice((1, 2, 3, 5, 7, 9))]),
    ("pbatch", lambda draw: ["-N", "2-6"]),
    ("pbatch", lambda draw: ["-N", draw.choice((3, 4)), "--contiguous"]),
    ("pshared", lambda draw: ["-n", draw.randint(1, 60)]),
    ("pglobal", lambda draw: ["-N", draw.choice((2, 5, 9))]),
    ("pglobal", lambda draw: ["-N", 3, "--contiguous"]),
    ("ptree", lambda draw: ["-N", draw.choice((1, 2, 5))]),
    ("pstock", lambda draw: ["-N", draw.choice((1, 2, 5))]),
)


CHECKERS = {"slingshot": Cables, "torus": Torus, "hyperx": HyperX}


@pytest.fixture(scope="module", params=PRESETS)
def wiring(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def site(
    wiring: str, built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("slurm")
    options = ("--leaf", 2, "--pod", 4, "--partitions", "pbatch pshared:ALL:NO pglobal ptree pstock")
    machine, rules = MACHINES[wiring], RULES[wiring]
    with plugin_cluster(built, inside, directory, *options, machine=machine, rules=rules) as cluster:
        yield Site(cluster, built)


def look(site: Site, wiring: str) -> None:
    """No job uses a link of an isolated job, or one between groups of a job that is isolated there."""
    jobs = {job.job: job for job in site.running() or []}
    checker = CHECKERS[wiring](MACHINES[wiring])
    for shared in shared_links(checker.links_of, [{job: sorted(ran.nodes) for job, ran in jobs.items()}]):
        for link, users in shared.items():
            partitions = {jobs[job].partition for job in users}
            closed = {"pbatch", "pshared"}
            if not isinstance(checker, Cables) or checker.leads_to_another_group(link):
                closed.add("pglobal")
            assert not partitions & closed, (link, [jobs[job] for job in users])


def waiting(site: Site) -> list[str]:
    """What the jobs in the queue wait for. Slurm holds jobs that it started just before it was killed, and then again."""
    return [why for why in site.cluster.run("squeue", "-h", "-o", "%r").splitlines() if "held" not in why]


def test_no_promised_link_is_shared_under_a_random_mix(site: Site, wiring: str) -> None:
    """Jobs that are isolated on all links, between groups, and not at all share the machine; slurmctld is killed on the way."""
    draw, looks, submitted = random.Random(20261130), 0, []
    site.wait_idle()
    for number in range(120):
        partition, words = draw.choice(MIX)
        script = f"sleep {draw.choice((0.3, 0.8, 2))}"
        asked = ["-p", partition, f"--time={draw.choice((1, 2))}", *words(draw)]
        submitted.append(site.cluster.submit(*asked, script=script))
        if number == 60:
            long = site.start("-p", "pbatch", "-N", 3, "--nice=-1000", seconds=60)
            site.saved(long)
            site.restart("kill")
            until(site.answers, "an answer")
            site.put_back()
            until(lambda long=long: site.uses().get(long) == ("isolated", ISOLATED), "it has its links again")
        if number % 5 == 0:
            look(site, wiring)
            looks += 1
    until(lambda: (look(site, wiring), not waiting(site))[1], "the end of all jobs")
    site.cluster.run("scancel", "--user=root")
    counted = site.counters()
    assert looks > 20 and counted["placed"] and counted["in_area"] and counted["refused"]
    assert not {name: counted[name] for name in counted if name.startswith("stock_") and counted[name]}


@on_a_dragonfly
def test_a_job_is_kept_off_the_gateways_of_another(site: Site, wiring: str) -> None:
    """A job in two groups has all cables between them; another one in both waits, and one inside a group starts."""
    site.wait_idle()
    first = site.start("-p", "pglobal", "-w", "node[1,9]")
    assert site.uses()[first] == ("isolated-global", ISOLATED_GLOBAL)
    waiting = site.cluster.submit("-p", "pglobal", "-w", "node[3,11]", script="sleep 600")
    assert site.waits(waiting)
    inside = site.start("-p", "pglobal", "-w", "node[4,5]")
    look(site, wiring)
    site.cluster.run("scancel", first, inside)
    until(lambda: bool(site.nodes(waiting)), "the start")


def command(site: Site, *words: object) -> subprocess.CompletedProcess[str]:
    prefix = site.cluster.inside.prefix
    return subprocess.run(
        [*prefix, sys.executable, "-c", "from topolane.cli import main; main()", "slurm", *map(str, words)],
        env=site.cluster.environment, capture_output=True, text=True, timeout=DEADLINE,
    )  # fmt: skip


def test_status_and_explain_speak_of_groups(site: Site, wiring: str) -> None:
    """What a job may use are links of the groups that it is in; nothing is said of uplinks."""
    site.wait_idle()
    job = site.start("-p", "pbatch", "-N", 9)
    site.call()
    said = command(site, "explain", job)
    assert said.returncode == 0, said.stderr
    group = "group" if wiring == "slingshot" else "pod"
    assert re.search(rf"it may use the links of {group}\d, {group}\d", said.stdout), said.stdout
    assert "uplink" not in said.stdout and "No other job may use them" in said.stdout
    assert "0 links may carry the traffic of two jobs" in command(site, "status").stdout


@on_a_dragonfly
def test_a_policy_for_trees_is_refused_with_its_line(site: Site) -> None:
    """Its jobs would wait for ever. Until the file is right, stock Slurm decides, and status says why."""
    site.wait_idle()
    site.configure(RULES["slingshot"] + "Partition=pstock Policy=dedicated\n", machine=MACHINES["slingshot"])
    try:
        why = "topolane.conf, line 6: dedicated: Topolane writes no routes for a dragonfly"
        assert why in site.log()
        until(lambda: why in command(site, "status").stdout, "status says why")
        assert command(site, "status").returncode == 1
    finally:
        site.configure(RULES["slingshot"], machine=MACHINES["slingshot"])
