"""What changes while slurmctld runs: nodes that come and go, jobs that are put back into the queue, reasons to wait."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import links_in_tree as tree
import pytest
from live_cluster import RELEASE, Inside
from plugin_site import MACHINE, Site, plugin_cluster
from waiting import until

VERSION = tuple(map(int, RELEASE.split(".")))
PRESENT = 18
"""Nodes in slurm.conf. The machine file names the six of one more leaf."""
RULES = "Partition=pbatch Policy=isolated\n"
EPILOG = """\
#!/bin/sh
hold={directory}/hold-$SLURMD_NODENAME
while [ -e $hold ]; do sleep 0.1; done
"""
"""It lasts on a node for as long as a test wants."""


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory, epilog = tmp_path_factory.mktemp("slurm"), tmp_path_factory.mktemp("epilog") / "epilog"
    epilog.write_text(EPILOG.format(directory=epilog.parent))
    epilog.chmod(0o755)
    conf = [f"MaxNodeCount={PRESENT + 8}", f"Epilog={epilog}"]
    if VERSION >= (25, 11):
        conf.append("SlurmctldParameters=enable_expedited_requeue")
    options = ("--leaf", 6, "--pod", 2, "--partitions", "pbatch pstock")
    given = {"nodes": PRESENT, "machine": MACHINE, "rules": RULES, "conf": conf}
    with plugin_cluster(built, inside, directory, *options, **given) as cluster:
        found = Site(cluster, built)
        found.epilogs = epilog.parent  # type: ignore[attr-defined]
        yield found


@pytest.fixture(autouse=True)
def quiet(site: Site) -> None:
    site.cluster.run("scancel", "--user=root")
    until(lambda: not site.cluster.run("squeue", "-h"), "an empty queue")
    for state in ("resume", "idle"):
        site.tried("scontrol", "update", f"nodename=node[1-{PRESENT}]", f"state={state}")
    until(lambda: len(idle(site)) >= PRESENT, "idle nodes")


def idle(site: Site) -> set[str]:
    return set(site.cluster.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split())


def come(site: Site, name: str) -> None:
    """A node that slurm.conf does not name registers with slurmctld, on the fourth leaf of the machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (site.cluster.directory / "spool" / name).mkdir(exist_ok=True)
    size = "CPUs=16 Boards=1 SocketsPerBoard=2 CoresPerSocket=8 RealMemory=32000"
    settings = f"Port={port} {size} Topology=default:pod2:leaf4"
    words = [*site.cluster.inside.prefix, "slurmd", "-Z", "-N", name, "--conf", settings]
    environment = site.cluster.environment | {"TOPOLANE_TEST_CLUSTER": str(site.cluster.directory)}
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: name in idle(site), f"{name} is idle")


def go(site: Site, name: str) -> None:
    """It ends, and slurmctld forgets it."""
    process = int((site.cluster.directory / "run" / f"{name}.pid").read_text())
    os.kill(process, 15)
    until(
        lambda: site.tried("scontrol", "delete", f"nodename={name}").returncode == 0,
        f"{name} is free and gone",
    )


@pytest.mark.skipif(
    VERSION < (25, 5), reason=f"topology/tree of Slurm {RELEASE} gives no job a node that came later"
)
def test_nodes_that_come_and_go(site: Site) -> None:
    """A node that the machine file names is placed by the policy; of one that it does not name, status says so and stock Slurm
    decides. A new node may get the number of one that has gone. No isolated job shares a link, and slurmctld goes on."""
    started = site.counters()["started"]
    come(site, "extra1")
    assert (site.published().unnamed, site.published().such_as) == (1, "extra1")
    shown = status(site)
    assert "not in the machine file: 1 node, such as extra1; stock Slurm chooses among them" in shown, shown
    first = site.start("-p", "pbatch", "-N", 8, "-w", "node[1-4,7-10]")
    unnamed = site.counters()["stock_unknown"]
    on_extra = site.start("-p", "pbatch", "-N", 1, "-w", "extra1")
    assert site.counters()["stock_unknown"] > unnamed
    site.cluster.run("scancel", on_extra)
    until(lambda: "extra1" in idle(site), "extra1 is idle")
    # No call of the plugin comes between the two.
    go(site, "extra1")
    come(site, "node19")
    assert site.published().unnamed == 0 and "not in the machine file" not in status(site)
    unnamed = site.counters()["stock_unknown"]
    second = site.start("-p", "pbatch", "-N", 4, "-w", "node[13-15],node19")
    assert site.counters()["stock_unknown"] == unnamed
    switches = dict(site.tree) | {"leaf4": frozenset({"node19"}), "pod2": site.tree["pod2"] | {"node19"}}
    assert tree.crossed(site.nodes(second), switches) >= {"leaf3", "leaf4"}
    third = site.cluster.submit("-p", "pbatch", "-N", 7, script="sleep 600")
    assert site.waits(third), "leaves 1 and 2 are crossed, and 3 is"
    running = site.cluster.run("squeue", "-h", "-t", "R", "-o", "%A %P %N")
    assert not tree.meetings(tree.listed(running, time.time()), switches)
    assert {first, second} == {int(line.split()[0]) for line in running.splitlines()}
    site.cluster.run("scancel", first, second, third)
    until(lambda: "node19" in idle(site), "node19 is idle")
    go(site, "node19")
    site.start("-p", "pbatch", "-N", 12)
    assert site.counters()["started"] == started, "slurmctld is the one of the beginning"


def status(site: Site) -> str:
    command = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "status"]
    words = [*site.cluster.inside.prefix, *command, "--state", str(site.state)]
    done = subprocess.run(words, env=site.cluster.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


@pytest.mark.skipif(VERSION < (25, 11), reason=f"Slurm {RELEASE} has no --requeue=expedite")
def test_an_expedited_requeue_keeps_its_nodes(site: Site) -> None:
    """A node of a job fails. While the last of its nodes runs the epilog, the job keeps all of them, and its links: an isolated
    job that needs these waits, and the first job starts again before it, on those of its nodes that are sound."""
    site.start("-p", "pbatch", "-N", 3, "-w", "node[4-6]")
    job = site.start("-p", "pbatch", "-N", 5, "-x", "node[10-18]", "--requeue=expedite")
    before = site.nodes(job)
    site.start("-p", "pbatch", "-N", 3, "-w", "node[16-18]")
    other = site.cluster.submit("-p", "pbatch", "-N", 6, script="sleep 600")
    assert site.waits(other), "leaf 2 is crossed"
    failed, last = min(before), max(before)
    hold = site.epilogs / f"hold-{last}"  # type: ignore[attr-defined]
    hold.touch()
    try:
        site.cluster.run("scontrol", "update", f"nodename={failed}", "state=down", "reason=test")
        until(lambda: site.nodes(job) == {last}, "the epilogs of the other nodes")
        assert site.waits(other), "the job that ends holds leaf 2"
    finally:
        hold.unlink()
    until(lambda: len(site.nodes(job)) == 5, "the start again")
    assert before - {failed} < site.nodes(job)
    assert not site.nodes(other)


@pytest.mark.skipif(VERSION < (26, 5), reason=f"Slurm {RELEASE} has no reasons of topology")
def test_squeue_says_that_no_place_fits(site: Site) -> None:
    """Enough nodes are idle, and no link is: the reason is Slurm's own for its topology, and goes when the job starts."""
    first = site.start("-p", "pbatch", "-N", 8, "-w", "node[1-4,7-10]")
    site.start("-p", "pbatch", "-N", 3, "-w", "node[13-15]")
    job = site.cluster.submit("-p", "pbatch", "-N", 4, script="sleep 600")

    def reason() -> str:
        site.call()
        return site.cluster.run("squeue", "-h", "-j", job, "-o", "%r").strip()

    until(lambda: "No suitable topology unit found" in reason(), "the reason")
    site.cluster.run("scancel", first)
    until(lambda: bool(site.nodes(job)), "the start")
    assert reason() == "None"
