"""Real submissions on several sites: a log gives arrivals, sizes and run times; its programs are the study's kernels.

A log does not say what its programs send. RULE says which kernel stands for a job; the seed draws it.
"""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from typing import TYPE_CHECKING

from topolane._engine import InputError, site_policies
from topolane.sources import Shape, workload
from topolane.sweep import over

from topolane_studies import sites, sites_jobs, sites_loss
from topolane_studies.sites import SitesProgram
from topolane_studies.sites_arrivals import ArrivalsScenario, ProgramArrival
from topolane_studies.sites_cloud import KnownProgram, SitesLayout
from topolane_studies.sites_hours import HourlySites

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from topolane_studies.sites import SmpiRun
    from topolane_studies.sites_loss import IterationTimes

RULE = [
    "each job is one of five kernels of class C (CG, BT, MG, LU, EP), all equally likely, drawn by the seed and the job's "
    + "number; it repeats its benchmark for the run time of the log, which is its time on one site",
    "its ranks are the most, up to its nodes and 64, on which the kernel runs: a power of two, for BT 4, 16, 36 or 64. A "
    + "job that this leaves with one rank sends nothing. One rank a host",
    "sites of one size, with as many hosts in all as the log keeps busy for 90 % of the time until its last submission, "
    + "and no fewer than the widest program needs; between each two sites 1 Gb/s at 5 ms one way, with TCP's window and a "
    + "tunnel",
    "a program on several sites loses what SMPI gave for two halves, and more where programs want more than a link "
    + "carries; the slowest of its links counts",
    "first come, first served; the manager looks every ten minutes and at each arrival and end",
]
RANKS = (2, 4, 8, 16, 32, 64)
SQUARES = (4, 16, 36, 64)
LOAD = 0.9
"""Host-seconds of the programs over those there are, until the last submission."""
TICK = 600.0
"""Seconds after which the manager looks again; jobs of logs run for hours."""
SILENT = KnownProgram(SitesProgram("ep", 1), 1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
"""A program of one rank."""


@dataclasses.dataclass(frozen=True)
class Submitted:
    """A job of the log: when, how wide, for how long; seconds from the first."""

    at: float
    nodes: int
    run: float


@dataclasses.dataclass(frozen=True)
class TraceOutcome:
    """What became of a log on `sites` sites under a policy, with one seed."""

    sites: int
    hosts: int
    """In all."""
    policy: str
    seed: int
    throughput: float
    """Programs that ended before the last submission, an hour."""
    work: float
    """Rank-seconds on one site done by then, over the host-seconds there were."""
    stretch: float | None
    """Run over run on one site, weighted by rank-seconds; None if no program ran."""
    hours: float | None
    """Mean of wait and run; None if no program ran."""
    moves: int
    """Guests moved."""
    refused: int
    """Programs that it places on no hosts, even if all are free."""


def read(log: str, limit: int, cores_per_node: int | None) -> list[Submitted]:
    """The first jobs of a log that ran. Raises InputError where it does not parse or has too few."""
    columns = workload(log, shape=Shape(cores_per_node=cores_per_node)).columns()
    values = (map(float, columns[name]) for name in ("submit", "nodes", "run"))
    rows = [(at, nodes, run) for at, nodes, run in sorted(zip(*values)) if run > 0 and nodes > 0][:limit]
    if len(rows) < 2 or rows[-1][0] <= rows[0][0]:
        raise InputError(f"{log}: no two jobs that ran are submitted at different times")
    return [Submitted(at - rows[0][0], int(nodes), run) for at, nodes, run in rows]


def kernel_of(number: int, submitted: Submitted, seed: int) -> SitesProgram | None:
    """The program that stands for a job, or None for one of a single rank."""
    kernel = random.Random(f"kernel {seed} {number}").choice(sites.KERNELS)
    ranks = max((n for n in (SQUARES if kernel == "bt" else RANKS) if n <= submitted.nodes), default=1)
    return SitesProgram(kernel, ranks) if ranks > 1 else None


def jobs(log: Sequence[Submitted], seeds: Sequence[int]) -> list[SitesProgram]:
    """Every program that some seed draws, once."""
    drawn = (kernel_of(number, each, seed) for seed in seeds for number, each in enumerate(log))
    return list(dict.fromkeys(job for job in drawn if job))


def runs(programs: Path, wanted: Sequence[SitesProgram]) -> list[SmpiRun]:
    """What must be simulated of them."""
    return [
        run
        for job in wanted
        for run in (sites.alone(programs, job), sites.spread(programs, job, sites.tunnelled()))
    ]


def arrivals(
    log: Sequence[Submitted], seed: int, known: dict[SitesProgram, KnownProgram]
) -> tuple[ProgramArrival, ...]:
    """The log's jobs as programs."""
    found = []
    for number, each in enumerate(log):
        job = kernel_of(number, each, seed)
        program = known[job] if job else SILENT
        found.append(ProgramArrival(program, each.at, each.run / program.alone))
    return tuple(found)


def work(arrival: ProgramArrival) -> float:
    """Rank-seconds on one site."""
    return arrival.alone * arrival.program.job.ranks


def layout(coming: Sequence[ProgramArrival], count: int) -> SitesLayout:
    """Sites with as many hosts as the programs keep busy to LOAD."""
    busy = sum(map(work, coming)) / (coming[-1].at * LOAD)
    widest = max(each.program.job.ranks for each in coming)
    return SitesLayout(count, math.ceil(max(busy, widest) / count))


def policies() -> list[str]:
    """The policies of the engine, each by one name."""
    return [name for name, summary in site_policies() if not summary.startswith("another name of")]


def scenarios(
    log: Sequence[Submitted], counts: Sequence[int], seeds: Sequence[int], times: IterationTimes
) -> list[ArrivalsScenario]:
    """Every number of sites under every policy of the engine, with every seed."""
    known = {job: sites_jobs.known(times, job) for job in jobs(log, seeds)}
    programs = (*known.values(), SILENT)
    wan = sites.tunnelled()
    extra = (*(1 / times.speed(job, wan) - 1 for job in known), 0.0)
    found = []
    for count in counts:
        for policy in policies():
            for seed in seeds:
                coming = arrivals(log, seed, known)
                where = layout(coming, count)
                found.append(
                    ArrivalsScenario(policy, seed, programs, extra, len(log), wan, where, TICK, coming)
                )
    return found


def play(scenario: ArrivalsScenario) -> TraceOutcome:
    """Plays a scenario to its end; throughput and work are those until the last submission."""
    cloud, last = HourlySites(scenario), scenario.log[-1].at
    cloud.play_to(last)
    ended = len(cloud.ended)
    done = sum(work(arrival) for arrival, _, _ in cloud.ended)
    done += sum(work(each.arrival) * (1 - each.left / each.arrival.alone) for each in cloud.running)
    cloud.play_to(math.inf)
    weights = [work(arrival) for arrival, _, _ in cloud.ended]
    stretches = [(end - start) / arrival.alone for arrival, start, end in cloud.ended]
    hosts = scenario.layout.sites * scenario.layout.hosts
    return TraceOutcome(
        scenario.layout.sites,
        hosts,
        scenario.who,
        scenario.seed,
        ended / last * 3600,
        done / (hosts * last),
        statistics.fmean(stretches, weights) if cloud.ended else None,
        statistics.fmean(end - arrival.at for arrival, _, end in cloud.ended) / 3600 if cloud.ended else None,
        cloud.moves,
        len(cloud.refused),
    )


def study(
    planned: Sequence[ArrivalsScenario], *, workers: int | None = None, done: Callable[[], None] | None = None
) -> list[TraceOutcome]:
    """The outcomes of all scenarios."""
    return over(play, planned, workers=workers, done=done)


def mean(found: Sequence[TraceOutcome], count: int, policy: str) -> dict[str, float]:
    """All figures in the mean over the seeds; NaN for what no seed has."""
    of = [each for each in found if (each.sites, each.policy) == (count, policy)]
    names = ("hosts", "throughput", "work", "stretch", "hours", "moves", "refused")
    known = {name: [value for each in of if (value := getattr(each, name)) is not None] for name in names}
    return {name: statistics.fmean(values) if values else math.nan for name, values in known.items()}


def simulated(
    programs: Path,
    wanted: Sequence[SitesProgram],
    *,
    workers: int | None = None,
    done: Callable[[], None] | None = None,
) -> IterationTimes:
    """The times of the programs on one site and in halves, and what they send."""
    return sites_loss.simulated(programs, runs(programs, wanted), workers=workers, done=done)
