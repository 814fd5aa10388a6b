"""Measures the plugin's time in a call, in backfill's cycle over a long queue, and in starts per second,
compared with stock topology/tree.

docs/benchmarks/slurm.md describes the measurements and why the comparison is fair.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence

from client import Client
from full_machine import fill
from load import Load
from measure import Options, Result
from scale_rows import CONTROL, Cycle, Rate, Turn, rows_of
from slurm_sites import PATIENCE, PREFIX, SCHEDULER, STOCK, Shape, Site, System, ready, say, site
from workload import Job, jobs_of, workload_of

FILLERS = 1000
"""The number of the log's jobs that are tried when the machine is filled."""
PARTITION = "pbatch"
LONGEST = 3 * 3600.0
"""The most seconds for the backfill cycles of one turn."""


def play(here: Site, system: System, jobs: Sequence[Job], options: Options) -> Turn:
    """One turn: a full machine and a long queue, then short jobs."""
    say(f"{system.name}: starting slurmctld")
    here.begin(system, {"SchedulerParameters": options.scheduler or SCHEDULER})
    calls: dict[str, dict[str, int]] = {}
    with here.client() as slurm:
        fillers = list(fill(jobs[:FILLERS], here.shape))
        for nodes, minutes in fillers:
            names = ",".join(f"{PREFIX}{node + 1}" for node in nodes)
            # These jobs outlast the turn.
            slurm.submit(partition=PARTITION, nodes=len(nodes), w=names, minutes=minutes + 120, seconds=36000)
        _until(lambda: len(slurm.running()[0]) == len(fillers), f"{len(fillers)} jobs on all nodes")
        say(f"{system.name}: {len(fillers)} jobs hold all nodes; submitting {len(jobs):,} jobs")
        began = time.monotonic()
        # Prevents a cycle over a part of the queue before the first full one.
        here.partition(PARTITION, "DOWN")
        for job in jobs:
            slurm.submit(partition=PARTITION, nodes=job.nodes, minutes=job.minutes, seconds=1)
        say(f"{system.name}: submitted in {time.monotonic() - began:.0f} s")
        slurm.tell("reset")
        before = here.counters()
        here.partition(PARTITION, "UP")
        cycles = watch(here, slurm, len(jobs), options.cycles)
        here.partition(PARTITION, "DOWN")
        calls["backfill"] = difference(here.counters(), before)
        now = slurm.stats()
        watched = now["cycles"], now["sum"] / 1e6
        here.clear()
        here.partition(PARTITION, "UP")
        small = [job for job in jobs if job.nodes <= here.shape.leaf]
        rates: list[Rate | None] = []
        for count, launches in ((options.starts, True), (options.allocations, False)):
            before = here.counters()
            rates.append(
                starts(here, slurm, [small[number % len(small)] for number in range(count)], launches)
            )
            calls["starts" if launches else "allocations"] = difference(here.counters(), before)
    longest = here.counters().get("longest_nanoseconds", 0)
    return Turn(system.name, calls, longest, cycles, watched, *rates)


def difference(now: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """The increase of each counter."""
    return {name: value - before.get(name, 0) for name, value in now.items()}


def watch(here: Site, slurm: Client, queued: int, count: int) -> list[Cycle]:
    """The next backfill cycles that try most of the whole queue."""
    found: list[Cycle] = []
    known, used = slurm.stats()["cycles"], here.backfill_time()
    end = time.monotonic() + LONGEST
    while len(found) < count:
        time.sleep(0.2)
        now = slurm.stats()
        if now["cycles"] > known:
            before, used = used, here.backfill_time()
            if now["queue"] >= queued and now["try"] > queued / 2:
                found.append(Cycle(now["last"] / 1e6, used - before, now["try"]))
                say(f"a cycle of backfill: {found[-1]}")
        known = now["cycles"]
        if time.monotonic() > end:
            raise RuntimeError(f"{len(found)} of {count} cycles of backfill after {LONGEST:.0f} s")
    return found


def starts(here: Site, slurm: Client, jobs: Sequence[Job], launches: bool) -> Rate | None:
    """Jobs per second between the first and the last tenth of the starts. Jobs sleep for a second; jobs that
    launch nothing are ended when they are next seen.
    """
    if not jobs:
        return None
    here.partition(PARTITION, "DOWN")
    submit = slurm.submit if launches else slurm.allocate
    for job in jobs:
        submit(partition=PARTITION, nodes=job.nodes, minutes=job.minutes)
    slurm.tell("reset")
    begun, times, load = time.monotonic(), [(0.0, 0)], Load(here.slurmctld())
    here.partition(PARTITION, "UP")
    seen: set[int] = set()
    started = 0
    while started < len(jobs):
        if not launches:
            now_running = set(slurm.running()[0])
            for job_id in now_running & seen:
                slurm.tell("complete", job_id)
            seen = now_running
        time.sleep(0.1)
        started = slurm.stats()["started"]
        times.append((time.monotonic() - begun, started))
        if times[-1][0] > PATIENCE:
            raise RuntimeError(f"{started} of {len(jobs)} jobs started in {PATIENCE:.0f} s")
    cores = load.cores()
    here.clear()
    low, high = (_when(times, share * len(jobs)) for share in (0.1, 0.9))
    rate = Rate(0.8 * len(jobs) / (high - low), *cores)
    say(f"{rate.starts:.1f} starts a second{'' if launches else ' of jobs without a launch'}")
    return rate


def _when(times: Sequence[tuple[float, int]], count: float) -> float:
    """When `count` jobs had started, interpolated between two observations."""
    for (early, fewer), (late, more) in itertools.pairwise(times):
        if more >= count:
            return early + (late - early) * (count - fewer) / max(more - fewer, 1)
    raise ValueError("fewer jobs started")


def _until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {PATIENCE:.0f} s")
        time.sleep(0.5)


def measure(options: Options) -> Result:
    """Runs every system in turn."""
    ready(options.nodes)
    shape = Shape.of(options.nodes)
    load = workload_of(options.trace, options.cores_per_node, shape.nodes, options.jobs, None)
    jobs = jobs_of(load)
    systems = [STOCK, *map(System.policy, options.policies.split(",")), System(CONTROL)]
    turns: list[Turn] = []
    with site(options.nodes, options.engine, "--conf", "JobCompType=jobcomp/none") as here:
        for number in range(options.rounds):
            # Alternate the order, so that a drift of the machine affects both directions.
            for system in systems if number % 2 == 0 else reversed(systems):
                turns.append(play(here, system, jobs, options))
        turns.sort(key=lambda turn: [system.name for system in systems].index(turn.system))
    return Result(rows_of(turns), {"jobs": len(jobs), "turns": [dataclasses.asdict(turn) for turn in turns]})
