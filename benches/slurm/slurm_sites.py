"""Runs a real Slurm of the release in TOPOLANE_TEST_SLURM (24.11) on this machine, in the shape of Cab, with stock
topology/tree or with the plugin.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from client import Client, client, compile_client
from live_cluster import RELEASE, Cluster, Missing, running, script, slurm_source
from topolane.slurm import plugin_build
from waiting import until

SLURM_TESTS = Path(__file__).resolve().parents[2] / "tests" / "slurm"
PREFIX = "node"
PATIENCE = 900.0
"""A timeout in seconds for steps that should take far less."""
SCHEDULER = (
    "batch_sched_delay=0,sched_min_interval=10000,bf_interval=2,bf_continue,bf_max_job_test=5000,"
    "bf_max_time=3600,bf_window=2880,bf_resolution=300"
)
"""Backfill examines the whole queue in each cycle, however long that takes (an hour at most), and plans two
days ahead in steps of five minutes.
"""


def enter() -> None:
    """Continues this program inside that Slurm, unless it already runs there."""
    if not os.environ.get("SLURM_TREE"):
        entry = str(SLURM_TESTS / "other_version.sh")
        sys.stdout.flush()
        os.execv(entry, [entry, RELEASE, sys.executable, *sys.argv])


def ready(nodes: int) -> None:
    """Continues inside that Slurm. Raises ValueError for a number of nodes that no shape has, and
    RuntimeError if something is missing.
    """
    Shape.of(nodes)
    enter()
    if why := script("check").stderr.strip():
        raise RuntimeError(why)


@dataclasses.dataclass(frozen=True)
class Shape:
    """Nodes per leaf, leaves per pod, and pods: the fat tree of Cab, or a smaller regular one."""

    leaf: int
    pod: int
    pods: int

    @staticmethod
    def of(nodes: int) -> Shape:
        """The shape for a number of nodes: like Cab from 324 nodes on; below, with leaves of 6 nodes and pods
        of 3 leaves. Raises ValueError.
        """
        leaf, pod = (18, 18) if nodes >= 324 else (6, 3)
        if nodes < 1 or nodes % (leaf * pod):
            raise ValueError(f"--nodes {nodes}: not a multiple of 18, or of 324 from 324 on")
        return Shape(leaf, pod, nodes // (leaf * pod))

    @property
    def nodes(self) -> int:
        return self.leaf * self.pod * self.pods

    @property
    def leaves(self) -> int:
        return self.pod * self.pods

    @property
    def core_uplinks(self) -> int:
        """Cables from a pod's switch to the core: one for each leaf below it."""
        return self.pod

    def machine(self) -> str:
        """Topolane's machine file. Each leaf has a cable to each switch of its pod, and a pod has one switch
        per node of a leaf.
        """
        children, parents = [self.leaf, self.pod, self.pods], [1, self.leaf, 2]
        cables = [1, 1, self.core_uplinks // 2]
        if self.core_uplinks % 2:
            parents, cables = [1, self.leaf, self.core_uplinks], [1, 1, 1]
        return (
            f'name = "{PREFIX}"\n[node]\nsockets = 2\ncores-per-socket = 8\n[[site]]\nname = "core"\n'
            f'children = {children}\nparents = {parents}\ncables = {cables}\nnodes = "{PREFIX}[1-{self.nodes}]"\n'
        )


@dataclasses.dataclass(frozen=True)
class System:
    """The chooser of nodes: stock topology/tree, or the plugin with rules in topolane.conf."""

    name: str
    rules: str | None = None
    """Lines of topolane.conf; None for stock topology/tree."""

    @staticmethod
    def policy(name: str) -> System:
        """The system with one policy for all jobs."""
        return System(name, f"Policy={name}\n")


STOCK = System("stock")


@dataclasses.dataclass(frozen=True)
class Tools:
    """The programs compiled for a bench."""

    plugin: Path
    client: Path


def tools(directory: Path, engine: Path | None) -> Tools:
    """Compiles the plugin and the client for the headers of that Slurm. Raises RuntimeError and InputError.

    engine: libtopolane.so; by default it is compiled.
    """
    try:
        source = slurm_source(RELEASE)
    except Missing as missing:
        raise RuntimeError(str(missing)) from missing
    made = Tools(directory / "plugin", directory / "client")
    plugin_build.build(source, engine, "cc", made.plugin)
    compile_client(source, Path(os.environ["SLURM_TREE"]), made.client)
    return made


class Site:
    """A running Slurm whose slurmctld can be restarted with another system."""

    def __init__(self, up: Cluster, shape: Shape, made: Tools) -> None:
        self.up, self.shape, self.tools = up, shape, made
        self._conf = (up.directory / "slurm.conf").read_text()
        self._job_ids = itertools.count(1)
        self.state = up.directory / "state"
        self.log = up.directory / "log" / "slurmctld.log"
        self.jobs_log = up.directory / "log" / "jobs.log"

    def begin(self, system: System, settings: Mapping[str, object]) -> None:
        """Starts slurmctld with the system and without jobs, and waits until all nodes are idle."""
        self.up.script("stop", "slurmctld")
        for path in self.state.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.configure(system, settings)
        begun = self.log.stat().st_size
        self.up.script("start", "slurmctld")
        self.wait_idle()
        said = self.log.read_text()[begun:]
        if system.rules is not None and "topolane: active" not in said:
            why = [line for line in said.splitlines() if "topolane" in line]
            raise RuntimeError(
                f"the plugin is not active: {why[-1] if why else 'slurmctld says nothing of it'}"
            )

    def configure(self, system: System, settings: Mapping[str, object]) -> None:
        """Writes slurm.conf and topolane.conf. Job numbers start at a new value, because slurmds remember the
        old ones for a while.
        """
        plugin = "topology/tree" if system.rules is None else "topology/topolane"
        lines = {
            "TopologyPlugin": plugin,
            "PluginDir": f"/usr/lib/x86_64-linux-gnu/slurm-wlm:{self.tools.plugin}",
            "FirstJobId": 100_000 * next(self._job_ids),
            "MaxJobId": 60_000_000,
            "SchedulerParameters": SCHEDULER,
            **settings,
        }
        text = self._conf
        for key in lines:
            text = re.sub(rf"(?m)^{key}=.*\n", "", text)
        conf = self.up.directory / "slurm.conf"
        conf.write_text(text + "".join(f"{key}={value}\n" for key, value in lines.items()))
        engine = self.tools.plugin / plugin_build.ENGINE
        (self.up.directory / "machine.toml").write_text(self.shape.machine())
        rules = f"Engine={engine}\nMachine=machine.toml\n{system.rules or ''}"
        (self.up.directory / "topolane.conf").write_text(rules)

    def wait_idle(self) -> None:
        """Waits until every node is idle."""
        wanted = f"{self.shape.nodes} idle"
        until(lambda: self.up.run("sinfo", "-h", "-o", "%D %t").strip() == wanted, "idle nodes")

    def clear(self) -> None:
        """Ends every job and waits until all nodes are idle."""
        for state in ("PENDING", "RUNNING", "SUSPENDED"):
            subprocess.run(
                ["scancel", "--user=root", "--state", state], env=self.up.environment, timeout=PATIENCE
            )
        until(lambda: not self.up.run("squeue", "-h", "-o", "%A"), "an empty queue")
        self.wait_idle()

    def client(self) -> contextlib.AbstractContextManager[Client]:
        return client(self.up, self.tools.client)

    def counters(self) -> dict[str, int]:
        """The plugin's counters since slurmctld started; empty under stock topology/tree. The plugin writes
        them about once a second.
        """
        time.sleep(2.2)
        try:
            lines = (self.state / "topolane_counters").read_text().splitlines()
        except FileNotFoundError:
            return {}
        return {name: int(value) for name, value in (line.split() for line in lines)}

    def slurmctld(self) -> int:
        """The process id of slurmctld."""
        return int((self.up.directory / "run" / "slurmctld.pid").read_text())

    def backfill_time(self) -> float:
        """Processor seconds of slurmctld's backfill thread."""
        for thread in Path(f"/proc/{self.slurmctld()}/task").iterdir():
            if (thread / "comm").read_text().strip() == "bckfl":
                return int((thread / "schedstat").read_text().split()[0]) / 1e9
        raise RuntimeError("slurmctld has no thread of backfill")

    def partition(self, name: str, state: str) -> None:
        """Sets a partition to UP, so that its jobs start, or to DOWN, so that they wait."""
        self.up.run("scontrol", "update", f"PartitionName={name}", f"State={state}")


@contextlib.contextmanager
def site(nodes: int, engine: Path | None, *options: object) -> Iterator[Site]:
    """A Slurm with `nodes` nodes and stock topology/tree, which ends with the context. Raises RuntimeError.

    options: further options of cluster.sh. The slurmds run at nice 10, because elsewhere they and their jobs
    have cores of their own.
    """
    shape = Shape.of(nodes)
    # Its sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as scratch:
        made = tools(Path(scratch), engine)
        say(f"starting {nodes:,} slurmds")
        began = time.monotonic()
        where = Path(scratch) / "slurm"
        words = [
            "--leaf",
            shape.leaf,
            "--pod",
            shape.pod,
            "--prefix",
            PREFIX,
            "--conf",
            "MinJobAge=10",
            *options,
        ]
        try:
            with running(nodes, where, *words) as up:
                for pid in where.glob(f"run/{PREFIX}*.pid"):
                    os.setpriority(os.PRIO_PROCESS, int(pid.read_text()), 10)
                say(f"{nodes:,} slurmds are idle after {time.monotonic() - began:.0f} s")
                yield Site(up, shape, made)
        except AssertionError as error:
            raise RuntimeError(str(error)) from error


def say(text: str) -> None:
    """Prints progress on a terminal; nothing into a pipe."""
    if sys.stderr.isatty():
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
