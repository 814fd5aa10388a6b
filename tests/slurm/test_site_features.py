"""What sites use of Slurm around the choice of nodes, under the plugin: a test for each row of the table in
docs/reference/slurm-plugin.md.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import COMPONENTS, RELEASE, Cluster, Inside, running, suite_of
from plugin_site import NODES, PARTITIONS, Site, faulty_engine, plugin_cluster, plugin_conf
from topolane.slurm import plugin_state
from waiting import DEADLINE, until

STOCK = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
RESUME = """\
#!/bin/sh
# A node that boots: its slurmd starts again.
export SLURM_CONF={directory}/slurm.conf TOPOLANE_TEST_CLUSTER={directory} PATH=/usr/sbin:/usr/bin:/sbin:/bin
for name in $(scontrol show hostnames "$1"); do
    slurmd=$(cat {directory}/run/$name.pid)
    kill "$slurmd"
    while kill -0 "$slurmd" 2>/dev/null; do sleep 0.1; done
    slurmd -N "$name" -b
done
"""
RULES = """\
Partition=pbatch,pshared Policy=isolated
Partition=powned Policy=dedicated
Partition=ptree Policy=slurm-tree
JobsMay=isolated
"""


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory, programs = tmp_path_factory.mktemp("features"), tmp_path_factory.mktemp("programs")
    resume = programs / "resume"
    resume.write_text(RESUME.format(directory=directory))
    resume.chmod(0o755)
    lines = (
        "SlurmctldParameters=enable_configless",
        "SchedulerParameters=batch_sched_delay=0,sched_min_interval=10000,bf_interval=2,bf_continue,permit_job_expansion",
        f"ResumeProgram={resume}",
        "SuspendProgram=/bin/true",
        "SuspendTime=36000",
        "SuspendTimeout=1",
        "ResumeTimeout=120",
    )
    options = ("--partitions", PARTITIONS)
    with plugin_cluster(built, inside, directory, *options, rules=RULES, conf=lines) as cluster:
        yield Site(cluster, built)


@pytest.fixture(autouse=True)
def idle(request: pytest.FixtureRequest) -> None:
    """All nodes are idle before a test on the first cluster."""
    if "site" in request.fixturenames:
        request.getfixturevalue("site").wait_idle()


def isolated(site: Site) -> dict[int, set[str]]:
    """The nodes of the jobs that run. No two of them may use the same link."""
    jobs = site.running()
    assert jobs is not None
    assert site.check(jobs) == 0
    return {job.job: set(job.nodes) for job in jobs}


def test_heterogeneous_jobs(site: Site) -> None:
    """Each part is a job of its own: it gets isolated nodes, by the rule of its own partition, and the parts share no links with
    each other either.
    """
    words = (
        "-p",
        "pbatch",
        "-N7",
        "--wrap",
        "sleep 600",
        ":",
        "-p",
        "pbatch",
        "-N3",
        ":",
        "-p",
        "powned",
        "-N2",
    )
    done = site.tried("sbatch", "--parsable", "-o", "/dev/null", *words)
    assert done.returncode == 0, done.stderr
    first = int(done.stdout)
    until(lambda: len(site.running() or ()) == 3, "all parts run")
    assert sorted(len(nodes) for nodes in isolated(site).values()) == [2, 3, 7]
    policies = {job: policy for job, (policy, _) in site.uses().items()}
    assert policies == {first: "isolated", first + 1: "isolated", first + 2: "dedicated"}


def test_switches(site: Site) -> None:
    """A job that asks for one switch gets nodes of one leaf, and keeps off the links of isolated jobs. It waits while no leaf has
    as many nodes.
    """
    wide = site.start("-p", "pbatch", "-N9")
    narrow = site.start("-p", "pbatch", "-N4", "--switches=1")
    nodes = isolated(site)
    assert any(nodes[narrow] <= below for name, below in site.tree.items() if name.startswith("leaf"))
    assert len(nodes[wide]) == 9
    waits = site.cluster.submit("-p", "pbatch", "-N6", "--switches=1", script="sleep 600")
    until(lambda: site.waits(waits) or site.nodes(waits), "a decision")
    if site.nodes(waits):
        isolated(site)


def test_steps_over_part_of_an_allocation(site: Site) -> None:
    """Steps run on nodes of their job, and change neither its nodes nor its links."""
    job = site.start("-p", "powned", "-N8")
    nodes, before = site.nodes(job), (site.uses()[job], site.owners()[job])
    for words in (("-N2", "-n2"), ("-N3", "-n6"), ("-N8", "-n8"), ("-N1", "-r", "5")):
        step = ("srun", f"--jobid={job}", "--overlap", *words, "printenv", "SLURMD_NODENAME")
        used = set(site.cluster.run(*step).split())
        assert used <= nodes and len(used) == int(words[0].removeprefix("-N")), words
    assert (site.uses()[job], site.owners()[job]) == before


def test_a_job_gives_back_nodes(site: Site) -> None:
    """The plugin sees the smaller job at once: other jobs get the nodes, and links over which it no longer sends. Links that
    it owns stay its own until it ends.
    """
    job = site.start("-p", "pbatch", "-N9")
    kept = sorted(
        site.nodes(job)
        & max(site.tree.values(), key=lambda below: (len(below) == 6, len(below & site.nodes(job))))
    )
    site.cluster.run("scontrol", "update", f"JobId={job}", f"NodeList={','.join(kept[:3])}")
    until(lambda: len(site.nodes(job)) == 3, "the job is smaller")
    other = site.start("-p", "pbatch", "-N15")
    nodes = isolated(site)
    assert len(nodes[job]) == 3 and len(nodes[other]) == 15
    site.wait_idle()
    owner = site.start("-p", "powned", "-w", "node[1,2,7,8]")
    links = site.owners()[owner]
    assert links
    site.cluster.run("scontrol", "update", f"JobId={owner}", "NodeList=node[1-2]")
    until(lambda: len(site.nodes(owner)) == 2, "the job is smaller")
    site.call()
    assert site.owners()[owner] == links


def test_a_job_grows(site: Site) -> None:
    """Slurm merges two jobs without asking the plugin. So a job by which another one grows starts only where the larger job is
    isolated, and from then on no other job gets the links between the nodes of both.
    """
    job = site.start("-p", "pbatch", "-w", "node1")
    wide = site.start("-p", "pbatch", "-w", "node[2,7]")
    with grows_by(site, job, "-p", "pbatch", "-w", "node8") as more:
        refused(site, more)
        site.cluster.run("scancel", wide)
        until(lambda: site.nodes(more) == {"node8"}, "the job starts")
        across_them(site)
        merge(site, more, job)
    assert isolated(site) == {job: {"node1", "node8"}}
    across_them(site)
    assert site.uses() == {job: ("isolated", "isolated")}
    near = site.start("-p", "pbatch", "-w", "node[3-4]")
    assert isolated(site).keys() == {job, near}


def across_them(site: Site) -> None:
    """Neither an isolated job nor one of stock Slurm gets links between node1 and node8."""
    for part in ("pbatch", "pstock"):
        late = site.cluster.submit("-p", part, "-w", "node[2,13]", script="sleep 600")
        refused(site, late)
        site.cluster.run("scancel", late)


def test_a_job_with_links_grows(site: Site) -> None:
    """The larger job counts as the owner of all links that it may use."""
    owner = site.start("-p", "powned", "-w", "node[1,7]")
    assert site.owners()[owner]
    with grows_by(site, owner, "-p", "powned", "-w", "node8") as more:
        until(lambda: site.nodes(more) == {"node8"}, "the job starts")
        merge(site, more, owner)
    assert site.nodes(owner) == {"node1", "node7", "node8"}
    refused(site, site.cluster.submit("-p", "powned", "-w", "node[2,9]", script="sleep 600"))


def test_a_job_of_stock_slurm_grows(site: Site) -> None:
    """The larger job keeps off the links of isolated jobs."""
    wide = site.start("-p", "pbatch", "-w", "node[2,7]")
    job = site.start("-p", "pstock", "-w", "node13")
    with grows_by(site, job, "-p", "pstock", "-w", "node8") as more:
        refused(site, more)
        site.cluster.run("scancel", wide)
        until(lambda: site.nodes(more) == {"node8"}, "the job starts")


def test_an_isolated_job_does_not_grow_without_the_engine(site: Site) -> None:
    """Stock Slurm would choose nodes for the second job, and Slurm would merge both into a job that is called isolated."""
    library, control = faulty_engine(site)
    site.configure(RULES, Engine=library)
    job = site.start("-p", "pbatch", "-w", "node1")
    control.write_text("error")
    with grows_by(site, job, "-p", "pbatch", "-N1", "-w", "node8") as more:
        refused(site, more)
        assert (said := site.published().waiting[more].refused) and said.kind == "no-engine"
    site.wait_idle()
    site.configure(RULES)


def refused(site: Site, job: int) -> None:
    """The plugin has no place for a job, which waits."""
    until(lambda: job in site.published().waiting or site.nodes(job), "an answer")
    assert not site.nodes(job)


def merge(site: Site, more: int, job: int) -> None:
    """Gives the nodes of a job to another one."""
    site.cluster.run("scontrol", "update", f"JobId={more}", "NumNodes=0")
    site.cluster.run("scontrol", "update", f"JobId={job}", "NumNodes=ALL")


@contextlib.contextmanager
def grows_by(site: Site, job: int, *words: str) -> Iterator[int]:
    """A job without steps whose nodes this one may take over."""
    before = queued(site)
    command = ["salloc", "--no-shell", *words, f"--dependency=expand:{job}"]
    waiting = subprocess.Popen([*site.cluster.inside.prefix, *command], env=site.cluster.environment)
    more = until(lambda: next(iter(queued(site) - before), None), "the second job")
    try:
        yield more
    finally:
        site.tried("scancel", more)
        waiting.wait(DEADLINE)


def queued(site: Site) -> set[int]:
    return {int(job) for job in site.cluster.run("squeue", "-h", "-o", "%A").split()}


def test_power_saving(site: Site) -> None:
    """Nodes that are powered down count as free: jobs get isolated nodes among them, which then boot for the job."""
    site.cluster.run("scontrol", "update", "nodename=node[1-12]", "state=power_down")
    shown = ("sinfo", "-h", "-N", "-n", "node[1-12]", "-o", "%T")
    until(
        lambda: (
            set(site.cluster.run(*shown).split()) == {"idle~"} or "powered_down" in site.cluster.run(*shown)
        ),
        "nodes are down",
    )
    jobs = [site.cluster.submit("-p", "pbatch", "-N", count, script="sleep 600") for count in (9, 7)]
    ready = lambda: [site.cluster.run("squeue", "-h", "-o", "%t", "-j", job).strip() for job in jobs]
    until(lambda: ready() == ["R", "R"], "both jobs run")
    nodes = isolated(site)
    assert {len(nodes[job]) for job in jobs} == {9, 7}
    assert any(names & {f"node{number}" for number in range(1, 13)} for names in nodes.values())
    assert {policy for policy, _ in site.uses().values()} == {"isolated"}
    site.cluster.run("scancel", "--user=root")
    until(lambda: not site.cluster.run("squeue", "-h"), "an empty queue")
    asleep = site.cluster.run("sinfo", "-h", "-N", "-t", "powered_down", "-p", "pbatch", "-o", "%N").split()
    for name in asleep:
        site.cluster.run("scontrol", "update", f"nodename={name}", "state=power_up")
    until(
        lambda: site.cluster.run("sinfo", "-h", "-o", "%D %T").strip() == f"{NODES} idle", "all nodes are up"
    )


class Elsewhere:
    """A host that has Slurm's packages and no slurm.conf."""

    def __init__(self, site: Site, entered: int) -> None:
        self.site, self.entered = site, entered

    def words(self, *command: object) -> list[str]:
        tree = self.site.cluster.environment["SLURM_TREE"]
        inside = [
            "nsenter",
            "--mount",
            f"--target={self.entered}",
            "env",
            "-i",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        ]
        return [
            *inside,
            f"TOPOLANE_TEST_CLUSTER={self.site.cluster.directory}",
            "chroot",
            tree,
            *map(str, command),
        ]

    def run(self, *command: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.words(*command), capture_output=True, text=True, timeout=DEADLINE)

    @property
    def server(self) -> str:
        """The address of slurmctld."""
        port = re.search(
            r"^SlurmctldPort=(\d+)", (self.site.cluster.directory / "slurm.conf").read_text(), re.MULTILINE
        )
        assert port
        return f"127.0.0.1:{port[1]}"


@contextlib.contextmanager
def elsewhere(site: Site) -> Iterator[Elsewhere]:
    tree = site.cluster.environment["SLURM_TREE"]
    script = (
        'mount -t tmpfs none "$0/run" && mkdir -p "$0/run/slurm" "$0/run/munge" && '
        'ln -s "$1/munge/socket" "$0/run/munge/munge.socket.2" && echo && exec sleep infinity'
    )
    words = [
        *site.cluster.inside.prefix,
        "unshare",
        "--mount",
        "sh",
        "-c",
        script,
        tree,
        str(site.cluster.directory),
    ]
    entered = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert entered.stdout is not None and entered.stdout.read(1) == b"\n", "the mounts failed"
        yield Elsewhere(site, entered.pid)
    finally:
        entered.kill()
        entered.wait()


def test_configless_nodes(site: Site) -> None:
    """A slurmd without files gets slurm.conf from slurmctld, loads the plugin that it names, and runs its part of an isolated
    job. It needs neither topolane.conf nor a machine file.
    """
    site.cluster.script("stop", "node3")
    with elsewhere(site) as host:
        try:
            done = host.run("slurmd", "-N", "node3", "--conf-server", host.server)
            assert done.returncode == 0, done.stderr
            # The daemon may write it after the command has ended.
            until(
                lambda: (
                    "TopologyPlugin=topology/topolane" in host.run("cat", "/run/slurm/conf/slurm.conf").stdout
                ),
                "slurmd has got slurm.conf",
            )
            site.wait_idle()
            assert "topolane.conf" not in host.run("ls", "/run/slurm/conf").stdout
            job = site.start("-p", "pbatch", "-w", "node[2-4]")
            isolated(site)
            step = site.cluster.run(
                "srun", f"--jobid={job}", "--overlap", "-N3", "printenv", "SLURMD_NODENAME"
            )
            assert set(step.split()) == {"node2", "node3", "node4"}
            site.cluster.run("scancel", job)
        finally:
            site.cluster.script("stop", "node3")
            site.cluster.script("start", "node3")


def test_sackd(site: Site) -> None:
    """On a login host without slurm.conf, sackd gets it from slurmctld: srun loads the plugin, and its job is isolated."""
    done = subprocess.run(
        [COMPONENTS, "--path", f"slurm-sackd-{suite_of(RELEASE)}"], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(done.stderr.strip())
    program = site.cluster.directory / "sackd"
    program.write_bytes((Path(done.stdout.strip()) / "usr/sbin/sackd").read_bytes())
    program.chmod(0o755)
    with elsewhere(site) as host:
        assert host.run("srun", "-N2", "true").returncode, "there is a slurm.conf"
        daemon = subprocess.Popen(
            host.words(program, "-D", "--conf-server", host.server), stderr=subprocess.DEVNULL
        )
        try:
            until(
                lambda: "slurm.conf" in host.run("ls", "/run/slurm/conf").stdout, "sackd has got slurm.conf"
            )
            wide = subprocess.Popen(host.words("srun", "-p", "pbatch", "-N7", "sleep", "600"))
            until(lambda: len(site.running() or ()) == 1, "the job of srun runs")
            site.start("-p", "pbatch", "-N5")
            assert sorted(map(len, isolated(site).values())) == [5, 7]
            assert {policy for policy, _ in site.uses().values()} == {"isolated"}
            site.cluster.run("scancel", "--user=root")
            wide.wait(DEADLINE)
        finally:
            daemon.kill()
            daemon.wait()


def test_federation(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each cluster of a federation places its own jobs. A job that starts in one is isolated there; its sibling in the other holds no
    nodes. Their numbers are large, and commands understand them.
    """
    first, second = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    rules = "Partition=pbatch Policy=isolated\n"
    lines = [
        ("TopologyPlugin", "topology/topolane"),
        ("PluginDir", f"{STOCK}:{built}"),
        ("FederationParameters", "fed_display"),
    ]
    conf = first.with_name("conf") / "topolane.conf"
    conf.parent.mkdir()
    conf.write_text(plugin_conf(built, None, rules))
    options = [word for key, value in lines for word in ("--conf", f"{key}={value}")] + ["--conf-file", conf]
    with running(12, first, "--prefix", "one", "--accounting", "slurmdbd", *options, inside=inside) as one:
        text = (first / "slurm.conf").read_text()
        port = re.search(r"^AccountingStoragePort=(\d+)", text, re.MULTILINE)
        assert port
        shared = [
            "AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1",
            f"AccountingStoragePort={port[1]}", f"AccountingStoragePass={first}/munge/socket",
            f"AuthInfo=socket={first}/munge/socket,cred_expire=10",
        ]  # fmt: skip
        options += [word for line in shared for word in ("--conf", line)]
        one.run("sacctmgr", "-iQ", "add", "cluster", "two")
        with running(12, second, "--prefix", "two", *options, inside=inside) as two:
            one.run("sacctmgr", "-iQ", "add", "federation", "both", "clusters=one,two")
            for cluster in (one, two):
                until(lambda: "both" in cluster.run("scontrol", "show", "federation"), "the federation")  # noqa: B023
            jobs = [submit(one, "-N7") for _ in range(2)]
            assert all(job > 1 << 26 for job in jobs)

            def started() -> dict[int, str]:
                said = one.run("squeue", "-h", "--federation", "-t", "R", "-o", "%A %N")
                return {int(job): nodes for job, nodes in map(str.split, said.splitlines())}

            until(lambda: started().keys() == set(jobs), "both jobs run")
            where = {nodes[:3]: job for job, nodes in started().items()}
            assert where.keys() == {"one", "two"}
            for cluster, directory in ((one, first), (two, second)):
                narrow = submit(cluster, "-N3", f"--clusters={cluster.facts['PREFIX']}")
                known = known_by(cluster, directory, narrow)
                assert known & {*jobs, narrow} == {where[cluster.facts["PREFIX"]], narrow}


def submit(cluster: Cluster, *words: str) -> int:
    """The number of a job in a federation; sbatch prints its cluster too."""
    said = cluster.run(
        "sbatch", "--parsable", "-o", "/dev/null", "-p", "pbatch", *words, "--wrap", "sleep 600"
    )
    return int(said.partition(";")[0])


def known_by(cluster: Cluster, directory: Path, job: int) -> set[int]:
    """The jobs that hold nodes to the plugin of a cluster, once it knows of this one."""
    path = directory / "state" / "topolane_jobs"

    def known() -> set[int]:
        where = f"--clusters={cluster.facts['PREFIX']}"
        cluster.run(
            "sbatch", "--test-only", "-N1", where, "--wrap", "true"
        )  # Slurm asks the plugin, which then writes.
        return set(plugin_state.parse_jobs(path.read_text(), "topolane_jobs").running)

    until(lambda: job in known(), "the plugin knows the job")
    return known()
