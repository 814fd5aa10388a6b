"""The queue slurm starts jobs in the order in which a real Slurm did, with licences."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from live_cluster import Cluster, Inside, printed_by, running, until
from reading import topolane
from topolane.slurm import accounting_workload

NODES = 4
PARAMETERS = "batch_sched_delay=0,sched_min_interval=10000,bf_interval=2,bf_continue"


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


def configured(site: Cluster, **settings: str) -> None:
    """Other settings of slurm.conf, and a slurmctld that knows them."""
    path = site.directory / "slurm.conf"
    kept = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in settings]
    path.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in settings.items())]) + "\n")
    site.script("stop", "slurmctld")
    site.script("start", "slurmctld")
    until(lambda: site.run("sinfo", "-h", "-o", "%D %t").strip() == f"{NODES} idle", "idle nodes")


def recorded(site: Cluster, jobs: Sequence[Job], directory: Path) -> dict[int, str]:
    """Runs the jobs, one submitted after the other, and imports the records. Answers their names by number."""
    names = {
        site.submit(
            *(f"--nodes={job.nodes}", f"--time={job.minutes}", *job.options), script=f"sleep {job.seconds}"
        ): job.name
        for job in jobs
    }
    until(lambda: not site.run("squeue", "-h", "-o", "%A"), "all jobs end")

    def known() -> bool:
        said = site.run("sacct", "-XPn", "-o", "JobID,End", "-S", "now-1days", "-E", "now")
        ends = dict(line.split("|") for line in said.splitlines())
        return all(ends.get(str(job), "Unknown") != "Unknown" for job in names)

    until(known, "accounting knows all ends")
    imported = accounting_workload.read(printed_by(site, directory))
    rows = list(csv.DictReader(imported.csv.splitlines()))
    with open(directory / "log.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row for row in rows if int(row["job"]) in names)
    (directory / "log-slurm.json").write_text(imported.queue)
    return names


def orders(site: Cluster, jobs: Sequence[Job], directory: Path) -> tuple[list[str], list[str]]:
    """The names of the jobs in the order of their starts, in Slurm and in a replay of its records."""
    names = recorded(site, jobs, directory)
    replay = ("--queue", "slurm", "--policy", "slurm-cons-tres", "--no-report", "--out", directory / "out")
    words = ("simulate", "--machine", site.directory / "topology.conf", "--trace", directory / "log.csv")
    done = topolane(site.environment, *words, *replay)
    assert done.returncode == 0, done.stderr

    def order(path: Path, id: str, start: str) -> list[str]:
        with open(path, newline="") as file:
            rows = [(float(row[start]), int(row[id])) for row in csv.DictReader(file)]
        return [names[job] for _, job in sorted(rows)]

    return order(directory / "log.csv", "id", "start"), order(
        directory / "out" / "jobs.csv", "job_id", "starting_time"
    )


LICENSED = (
    Job("first", 1, 8, ("-L", "solver:2")),
    Job("all", 1, 4, ("-L", "solver:3")),
    Job("long", 1, 12, ("-L", "solver:1"), minutes=5),
    Job("none", 1, 2),
    Job("wide", 4, 2),
    Job("last", 1, 2, ("-L", "solver:1")),
)


def test_licences_hold_jobs_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """A job without its licences is passed over, and has no promise: a job of one licence goes before a job of all."""
    configured(site, SchedulerParameters=PARAMETERS)
    recorded, replayed = orders(site, LICENSED, tmp_path)
    assert recorded.index("long") < recorded.index("all")
    assert replayed == recorded


def test_backfill_promises_licences_as_in_slurm(site: Cluster, tmp_path: Path) -> None:
    """With bf_licenses the job of all licences has a promise, which the job of one licence would delay."""
    configured(site, SchedulerParameters=f"{PARAMETERS},bf_licenses")
    recorded, replayed = orders(site, LICENSED, tmp_path)
    assert recorded.index("all") < recorded.index("long")
    assert replayed == recorded
