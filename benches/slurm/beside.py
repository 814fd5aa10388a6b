"""Stock Slurm beside Topolane on the same jobs, and what the simulator says of them."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import topolane
from live import FREE, HELD, PATIENCE, Driver, Ended, Record, cancel_all, driver, machine_of, submit
from live_cluster import Cluster, until
from numpy import asarray, mean, median, percentile
from scale import Scale
from topolane import Machine, Workload
from workload import Job, happened, jobs_of, planned

INTERVAL = 0.5
HALF = 0.5
"""Slurm's times are whole seconds, cut off: on average this much is lost."""


@dataclasses.dataclass(frozen=True)
class System:
    """Who starts the jobs, and the policy and the queue of the simulator that come nearest."""

    name: str
    partition: str
    policy: str
    queue: str


SYSTEMS = (
    # Slurm's backfill plans for all jobs that wait, in order.
    System("stock Slurm", FREE, "slurm-tree", "conservative"),
    System("Topolane slurm-tree", HELD, "slurm-tree", "easy"),
    System("Topolane isolated", HELD, "isolated", "easy"),
)


@dataclasses.dataclass(frozen=True)
class Delays:
    """What a job takes in Slurm beside its run time, mean seconds; all 0 where no driver tells."""

    release: float
    """From the driver's release to its start."""
    run: float
    """From its start to its end, more than it sleeps."""
    end: float
    """From its end until the driver sees its nodes free."""

    @property
    def holding(self) -> float:
        """How much longer its nodes are held than it sleeps."""
        return self.release + self.run + self.end


@dataclasses.dataclass(frozen=True)
class Played:
    """One system's run."""

    records: dict[int, Record]
    """By the job's number in the workload."""
    origin: float
    """Unix time of the workload's second 0."""
    late: float
    """Seconds by which the latest submission was late."""
    delays: Delays


def play(up: Cluster, system: System, jobs: Sequence[Job]) -> Played:
    """Submits the jobs at their times and waits for their ends."""
    ended, numbers, late = Ended(up), {}, 0.0
    manager = driver(up, system.policy, INTERVAL) if system.partition == HELD else contextlib.nullcontext()
    with manager as ours:
        origin = time.time()
        for job in jobs:
            time.sleep(max(origin + job.submit - time.time(), 0))
            late = max(late, time.time() - origin - job.submit)
            number = submit(up, system.partition, job.nodes, job.run, job.minutes)
            numbers[number] = job.number
        until(lambda: len(ended.more()) >= len(jobs), "all jobs end", PATIENCE)
        time.sleep(5)  # for the driver to see the last end
        delays = delays_of(jobs, numbers, ended, ours)
    cancel_all(up)
    records = {numbers[each.number]: each for each in ended.records}
    odd = [each for each in records.values() if each.state != "COMPLETED"]
    if odd:
        raise RuntimeError(f"{len(odd)} jobs did not complete: {odd[0]}")
    return Played(records, origin, late, delays)


def delays_of(jobs: Sequence[Job], numbers: dict[int, int], ended: Ended, ours: Driver | None) -> Delays:
    """From Slurm's records and the driver's log."""
    if ours is None:
        return Delays(0.0, 0.0, 0.0)  # Slurm does not say
    asleep = {job.number: job.run for job in jobs}
    records = {each.number: each for each in ended.records}
    run = mean([each.end - each.start - asleep[numbers[each.number]] for each in ended.records])
    release = [
        records[int(event["job"])].start + HALF - event["time"]
        for event in ours.events("start")
        if int(event["job"]) in records
    ]
    end = [
        event["time"] - records[event["id"]].end - HALF
        for event in ours.events("ended")
        if event["id"] in records
    ]
    return Delays(float(mean(release)), float(run), float(mean(end)))


def rows_of(up: Cluster, scale: Scale, scratch: Path) -> tuple[list[list[str]], list[list[str]]]:
    """The table of what happened beside what was predicted, and that of the jobs' starts."""
    machine, jobs = machine_of(up), jobs_of(scale.nodes, scale.jobs, scale.compress)
    measures = [MEASURES_HEADINGS]
    differences = [DIFFERENCES_HEADINGS]
    for system in SYSTEMS:
        try:
            done = play(up, system, jobs)
        except (AssertionError, RuntimeError, subprocess.TimeoutExpired) as error:
            measures.append([system.name, f"failed: {error}", *[""] * (len(MEASURES_HEADINGS) - 2)])
            cancel_all(up)
            continue
        real = replay(done, jobs, machine, scratch)
        late = real.summary["late_against_log"]  # of none, unless Slurm gave a node to two jobs at once
        what = f"happened ({late} overlap)" if late else "happened"
        measures.append([system.name, what, *measured(real)])
        nothing = Delays(0, 0, 0)
        for name, delays in {"predicted": nothing, "with delays": done.delays}.items():
            if name == "with delays" and done.delays == nothing:
                continue
            workload = planned(jobs, scratch / "planned.csv", delays.holding)
            run = topolane.simulate(workload, machine, policy=system.policy, queue=system.queue)
            measures.append([f"{system.policy}, {system.queue}", name, *measured(run)])
            differences.append([system.name, name, *compared(run, done, delays)])
    return measures, differences


def replay(done: Played, jobs: Sequence[Job], machine: Machine, scratch: Path) -> Any:
    """What happened, measured as the simulator measures."""
    records = done.records

    def of(job: Job) -> tuple[float, float, float, str]:
        record = records[job.number]
        first = min(each.submit for each in records.values())
        return record.submit - first, record.start - first, record.end - first, record.hosts

    workload: Workload = happened(jobs, of, scratch / "happened.csv")
    return topolane.simulate(workload, machine, policy="recorded", queue="recorded")


MEASURES_HEADINGS = ["system", "", "jobs", "APH", "least APH", "jobs that share links"]
MEASURES_HEADINGS += ["makespan (s)", "mean wait (s)", "in use"]
DIFFERENCES_HEADINGS = ["system", "prediction", "start: mean difference (s)", "median of absolute", "p95"]
DIFFERENCES_HEADINGS += ["release to start (s)", "longer than asleep", "end to seen free", "late submission"]


def measured(run: Any) -> list[str]:
    """The measures of a run as cells."""
    facts = run.summary
    return [
        str(facts["jobs"]),
        f"{facts['mean_aph']:.3f}",
        f"{facts['mean_least_aph']:.3f}",
        str(facts["jobs_sharing_links"]),
        f"{facts['makespan']:.0f}",
        f"{facts['mean_wait']:.1f}",
        f"{100 * facts['utilization']:.1f} %",
    ]


def compared(run: Any, done: Played, delays: Delays) -> list[str]:
    """How far starts in Slurm are from those predicted, and what Slurm itself takes."""
    starts = zip(run.jobs["job_id"], run.jobs["starting_time"])
    off = asarray(
        [done.records[job].start + HALF - done.origin - (start + delays.release) for job, start in starts]
    )
    took = done.delays
    return [
        *(f"{value:+.1f}" for value in (mean(off),)),
        *(f"{value:.1f}" for value in (median(abs(off)), percentile(abs(off), 95))),
        *(f"{value:.2f}" for value in (took.release, took.run, took.end, done.late)),
    ]
