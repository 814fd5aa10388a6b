"""The plugin inside a real slurmctld of a dragonfly. What jobs may use is computed from the cables in the machine file, without the
engine (tests/wirings/closure.py).
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Inside
from plugin_site import NODES, Site, plugin_cluster
from topolane import sources
from topolane.cluster.view import ISOLATED, ISOLATED_GLOBAL
from waiting import DEADLINE, until
from wirings.closure import Cables

MACHINE = (
    sources.machine(f"slingshot(nodes={NODES}, groups=3, switches=4, cables=2)")
    .to("toml")
    .replace("slingshot[", "node[")
)
"""Two nodes on each switch."""
RULES = """\
Partition=pbatch,pshared Policy=isolated
Partition=pglobal Policy=isolated-global
Partition=ptree Policy=first-fit
"""
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


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("slurm")
    options = ("--leaf", 2, "--pod", 4, "--partitions", "pbatch pshared:ALL:NO pglobal ptree pstock")
    with plugin_cluster(built, inside, directory, *options, machine=MACHINE, rules=RULES) as cluster:
        yield Site(cluster, built)


def look(site: Site) -> None:
    """No job uses a link of an isolated job, or one between groups of a job that is isolated there."""
    jobs = {job.job: job for job in site.running() or []}
    cables = Cables(MACHINE)
    for link, users in cables.shared({job: sorted(ran.nodes) for job, ran in jobs.items()}).items():
        partitions = {jobs[job].partition for job in users}
        closed = {"pbatch", "pshared"}
        if cables.leads_to_another_group(link):
            closed.add("pglobal")
        assert not partitions & closed, (link, [jobs[job] for job in users])


def test_no_promised_link_is_shared_under_a_random_mix(site: Site) -> None:
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
            look(site)
            looks += 1
    until(lambda: (look(site), not site.cluster.run("squeue", "-h"))[1], "the end of all jobs")
    counted = site.counters()
    assert looks > 20 and counted["placed"] and counted["in_area"] and counted["refused"]
    assert not {name: counted[name] for name in counted if name.startswith("stock_") and counted[name]}


def test_a_job_is_kept_off_the_gateways_of_another(site: Site) -> None:
    """A job in two groups has all cables between them; another one in both waits, and one inside a group starts."""
    site.wait_idle()
    first = site.start("-p", "pglobal", "-w", "node[1,9]")
    assert site.uses()[first] == ("isolated-global", ISOLATED_GLOBAL)
    waiting = site.cluster.submit("-p", "pglobal", "-w", "node[3,11]", script="sleep 600")
    assert site.waits(waiting)
    inside = site.start("-p", "pglobal", "-w", "node[4,5]")
    look(site)
    site.cluster.run("scancel", first, inside)
    until(lambda: bool(site.nodes(waiting)), "the start")


def command(site: Site, *words: object) -> subprocess.CompletedProcess[str]:
    prefix = site.cluster.inside.prefix
    return subprocess.run(
        [*prefix, sys.executable, "-c", "from topolane.cli import main; main()", "slurm", *map(str, words)],
        env=site.cluster.environment, capture_output=True, text=True, timeout=DEADLINE,
    )  # fmt: skip


def test_status_and_explain_speak_of_groups(site: Site) -> None:
    """What a job may use are links of the groups that it is in; nothing is said of uplinks."""
    site.wait_idle()
    job = site.start("-p", "pbatch", "-N", 9)
    site.call()
    said = command(site, "explain", job)
    assert said.returncode == 0, said.stderr
    assert re.search(r"it may use the links of group\d, group\d", said.stdout), said.stdout
    assert "uplink" not in said.stdout and "No other job may use them" in said.stdout
    assert "0 links may carry the traffic of two jobs" in command(site, "status").stdout


def test_a_policy_for_trees_is_refused_with_its_line(site: Site) -> None:
    """Its jobs would wait for ever. Until the file is right, stock Slurm decides, and status says why."""
    site.wait_idle()
    site.configure(RULES + "Partition=pstock Policy=dedicated\n", machine=MACHINE)
    try:
        why = "topolane.conf, line 6: dedicated: the policy needs a tree, but the machine is a dragonfly"
        assert why in site.log()
        until(lambda: why in command(site, "status").stdout, "status says why")
        assert command(site, "status").returncode == 1
    finally:
        site.configure(RULES, machine=MACHINE)
