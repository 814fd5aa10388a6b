"""What `topolane room --slurm` and the gauges of GPUs say of a real slurmctld with GPUs on real slurmds: compared with what scontrol
prints, and with how many jobs sbatch then starts.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_cluster import Cluster, Inside
from plugin_site import LACKS_NODES, plugin_cluster
from waiting import DEADLINE, until

pytest.importorskip("prometheus_client", reason="needs the extra slurm: prometheus-client")
from prometheus_client.parser import text_string_to_metric_families

MACHINE = """\
name = "node"
[node]
sockets = 2
cores-per-socket = 8
[[site]]
name = "core"
children = [4, 3]
parents = [1, 1]
cables = [1, 1]
nodes = "node[1-12]"
"""
NODES = 12
GPUS = (("5 Gres=gpu:h100:4", 20), ("5 Gres=gpu:4", 20), ("1 Gres=gpu:a100:2", 2))
"""Nodes with their GPUs, and how many these are in all. The last node has none."""
JOBS = (
    ("-w", "node1", "--gres=gpu:1"),
    ("-w", "node[1-2]", "-N2", "--gpus-per-node=h100:2"),
    ("-w", "node3,node6", "-N2", "--gpus=5"),
    ("-w", "node7", "-n16", "--gres=gpu:1"),
    ("-w", "node4", "--gres=gpu:h100:1", "--mem=0"),
    ("-w", "node12", "-n3"),
)
STRANDED = {"without_cores": 3, "without_memory": 3}
"""GPUs of node7 and of node4: a job with one GPU has all cores there, or all memory."""
ALL_GPUS = sum(gpus for _, gpus in GPUS)


class Site:
    """A cluster with GPUs, and Topolane's commands there."""

    def __init__(self, cluster: Cluster, inside: Inside, machine: Path) -> None:
        self.cluster, self.inside, self.machine = cluster, inside, machine

    def topolane(self, *words: object) -> str:
        command = [sys.executable, "-c", "from topolane.cli import main; main()", *map(str, words)]
        done = subprocess.run(
            [*self.inside.prefix, *command],
            env=self.cluster.environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def room(self, *words: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.topolane("room", "--machine", self.machine, "--slurm", "--json", *words)
        )
        return found

    def gauges(self) -> dict[tuple[str, ...], float]:
        """The gauges by name and labels, by the names of the labels."""
        text = self.topolane("slurm", "metrics", "--once")
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        return {
            (one.name, *(one.labels[label] for label in sorted(one.labels))): one.value for one in samples
        }

    def nodes(self) -> list[dict[str, str]]:
        """What scontrol prints of the nodes."""
        blocks = self.cluster.run("scontrol", "show", "node", "-d").strip().split("\n\n")
        return [dict(re.findall(r"(\w+)=(\S*)", block)) for block in blocks]

    def free_gpus(self) -> int:
        """Configured, less those that are allocated, less those of nodes that are drained or down."""
        usable = [node for node in self.nodes() if not re.search("DRAIN|DOWN", node["State"])]
        return sum(gpus(node["Gres"]) - gpus(node.get("GresUsed", "")) for node in usable)

    def gpus_of_jobs(self) -> int:
        """Those that jobs hold, as scontrol prints the jobs."""
        lines = re.findall(r"\bGRES=(\S+)", self.cluster.run("scontrol", "show", "job", "-d"))
        return sum(map(gpus, lines))

    def states(self, job: int) -> list[str]:
        """State and reason of each task of a job, in the words of Slurm alone."""
        said = self.cluster.run("squeue", "-h", "-r", "-o", "%T %r", "-j", job)
        return said.replace(LACKS_NODES[-1], "Resources").splitlines()

    def start(self, *words: object) -> int:
        job = self.cluster.submit(*words, script="sleep 900")
        until(lambda: self.states(job) == ["RUNNING None"], f"the start of {words}")
        return job

    def starts(self, tasks: int, *words: object) -> None:
        """Asserts that `tasks` jobs start now, while one more waits for resources; they are cancelled then."""
        job = self.cluster.submit(f"--array=0-{tasks}", *words, script="sleep 900")
        expected = ["PENDING Resources", *["RUNNING None"] * tasks]
        until(lambda: sorted(self.states(job)) == expected, f"{tasks} of {tasks + 1} jobs {words}")
        self.cluster.run("scancel", job)
        until(lambda: not self.states(job), "the end of the jobs")


def gpus(gres: str) -> int:
    """The GPUs in `gpu:h100:4(IDX:0-3)`."""
    return sum(int(count) for count in re.findall(r"gpu:(?:[a-z]\w*:)?(\d+)", gres))


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Jobs of all kinds run, node5 is drained and node10 is down. The plugin decides for none of them."""
    options: list[object] = ["--partitions", "pbatch p", "--select", "cons_tres"]
    for group, _ in GPUS:
        options += ["--group", group]
    conf = ("GresTypes=gpu", "SelectTypeParameters=CR_Core_Memory", "DefMemPerCPU=100")
    rules, directory = "Partition=p Policy=isolated\n", tmp_path_factory.mktemp("slurm")
    given = {"nodes": NODES, "machine": MACHINE, "rules": rules, "conf": conf}
    with plugin_cluster(built, inside, directory, *options, **given) as cluster:
        made = Site(cluster, inside, cluster.directory / "machine.toml")
        for words in JOBS:
            made.start(*words)
        cluster.run("scontrol", "update", "nodename=node5", "state=drain", "reason=test")
        cluster.run("scontrol", "update", "nodename=node10", "state=down", "reason=test")
        yield made


def test_free_gpus_are_those_configured_less_those_allocated_and_those_out_of_service(site: Site) -> None:
    """Whatever the jobs ask for, GPUs by node or in all, typed or not, without accounting: Slurm's own sums agree."""
    found = site.room()
    held = site.gpus_of_jobs()
    assert found["total"] == ALL_GPUS and found["free"] == site.free_gpus()
    assert found["free"] == ALL_GPUS - held - 4 - 4 and held == 1 + 4 + 5 + 1 + 1
    assert {reason: gpus for reason, gpus in found["stranded"].items() if gpus} == STRANDED
    assert found["idle_nodes"] == sum(node["State"] == "IDLE" for node in site.nodes())


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (1, ["-N1", "-n1", "--gres=gpu:1"]),
        (2, ["-N1", "-n1", "--gres=gpu:2"]),
        (4, ["-N1", "-n1", "--gpus-per-node=4"]),
        (8, ["-N2", "--gres=gpu:4", "--exclusive"]),
    ],
)
def test_as_many_jobs_as_it_says_start_and_no_more(site: Site, size: int, words: list[str]) -> None:
    (fit,) = site.room("--sizes", size)["fits"]
    assert fit["jobs"][-1] > 0
    site.starts(fit["jobs"][-1], *words)


def test_the_gauges_are_the_same_figures(site: Site) -> None:
    """Prometheus gets what the command prints."""
    site.cluster.run("sbatch", "--test-only", "-N1", "--wrap", "true")
    until((site.cluster.directory / "state" / "topolane_jobs").exists, "the plugin's files")
    gauges, room = site.gauges(), site.room()
    prefix = "topolane_slurm_"
    assert gauges[f"{prefix}gpus",] == ALL_GPUS and gauges[f"{prefix}gpus_free",] == site.free_gpus()
    assert {reason: gauges[f"{prefix}gpus_stranded", reason] for reason in STRANDED} == STRANDED
    fits = {
        (f"{prefix}room_jobs", level, str(fit["size"])): jobs
        for fit in room["fits"]
        for level, jobs in zip(room["levels"], fit["jobs"])
    }
    assert fits == {key: value for key, value in gauges.items() if key[0] == f"{prefix}room_jobs"}
