"""Runs the paper's Cab: the same jobs under stock Slurm, under the plugin and in the simulator.

All three are judged by the same code, which shares nothing with Topolane: jobs that share links, average
pairwise hops, waits and utilisation, computed only from the nodes and times of jobs and topology.conf.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import re
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import links_in_tree as tree
import topolane
from measure import Options, Result, asked, table
from slurm_sites import PATIENCE, PREFIX, STOCK, Shape, Site, System, ready, say, site
from topolane import Machine, Workload
from waiting import until
from workload import Job, jobs_of, workload_of

PARTITION = "pbatch"
QUEUES = ("easy", "conservative")
"""The simulator's queues: the one that all papers compare, and the one that is closer to Slurm's backfill,
which plans for every waiting job.
"""


@dataclasses.dataclass(frozen=True)
class Ran:
    """A job as it ran. Times are in seconds."""

    job: int
    nodes: frozenset[str]
    submit: float
    start: float
    end: float


@dataclasses.dataclass(frozen=True)
class Measures:
    """The measures of one run."""

    jobs: int
    sharing: int
    """Jobs that crossed a switch at the same time as another job that crossed it."""
    hops: float
    """Average pairwise hops between switches, averaged over the jobs with several nodes."""
    wait: float
    """Mean wait in seconds."""
    makespan: float
    """Seconds from the first submission to the last end."""
    utilisation: float
    """Node-seconds held, relative to those of the machine until the last submission."""


def measures(ran: Sequence[Ran], switches: Mapping[str, frozenset[str]], nodes: int) -> Measures:
    """The measures of a run, computed alike for real and simulated runs."""
    held = [tree.Ran(each.job, PARTITION, each.nodes, each.start, each.end) for each in ran]
    sharing = {one.job for pair in tree.meetings(held, switches) for one in pair[:2]}
    first, last = min(each.submit for each in ran), max(each.submit for each in ran)
    used = sum(len(each.nodes) * max(min(each.end, last) - each.start, 0) for each in ran)
    wide = [hops(each.nodes, switches) for each in ran if len(each.nodes) > 1]
    return Measures(
        jobs=len(ran),
        sharing=len(sharing),
        hops=statistics.fmean(wide) if wide else 0.0,
        wait=statistics.fmean(each.start - each.submit for each in ran),
        makespan=max(each.end for each in ran) - first,
        utilisation=used / (nodes * max(last - first, 1e-9)),
    )


def hops(nodes: frozenset[str], switches: Mapping[str, frozenset[str]]) -> float:
    """The mean over pairs of nodes of the hops between their switches: none within a leaf, and two more for
    each level.
    """
    pairs = len(nodes) * (len(nodes) - 1)
    # A pair within a leaf is under a leaf, a pod and the core; a distant pair is under fewer of them, and
    # each missing level costs two hops.
    together = [len(nodes & below) for below in switches.values()]
    return 2 * (3 - sum(count * (count - 1) for count in together) / pairs)


def play(here: Site, system: System, jobs: Sequence[Job]) -> tuple[list[Ran], float]:
    """Runs the jobs on real slurmds, submitted at their times. Returns them, and the seconds by which the
    most delayed submission was late.
    """
    say(f"{system.name}: starting slurmctld")
    here.begin(system, {})
    skipped = here.jobs_log.stat().st_size if here.jobs_log.exists() else 0
    numbers: dict[int, Job] = {}
    late = 0.0
    with here.client() as slurm:
        origin = time.time()
        for place, job in enumerate(jobs):
            time.sleep(max(origin + job.submit - time.time(), 0))
            late = max(late, time.time() - origin - job.submit)
            number = slurm.submit(partition=PARTITION, nodes=job.nodes, minutes=job.minutes, seconds=job.run)
            numbers[number] = job
            if place % 100 == 99:
                say(f"{system.name}: {place + 1:,} of {len(jobs):,} jobs submitted")
        say(f"{system.name}: waiting for the last jobs")
        until(
            lambda: not here.up.run("squeue", "-h", "-o", "%A"), "the end of all jobs", deadline=4 * PATIENCE
        )
    with here.jobs_log.open() as log:
        log.seek(skipped)
        return [_ran(line, numbers) for line in log], late


def _ran(line: str, numbers: Mapping[int, Job]) -> Ran:
    facts = dict(re.findall(r"(\w+)=(\S*)", line))
    job = numbers[int(facts["JobId"])]
    if facts["JobState"] != "COMPLETED":
        raise RuntimeError(f"job {facts['JobId']} ended as {facts['JobState']}")
    times = (datetime.fromisoformat(facts[key]).timestamp() for key in ("SubmitTime", "StartTime", "EndTime"))
    return Ran(job.number, frozenset(tree.expanded(facts["NodeList"])), *times)


def simulated(jobs: Sequence[Job], shape: Shape, policy: str, queue: str, longer: float) -> list[Ran]:
    """The same jobs in the simulator; each holds its nodes for `longer` seconds more than it sleeps."""
    rows = [
        f"{job.number},{job.submit},{job.run + longer},{60 * job.minutes + longer},{job.nodes}"
        for job in jobs
    ]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "jobs.csv"
        path.write_text("\n".join(["id,submit,run,walltime,nodes", *rows]) + "\n")
        workload = Workload.read(str(path))
    machine = Machine.parse(shape.machine(), "machine.toml")
    run = topolane.simulate(workload, machine, policy=policy, queue=queue)
    names = ("job_id", "allocated_resources", "submission_time", "starting_time", "finish_time")
    found = []
    for job, places, submit, start, end in run.jobs.select(names).iter_rows():
        ranges = [part.split("-") for part in re.split(r"[ ,]+", places)]
        nodes = {node for ends in ranges for node in range(int(ends[0]), int(ends[-1]) + 1)}
        found.append(Ran(job, frozenset(f"{PREFIX}{node + 1}" for node in nodes), submit, start, end))
    return found


def longest_queue(ran: Sequence[Ran]) -> int:
    """The largest number of waiting jobs at any time."""
    starts = sorted(each.start for each in ran)
    submits = sorted(each.submit for each in ran)
    return max(place + 1 - bisect.bisect_right(starts, when) for place, when in enumerate(submits))


HEADINGS = [
    "system",
    "",
    "jobs",
    "share links",
    "APH",
    "mean wait (s)",
    "longest queue",
    "makespan (s)",
    "in use",
]


def row(system: str, what: str, ran: Sequence[Ran], found: Measures) -> list[str]:
    """The cells of a run's row."""
    return [
        system,
        what,
        f"{found.jobs:,}",
        f"{found.sharing:,} ({100 * found.sharing / found.jobs:.0f} %)",
        f"{found.hops:.3f}",
        f"{found.wait:.1f}",
        f"{longest_queue(ran):,}",
        f"{found.makespan:.0f}",
        f"{100 * found.utilisation:.1f} %",
    ]


def measure(options: Options) -> Result:
    """Runs the jobs under every system and prints the table."""
    ready(options.nodes)
    shape = Shape.of(options.nodes)
    load = workload_of(options.trace, options.cores_per_node, shape.nodes, options.jobs, options.load)
    whole = jobs_of(load)
    compress = max(whole[-1].submit / (60 * options.minutes), 1.0)
    jobs = jobs_of(load, compress)
    rows, kept, notes = [HEADINGS], [], []
    with site(options.nodes, options.engine, "--partitions", PARTITION) as here:
        switches = tree.switches(here.up.directory / "topology.conf")
        for system in (STOCK, *map(System.policy, options.policies.split(","))):
            ran, late = play(here, system, jobs)
            asleep = {job.number: job.run for job in jobs}
            longer = statistics.fmean(each.end - each.start - asleep[each.job] for each in ran)
            policy = "slurm-tree" if system is STOCK else system.name
            runs = {"Slurm": ran}
            for queue, (what, more) in itertools.product(
                QUEUES, {"": 0.0, ", held as long": max(longer, 0)}.items()
            ):
                runs[f"simulated, {queue}{what}"] = simulated(jobs, shape, policy, queue, more)
            for what, each in runs.items():
                found = measures(each, switches, shape.nodes)
                rows.append(row(system.name, what, each, found))
                kept.append({"system": system.name, "run": what, **dataclasses.asdict(found)})
            notes.append(
                f"{system.name}: a job holds its nodes {longer:.2f} s longer than it sleeps, as {longer * compress:.0f} s "
                f"of the log; the latest submission was {late:.1f} s late"
            )
    print(table(rows))
    shortened = sum(job.run / compress < 1 for job in whole)
    print(
        f"times are {compress:.0f} times shorter than in the log: {shortened} jobs run for one second instead of less, "
        f"and walltimes are whole minutes, {compress:.0f} minutes of the log"
    )
    print("\n".join(notes))
    return Result(facts={"options": asked(options), "compress": compress, "runs": kept, "notes": notes})
