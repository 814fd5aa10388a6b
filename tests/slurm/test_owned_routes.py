"""Jobs that own links, under a real slurmctld with the topology plugin and a simulated InfiniBand subnet.

OpenSM loads the tables that PrologSlurmctld and EpilogSlurmctld have made. What is checked are the tables that the
switches have, read back after each change, by a program that shares no code with Topolane's reader of tables.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from live_cluster import Cluster, Inside, running
from plugin_site import plugin_conf
from topolane import Machine
from topolane._engine import DedicatedRoutes
from waiting import until

sys.path.append(str(Path(__file__).parents[1] / "fabric"))
from owned_jobs import trace
from subnet import ask, needs_a_subnet, sweep
from subnet import running as running_subnet
from tables_text import Text

pytestmark = needs_a_subnet

NODES = 24
"""Four leaves of six nodes and three uplinks, two of them to a pod."""
MACHINE = f"""
name = "toy"
[[site]]
name = "core"
children = [6, 2, 2]
nodes = "node[1-{NODES}]"
parents = [1, 3, 3]
"""
TOPOLANE = "from topolane.cli import main; main()"

PROLOG = """\
#!/bin/sh
exec /usr/sbin/chroot /proc/{process}/root /usr/bin/env {environment} \\
    {python} -c '{topolane}' slurm routes --machine {net} --out {directory}/lfts --state {state} \\
    --install 'sh {directory}/load {directory}' $(cat {directory}/options) 2>> {directory}/said
"""
"""slurmctld is in a tree without Python."""

LOAD = """\
test -e "$1/broken" && { echo 'the subnet manager is away' >&2; exit 1; }
log=$1/opensm.log
size=$(stat -c %s "$log")
kill -HUP $(cat "$1/opensm.pid") || exit 1
for _ in $(seq 400); do
    sleep 0.1
    tail -c +$((size + 1)) "$log" | grep -q 'SUBNET UP' && break
done
n=$(ls "$1/kept" | wc -l)
mkdir "$1/kept/.$n"
. "$1/subnet"
timeout -k 2 30 dump_fts > "$1/kept/.$n/fts" 2>> "$1/said" || exit 1
cp "$1/state/topolane_links" "$1/kept/.$n/links"
sleep 2
date +%s.%N > "$1/kept/.$n/time"
mv "$1/kept/.$n" "$1/kept/$n"
"""
"""Ends when the switches have the tables, as docs/guides/dedicated-links.md asks, and keeps what they have."""

EPILOG = """\
#!/bin/sh
test -e {0}/slow || exit 0
sleep 8
date +%s.%N > {0}/marks/$SLURM_JOB_ID.$SLURMD_NODENAME
"""
"""On each node, after the job's processes there have ended."""

SCRIPT = "date +%s.%N > {0}/marks/$SLURM_JOB_ID.began; sleep {1}; date +%s.%N > {0}/marks/$SLURM_JOB_ID.ended"


@dataclasses.dataclass(frozen=True)
class Installed:
    """What the switches had, from when on, and the links that the plugin's file gave."""

    time: float
    tables: str
    jobs: dict[int, dict[str, Any]]


class Site:
    def __init__(self, cluster: Cluster, directory: Path, environment: dict[str, str]) -> None:
        self.cluster, self.directory, self.environment = cluster, directory, environment
        self.net = (directory / "net").read_text()
        self.machine = Machine.parse(self.net, "net")

    def submit(self, nodes: int, seconds: int, *more: str) -> int:
        return self.cluster.submit(
            f"--nodes={nodes}", "--time=5", *more, script=SCRIPT.format(self.directory, seconds)
        )

    def marked(self, what: str) -> set[int]:
        """The jobs whose scripts began or ended."""
        return {int(path.stem) for path in (self.directory / "marks").glob(f"*.{what}")}

    def mark(self, job: int, what: str) -> float | None:
        """When a job's script began or ended."""
        with contextlib.suppress(OSError, ValueError):
            return float((self.directory / "marks" / f"{job}.{what}").read_text())
        return None

    def installed(self) -> list[Installed]:
        folders = sorted((self.directory / "kept").glob("[0-9]*"), key=lambda path: int(path.name))
        return [
            Installed(
                float((folder / "time").read_text()),
                (folder / "fts").read_text(),
                links_in((folder / "links").read_text()),
            )
            for folder in folders
        ]

    def wait_quiet(self) -> None:
        until(lambda: not self.cluster.run("squeue", "-h"), "an empty queue")

    def property_of(self, job: int, name: str) -> str | None:
        found = re.search(rf"\b{name}=(\S*)", self.cluster.run("scontrol", "show", "job", job))
        return found and found[1]


def links_in(text: str) -> dict[int, dict[str, Any]]:
    jobs = {}
    for line in text.splitlines()[1:-1]:
        job, _, count, *rest = line.split()
        jobs[int(job)] = {
            "id": int(job),
            "nodes": [int(word) for word in rest[: int(count)]],
            "links": [int(word) for word in rest[int(count) + 1 :]],
        }
    return jobs


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A subnet whose OpenSM runs with the tables of no job."""
    directory = tmp_path_factory.mktemp("subnet")
    (directory / "toy.toml").write_text(MACHINE)
    for name in ("kept", "marks"):
        (directory / name).mkdir()
    with running_subnet(directory / "toy.toml", directory) as environment:
        sweep(environment, "ftree")
        net = ask(environment, "ibnetdiscover").stdout
        (directory / "net").write_text(net)
        machine = Machine.parse(net, "net")
        (directory / "lfts").write_text(DedicatedRoutes(machine, []).tables(net, "net").text())
        names = ("LD_PRELOAD", "IBSIM_SOCKNAME", "OSM_TMP_DIR", "OSM_CACHE_DIR")
        lines = [f"cd {directory}", *(f"export {name}={environment[name]}" for name in names)]
        (directory / "subnet").write_text("".join(f"{line}\n" for line in lines))
        command = ["opensm", "-R", "file", "-U", str(directory / "lfts"), "-s", "0", "-d", "2"]
        command += ["-f", str(directory / "opensm.log")]
        opensm = subprocess.Popen(
            command,
            env=environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            (directory / "opensm.pid").write_text(f"{opensm.pid}\n")
            log = directory / "opensm.log"
            until(lambda: log.exists() and "SUBNET UP" in log.read_text(), "the subnet manager has begun")
            yield directory, environment
        finally:
            opensm.kill()  # it waits for a simulator on SIGTERM
            opensm.wait()


@pytest.fixture(scope="module")
def site(
    built: Path,
    inside: Inside,
    manager: tuple[Path, dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    directory, environment = manager
    slurm, conf = tmp_path_factory.mktemp("slurm"), tmp_path_factory.mktemp("conf") / "topolane.conf"
    conf.write_text(plugin_conf(built, f"{directory}/net", "Policy=dedicated\n"))
    target = next(word for word in inside.prefix if word.startswith("--target="))
    search = f"{inside.environment['PATH'].partition(':')[0]}:/usr/sbin:/usr/bin:/sbin:/bin"
    given = {"PATH": search, "SLURM_CONF": slurm / "slurm.conf", "PYTHONPATH": ":".join(sys.path[1:])}
    script = directory / "prolog"
    script.write_text(
        PROLOG.format(
            process=target.partition("=")[2],
            environment=" ".join(f"{name}={value}" for name, value in given.items()),
            python=sys.executable,
            topolane=TOPOLANE,
            net=directory / "net",
            directory=directory,
            state=slurm / "state",
        )
    )
    script.chmod(0o755)
    epilog = directory / "epilog"
    epilog.write_text(EPILOG.format(directory))
    epilog.chmod(0o755)
    (directory / "load").write_text(LOAD)
    (directory / "options").write_text("\n")
    (directory / "state").symlink_to(slurm / "state")
    options: list[object] = ["--leaf", 6, "--pod", 2, "--conf-file", conf]
    for line in (
        "TopologyPlugin=topology/topolane",
        f"PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:{built}",
        f"PrologSlurmctld={script}",
        f"EpilogSlurmctld={script}",
        f"Epilog={epilog}",
    ):
        options += ["--conf", line]
    with running(NODES, slurm, *options, inside=inside) as cluster:
        yield Site(cluster, directory, environment)


def test_a_script_starts_when_the_switches_have_its_routes(site: Site) -> None:
    """While a job's script runs, every packet between its nodes stays on the job's links, and no link has two jobs. Tasks of
    an array are jobs. When all jobs have ended, the switches have the tables of no job."""
    first = site.submit(8, 20)
    until(lambda: site.property_of(first, "JobState") == "CONFIGURING", "the job waits for its routes")
    assert site.mark(first, "began") is None
    array = site.submit(7, 6, "--array=1-2")
    for nodes in (7, 8, 9, 4, 14, 7, 10):
        site.submit(nodes, 6)
    until(lambda: site.mark(first, "began") is not None, "the first script runs")
    follow(site, first)
    until(lambda: len(site.marked("ended")) == 10, "all jobs have run")
    site.wait_quiet()
    empty = DedicatedRoutes(site.machine, []).tables(site.net, "net").text()
    assert Text(site.net, site.installed()[-1].tables).port == Text(site.net, empty).port
    owning = set().union(*(one.jobs for one in site.installed()))
    assert len(owning) >= 6, "jobs on several leaves own links"
    tasks = {job for job in site.marked("began") if site.property_of(job, "ArrayJobId") == str(array)}
    assert len(tasks) == 2 and tasks <= owning
    for job in sorted(owning & site.marked("began")):
        began, ended = site.mark(job, "began"), site.mark(job, "ended")
        assert began and ended
        before = [one for one in site.installed() if one.time <= began]
        during = [one for one in site.installed() if began < one.time <= ended]
        assert before and job in before[-1].jobs, "the script began before its routes were there"
        row = before[-1].jobs[job]
        for one in (before[-1], *during):
            assert one.jobs[job] == row
            seen = trace(site.machine, [row], Text(site.net, one.tables))[job]
            size = len(row["nodes"])
            assert (seen.pairs, seen.outside) == (size * (size - 1), 0), (job, one.time)
    for one in site.installed():
        links = [link for row in one.jobs.values() for link in row["links"]]
        assert len(links) == len(set(links))


def follow(site: Site, job: int) -> None:
    """ibtracert goes over the job's links from node to node."""
    row = site.installed()[-1].jobs[job]
    own = {
        frozenset(names[:3:2]) for link, names in enumerate(site.machine.link_names()) if link in row["links"]
    }
    text = Text(site.net, "")
    host = {name: device for device, name in text.name.items()}
    drawn = random.Random(1)
    for _ in range(12):
        ends = [host[site.machine.node_name(node)] for node in drawn.sample(row["nodes"], 2)]
        said = ask(site.environment, "ibtracert", *(str(text.lid[device]) for device in ends)).stdout
        stops = re.findall(r'^(?:From|\[\d+\] ->) .*"(.*)"$', said, re.MULTILINE)[1:-1]
        assert stops, said
        assert {frozenset(pair) for pair in pairwise(stops)} <= own, said


def test_what_happens_without_a_subnet_manager(site: Site) -> None:
    """By default the job runs on the routes that are there. With --strict it is requeued, until the routes can be had."""
    site.wait_quiet()
    (site.directory / "broken").touch()
    job = site.submit(8, 1)
    until(lambda: site.mark(job, "ended") is not None, "the job runs all the same")
    site.wait_quiet()
    (site.directory / "options").write_text("--strict\n")
    job = site.submit(8, 1)
    until(lambda: site.property_of(job, "Restarts") not in (None, "0"), "the job is requeued")
    assert site.mark(job, "began") is None
    (site.directory / "broken").unlink()
    until(lambda: site.mark(job, "ended") is not None, "the job runs at last")
    (site.directory / "options").write_text("\n")
    before = [one for one in site.installed() if one.time <= (site.mark(job, "began") or 0)]
    assert job in before[-1].jobs
    site.wait_quiet()


def test_routes_stay_while_nodes_end_a_job(site: Site) -> None:
    """Tables that are installed for another job while a job's nodes still end its processes keep the job's routes. They are
    gone when the nodes are free."""
    site.wait_quiet()
    (site.directory / "slow").touch()
    (site.directory / "options").write_text("--wait 20\n")
    ending = site.submit(8, 4)
    until(lambda: site.mark(ending, "began") is not None, "it runs")
    row = site.installed()[-1].jobs[ending]
    until(lambda: site.mark(ending, "ended") is not None, "its processes end")
    other = site.submit(8, 20)
    until(lambda: site.mark(other, "began") is not None, "another job has its routes")
    names = [site.machine.node_name(node) for node in row["nodes"]]
    until(lambda: all(site.mark(ending, name) for name in names), "the nodes have ended the job")
    free = min(site.mark(ending, name) or 0 for name in names)
    (site.directory / "slow").unlink()
    ended = site.mark(ending, "ended") or 0

    def is_kept(one: Installed) -> bool:
        return trace(site.machine, [row], Text(site.net, one.tables))[ending].outside == 0

    meanwhile = [one for one in site.installed() if ended < one.time < free]
    assert meanwhile and all(map(is_kept, meanwhile))
    until(lambda: not is_kept(site.installed()[-1]), "its routes are gone")
    (site.directory / "options").write_text("\n")
    site.wait_quiet()
