"""Priorities of held jobs are those that Slurm gives to jobs that it may start itself."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Cluster, running, script, until

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

from topolane import InputError
from topolane.live.log import Log
from topolane.slurm.client import Slurm
from topolane.slurm.config import Config
from topolane.slurm.daemon import Daemon
from topolane.slurm.priority import Priorities
from topolane.slurm.records import Snapshot

WEIGHTS = {"Age": 36000, "JobSize": 10000, "Partition": 500, "QOS": 3000, "FairShare": 100000, "Assoc": 700}
SETTINGS = [f"PriorityWeight{name}={weight}" for name, weight in WEIGHTS.items()]
SETTINGS += ["PriorityWeightTRES=CPU=1000,Mem=5000G,Node=10"]
KINDS = [
    *("--nodes=1", "--nodes=7", "--ntasks=40", "--nodes=2 --ntasks=2 --cpus-per-task=3", "--nodes=1-4"),
    *("--nodes=3 --nice=100", "--nodes=3 --nice=-77", "--nodes=2 --time=10", "--nodes=2 --partition=wide"),
    *("--nodes=2 --account=poor", "--nodes=2 --account=poor --qos=high", "--nodes=2 --qos=low"),
    *("--nodes=1 --nice=2000000", "--nodes=2 --account=rich --qos=high"),
]


@pytest.fixture(scope="module")
def counted(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with slurmdbd, two accounts, three QOS and partitions of several priorities, whose jobs
    of `batch` are held."""
    options = ("--accounting", "slurmdbd", "--priority", "multifactor", "--hold", "lua:batch")
    done = script("check", *options)
    if done.returncode:
        pytest.skip(done.stderr.strip().removeprefix("cluster.sh: "))
    options += ("--partitions", "open batch wide:node[1-10]")
    settings = [word for setting in SETTINGS for word in ("--conf", setting)]
    with running(12, tmp_path_factory.mktemp("priority"), *options, *settings) as cluster:
        for what in (
            "account rich fairshare=30 priority=5",
            "account poor fairshare=0",
            "user root account=rich",
            "user root account=poor priority=20",
            "qos high priority=100",
            "qos low priority=40",
        ):
            cluster.run("sacctmgr", "-iQ", "add", *what.split())
        cluster.run("sacctmgr", "-iQ", "modify", "user", "root", "set", "qos+=high,low")
        conf = Path(cluster.facts["SLURM_CONF"])
        text = re.sub("(PartitionName=batch .*)", r"\1 PriorityJobFactor=3", conf.read_text())
        conf.write_text(re.sub("(PartitionName=wide .*)", r"\1 PriorityJobFactor=4", text))
        yield cluster


@pytest.fixture(autouse=True)
def environment(counted: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SLURM_CONF", counted.facts["SLURM_CONF"])
    yield
    counted.run("scancel", "--user=root")


def until_idle(cluster: Cluster) -> None:
    def idle() -> bool:
        states = cluster.run("sinfo", "--noheader", "--partition=open", "--states=idle", "--format=%D")
        return states == "12\n" and not cluster.run("squeue", "--noheader", "--states=R,CG")

    until(idle, "all nodes are idle and no job ends")


def restart(cluster: Cluster) -> None:
    for verb in ("stop", "start"):
        assert script(verb, cluster.directory, "slurmctld").returncode == 0


def configure(cluster: Cluster, settings: dict[str, str], *, anew: bool = False) -> None:
    """Other lines of slurm.conf, beside those it was started with. Under select/linear a job that runs
    while slurmctld reads its file again would never end: slurmctld must then be started anew."""
    conf, first = Path(cluster.facts["SLURM_CONF"]), cluster.directory / "first.conf"
    if not first.exists():
        first.write_text(conf.read_text())
    text = first.read_text()
    for key, value in settings.items():
        text = re.sub(rf"^{key}=.*\n", "", text, flags=re.MULTILINE) + f"{key}={value}\n"
    conf.write_text(text)
    if anew:
        restart(cluster)
    else:
        until_idle(cluster)
        cluster.run("scontrol", "reconfigure")


def look(cluster: Cluster) -> Snapshot:
    slurm = Slurm(f"unix:{cluster.facts['SOCKET']}")
    try:
        return slurm.snapshot()
    finally:
        slurm.close()


def slurms_own(cluster: Cluster, job: int) -> int:
    return int(cluster.run("squeue", "--noheader", "--format=%Q", "--jobs", job))


def test_a_priority_is_that_of_slurm(counted: Cluster) -> None:
    """For jobs of all kinds that wait in a partition of Slurm's own the number is the one in squeue, by
    the second as they age, whatever the settings."""
    counted.submit("--nodes=12", "--partition=open", "--nice=-1000000")
    jobs = {counted.submit(*kind.split()): kind for kind in KINDS}
    for settings in (
        {},
        {"PriorityFlags": "SMALL_RELATIVE_TO_TIME"},
        {"PriorityFavorSmall": "YES", "PriorityFlags": "NO_NORMAL_TRES,NO_NORMAL_PART,NO_FAIR_TREE"},
        {"PriorityFlags": "NO_NORMAL_ALL,ACCRUE_ALWAYS"},
    ):
        configure(counted, settings, anew=True)
        agreed = functools.partial(agree, counted, Priorities(), jobs)
        until(agreed, f"they agree: {settings}", 20)


def agree(cluster: Cluster, priorities: Priorities, kinds: dict[int, str]) -> bool:
    """Whether all jobs have our numbers in Slurm too. It computes one anew when its nice value changes."""
    before, old = time.time(), look(cluster).jobs
    for job in kinds:
        cluster.run("scontrol", "update", f"JobId={job}", f"nice={old[job].nice + 1}")
    slurms = dict(map(int, line.split()) for line in cluster.run("squeue", "-h", "-o", "%A %Q").splitlines())
    snapshot, after = look(cluster), time.time()
    found = []
    for job, kind in kinds.items():
        ours = [priorities.number(snapshot.jobs[job], snapshot, when) for when in (before - 1, after)]
        found.append((kind, slurms[job], *ours))
        assert "nice=2000000" not in kind or slurms[job] == 1, "priority 0 is for held jobs"
    print(*found, sep="\n")
    return all(low <= number <= high for _, number, low, high in found) and after < before + 8


def test_the_order_is_that_of_the_numbers_whatever_the_time(counted: Cluster) -> None:
    """What orders the queue stays as it is while jobs age, and still orders them as their numbers do at
    any time, also when some are too old to age any more; a partition of a higher tier goes first."""
    configure(counted, {"PriorityMaxAge": "0-00:01:00", "PriorityWeightAge": "600"})
    jobs = []
    for nice in (0, 25, -25, 5):
        jobs.append(counted.submit("--nodes=2", "--partition=batch", f"--nice={nice}"))
        time.sleep(1.1)
    priorities, snapshot = Priorities(), look(counted)
    held = [snapshot.jobs[job] for job in jobs]
    assert all(job.priority == 0 for job in held)
    now = time.time()
    keys = [priorities.of(job, snapshot, now) for job in held]
    assert keys == pytest.approx([priorities.of(job, snapshot, now + 50) for job in held], abs=0.01)
    for later in (0, 30, 56.5, 58, 3600):
        by_key = sorted(held, key=lambda job: -priorities.of(job, snapshot, now + later))
        numbers = [priorities.number(job, snapshot, now + later) for job in by_key]
        assert numbers == sorted(numbers, reverse=True), later
    assert keys != pytest.approx([priorities.of(job, snapshot, now + 3600) for job in held], abs=1)
    counted.run("scontrol", "update", "PartitionName=wide", "PriorityTier=2")
    low = counted.submit("--nodes=1", "--partition=wide", "--nice=9000", "--hold")
    snapshot = look(counted)
    assert priorities.of(snapshot.jobs[low], snapshot, now) > max(keys)
    counted.run("scontrol", "update", "PartitionName=wide", "PriorityTier=1")


def test_the_daemon_starts_jobs_by_priority(counted: Cluster, tmp_path: Path) -> None:
    """Held jobs start in the order of their priorities and not of their submission."""
    kinds = ("--nice=500", "--account=poor", "--nice=-500", "--qos=high")
    configure(counted, {})
    jobs = [
        counted.submit("--nodes=12", "--partition=batch", "--time=5", kind, script="true") for kind in kinds
    ]
    snapshot, priorities = look(counted), Priorities()
    numbers = {job: priorities.number(snapshot.jobs[job], snapshot, time.time()) for job in jobs}
    expected = sorted(jobs, key=lambda job: -numbers[job])
    assert expected != jobs
    config = Config(f"unix:{counted.facts['SOCKET']}", ("batch",), by_priority=True)
    daemon = Daemon(config, Slurm(config.slurmrestd), Log(str(tmp_path / "log.jsonl")))
    started: list[int] = []

    def all_started() -> bool:
        started.extend(int(start.job.number) for start in daemon.step())
        return len(started) == len(jobs)

    until(all_started, "all jobs start")
    assert started == expected


def test_what_cannot_be_computed_is_refused(counted: Cluster) -> None:
    """A flag that asks for a history that held jobs do not have, or limits of how many jobs age, is
    refused in a sentence, and so is a Slurm without such priorities."""
    counted.run("sacctmgr", "-iQ", "modify", "account", "rich", "set", "GrpJobsAccrue=3")
    for settings, said in (
        ({"PriorityFlags": "INCR_ONLY"}, "cannot follow PriorityFlags=INCR_ONLY"),
        ({"AccountingStorageEnforce": "limits"}, "cannot follow GrpJobsAccrue=3"),
        ({"PriorityType": "priority/basic"}, "needs PriorityType=priority/multifactor"),
    ):
        configure(counted, settings, anew="PriorityType" in settings)
        with pytest.raises(InputError, match=said):
            Priorities()
