"""A small cluster whose slurmctld runs the topology plugin, a load for it, and what must never be seen there."""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import links_in_tree as tree
from live_cluster import Cluster, Inside, running
from topolane.slurm import plugin_build, plugin_state
from topolane.slurm.plugin_state import PluginJobs
from waiting import DEADLINE, until

HERE = Path(__file__).parent
CRATE = HERE.parents[1] / "crates" / "capi"
NODES = 24
"""Four leaves of six nodes, two of them to a pod; every leaf has three uplinks, one to each switch of its pod."""
MACHINE = f"""\
name = "node"
[node]
sockets = 2
cores-per-socket = 8
[[site]]
name = "core"
children = [6, 2, 2]
parents = [1, 3, 3]
cables = [1, 1, 2]
nodes = "node[1-{NODES}]"
"""
RULES = """\
Partition=pbatch,pshared Policy=isolated
Partition=powned Policy=dedicated
Partition=ptree Policy=slurm-tree
"""
PARTITIONS = "pbatch pshared:ALL:NO powned ptree pstock"
CALL_TIME = 1_000_000
"""Microseconds, the most that there can be: on a busy machine a call of the engine takes longer than the two milliseconds
after which stock Slurm decides, and then jobs share links as they should."""
LACKS_NODES = ("Resources", "Priority", "No suitable topology unit found")
"""What squeue says of a job for which Slurm finds no nodes. The last one is the plugin's on 26.05, when Slurm has asked it again."""
MAY_MEET = {"pstock", "plow", "ptree"}
ACROSS = [f"node[{number},{number + 6}]" for number in range(1, 7)]
"""A node of each of two leaves in a pod. A dedicated job on these needs an uplink of each leaf, so three such jobs fit."""

MIX = (
    ("pbatch", lambda draw: ["-N", draw.choice((1, 2, 3, 5, 7, 9))]),
    ("pbatch", lambda draw: ["-N", "2-6"]),
    ("pbatch", lambda draw: ["-n", draw.randint(1, 60)]),
    ("pshared", lambda draw: ["-n", draw.randint(1, 40)]),
    ("powned", lambda draw: ["-N", draw.choice((2, 4, 8))]),
    ("powned", lambda draw: ["-w", draw.choice(ACROSS)]),
    ("pstock", lambda draw: ["-N", draw.choice((1, 2, 7))]),
    ("ptree", lambda draw: ["-N", draw.choice((1, 2, 5))]),
)


def plugin_conf(built: Path, machine: str | None, rules: str, **settings: object) -> str:
    """The text of a topolane.conf for a machine file of this name. Lines: the engine, the machine, further settings, the rules."""
    lines: dict[str, object] = {"Engine": built / plugin_build.ENGINE}
    if machine is not None:
        lines["Machine"] = machine
    lines |= settings
    lines["Engine"] = f"{lines['Engine']} CallTime={lines.pop('CallTime', CALL_TIME)}"
    return "".join(f"{key}={value}\n" for key, value in lines.items()) + rules


@contextlib.contextmanager
def plugin_cluster(
    built: Path,
    inside: Inside,
    directory: Path,
    *options: object,
    nodes: int = NODES,
    machine: str = MACHINE,
    rules: str = RULES,
    conf: Sequence[str] = (),
    conf_files: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """A cluster in `directory` whose slurmctld runs the plugin. `options` are those of cluster.sh, `conf` are further lines of
    slurm.conf, and `conf_files` has the texts of further files next to it, by name."""
    files = directory.with_name(f"{directory.name}-conf")
    files.mkdir()
    conf_text = plugin_conf(built, "machine.toml", rules)
    texts = {"topolane.conf": conf_text, "machine.toml": machine, **(conf_files or {})}
    words = list(options)
    for name, text in texts.items():
        (files / name).write_text(text)
        words += ["--conf-file", files / name]
    plugins = f"PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:{built}"
    for line in ("TopologyPlugin=topology/topolane", plugins, *conf):
        words += ["--conf", line]
    with running(nodes, directory, *words, inside=inside) as cluster:
        yield cluster


class HasEngine(Protocol):
    """A cluster and the folder of what was built for it."""

    cluster: Cluster
    built: Path


def saved(cluster: Cluster, job: int) -> None:
    """Waits until Slurm has written down what runs."""
    before = time.time()
    cluster.run("scontrol", "update", f"JobId={job}", "Comment=saved")
    until(lambda: (cluster.directory / "state" / "job_state").stat().st_mtime > before, f"job {job} is saved")


class Site:
    def __init__(self, cluster: Cluster, built: Path) -> None:
        self.cluster = cluster
        self.built = built
        self.tree = tree.switches(cluster.directory / "topology.conf")
        self.state = cluster.directory / "state"

    def write(self, rules: str = RULES, machine: str | None = MACHINE, **settings: object) -> None:
        """Writes topolane.conf and the machine file that it names."""
        if machine is not None:
            (self.cluster.directory / "machine.toml").write_text(machine)
        text = plugin_conf(self.built, None if machine is None else "machine.toml", rules, **settings)
        (self.cluster.directory / "topolane.conf").write_text(text)

    def configure(self, rules: str = RULES, machine: str | None = MACHINE, **settings: object) -> None:
        """Writes topolane.conf and lets slurmctld read it."""
        self.write(rules, machine, **settings)
        self.reconfigure()

    def reconfigure(self) -> None:
        before = self.log().count("Running as primary controller")
        self.cluster.run("scontrol", "reconfigure")
        until(lambda: self.log().count("Running as primary controller") > before, "the new slurmctld")
        until(self.answers, "an answer")

    def restart(self, verb: str = "stop") -> None:
        self.cluster.script(verb, "slurmctld")
        self.cluster.script("start", "slurmctld")

    def answers(self) -> bool:
        return self.tried("squeue", "-h").returncode == 0

    def tried(self, *command: object) -> subprocess.CompletedProcess[str]:
        """A Slurm command that may fail."""
        words = [*self.cluster.inside.prefix, *map(str, command)]
        return subprocess.run(
            words, env=self.cluster.environment, capture_output=True, text=True, timeout=DEADLINE
        )

    def wait_idle(self) -> None:
        self.cluster.run("scancel", "--user=root")
        until(lambda: not self.cluster.run("squeue", "-h"), "an empty queue")

        def are_idle() -> bool:
            if self.cluster.run("sinfo", "-h", "-o", "%D %t").strip() == f"{NODES} idle":
                return True
            self.put_back()
            return False

        until(are_idle, "idle nodes")

    def put_back(self) -> None:
        """Puts nodes back into service: one on which a job ended that Slurm forgot after a crash is drained."""
        for state in ("resume", "idle"):
            self.tried("scontrol", "update", f"nodename=node[1-{NODES}]", f"state={state}")

    def log(self, name: str = "slurmctld") -> str:
        return (self.cluster.directory / "log" / f"{name}.log").read_text(errors="replace")

    def nodes(self, job: int) -> set[str]:
        return tree.expanded(self.cluster.run("squeue", "-h", "-o", "%N", "-j", job).strip())

    def start(self, *arguments: object, seconds: int = 600) -> int:
        """A job that runs."""
        job = self.cluster.submit(*arguments, script=f"sleep {seconds}")

        def has_started() -> bool:
            if self.nodes(job):
                return True
            if re.search("drain|drng|down", self.cluster.run("sinfo", "-h", "-o", "%t")):
                self.put_back()
            return False

        try:
            until(has_started, f"the start of {arguments}")
        except AssertionError as late:
            shown = (
                self.cluster.run("squeue", "-o", "%i %P %T %r %N"),
                self.cluster.run("sinfo", "-R"),
                self.log()[-3000:],
            )
            raise AssertionError("\n".join((str(late), *shown))) from late
        return job

    def waits(self, job: int) -> bool:
        self.cluster.passes(job)
        return self.cluster.run("squeue", "-h", "-o", "%t", "-j", job).strip() == "PD"

    def saved(self, job: int) -> None:
        """Waits until Slurm has written down what runs, which it does some seconds later: a job that is younger is forgotten by
        kill -9."""
        saved(self.cluster, job)

    def call(self) -> None:
        """Lets Slurm ask the plugin once, and the plugin write down what there is: the counters are the last that it writes."""
        self.tried("sbatch", "--test-only", "-N1", "--wrap", "true")
        asked, path = time.time(), self.state / "topolane_counters"
        until(lambda: int(path.read_text().split()[5]) > asked, "the counters are written")

    def counters(self) -> dict[str, int]:
        self.call()
        lines = (self.state / "topolane_counters").read_text().splitlines()
        return {name: int(value) for name, value in (line.split() for line in lines)}

    def published(self) -> PluginJobs:
        """topolane_jobs, as it is after a call."""
        self.call()
        return plugin_state.parse_jobs((self.state / "topolane_jobs").read_text(), "topolane_jobs")

    def uses(self) -> dict[int, tuple[str, str]]:
        """By running job: its policy and its use of links, as the plugin says."""
        running = self.published().running
        return {job: (said.policy, said.link_use) for job, said in running.items()}

    def owners(self) -> dict[int, frozenset[int]]:
        """The links of jobs in the plugin's file."""
        found = {}
        path = self.state / "topolane_links"
        for line in path.read_text().splitlines()[1:-1] if path.exists() else ():
            job, _, count, *rest = line.split()
            found[int(job)] = frozenset(int(link) for link in rest[int(count) + 1 :])
        return found

    def running(self) -> list[tree.Ran] | None:
        """The jobs that run; None if no slurmctld answers."""
        said = self.tried("squeue", "-h", "-t", "R", "-o", "%A %P %N")
        return tree.listed(said.stdout, time.time()) if said.returncode == 0 else None

    def check(self, jobs: list[tree.Ran]) -> int:
        """Fails where two jobs meet that must not. Returns how many may."""
        return check(self.cluster, jobs, self.tree)


def check(cluster: Cluster, jobs: list[tree.Ran], switches: Mapping[str, frozenset[str]]) -> int:
    """No two jobs meet but those that may: jobs that are not isolated, and on switches jobs that own links. Returns how many
    meetings may be."""
    meetings = tree.meetings(jobs, switches)
    for one, other, places in meetings:
        both = {one.partition, other.partition}
        own_links = both == {"powned"} and not any(place.startswith("node") for place in places)
        if not both <= MAY_MEET and not own_links:
            counters = (cluster.directory / "state" / "topolane_counters").read_text()
            notes = cluster.run("squeue", "-h", "-o", "%A %P %t %S %N %k")
            raise AssertionError(f"{one} and {other} meet at {places}\n{counters}\n{notes}")
    return len(meetings)


def faulty_engine(site: HasEngine) -> tuple[Path, Path]:
    """An engine that fails in the way that a file names ("error", "panic", "wrong" or "slow"), and the file."""
    library, control = site.cluster.directory / "faulty.so", site.cluster.directory / "fault"
    control.write_text("")
    if library.exists():
        return library, control
    real = site.built / plugin_build.ENGINE
    words = ["cc", "-shared", "-fPIC", "-I", CRATE / "include", "-DTOPOLANE_TEST_PANIC"]
    words += [f'-DREAL_ENGINE="{real}"', f'-DFAULT_FILE="{control}"', HERE / "faulty_engine.c", "-o", library]
    subprocess.run([*words, "-Wl,--no-as-needed", real, "-ldl", f"-Wl,-rpath,{site.built}"], check=True)
    return library, control


class Load:
    """Short jobs of all kinds, one after the other; and looks at what runs."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site = site
        self.draw = random.Random(seed)
        self.known: dict[int, frozenset[int]] = {}
        """The links of jobs of powned that run, as they were when each was seen first."""
        self.looks = 0
        self.submitted = 0

    def submit(self, count: int) -> None:
        """Submits jobs, as far as a slurmctld takes them."""
        for _ in range(count):
            partition, words = self.draw.choice(MIX)
            asked = ["-p", partition, f"--time={self.draw.choice((1, 2, 5))}", *words(self.draw)]
            script = f"sleep {self.draw.choice((0.2, 0.7, 1.5, 4))}"
            said = self.site.tried("sbatch", "--parsable", "-o", "/dev/null", *asked, "--wrap", script)
            self.submitted += said.returncode == 0

    def look(self) -> None:
        """No two jobs meet that must not, none has links of another one, and none changes its links."""
        jobs = self.site.running()
        if jobs is None:
            return
        self.looks += 1
        self.site.check(jobs)
        owners = self.site.owners()
        runs = {job.job for job in jobs if job.partition == "powned"}
        owned = {job: owners[job] for job in runs & owners.keys()}
        self.known = {job: self.known.get(job, links) for job, links in owned.items()}
        assert owned == self.known
        links = [link for each in owned.values() for link in each]
        assert len(links) == len(set(links)), owned

    def forget(self, keep: set[int]) -> None:
        """After a crash: Slurm may have forgotten that jobs started, and start them again on other links."""
        self.known = {job: links for job, links in self.known.items() if job in keep}

    def cancel_short(self, keep: set[int]) -> None:
        """Cancels all jobs that run, except `keep`. A slurmctld that takes over after a crash does not know of a job that has ended
        since; such a job keeps its nodes until they register, which may take half an hour."""
        for job in self.site.running() or []:
            if job.job not in keep:
                self.site.tried("scancel", job.job)

    def for_seconds(self, seconds: float) -> None:
        """Submits and looks for this time, and once a second at least: a busy machine takes longer."""
        end, enough = time.monotonic() + seconds, self.looks + seconds

        def is_over() -> bool:
            self.submit(4)
            self.look()
            time.sleep(0.2)
            return time.monotonic() > end and self.looks >= enough

        until(is_over, f"{enough} looks")
