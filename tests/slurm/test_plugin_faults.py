"""What administrators, crashes and full disks do to the topology plugin inside a real slurmctld of Slurm 24.11.

docs/explanation/slurm-plugin.md says what is held here. TOPOLANE_KILLS: how often slurmctld is killed under load (5).
TOPOLANE_TEST_ENGINE: an engine library (by default it is compiled).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import links_in_tree as tree
import pytest
from live_cluster import Inside
from plugin_site import ACROSS, MACHINE, NODES, PARTITIONS, RULES, Load, Site, plugin_cluster
from topolane.slurm import plugin_build
from waiting import until

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("slurm")
    options = ("--leaf", 6, "--pod", 2, "--deadline", 240, "--partitions", PARTITIONS, "--backup", "yes")
    conf = (f"PlugStackConfig={directory}/plugstack.conf", "MinJobAge=10", f"MaxNodeCount={NODES + 8}")
    conf_files = {"plugstack.conf": f"optional {built / plugin_build.SPANK}\n"}
    with plugin_cluster(built, inside, directory, *options, conf=conf, conf_files=conf_files) as cluster:
        cluster.script("stop", "backup")
        yield Site(cluster, built)


@pytest.fixture
def quiet(site: Site) -> Iterator[Site]:
    """The cluster with nothing running; afterwards with the configuration that it had."""
    site.wait_idle()
    yield site
    conf = site.cluster.directory / "topolane.conf"
    machine = site.cluster.directory / "machine.toml"
    before = conf.read_bytes(), machine.read_bytes() if machine.exists() else None
    site.write()
    if before != (conf.read_bytes(), machine.read_bytes()):
        site.reconfigure()


@pytest.fixture
def backed(quiet: Site) -> Iterator[Site]:
    """The same with a second slurmctld in standby."""
    quiet.cluster.script("start", "backup")
    yield quiet
    if not quiet.cluster.lives("slurmctld"):
        quiet.cluster.script("start", "slurmctld")
    quiet.cluster.script("stop", "backup")
    until(quiet.answers, "the first slurmctld")


def controls(site: Site, name: str) -> bool:
    """Whether the last thing that a slurmctld says is that it is in control, and it answers."""
    log = site.log(name)
    return (
        log.rfind("Running as primary controller")
        > max(log.rfind("running in background mode"), log.rfind("taking over"))
        and site.answers()
    )


def lose_primary(site: Site, load: Load, how: str, saved: int = 0) -> None:
    """Ends the first slurmctld and looks at what runs until the second is in control."""
    count = site.log("backup").count("Running as primary controller")
    if how == "kill":
        site.saved(saved)
        site.cluster.script("kill", "slurmctld")
    else:
        site.cluster.run("scontrol", "takeover")

    def is_over() -> bool:
        load.look()
        return site.log("backup").count("Running as primary controller") > count and site.answers()

    until(is_over, "the second slurmctld in control")


def regain_primary(site: Site, load: Load) -> None:
    """Starts the first slurmctld and looks at what runs until it is in control and the second is in standby, where it hears
    of the next takeover."""
    count = site.log("backup").count("running in background mode")
    site.cluster.script("start", "slurmctld")

    def is_over() -> bool:
        load.look()
        return site.log("backup").count("running in background mode") > count and site.answers()

    until(is_over, "the first slurmctld in control")


def test_a_second_slurmctld_takes_over_under_load(backed: Site) -> None:
    """Two jobs own links and run, others wait, short ones come all the time. The second slurmctld takes over after kill -9, and
    once more by `scontrol takeover`, and gives control back. Never do two jobs meet that must not. The links of the two stay
    theirs, and jobs that start under the second slurmctld get others: it reads topolane_links when it takes control, also the
    second time."""
    load = Load(backed, 1)
    first = backed.start("-p", "powned", "-w", ACROSS[0])
    second = backed.start("-p", "powned", "-w", ACROSS[1])
    long = {first, second}
    before = {job: links for job, links in backed.owners().items() if job in long}
    assert before.keys() == long and all(before.values())
    for round, how in enumerate(("kill", "takeover")):
        load.for_seconds(3)
        lose_primary(backed, load, how, second)
        load.forget(long)
        load.cancel_short(long)
        third = backed.start("-p", "powned", "-w", ACROSS[2 + round], "--nice=-1000")
        owners = backed.owners()
        assert {job: owners[job] for job in long} == before
        assert owners[third] and not owners[third] & (before[first] | before[second])
        fourth = backed.cluster.submit("-p", "powned", "-w", ACROSS[4], "--nice=-1000")
        assert backed.waits(fourth), "no uplink is left"
        load.for_seconds(3)
        regain_primary(backed, load)
        load.forget(long)
        assert {job: backed.owners().get(job) for job in long} == before
        assert backed.waits(fourth), "no uplink is left"
        backed.cluster.run("scancel", third, fourth)
    assert load.looks > 10
    backed.check(tree.listed(backed.cluster.run("squeue", "-h", "-t", "R", "-o", "%A %P %N"), time.time()))


def test_the_second_slurmctld_reads_the_configuration_again(backed: Site) -> None:
    """It may have been in control before, under another topolane.conf and another machine file. And while it is in standby it
    does not write over the counters of the one that is in control."""
    load = Load(backed, 2)
    lose_primary(backed, load, "takeover")
    backed.start("-p", "pbatch", "-N", 2)
    regain_primary(backed, load)
    backed.call()
    begun, written = set(), set()

    def is_written_again() -> bool:
        _, started, when, *_ = (backed.state / "topolane_counters").read_text().splitlines()
        begun.add(started)
        written.add(when)
        return len(written) > 3

    until(is_written_again, "three heartbeats")
    assert len(begun) == 1, begun
    backed.configure(RULES.replace("Policy=isolated", "Policy=hop-bytes"))
    lose_primary(backed, load, "takeover")
    job = backed.start("-p", "pbatch", "-N", 2)
    assert backed.uses()[job] == ("hop-bytes", "shared")
    regain_primary(backed, load)


def test_a_backup_controller_whose_files_differ_is_seen(quiet: Site, tmp_path: Path) -> None:
    """`topolane slurm status` on that host names the file that differs from the one in use, and nothing if none does. On the first
    host it says which hosts may take over."""
    conf, other = quiet.cluster.directory / "topolane.conf", tmp_path / "topolane.conf"
    status = (sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "status")
    quiet.call()
    assert "backup controllers: backup; " in quiet.tried(*status).stdout
    for text, differs in ((conf.read_text(), False), (conf.read_text() + "Outside=share\n", True)):
        other.write_text(text)
        there = 'hostname backup && mount --bind "$0" "$1" && shift && exec "$@"'
        done = quiet.tried("unshare", "--uts", "--mount", "sh", "-c", there, other, conf, *status)
        assert done.returncode == 0, done
        assert (f"{conf} differs from the file that slurmctld on " in done.stdout) == differs, done.stdout
        assert done.stdout.count("differs from the file") == differs


def test_slurmctld_killed_again_and_again(quiet: Site) -> None:
    """kill -9 at any moment of a load: at no look do two jobs meet that must not. Long jobs keep their links."""
    load = Load(quiet, 3)
    draw = random.Random(4)
    long = {quiet.start("-p", "powned", "-w", nodes) for nodes in ACROSS[:2]}
    quiet.saved(max(long))
    before = {job: links for job, links in quiet.owners().items() if job in long}
    for _ in range(int(os.environ.get("TOPOLANE_KILLS", "5"))):
        load.for_seconds(draw.uniform(0.5, 5))
        quiet.restart("kill")
        load.forget(long)
        load.for_seconds(1)
        assert {job: quiet.owners().get(job) for job in long} == before
        if load.draw.random() < 0.5:  # Nodes on which a forgotten job ended are drained.
            quiet.tried("scontrol", "update", f"nodename=node[1-{NODES}]", "state=resume")
    assert load.looks > 10 and load.submitted > 40
    assert len(quiet.running() or []) >= 2


def test_a_slurmctld_without_its_pid_file_is_ended(quiet: Site) -> None:
    """A reconfiguration of Slurm 24.11 may remove it. The other tests count on an end and a new start then, too."""
    started = quiet.log().count("slurmctld version")
    (quiet.cluster.directory / "run" / "slurmctld.pid").unlink()
    assert quiet.cluster.lives("slurmctld")
    quiet.cluster.script("stop", "slurmctld")
    assert not quiet.cluster.lives("slurmctld")
    quiet.cluster.script("start", "slurmctld")
    assert quiet.log().count("slurmctld version") == started + 1


# What changes while jobs run.


def test_rules_change_under_load(quiet: Site) -> None:
    """scontrol reconfigure, with the same rules and with others. What runs keeps its nodes; jobs that start later obey the new
    rules."""
    load = Load(quiet, 5)
    load.for_seconds(3)
    for _ in range(3):
        quiet.reconfigure()
        load.for_seconds(2)
    assert load.looks > 5
    quiet.wait_idle()
    first = quiet.start("-p", "pbatch", "-N", 8)
    quiet.configure(RULES.replace("pbatch,pshared Policy=isolated", "pbatch Policy=stock"))

    def published() -> dict[int, str]:
        """The policy of each running job. The plugin writes its file after Slurm has asked it, which may take a while."""
        return {job: policy for job, (policy, _) in quiet.uses().items()}

    until(lambda: published().get(first) == "stock", "the job goes by the new rule")
    second = quiet.start("-p", "powned", "-w", "node[13-20]")
    quiet.configure()
    until(lambda: published() == {first: "isolated", second: "dedicated"}, "both go by the rules of before")


def test_a_wrong_topolane_conf_and_back(quiet: Site) -> None:
    """slurmctld goes on, says once why stock Slurm decides, and topolane_jobs says it too. The next reconfigure with a good file
    puts the rules back into force, over the jobs that have started meanwhile as well."""
    first = quiet.start("-p", "pbatch", "-N", 8)
    before = len(quiet.log())
    quiet.configure(RULES + "Partition=pbatch Policy=best\n")
    second = quiet.start("-p", "pbatch", "-N", 8)
    said = [line for line in quiet.log()[before:].splitlines() if "topolane: not active" in line]
    assert len(said) == 1 and "line 6: there is no policy 'best'" in said[0], said
    assert "there is no policy 'best'" in (quiet.published().why or "")
    assert quiet.counters()["active"] == 0 and quiet.counters()["stock_inactive"]
    quiet.configure()
    assert quiet.counters()["active"] == 1 and not quiet.published().why
    third = quiet.start("-p", "pbatch", "-N", 2)
    crossing = [tree.crossed(quiet.nodes(job), quiet.tree) for job in (first, second, third)]
    assert not crossing[2] & (crossing[0] | crossing[1])
    assert set(quiet.uses()) == {first, second, third}


@pytest.mark.parametrize("how", ["removed", "garbled"])
def test_the_machine_file_goes_bad_while_slurmctld_runs(quiet: Site, how: str) -> None:
    """Nothing happens until slurmctld reads it again. Then stock Slurm decides, and both the log and topolane_jobs say why."""
    machine = quiet.cluster.directory / "machine.toml"
    if how == "removed":
        machine.unlink()
    else:
        machine.write_bytes(random.Random(6).randbytes(5000))
    quiet.start("-p", "pbatch", "-N", 8)
    assert quiet.counters()["placed"] and quiet.counters()["active"] == 1
    quiet.reconfigure()
    quiet.start("-p", "pbatch", "-N", 8)
    assert quiet.counters()["active"] == 0
    why = quiet.published().why or ""
    assert "machine.toml" in why and f"stock Slurm chooses all nodes: {why}" in quiet.log(), why


def test_another_machine_file_while_jobs_own_links(quiet: Site) -> None:
    """With another number of cables the file of links is of no use: the jobs count as owners of all links that they may use, so
    that no other job crosses their leaves. Jobs inside of a leaf start."""
    first = quiet.start("-p", "powned", "-w", ACROSS[0])
    isolated = quiet.start("-p", "pbatch", "-w", "node[2-3]")
    # One uplink would be left at every leaf, and two with twice the cables.
    quiet.configure(machine=MACHINE.replace("[1, 1, 2]", "[1, 2, 2]"))
    waiting = quiet.cluster.submit("-p", "powned", "-w", ACROSS[3])
    assert quiet.waits(waiting)
    assert "the file of owned links is not used: it is of another machine file" in quiet.log()
    inside = quiet.start("-p", "powned", "-w", "node[5-6]")
    quiet.check(quiet.running() or [])
    assert {first, isolated, inside} == {job.job for job in quiet.running() or []}
    quiet.cluster.run("scancel", first)
    until(lambda: bool(quiet.nodes(waiting)), "the start on links that are free now")
    assert quiet.owners()[waiting]


def test_nodes_move_to_another_leaf_while_jobs_run(quiet: Site) -> None:
    """After a restart with nodes in other leaves, two isolated jobs cross the same leaf that did not before. They go on, and
    others keep off both."""
    directory = quiet.cluster.directory
    topology = directory / "topology.conf"
    before = topology.read_text()
    first = quiet.start("-p", "pbatch", "-w", "node[1-6]")
    second = quiet.start("-p", "pbatch", "-w", "node[7-12]")
    moved = before.replace("node[1-6]", "node[1-5,7]").replace("node[7-12]", "node[6,8-12]")
    machine = MACHINE.replace(f"node[1-{NODES}]", f"node[1-5,7,6,8-{NODES}]")
    try:
        topology.write_text(moved)
        quiet.configure(machine=machine)
        quiet.tree = tree.switches(topology)
        third = quiet.start("-p", "pbatch", "-N", 8)
        over = tree.crossed(quiet.nodes(third), quiet.tree)
        for job in (first, second):
            assert not over & tree.crossed(quiet.nodes(job), quiet.tree)
        assert quiet.counters()["stock_failed"] == 0
    finally:
        topology.write_text(before)
        quiet.tree = tree.switches(topology)


def test_nodes_come_and_go(quiet: Site) -> None:
    """Dynamic nodes that the machine file does not name, made and deleted while isolated jobs run: the jobs go on, the next ones
    are placed, and a node that is made in the place of a deleted one is not taken for that one."""
    jobs = [quiet.start("-p", "pbatch", "-N", 8)]
    for name in ("other1", "other2", "more3"):
        quiet.cluster.run("scontrol", "create", f"nodename={name}", "CPUs=16", "state=future")
        jobs.append(quiet.start("-p", "pbatch", "-N", 2))
        if name != "other2":
            quiet.cluster.run("scontrol", "delete", f"nodename={name}")
    quiet.cluster.run("scontrol", "delete", "nodename=other2")
    # No count of nodes shows this one, and no job asks in between.
    quiet.cluster.run("scontrol", "create", "nodename=fresh", "CPUs=16", "state=future")
    jobs.append(quiet.start("-p", "pbatch", "-N", 2))
    assert "does not name 1 nodes, such as fresh" in quiet.log()
    quiet.cluster.run("scontrol", "delete", "nodename=fresh")
    quiet.check(quiet.running() or [])
    assert {job.job for job in quiet.running() or []} == set(jobs)
    assert quiet.counters()["placed"] >= 4


def test_nodes_that_slurm_conf_gets_and_loses(quiet: Site) -> None:
    """After a restart with more nodes than the machine file names, with fewer, and with one of another name, jobs go on and
    others start."""
    conf = quiet.cluster.directory / "slurm.conf"
    before = conf.read_text()
    line = next(line for line in before.splitlines() if line.startswith("NodeName=node[1-"))
    last = quiet.cluster.ports()[1]
    settings = "NodeAddr=127.0.0.1 CPUs=16 State=DOWN"
    fewer = line.replace(f"node[1-{NODES}]", f"node[1-{NODES - 1}]").replace(f"-{last}]", f"-{last - 1}]")
    job = quiet.start("-p", "pbatch", "-w", "node[1-8]")
    try:
        for new, says in (
            (f"{line}\nNodeName=extra[1-2] Port=[1-2] {settings}", "does not name 2 nodes, such as extra1"),
            (fewer, ""),
            (f"{fewer}\nNodeName=other Port={last} {settings}", "does not name 1 nodes, such as other"),
        ):
            quiet.cluster.script("stop", "slurmctld")
            conf.write_text(before.replace(line, new))
            quiet.cluster.script("start", "slurmctld")
            second = quiet.start("-p", "pbatch", "-N", 7)
            assert quiet.nodes(job) == tree.expanded("node[1-8]")
            assert says in quiet.log(), quiet.log()[-5000:]
            quiet.check(quiet.running() or [])
            quiet.cluster.run("scancel", second)
            until(lambda job=second: not quiet.nodes(job), "the end of a job")
    finally:
        quiet.cluster.script("stop", "slurmctld")
        conf.write_text(before)
        quiet.cluster.script("start", "slurmctld")


# Disks.


def test_the_files_cannot_be_written(quiet: Site) -> None:
    """No file of the plugin can be written: jobs start as before, the log has one line, and a counter says how often the file of
    links failed. Afterwards everything is written again."""
    names = ("topolane_links", "topolane_counters", "topolane_jobs")
    for name in names:
        (quiet.state / f"{name}.new").mkdir()
    try:
        before = len(quiet.log())
        jobs = [quiet.start("-p", "powned", "-w", nodes) for nodes in ACROSS[:2]]
        assert all(quiet.nodes(job) for job in jobs)
        said = [line for line in quiet.log()[before:].splitlines() if "topolane:" in line]
        assert len([line for line in said if "links of jobs cannot be kept for a restart" in line]) == 1, said
    finally:
        for name in names:
            (quiet.state / f"{name}.new").rmdir()
    assert quiet.counters()["links_unwritten"]
    third = quiet.start("-p", "powned", "-w", ACROSS[2])
    assert quiet.owners().keys() == {*jobs, third}


def test_a_full_disk_costs_links_and_never_isolation(quiet: Site) -> None:
    """What the file said of a job before must not be believed after a restart, if the disk was full when the job got other links."""
    draft = quiet.state / "topolane_links.new"
    blocker = quiet.start("-p", "powned", "-w", ACROSS[0])
    job = quiet.start("-p", "powned", "--requeue", "-w", ACROSS[1])
    quiet.cluster.run("scancel", blocker)
    until(lambda: not quiet.nodes(blocker), "the end of the first job")
    before = quiet.owners()
    draft.symlink_to("/dev/full")
    quiet.cluster.run("scontrol", "requeue", job)
    until(lambda: not quiet.nodes(job), "the end of the first run")
    until(lambda: bool(quiet.nodes(job)), "the second start")
    assert quiet.counters()["links_unwritten"]
    draft.unlink(missing_ok=True)
    quiet.restart()
    others = [quiet.cluster.submit("-p", "powned", "-w", nodes) for nodes in ACROSS[2:4]]
    quiet.cluster.passes(others[-1])
    taken = [quiet.owners().get(other, frozenset()) for other in others if quiet.nodes(other)]
    assert not any(links & before[blocker] for links in taken), "the job may have these links now"


# The option of jobs.

REFUSED = {
    "best": "there is no policy 'best'",
    "mine:Policy": "nothing runs Python inside slurmctld",
    "": "names nothing",
    ",": "names nothing",
    "isolated,jigsaw": "'jigsaw' is a second policy",
    "isolated,min-bandwidth=0.5": "min-bandwidth is for the policy dedicated",
    "min-bandwidth=7": "does not give a number from 0.01 to 1",
    "dedicated," + "x" * 150: "is a second policy",
    "x" * 5000: "is longer than 200 characters",
}


def test_words_that_no_job_may_use_are_refused_at_once(quiet: Site) -> None:
    """sbatch, srun and salloc say why in one line, and submit nothing."""
    for word, says in REFUSED.items():
        for command in (["sbatch", "--wrap", "true"], ["srun", "true"], ["salloc", "true"]):
            done = quiet.tried(command[0], f"--topolane={word}", "-p", "pbatch", *command[1:])
            lines = [line for line in done.stderr.splitlines() if "Invalid --topolane argument" not in line]
            assert done.returncode and len(lines) == 1 and says in lines[0], (command, word[:80], done)
    assert not quiet.cluster.run("squeue", "-h")


def test_jobs_choose_as_far_as_they_may(quiet: Site) -> None:
    """By sbatch, srun, salloc, in arrays and heterogeneous jobs, also after a restart while the job waits. What JobsMay does not
    name is ignored: the job runs by its rule."""
    quiet.configure(JobsMay="dedicated,min-bandwidth")
    sleep = ["--wrap", "sleep 600"]
    batch = ["sbatch", "--parsable", "-o", "/dev/null", "-p", "pbatch", "-N1"]
    may = "--topolane=dedicated,min-bandwidth=0.5"
    expected: dict[int, str] = {}
    expected[int(quiet.cluster.run(*batch, may, *sleep))] = "dedicated"
    expected[int(quiet.cluster.run(*batch, "--topolane=hop-bytes", *sleep))] = "isolated"
    expected[int(quiet.cluster.run(*batch, "--topolane=share-links", *sleep))] = "isolated"
    expected[int(quiet.cluster.run(*batch, *sleep))] = "isolated"
    waiting = int(quiet.cluster.run(*batch, may, "--begin=now+20", *sleep))
    expected[waiting] = "dedicated"
    array = int(quiet.cluster.run(*batch, may, "--array=1-2", *sleep))
    het = int(quiet.cluster.run(*batch, may, ":", "-p", "pbatch", "-N1", "--topolane=stock", *sleep))
    expected |= {het: "dedicated", het + 1: "isolated"}
    quiet.restart()
    for command in (["srun", "sleep", "600"], ["salloc", "sleep", "600"]):
        words = [*quiet.cluster.inside.prefix, command[0], "-J", command[0], "-p", "pbatch", "-N1", may]
        subprocess.Popen(
            [*words, *command[1:]],
            env=quiet.cluster.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    until(lambda: len(quiet.cluster.run("squeue", "-h", "-t", "R", "-r").splitlines()) == 11, "all jobs")
    lines = quiet.cluster.run("squeue", "-h", "-r", "-o", "%A %F %j").splitlines()
    for number, group, name in (line.split() for line in lines):
        if int(group) == array or name in ("srun", "salloc"):
            expected[int(number)] = "dedicated"
    assert {job: policy for job, (policy, _) in quiet.uses().items()} == expected
    # srun and salloc end with their jobs.
    quiet.cluster.run("scancel", "--user=root")


def test_the_tasks_of_an_array_own_links(quiet: Site) -> None:
    """Slurm asks for a task under the number of the array, and gives the task another number when it starts."""
    array = quiet.cluster.submit("-p", "powned", "-N8", "--array=1-2", script="sleep 600")
    until(lambda: len(quiet.cluster.run("squeue", "-h", "-t", "R", "-r").splitlines()) == 2, "the array")
    last = quiet.start("-p", "powned", "-w", "node[9-12]")
    tasks = {job.job for job in quiet.running() or []} - {last}
    assert set(quiet.uses()) == {*tasks, last}
    quiet.start("-p", "powned", "-w", "node[21-24]")
    owners = quiet.owners()
    assert tasks <= owners.keys() and array in tasks
    links = [link for owned in owners.values() for link in owned]
    assert len(links) == len(set(links))


def test_only_what_runs_is_published_as_running(quiet: Site) -> None:
    """Neither jobs of --test-only nor jobs that have ended are in topolane_jobs when Slurm has asked again."""
    job = quiet.start("-p", "pbatch", "-N", 2)
    quiet.cluster.run("scancel", job)
    until(lambda: not quiet.cluster.run("squeue", "-h", "-j", job), "the end of the job")
    quiet.call()
    quiet.call()
    assert not quiet.published().running


# Hostile files.


def summed(text: str) -> bytes:
    """A file of links with the sum that its text has."""
    total = 14695981039346656037
    for byte in text.encode():
        total = (total ^ byte) * 1099511628211 % 2**64
    return f"{text}sum {total:016x}\n".encode()


BIG, HUGE = 2**32 - 1, 2**64 - 1
UNBELIEVED = {
    "a node that is not there": "1\n{job} 1 2 0 4000000000 2 24 27\n",
    "a link that is not there": "1\n{job} 1 2 {nodes} 2 24 4000000000\n",
    "no nodes": "1\n{job} 1 0 2 24 27\n",
    "no links": "1\n{job} 1 2 {nodes} 0\n",
    "a share of nothing": "1\n{job} nan 2 {nodes} 2 24 27\n",
    "a count that does not fit": f"1\n{{job}} 1 {BIG} {{nodes}} 2 24 27\n",
    "a count of 2^64": f"1\n{{job}} 1 4 {{nodes}} {HUGE} 24\n",
    "2^64 jobs": f"{HUGE}\n{{job}} 1 4 {{nodes}} 2 24 27\n",
    "numbers of 2^64": f"1\n{HUGE} 1 2 {HUGE} {HUGE} 1 -1\n",
    "letters": "1\njob one of many\n",
    "nothing": "",
    "a job twice": "2\n{job} 1 2 {nodes} 1 24\n{job} 1 2 {nodes} 1 25\n",
    "many jobs, backwards": "50000\n" + "".join(f"{job} 1 1 0 1 24\n" for job in range(90000, 40000, -1)),
}
BELIEVED = {
    "links of other nodes": "1\n{job} 1 2 {nodes} 2 0 1\n",
    "one link four times": "1\n{job} 1 2 {nodes} 4 24 24 24 24\n",
    "a small share": "1\n{job} 1e-300 2 {nodes} 2 24 27\n",
}


def test_absurd_files_of_links(quiet: Site) -> None:
    """Files with a correct sum that no plugin writes: slurmctld goes on, the job runs on, and another one gets an answer. If the file
    says nothing that can be, the other gets no link of the first."""
    path = quiet.state / "topolane_links"
    job = quiet.start("-p", "powned", "-w", ACROSS[1])
    own = quiet.owners()[job]
    head, nodes = path.read_text().split()[2], " ".join(path.read_text().splitlines()[1].split()[3:5])
    quiet.saved(job)
    for name, text in (UNBELIEVED | BELIEVED).items():
        quiet.cluster.script("kill", "slurmctld")
        path.write_bytes(summed(f"topolane-links 1 {head} {text.format(job=job, nodes=nodes)}"))
        quiet.cluster.script("start", "slurmctld")
        other = quiet.cluster.submit("-p", "powned", "-w", ACROSS[2])
        until(lambda job=other: bool(quiet.nodes(job)) or quiet.waits(job), f"an answer: {name}")
        assert quiet.cluster.lives("slurmctld") and quiet.nodes(job), name
        if quiet.nodes(other) and name in UNBELIEVED:
            assert not quiet.owners().get(other, own) & own, name
        quiet.cluster.run("scancel", other)
        until(lambda job=other: not quiet.cluster.run("squeue", "-h", "-j", job), "its end")


HOSTILE = {
    "a long line": b"Partition=" + b"p" * 3_000_000 + b" Policy=isolated\n",
    "many lines": b"Partition=p Policy=isolated\n" * 20_000,
    "a long word": b"x" * 3_000_000 + b"\n",
    "zero bytes": b"Partition=p\0batch Policy=isolated\n\0\0",
    "no end of line": b"Partition=pbatch Policy=isolated",
    "only equals signs": b"=\n==\n= =\n",
    "formats": b"Partition=%s%n%n Policy=%s%s%n\n",
    "numbers": b"CallTime=1e308\n",
    "not a number": b"CallTime=nan\n",
    "a share too small": b"Partition=pbatch Policy=dedicated MinBandwidth=1e-320\n",
    "a machine that is a directory": b"Machine=/\n",
    "a machine without end": b"Machine=/dev/zero\n",
    "an engine twice": b"Engine=/dev/null\n",
    "random bytes": random.Random(7).randbytes(20_000),
}


def test_hostile_configuration(quiet: Site) -> None:
    """Whatever stands in topolane.conf: slurmctld reads it, goes on and starts jobs, and if the plugin is not active the reason
    is one line that people can read."""
    conf = quiet.cluster.directory / "topolane.conf"
    good = conf.read_bytes()
    for name, text in HOSTILE.items():
        first = good.replace(b"Machine=machine.toml\n", b"") if b"Machine=" in text else good
        conf.write_bytes(first + text)
        quiet.reconfigure()
        job = quiet.start("-p", "pbatch", "-N", 8)
        active, why = quiet.counters()["active"], quiet.published().why
        assert (why is None) == (active == 1) and len(why or "") < 600, name
        quiet.cluster.run("scancel", job)
    conf.write_bytes(b"")
    quiet.reconfigure()
    assert "Engine, the path of libtopolane.so, is missing" in (quiet.published().why or "")
