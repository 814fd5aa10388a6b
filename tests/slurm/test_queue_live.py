"""The queue slurm starts jobs in the order in which a real Slurm did: licences, preemption, a node that fails, shared nodes."""

from __future__ import annotations

import csv
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from live_cluster import Cluster, Inside, printed_by, running
from reading import topolane
from topolane.slurm import accounting_workload
from waiting import until

NODES = 4
SECONDS_APART = 3  # records tell whole seconds: a start and a later submission must not share one
PARAMETERS = "SchedulerParameters=batch_sched_delay=0,sched_min_interval=10000,bf_interval=2,bf_continue"


@pytest.fixture(scope="module")
def site(inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four nodes and three licences."""
    options = ("--leaf", 2, "--pod", 2, "--accounting", "slurmdbd", "--conf", "Licenses=solver:3")
    with running(NODES, tmp_path_factory.mktemp("queue"), *options, inside=inside) as up:
        yield up


@dataclasses.dataclass(frozen=True)
class Job:
    """A job of a scenario."""

    name: str
    nodes: int
    seconds: int
    options: tuple[str, ...] = ()
    minutes: int = 1
    is_later: bool = False
    """Whether the job before it has started SECONDS_APART earlier."""


def configured(site: Cluster, *lines: str) -> None:
    """These lines of slurm.conf in place of those that set the same, and a slurmctld that knows them."""
    path = site.directory / "slurm.conf"
    keys = {line.partition("=")[0] for line in lines}
    kept = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in keys]
    path.write_text("\n".join([*kept, *lines]) + "\n")
    site.script("stop", "slurmctld")
    site.script("start", "slurmctld")
    until(lambda: site.run("sinfo", "-h", "-o", "%D %t").strip() == f"{NODES} idle", "idle nodes")


def has_started(site: Cluster, job: int) -> bool:
    return f"{job} PENDING" not in site.run("squeue", "-h", "-o", "%A %T")


def recorded(
    site: Cluster, jobs: Sequence[Job], directory: Path, then: Callable[[dict[int, str]], None] | None
) -> dict[int, str]:
    """Runs the jobs, one submitted after the other, and imports the records. Answers their names by number.

    then: what happens once all are submitted.
    """
    names: dict[int, str] = {}
    for job in jobs:
        if job.is_later:
            until(functools.partial(has_started, site, max(names)), "the job before it runs")
            time.sleep(SECONDS_APART)
        words = (f"--nodes={job.nodes}", f"--time={job.minutes}", "--requeue", *job.options)
        names[site.submit(*words, script=f"sleep {job.seconds}")] = job.name
    if then is not None:
        then(names)
    until(lambda: not site.run("squeue", "-h", "-o", "%A"), "all jobs end")

    def known() -> bool:
        said = site.run("sacct", "-XPn", "-o", "JobID,End", "-S", "now-1days", "-E", "now")
        ends = dict(line.split("|") for line in said.splitlines())
        return all(ends.get(str(job), "Unknown") != "Unknown" for job in names)

    until(known, "accounting knows all ends")
    imported = accounting_workload.read(printed_by(site, directory))
    rows = [row for row in csv.DictReader(imported.csv.splitlines()) if int(row["job"]) in names]
    for row in rows:
        if row["state"] == "PREEMPTED":  # no record says how long it would have run
            row["run"] = next(str(job.seconds) for job in jobs if job.name == names[int(row["job"])])
    with open(directory / "log.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    (directory / "log-slurm.json").write_text(imported.queue)
    return names


def orders(
    site: Cluster,
    jobs: Sequence[Job],
    directory: Path,
    then: Callable[[dict[int, str]], None] | None = None,
) -> tuple[list[str], list[str]]:
    """The names of the jobs in the order of their starts, in Slurm and in a replay of its records; `-` before a run that was ended."""
    names = recorded(site, jobs, directory, then)
    replay = ("--queue", "slurm", "--policy", "slurm-cons-tres", "--no-report", "--out", directory / "out")
    words = ("simulate", "--machine", site.directory / "topology.conf", "--trace", directory / "log.csv")
    done = topolane(site.environment, *words, *replay)
    assert done.returncode == 0, done.stderr

    def order(path: Path, columns: tuple[str, str, str], ended: set[str], delimiter: str) -> list[str]:
        job, start, state = columns
        with open(path, newline="") as file:
            rows = [row for row in csv.DictReader(file, delimiter=delimiter) if int(row[job]) in names]
        rows.sort(key=lambda row: (float(row[start]), int(row[job])))
        return [("-" if row[state] in ended else "") + names[int(row[job])] for row in rows]

    return (
        order(
            directory / "topolane-import" / "jobs.txt",
            ("JobIDRaw", "Start", "State"),
            {"PREEMPTED", "NODE_FAIL"},
            ";",
        ),
        order(
            directory / "out" / "jobs.csv",
            ("job_id", "starting_time", "final_state"),
            {"COMPLETED_KILLED", "COMPLETED_FAILED"},
            ",",
        ),
    )


# "last" has a longer limit than "first": it must not end with it, which depends on the second in which each starts.
LICENSED = (
    Job("first", 1, 20, ("-L", "solver:2")),
    Job("all", 1, 4, ("-L", "solver:3")),
    Job("long", 1, 12, ("-L", "solver:1"), minutes=5),
    Job("none", 1, 2),
    Job("wide", 4, 2),
    Job("last", 1, 2, ("-L", "solver:1"), minutes=2),
)


def test_licences_hold_jobs_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """A job without its licences is passed over, and has no promise: a job of one licence goes before a job of all."""
    configured(site, PARAMETERS)
    recorded, replayed = orders(site, LICENSED, tmp_path)
    assert recorded.index("long") < recorded.index("all")
    assert replayed == recorded


def test_backfill_promises_licences_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """With bf_licenses the job of all licences has a promise, which the job of one licence would delay."""
    configured(site, f"{PARAMETERS},bf_licenses")
    recorded, replayed = orders(site, LICENSED, tmp_path)
    assert recorded.index("all") < recorded.index("long")
    assert replayed == recorded


# A replay starts "small" when it was submitted, Slurm a little later. It must still run in both when "urgent" comes.
PREEMPTING = (
    Job("small", 1, 30, ("--qos=again",)),
    Job("lost", 2, 50, ("--qos=never",)),
    Job("other", 1, 50, ("--qos=normal",)),
    Job("urgent", 1, 4, ("--qos=first",), is_later=True),
    Job("wide", 2, 4, ("--qos=first",), is_later=True),
)


def test_jobs_give_way_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """The smallest job of a QOS that gives way is requeued, and starts again later; a job of another one is cancelled."""
    for words in (
        ("add", "qos", "again", "PreemptMode=requeue"),
        ("add", "qos", "never", "PreemptMode=cancel"),
        ("add", "qos", "first", "Preempt=again,never"),
        ("modify", "account", "root", "set", "qos+=again,never,first"),
    ):
        site.run("sacctmgr", "-iQ", *words)
    enforced = "AccountingStorageEnforce=associations,qos"
    configured(site, PARAMETERS, enforced, "PreemptType=preempt/qos", "PreemptMode=REQUEUE")
    recorded, replayed = orders(site, PREEMPTING, tmp_path)
    assert recorded == ["-small", "-lost", "other", "urgent", "wide", "small"]
    assert replayed == recorded


PARTITIONS = (
    "PartitionName=low Nodes=ALL Default=YES State=UP OverSubscribe=EXCLUSIVE PriorityTier=1 PreemptMode=REQUEUE",
    "PartitionName=lost Nodes=ALL State=UP OverSubscribe=EXCLUSIVE PriorityTier=2 PreemptMode=CANCEL",
    "PartitionName=firm Nodes=ALL State=UP OverSubscribe=EXCLUSIVE PriorityTier=3 PreemptMode=OFF",
    "PartitionName=high Nodes=ALL State=UP OverSubscribe=EXCLUSIVE PriorityTier=10 PreemptMode=OFF",
)
# Of jobs that wait together, the one of the higher tier starts first: each is submitted when the one before it runs.
OF_LOW_TIERS = (
    Job("pair", 2, 45, ("--partition=low",)),
    Job("single", 1, 50, ("--partition=lost",), is_later=True),
    Job("firm", 1, 50, ("--partition=firm",), is_later=True),
    Job("urgent", 1, 20, ("--partition=high",), is_later=True),
    Job("wide", 2, 10, ("--partition=high",), is_later=True),
)


def test_lower_tiers_give_way_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """The job of the lowest tier is requeued, though another one has fewer nodes; the partition of the next tier cancels its job."""
    configured(site, PARAMETERS, *PARTITIONS, "PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE")
    recorded, replayed = orders(site, OF_LOW_TIERS, tmp_path)
    assert recorded == ["-pair", "-single", "firm", "urgent", "wide", "pair"]
    assert replayed == recorded


WHOLE = "PartitionName=whole Nodes=ALL Default=YES State=UP OverSubscribe=EXCLUSIVE"
NO_PREEMPTION = ("PreemptType=preempt/none", "PreemptMode=OFF")

# A replay starts "hit" when it was submitted, Slurm later. It must still run in both when the node fails. "next" must start before
# "hit" may start again.
ON_A_FAILING_NODE = (
    Job("hit", 2, 45, minutes=2),
    Job("safe", 1, 60, minutes=3),
    Job("next", 2, 15),
)


def test_a_node_that_fails_ends_its_job_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """The job is requeued and starts again on other nodes, behind a job that came before the failure. It is one job in the log."""
    configured(site, PARAMETERS, WHOLE, *NO_PREEMPTION)

    def fail(names: dict[int, str]) -> None:
        until(functools.partial(has_started, site, min(names)), "the job runs that the failure hits")
        time.sleep(SECONDS_APART)
        failing = site.run("squeue", "-h", "-j", min(names), "-o", "%B").strip()
        site.run("scontrol", "update", f"nodename={failing}", "state=down", "reason=test")

    recorded, replayed = orders(site, ON_A_FAILING_NODE, tmp_path, fail)
    assert recorded == ["-hit", "safe", "next", "hit"]
    assert replayed == recorded


GRACEFUL = (
    Job("small", 1, 15, ("--qos=patient",)),
    Job("other", 3, 25, ("--qos=normal",)),
    Job("urgent", 1, 4, ("--qos=hurried",), is_later=True),
)


def test_a_job_ends_in_its_grace_time_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """A job that must give way runs on and ends by itself before its grace time is over. Slurm's records call it preempted even then."""
    for words in (
        ("add", "qos", "patient", "PreemptMode=cancel", "GraceTime=60"),
        ("add", "qos", "hurried", "Preempt=patient"),
        ("modify", "account", "root", "set", "qos+=patient,hurried"),
    ):
        site.run("sacctmgr", "-iQ", *words)
    enforced = "AccountingStorageEnforce=associations,qos"
    configured(site, PARAMETERS, WHOLE, enforced, "PreemptType=preempt/qos", "PreemptMode=REQUEUE")
    recorded, replayed = orders(site, GRACEFUL, tmp_path)
    assert recorded == ["-small", "other", "urgent"]
    assert replayed == ["small", "other", "urgent"]


# Of 16 cores of each node. "long" and "last" would fit next to the others if a promise were one of cores.
ON_PARTS_OF_NODES = (
    Job("hold", 4, 20, ("--ntasks-per-node=12",), minutes=2),
    Job("wide", 4, 6, ("--ntasks-per-node=8",)),
    Job("long", 4, 3, ("--ntasks-per-node=4",), minutes=5),
    Job("short", 4, 4, ("--ntasks-per-node=4",)),
    Job("alone", 4, 3, ("--exclusive",)),
    Job("last", 4, 2, ("--ntasks-per-node=4",), minutes=5),
)


def test_backfill_promises_whole_nodes_to_parts_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """A job that fits next to a promise of parts of nodes waits, because the promise is of whole nodes; one that ends before starts."""
    configured(
        site,
        PARAMETERS,
        "PartitionName=parts Nodes=ALL Default=YES State=UP OverSubscribe=NO",
        *NO_PREEMPTION,
    )
    recorded, replayed = orders(site, ON_PARTS_OF_NODES, tmp_path)
    assert recorded == ["hold", "short", "wide", "long", "alone", "last"]
    assert replayed == recorded


# "two" would start at once without the reservation: three licences are there.
NEXT_TO_A_RESERVATION = (
    Job("one", 1, 12, ("-L", "solver:1")),
    Job("two", 1, 2, ("-L", "solver:2")),
    Job("none", 1, 12),
    Job("inside", 1, 4, ("-L", "solver:2", "--reservation=course"), is_later=True),
)


def test_a_reservation_keeps_licences_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """A job that needs licences of a reservation waits for its end. A job of the reservation takes them."""
    often = f"{PARAMETERS},sched_interval=15"
    configured(site, often, WHOLE, "AccountingStorageTRES=license/solver", *NO_PREEMPTION)
    course = ("reservationname=course", "users=root", "starttime=now", "endtime=now+20")
    site.run("scontrol", "create", "reservation", *course, "licenses=solver:2", "flags=any_nodes")
    recorded, replayed = orders(site, NEXT_TO_A_RESERVATION, tmp_path)
    assert recorded == ["one", "none", "inside", "two"]
    assert replayed == recorded
