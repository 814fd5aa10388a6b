"""Programs that come and go: what the same policies do over hours, on a model of the shared WAN.

Speeds of programs on two sites are those that SMPI gave in two halves. What programs do to each other there is a model:
where they together want more than the WAN or the tunnel carries, what they send takes longer by the same factor for all.
"""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from typing import TYPE_CHECKING

from topolane_studies import sites, sites_jobs
from topolane_studies.sites import SitesProgram
from topolane_studies.sites_cloud import HOSTS, SITES, TWO, KnownProgram, SitesLayout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from topolane_studies.sites import SmpiRun, Wan
    from topolane_studies.sites_loss import IterationTimes

POLICIES = {
    "as placed": ("stay", False),
    "paper's rule": ("inter-site-traffic", False),
    "ours": ("predicted-loss", False),
    "ours, run times declared": ("predicted-loss", True),
}
"""The engine's policy, and whether it knows how long programs will run."""
RANKS = (16, 32)
LOAD = 0.7
"""Host-seconds submitted over those there are, until the last submission."""
LONGEST = 30.0
"""Times that a program runs its benchmark, at most: from 1, even on a logarithmic scale."""
JOBS, SEEDS = 150, 5


@dataclasses.dataclass(frozen=True)
class ProgramArrival:
    """A program to come."""

    program: KnownProgram
    at: float
    length: float
    """Times that it runs its benchmark."""

    @property
    def alone(self) -> float:
        """Seconds on one site."""
        return self.program.alone * self.length


@dataclasses.dataclass(frozen=True)
class ArrivalsScenario:
    """One policy and one seed; small enough to send to a process."""

    who: str
    """One of POLICIES, or a policy of the engine."""
    seed: int
    known: tuple[KnownProgram, ...]
    extra: tuple[float, ...]
    """Of every program, seconds that a second on one site takes longer in halves, with no other program running."""
    jobs: int
    wan: Wan
    layout: SitesLayout = TWO
    tick: float = 60.0
    """Seconds after which the manager looks again, where nothing happens."""
    log: tuple[ProgramArrival, ...] = ()
    """What comes, or what the seed draws."""


@dataclasses.dataclass(frozen=True)
class ArrivalsOutcome:
    """What became of all programs."""

    who: str
    seed: int
    total: float
    """Seconds until the last has ended."""
    stretch: float
    """Mean over programs: seconds of the run over those on one site."""
    slowdown: float
    """Mean over programs: seconds from submission to end over those on one site."""
    moves: int
    """Guests moved."""
    programs_moved: int
    returned: int
    """Guests that came back to a site that they had left."""
    flaps: int
    """Of these, those that came back within a quarter of an hour."""


def jobs() -> list[SitesProgram]:
    """What comes."""
    return [SitesProgram(kernel, sites.sized(kernel, ranks)) for kernel in sites.KERNELS for ranks in RANKS]


def runs(programs: Path) -> list[SmpiRun]:
    """What must be known of each."""
    return [
        run
        for job in jobs()
        for run in (sites.alone(programs, job), sites.spread(programs, job, sites.tunnelled()))
    ]


def scenarios(times: IterationTimes, quick: bool) -> list[ArrivalsScenario]:
    """All policies and seeds."""
    known = tuple(sites_jobs.known(times, job) for job in jobs())
    wan = sites.tunnelled()
    extra = tuple(1 / times.speed(job, wan) - 1 for job in jobs())
    count, seeds = (40, 1) if quick else (JOBS, SEEDS)
    return [
        ArrivalsScenario(who, seed, known, extra, count, wan)
        for who in POLICIES
        for seed in range(1, seeds + 1)
    ]


def arrivals(scenario: ArrivalsScenario) -> list[ProgramArrival]:
    """Programs, lengths and times drawn by the seed, to the load."""
    draw = random.Random(f"arrivals {scenario.seed}")
    drawn = [
        (draw.choice(scenario.known), math.exp(draw.uniform(0, math.log(LONGEST))))
        for _ in range(scenario.jobs)
    ]
    work = sum(program.job.ranks * program.alone * length for program, length in drawn)
    horizon = work / (SITES * HOSTS * LOAD)
    times = sorted(draw.uniform(0, horizon) for _ in drawn)
    return [ProgramArrival(program, at, length) for (program, length), at in zip(drawn, times)]


def means(found: Sequence[ArrivalsOutcome], who: str) -> dict[str, float]:
    """Of all figures, over the seeds."""
    of = [each for each in found if each.who == who]
    names = ("total", "stretch", "slowdown", "moves", "programs_moved", "returned", "flaps")
    return {name: statistics.fmean(getattr(each, name) for each in of) for name in names}
