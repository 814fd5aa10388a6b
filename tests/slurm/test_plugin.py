"""The topology plugin inside a real slurmctld of Slurm 24.11 (Debian trixie): nodes of jobs, promises and faults.

docs/explanation/slurm-plugin.md says what is held here.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import links_in_tree as tree
import pytest
from live_cluster import Cluster, Inside, running
from plugin_site import LACKS_NODES, check, faulty_engine, plugin_cluster, plugin_conf, saved
from topolane.cluster.decided import Decided
from topolane.cluster.view import ISOLATED, NONE
from topolane.slurm import plugin_state
from topolane.slurm.plugin_state import PluginJobs
from waiting import until

HERE = Path(__file__).parent
NODES = 48
"""Eight leaves of six nodes, three of them to a pod; every leaf has three uplinks, one to each switch of its pod."""
MACHINE = f"""\
name = "node"
[node]
sockets = 2
cores-per-socket = 8
[[site]]
name = "core"
children = [6, 4, 2]
parents = [1, 3, 3]
cables = [1, 1, 4]
nodes = "node[1-{NODES}]"
"""
RULES = """\
Partition=pbatch,pshared Policy=isolated
Partition=powned Policy=dedicated
Partition=ptree Policy=slurm-tree
"""
PARTITIONS = "pbatch pshared:ALL:NO powned ptree pstock plow:ALL:EXCLUSIVE"


class Site:
    """A cluster whose slurmctld runs the plugin."""

    def __init__(self, cluster: Cluster, built: Path) -> None:
        self.cluster = cluster
        self.built = built
        self.tree = tree.switches(cluster.directory / "topology.conf")

    def configure(self, rules: str = RULES, machine: str | None = MACHINE, **settings: object) -> None:
        """Writes topolane.conf and restarts slurmctld."""
        if machine is not None:
            (self.cluster.directory / "machine.toml").write_text(machine)
        text = plugin_conf(self.built, None if machine is None else "machine.toml", rules, **settings)
        self.cluster.script("stop", "slurmctld")
        (self.cluster.directory / "topolane.conf").write_text(text)
        self.cluster.script("start", "slurmctld")
        self.wait_idle()

    def wait_idle(self) -> None:
        self.cluster.run("scancel", "--user=root")
        until(lambda: not self.cluster.run("squeue", "-h"), "an empty queue")
        until(lambda: self.cluster.run("sinfo", "-h", "-o", "%D %t").strip() == f"{NODES} idle", "idle nodes")

    def kill(self, long: set[int]) -> None:
        """Kills slurmctld and starts it again while long jobs run and others wait. Slurm writes down every five seconds what
        runs; starts and ends that it forgets would drain nodes, so short jobs are let end before."""
        for state in ("down", "up"):
            for partition in PARTITIONS.split():
                self.cluster.run(
                    "scontrol", "update", f"PartitionName={partition.split(':')[0]}", f"State={state}"
                )
            if state == "down":
                until(lambda: self.running() <= long, "short jobs end")
                saved(self.cluster, int(self.cluster.run("squeue", "-h", "-o", "%A").split()[0]))
                self.cluster.script("kill", "slurmctld")
                self.cluster.script("start", "slurmctld")

    def running(self, state: str = "R,CG") -> set[int]:
        return {int(job) for job in self.cluster.run("squeue", "-h", "-t", state, "-o", "%A").split()}

    def counters(self) -> dict[str, int]:
        """What the plugin counted since slurmctld started; it writes a second after a call."""
        self.cluster.run("sbatch", "--test-only", "-N1", "--wrap", "true")
        asked = time.time()
        path, found = self.cluster.directory / "state" / "topolane_counters", {"written": 0}

        def is_new() -> bool:
            if path.exists():
                found.update(
                    (name, int(value)) for name, value in map(str.split, path.read_text().splitlines())
                )
            return found["written"] > asked

        until(is_new, "the counters")
        return found

    def published(self) -> PluginJobs:
        """topolane_jobs, written after this call."""
        self.counters()
        path = self.cluster.directory / "state" / "topolane_jobs"
        return plugin_state.parse_jobs(path.read_text(), str(path))

    def log(self) -> str:
        return (self.cluster.directory / "log" / "slurmctld.log").read_text()

    def nodes(self, job: int) -> set[str]:
        return tree.expanded(self.cluster.run("squeue", "-h", "-o", "%N", "-j", job).strip())

    def start(self, *arguments: object, seconds: int = 300) -> int:
        """A job that runs."""
        job = self.cluster.submit(*arguments, script=f"sleep {seconds}")
        until(lambda: bool(self.nodes(job)), f"the start of {arguments}")
        return job

    def waits(self, job: int) -> str:
        """The reason for which a job waits, after the scheduler has looked at it again."""
        self.cluster.passes(job)
        state, reason = self.cluster.run("squeue", "-h", "-o", "%t %r", "-j", job).split(maxsplit=1)
        assert state == "PD", (state, reason)
        return reason.strip()

    def owners(self) -> dict[int, set[int]]:
        """The links of jobs in the plugin's file."""
        path = self.cluster.directory / "state" / "topolane_links"
        found = {}
        for line in path.read_text().splitlines()[1:-1]:
            job, _, count, *rest = line.split()
            found[int(job)] = {int(link) for link in rest[int(count) + 1 :]}
        return found

    def check(self, jobs: list[tree.Ran]) -> int:
        """Fails where two jobs meet that must not. Returns how many may."""
        return check(self.cluster, jobs, self.tree)


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("slurm")
    options = ("--leaf", 6, "--pod", 4, "--deadline", 240, "--partitions", PARTITIONS)
    conf = ("GresTypes=gpu", "NodeName=DEFAULT Gres=gpu:2", "MinJobAge=10")
    conf_files = {"gres.conf": "AutoDetect=off\nName=gpu File=/dev/null\nName=gpu File=/dev/zero\n"}
    given = {"nodes": NODES, "machine": MACHINE, "rules": RULES, "conf": conf, "conf_files": conf_files}
    with plugin_cluster(built, inside, directory, *options, **given) as cluster:
        yield Site(cluster, built)


@pytest.fixture
def quiet(site: Site) -> Site:
    """The cluster with nothing running."""
    site.wait_idle()
    return site


@pytest.fixture
def configured(quiet: Site) -> Iterator[Site]:
    """The same for a test that changes topolane.conf; afterwards it is as it was."""
    yield quiet
    quiet.configure()


MIX = (
    ("pbatch", lambda draw: ["-N", draw.choice((1, 2, 3, 5, 7, 9, 14, 20))]),
    ("pbatch", lambda draw: ["-n", draw.randint(1, 100)]),
    ("pbatch", lambda draw: ["-N", "2-6"]),
    ("pbatch", lambda draw: ["-N2", "--gres=gpu:2"]),
    ("powned", lambda draw: ["-N", draw.choice((4, 8, 9, 10))]),
    ("pshared", lambda draw: ["-n", draw.randint(1, 40)]),
    ("pshared", lambda draw: ["-N", draw.randint(1, 6), "--ntasks-per-node=3"]),
    ("pshared", lambda draw: ["--gpus", draw.randint(1, 5)]),
    ("pstock", lambda draw: ["-N", draw.choice((1, 2, 7, 8))]),
    ("ptree", lambda draw: ["-N", draw.choice((1, 2, 5))]),
)


def test_no_link_is_shared_under_a_random_mix(quiet: Site) -> None:
    """Isolated jobs, jobs on parts of nodes, jobs that own links, jobs of stock Slurm and of a policy that promises nothing
    share one machine; slurmctld is killed on the way. At no look, and in no completed job, do two of them meet on a link
    that one of them has for itself."""
    cluster, draw = quiet.cluster, random.Random(20231112)
    count = 260
    submitted = []
    looks = 0

    def look() -> None:
        nonlocal looks
        said = cluster.run("squeue", "-h", "-t", "R", "-o", "%A %P %N")
        quiet.check(tree.listed(said, time.time()))
        looks += 1

    # These two run at once on the same uplinks: without them a slow machine may end each job before the next one begins.
    meeting = [quiet.start("-p", "pstock", "-w", nodes, seconds=60) for nodes in ("node[1,7]", "node[2,8]")]
    submitted += meeting
    for number in range(count):
        partition, words = draw.choice(MIX)
        limit = f"--time={draw.choice((1, 2, 5))}"
        asked = ["-p", partition, limit, *words(draw)]
        submitted.append(cluster.submit(*asked, script=f"sleep {draw.choice((0.2, 0.7, 1.5, 4))}"))
        if number == count // 2:
            long = [
                cluster.submit("-p", partition, "-N", 7, "--nice=-100", script="sleep 60")
                for partition in ("pbatch", "powned", "pstock")
            ]
            submitted += long
            until(lambda long=set(long): quiet.running("R") & long, "one of them runs")
            quiet.kill({*long, *meeting})
        if number % 20 == 0:
            look()
    until(lambda: (look(), not cluster.run("squeue", "-h"))[1], "the end of all jobs")
    ran = tree.completed(cluster.directory / "log" / "jobs.log")
    ended = {job.job for job in ran}
    assert len(ended & set(submitted)) > 0.9 * count  # a kill loses the latest submissions
    allowed = quiet.check([job for job in ran if job.job in set(submitted)])
    assert allowed, "the mix has no jobs that may meet: it tests nothing"
    assert looks > 10
    counted = quiet.counters()
    assert counted["placed"] and counted["kept_off"] and counted["in_area"] and counted["refused"]
    assert not {name: counted[name] for name in counted if name.startswith("stock_") and counted[name]}


def test_a_promise_obeys_the_rule(quiet: Site) -> None:
    """A job that could have nodes at once, but no links of its own, is promised a time at which it has both, after the
    job that is in its way and not after those that are not."""
    first = quiet.start("-p", "pbatch", "-N", 20, "-t", 3)
    second = quiet.start("-p", "pbatch", "-N", 20, "-t", 9)
    assert not crossing(quiet, first) & crossing(quiet, second)
    # Eight nodes are idle, four under each pod: enough nodes, and no way between them.
    waiting = quiet.cluster.submit("-p", "pbatch", "-N", 6, "-t", 5, "--exclusive", script="sleep 1")
    until(lambda: promise(quiet, waiting)[0] > 0, "a promise")
    start, nodes = promise(quiet, waiting)
    ends = {job: quiet.cluster.job(job)["end_time"] for job in (first, second)}
    assert ends[first] - 5 <= start < ends[second]
    assert nodes and not nodes & quiet.nodes(second)
    over = tree.crossed(nodes, quiet.tree)
    assert not over & crossing(quiet, second)


def crossing(site: Site, job: int) -> set[str]:
    return tree.crossed(site.nodes(job), site.tree)


def promise(site: Site, job: int) -> tuple[float, set[str]]:
    facts = dict(re.findall(r"(\w+)=(\S+)", site.cluster.run("scontrol", "-o", "show", "job", job)))
    when = facts.get("StartTime", "Unknown")
    start = time.mktime(time.strptime(when, "%Y-%m-%dT%H:%M:%S")) if when != "Unknown" else 0
    return start, tree.expanded(facts.get("SchedNodeList", ""))


def test_a_job_waits_for_links_and_starts_when_they_are_free(quiet: Site) -> None:
    """Enough idle nodes are not enough: the job waits until the one in its way has ended, and it is not refused at its
    submission, where Slurm asks whether it could ever run."""
    # Leaves 1-3 and five nodes of leaf 4 are taken, leaf 4 is crossed; the same in the other pod.
    jobs = [quiet.start("-p", "pbatch", "-N", 23) for _ in range(2)]
    waiting = quiet.cluster.submit("-p", "pbatch", "-N", 2, script="sleep 300")
    assert quiet.waits(waiting) in LACKS_NODES
    alone = quiet.start("-p", "pbatch", "-N", 1)
    quiet.cluster.run("scancel", jobs[0])
    until(lambda: bool(quiet.nodes(waiting)), "the start")
    quiet.check(tree.listed(quiet.cluster.run("squeue", "-h", "-t", "R", "-o", "%A %P %N"), time.time()))
    assert len(quiet.nodes(alone)) == 1


def test_what_is_published_of_jobs(configured: Site) -> None:
    """topolane_jobs has the machine, each job that holds nodes with its policy and its use of links, and the jobs that were
    refused, with the nodes that they could have had."""
    configured.configure(rules=RULES + "Partition=pstock Policy=stock Outside=share\n")
    jobs = [configured.start("-p", "pbatch", "-N", 22) for _ in range(2)]
    outside = configured.start("-p", "pstock", "-N", 1)
    before = time.time()
    waiting = configured.cluster.submit("-p", "pbatch", "-N", 3, script="sleep 300")
    assert configured.waits(waiting) in LACKS_NODES
    published = configured.published()
    assert (published.machine, published.nodes, published.problems) == ("machine.toml", NODES, ())
    rules = ["topolane.conf line 3", "topolane.conf line 6"]
    for job in jobs:
        assert published.running[job] == Decided("isolated", rules[0], ISOLATED)
    assert published.running[outside] == Decided("stock", rules[1], NONE)
    said = published.waiting[waiting]
    assert (said.policy, said.rule, said.share) == ("isolated", rules[0], 1)
    assert said.refused and (said.refused.kind, said.refused.wanted) == ("would-share-links", 3)
    assert int(before) <= (said.refused.time or 0) <= time.time()
    idle = set(configured.cluster.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split())
    assert {f"node{number + 1}" for number in said.offered} == idle
    configured.cluster.run("scancel", jobs[0])
    until(lambda: bool(configured.nodes(waiting)), "the start")

    def is_up_to_date() -> bool:
        published = configured.published()
        running = published.running.keys() - published.waiting.keys()
        return waiting in running and jobs[0] not in published.running

    until(is_up_to_date, "what is published after the start")


def test_light_nodes_come_first(configured: Site) -> None:
    """The policy is asked among the lightest nodes, and among heavier ones only if it finds no place there."""
    configured.cluster.run("scontrol", "update", "nodename=node[1-24]", "weight=9")
    try:
        first = configured.start("-p", "pbatch", "-N", 20)
        assert configured.nodes(first) <= tree.expanded("node[25-48]")
        second = configured.start("-p", "pbatch", "-N", 10)
        assert configured.nodes(second) <= tree.expanded("node[1-24]")
    finally:
        configured.cluster.run("scontrol", "update", "nodename=node[1-48]", "weight=1")


def test_a_test_of_a_submission_names_the_nodes_of_the_policy(quiet: Site) -> None:
    """`sbatch --test-only` answers with the nodes that the job then gets."""
    quiet.start("-p", "pbatch", "-N", 8)
    words = ["sbatch", "--test-only", "-p", "pbatch", "-N", "7", "--exclusive", "--wrap", "sleep 300"]
    done = subprocess.run(
        [*quiet.cluster.inside.prefix, *words], env=quiet.cluster.environment, capture_output=True, text=True
    )
    named = re.search(r"on nodes? (\S+) in partition", done.stderr)
    assert named, done.stderr
    job = quiet.start("-p", "pbatch", "-N", 7)
    assert tree.expanded(named[1]) == quiet.nodes(job)


def test_a_suspended_job_keeps_its_links(quiet: Site) -> None:
    """Slurm offers the nodes of a suspended job to others. The job comes back to them, so its links stay its own: another job
    of several nodes waits, and jobs that end before it do not count as ended."""
    first = quiet.start("-p", "pbatch", "-N", 20, "-t", 600)
    second = quiet.start("-p", "pbatch", "-N", 20, "-t", 60)
    quiet.cluster.run("scontrol", "suspend", first)
    until(lambda: quiet.cluster.run("squeue", "-h", "-o", "%t", "-j", first).strip() == "S", "the suspension")
    waiting = quiet.cluster.submit("-p", "pbatch", "-N", 6, "-t", 30, script="sleep 300")
    assert quiet.waits(waiting) in LACKS_NODES
    quiet.cluster.run("scontrol", "resume", first)
    quiet.cluster.run("scancel", second)
    until(lambda: bool(quiet.nodes(waiting)), "the start")
    running = quiet.cluster.run("squeue", "-h", "-t", "R", "-o", "%A %P %N")
    assert f"{first} " in running
    quiet.check(tree.listed(running, time.time()))


def test_tasks_of_an_array_that_take_no_idle_node(quiet: Site) -> None:
    """Tasks of an array start in one second on nodes that other jobs use already, so no idle node gives them away. None of them
    meets another."""
    for node in range(1, NODES + 1):
        quiet.cluster.submit("-p", "pshared", "-N1", "-n1", "-w", f"node{node}", script="sleep 300")
    until(
        lambda: len(quiet.cluster.run("squeue", "-h", "-t", "R", "-p", "pshared").splitlines()) >= NODES,
        "a job on every node",
    )
    array = quiet.cluster.submit("-p", "pshared", "-N8", "-n8", "--array=1-12", script="sleep 300")

    def tasks() -> list[str]:
        running = quiet.cluster.run("squeue", "-h", "-t", "R", "-j", array, "-o", "%A %P %N").splitlines()
        return running if len(running) > 1 else []

    until(tasks, "two tasks run")
    quiet.counters()
    quiet.check(tree.listed("\n".join(tasks()), time.time()))


def test_stock_jobs_keep_off_isolated_ones_unless_they_may_share(configured: Site) -> None:
    """Jobs outside of the policy do not cross a leaf that an isolated job crosses; with Outside=share they do."""
    for _ in range(2):
        configured.start("-p", "pbatch", "-N", 23)
    waiting = configured.cluster.submit("-p", "pstock", "-N", 2, script="sleep 300")
    assert configured.waits(waiting) in LACKS_NODES
    configured.configure(Outside="share")
    for _ in range(2):
        configured.start("-p", "pbatch", "-N", 23)
    configured.start("-p", "pstock", "-N", 2)


def test_links_that_jobs_own_survive_slurmctld(quiet: Site) -> None:
    """Jobs of the policy dedicated cross the same leaf on links of their own. After kill -9 of slurmctld the next job gets
    links that no job has."""
    jobs = [quiet.start("-p", "powned", "-N", 8) for _ in range(3)]
    before = quiet.owners()
    assert before.keys() == set(jobs) and all(before.values())
    quiet.kill(set(jobs))
    until(lambda: len(quiet.cluster.run("squeue", "-h", "-t", "R").splitlines()) == 3, "the jobs")
    last = quiet.start("-p", "powned", "-N", 8)
    after = quiet.owners()
    assert {job: after[job] for job in jobs} == before
    links = [link for owned in after.values() for link in owned]
    assert after[last] and len(links) == len(set(links))
    leaves = [crossing(quiet, job) - quiet.nodes(job) for job in after]
    assert any(one & other for one in leaves for other in leaves if one is not other), "they share no leaf"


def test_links_of_a_task_that_starts_while_others_wait(quiet: Site) -> None:
    """The file of links names a started task of an array by its own number, also if the next task finds no place. A job that
    waits is not in it: a test whether it could ever run gives it no links."""
    array = quiet.cluster.submit("-p", "powned", "-N30", "--array=1-2", script="sleep 300")
    running = ("squeue", "-h", "-t", "R", "-j", array, "-o", "%A")
    until(lambda: bool(quiet.cluster.run(*running)), "the first task")
    task = int(quiet.cluster.run(*running))
    assert task != array, "the task that waits keeps the number of the array"
    until(lambda: quiet.owners().keys() == {task}, "the file of links")
    quiet.cluster.submit("-p", "powned", "-N30", script="sleep 300")
    quiet.cluster.submit("-p", "powned", "-N20", script="sleep 300")
    quiet.waits(array)
    assert quiet.owners().keys() == {task}


@pytest.mark.parametrize("fault", ["error", "panic", "wrong", "slow"])
def test_a_fault_of_the_engine_leaves_the_job_to_stock_slurm(configured: Site, fault: str) -> None:
    """An error, a panic, an answer that does not fit and a call that takes too long: the job starts as under stock Slurm,
    the log says so once, and the next jobs are placed by the policy again."""
    library, control = faulty_engine(configured)
    configured.configure(Engine=library, CallTime=10_000)
    configured.start("-p", "pbatch", "-N", 23)
    control.write_text(fault)
    lines = configured.log().count("stock Slurm chooses")
    stock = configured.start("-p", "pbatch", "-N", 23)
    assert configured.log().count("stock Slurm chooses") == lines + 1
    control.write_text("")
    counted = configured.counters()
    assert counted["stock_slow" if fault == "slow" else "stock_failed"]
    configured.cluster.run("scancel", stock)
    until(lambda: not configured.nodes(stock), "the end of the stock job")
    configured.start("-p", "pbatch", "-N", 23)
    assert configured.counters()["placed"] > counted["placed"]
    configured.check(
        tree.listed(configured.cluster.run("squeue", "-h", "-t", "R", "-o", "%A %P %N"), time.time())
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"machine": "name = [\n"}, "machine.toml"),
        ({"Engine": "/nowhere/libtopolane.so"}, "cannot be loaded"),
        ({"rules": "Partition=pbatch Policy=mine:Policy\n"}, "nothing runs Python inside slurmctld"),
        ({"rules": "Partition=pbatch\n"}, "line 3: the line has no Policy"),
    ],
    ids=["machine", "engine", "python", "rule"],
)
def test_what_cannot_be_read_leaves_everything_to_stock_slurm(
    configured: Site, change: dict[str, str], says: str
) -> None:
    """A garbled machine file, a missing engine, a policy in Python, a wrong line: slurmctld starts, says why, and runs
    jobs as stock Slurm does."""
    before = len(configured.log())
    configured.configure(**change)
    said = [line for line in configured.log()[before:].splitlines() if "topolane: not active" in line]
    assert len(said) == 1 and says in said[0], said
    configured.start("-p", "pbatch", "-N", 40)


def test_nodes_that_the_machine_file_does_not_name(configured: Site) -> None:
    """The others are placed by the policy; jobs that do not fit there get the unnamed nodes from stock Slurm."""
    named = MACHINE.replace("[6, 4, 2]", "[6, 4, 1]").replace(f"{NODES}]", "24]")
    configured.configure(machine=named.replace("parents = [1, 3, 3]", "parents = [1, 3, 1]"))
    inside = {f"node{number}" for number in range(1, 25)}
    first = configured.start("-p", "pbatch", "-N", 20)
    assert configured.nodes(first) <= inside
    second = configured.start("-p", "pbatch", "-N", 20)
    assert not configured.nodes(second) & inside
    assert "does not name 24 nodes, such as node25" in configured.log()
    assert configured.counters()["stock_unknown"]


def test_blocks(configured: Site) -> None:
    """With Stock=block, stock Slurm's blocks and segments hold as well as the policy: a job gets nodes that suit both, and
    what clients print is that of topology/block."""
    topology = configured.cluster.directory / "topology.conf"
    before = topology.read_text()
    blocks = "".join(
        f"BlockName=b{block} Nodes=node[{12 * block - 11}-{12 * block}]\n" for block in range(1, 5)
    )
    try:
        topology.write_text(f"{blocks}BlockSizes=12\n")
        configured.configure(Stock="block")
        assert "BlockName=b3" in configured.cluster.run("scontrol", "show", "topology")
        first = configured.start("-p", "pbatch", "-N", 10)
        assert len({(int(node[4:]) - 1) // 12 for node in configured.nodes(first)}) == 1
        pairs = configured.start("-p", "pbatch", "-N", 8, "--segment=4")
        inside = [(int(node[4:]) - 1) // 12 for node in configured.nodes(pairs)]
        assert all(inside.count(block) % 4 == 0 for block in inside), inside
        wide = configured.start("-p", "pbatch", "-N", 24)
        running = configured.cluster.run("squeue", "-h", "-t", "R", "-o", "%A %P %N")
        configured.check(tree.listed(running, time.time()))
        assert len(configured.nodes(wide)) == 24
        counted = configured.counters()
        assert counted["placed"] and counted["in_area"]
    finally:
        topology.write_text(before)


def test_requests_that_name_more_than_a_number_of_nodes(quiet: Site) -> None:
    """Required and excluded nodes, GPUs by node and by job, a number of tasks, --switches, --contiguous, part of a node, an
    array, a heterogeneous job: all start, with what they asked for, and none meets another."""
    asked = {
        ("-N2", "-w", "node7"): lambda nodes: "node7" in nodes and len(nodes) == 2,
        ("-N2", "-w", "node13,node14"): lambda nodes: nodes == {"node13", "node14"},
        ("-N3", "-x", "node[1-6]"): lambda nodes: not nodes & tree.expanded("node[1-6]") and len(nodes) == 3,
        ("-N2", "--gres=gpu:2"): lambda nodes: len(nodes) == 2,
        ("--gpus=5",): lambda nodes: len(nodes) == 3,
        ("-n40",): lambda nodes: len(nodes) == 3,
        ("-N3", "--switches=1"): lambda nodes: len(crossed_leaves(quiet, nodes)) == 1,
        ("-N2", "--contiguous"): lambda nodes: len(nodes) == 2,
    }
    for words, holds in asked.items():
        job = quiet.start("-p", "pbatch", *words)
        nodes = quiet.nodes(job)
        assert holds(nodes), (words, nodes)
    parts = quiet.start("-p", "pshared", "-n4", "--gpus=1")
    assert len(quiet.nodes(parts)) == 1
    listed = quiet.cluster.run("squeue", "-h", "-t", "R", "-o", "%A %P %N")
    quiet.check(tree.listed(listed, time.time()))
    quiet.wait_idle()
    array = quiet.cluster.submit("-p", "pbatch", "-N2", "--array=1-3", script="sleep 300")
    until(
        lambda: len(quiet.cluster.run("squeue", "-h", "-t", "R", "-j", array).splitlines()) == 3, "the array"
    )
    words = ["sbatch", "--parsable", "-o", "/dev/null", "-p", "pbatch", "-N2", ":", "-p", "pbatch", "-N3"]
    het = int(quiet.cluster.run(*words, "--wrap", "sleep 300"))
    until(lambda: len(quiet.cluster.run("squeue", "-h", "-t", "R", "-j", het).splitlines()) == 2, "het")
    listed = quiet.cluster.run("squeue", "-h", "-t", "R", "-o", "%A %P %N")
    quiet.check(tree.listed(listed, time.time()))
    with pytest.raises(AssertionError, match="not available"):
        quiet.cluster.submit("-p", "pbatch", "-N2", "--gres=gpu:3")


def crossed_leaves(site: Site, nodes: set[str]) -> set[str]:
    return {name for name, below in site.tree.items() if name.startswith("leaf") and nodes & below}


def test_install_and_back(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> None:
    """From stock Slurm to isolated jobs and back by `topolane slurm plugin install` and `uninstall` and one line of slurm.conf, PluginDir.
    What cannot be is refused before anything is changed."""
    directory, elsewhere = tmp_path_factory.mktemp("stock"), tmp_path_factory.mktemp("elsewhere")
    plugins, engines = elsewhere / "plugins", elsewhere / "engine"
    plugins.mkdir()
    # The command runs outside of that Slurm's tree, so it has to see these plugins elsewhere.
    for stock in Path(inside.environment["SLURM_TREE"] + "/usr/lib/x86_64-linux-gnu/slurm-wlm").glob(
        "topology_*.so"
    ):
        shutil.copy(stock, plugins)
    before = set(plugins.iterdir())
    path = f"{plugins}:/usr/lib/x86_64-linux-gnu/slurm-wlm"
    options = ("--deadline", 240, "--conf", f"PluginDir={path}")
    with running(12, directory, *options, inside=inside) as cluster:
        slurm_conf, conf = directory / "slurm.conf", directory / "topolane.conf"

        def topolane(*words: object) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "plugin"]
            return subprocess.run(
                [*inside.prefix, *command, *map(str, words), "--engine-directory", str(engines)],
                env=cluster.environment,
                capture_output=True,
                text=True,
            )

        def change(old: str, new: str) -> None:
            slurm_conf.write_text(slurm_conf.read_text().replace(old, new))
            names = ("slurmctld", *(f"node{number}" for number in range(1, 13)))
            cluster.script("stop", *names)
            cluster.script("start", *names)
            until(lambda: cluster.run("sinfo", "-h", "-o", "%D %t").strip() == "12 idle", "idle nodes")

        for words, says in (
            (("pbatch=mine:Policy",), "slurmctld runs none"),
            (("nowhere=isolated",), "Slurm has no partition nowhere; there are pbatch"),
            (("pbatch=best",), "there is no policy 'best' here"),
        ):
            refused = topolane("install", "--from", built, "--policy", *words)
            assert refused.returncode == 2 and says in refused.stderr, refused.stderr
        other = elsewhere / "other.conf"
        other.write_text("SwitchName=leaf Nodes=other[1-12]\n")
        refused = topolane("install", "--from", built, "--policy", "pbatch=isolated", "--machine", other)
        assert refused.returncode == 2 and "names none of the 12 nodes" in refused.stderr, refused.stderr
        assert not conf.exists() and set(plugins.iterdir()) == before
        result = topolane("install", "--from", built, "--policy", "pbatch=isolated")
        assert result.returncode == 0, result.stderr
        copies = engines / "slurm"
        assert f"PluginDir={copies}:{path}" in result.stdout and "on all hosts" in result.stdout
        change(f"PluginDir={path}", f"PluginDir={copies}:{path}")
        assert "topolane: active, 1 rules" in (directory / "log" / "slurmctld.log").read_text()
        assert "SwitchName=leaf1" in cluster.run("scontrol", "show", "topology")
        job = cluster.submit("-N", 4, script="sleep 1")
        until(lambda: cluster.job(job)["job_state"] == "COMPLETED", "the job")
        refused = topolane("uninstall")
        assert refused.returncode == 2 and f"names {copies}" in refused.stderr
        with conf.open("a") as edited:
            edited.write("JobsMay=isolated\n")
        result = topolane("install", "--from", built, "--policy", "pbatch=isolated")
        assert result.returncode == 0 and "it is kept as" in result.stdout, result.stderr
        assert "JobsMay=isolated" in conf.with_name("topolane.conf.old").read_text()
        waits = topolane(
            "install", "--from", built, "--policy", "pbatch=isolated", "--without-engine", "wait"
        )
        assert waits.returncode == 0 and "\nWithoutEngine=wait\n" in conf.read_text(), waits.stderr
        (directory / "plugstack.conf").write_text("optional topolane_spank.so\n")
        slurm_conf.write_text(slurm_conf.read_text().replace(f"{copies}:", ""))
        refused = topolane("uninstall")
        assert refused.returncode == 2 and f"PluginDir of slurmctld names {copies}" in refused.stderr
        change("", "")
        result = topolane("uninstall")
        assert result.returncode == 0, result.stderr
        assert "still names topolane_spank.so" in result.stdout
        (directory / "plugstack.conf").unlink()
        assert not conf.exists() and set(plugins.iterdir()) == before
        assert not [each for each in engines.rglob("*") if each != copies]
        job = cluster.submit("-N", 4, script="sleep 1")
        until(lambda: cluster.job(job)["job_state"] == "COMPLETED", "the job")
