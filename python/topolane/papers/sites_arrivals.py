"""Programs that come and go: what the same policies do over hours, on a model of the shared WAN.

Speeds of programs on two sites are those that SMPI gave in two halves. What programs do to each other there is a model:
where they together want more than the WAN carries, what they send takes longer by the same factor for all.
"""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from typing import TYPE_CHECKING

from topolane.papers import Row, sites, sites_cloud, sites_jobs
from topolane.papers.sites import Job, Wan
from topolane.papers.sites_cloud import GUEST, HOSTS, SITES, Program, Standing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from topolane.papers.sites import Run
    from topolane.papers.sites_loss import Times

POLICIES = sites_jobs.POLICIES
RANKS = (16, 32)
LOAD = 0.7
"""Host-seconds submitted over those there are, until the last submission."""
LONGEST = 30.0
"""Times that a program runs its benchmark, at most: from 1, even on a logarithmic scale."""
TICK = 60.0
"""Seconds after which the manager looks again, where nothing happens."""
JOBS, SEEDS = 150, 5
COPYING = 0.5
"""Of the WAN that copies of guests get while there are any."""


@dataclasses.dataclass(frozen=True)
class Arrival:
    """A program to come."""

    program: Program
    at: float
    length: float
    """Times that it runs its benchmark."""

    @property
    def alone(self) -> float:
        """Seconds on one site."""
        return self.program.alone * self.length


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One policy and one seed; small enough to send to a process."""

    policy: str
    seed: int
    known: tuple[Program, ...]
    extra: tuple[float, ...]
    """Of every program, seconds that a second on one site takes longer in halves, nobody beside it."""
    jobs: int
    wan: Wan


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of all programs."""

    policy: str
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


def jobs() -> list[Job]:
    """What comes."""
    return [Job(kernel, sites.sized(kernel, ranks)) for kernel in sites.KERNELS for ranks in RANKS]


def runs(programs: Path) -> list[Run]:
    """What must be known of each."""
    return [run for job in jobs() for run in (sites.alone(programs, job), sites.spread(programs, job, Wan()))]


def scenarios(times: Times, quick: bool) -> list[Scenario]:
    """All policies and seeds."""
    known = tuple(sites_jobs.known(times, job) for job in jobs())
    extra = tuple(1 / times.speed(job, Wan()) - 1 for job in jobs())
    count, seeds = (40, 1) if quick else (JOBS, SEEDS)
    return [
        Scenario(policy, seed, known, extra, count, Wan())
        for policy in POLICIES
        for seed in range(1, seeds + 1)
    ]


def arrivals(scenario: Scenario) -> list[Arrival]:
    """Programs, lengths and times drawn by the seed, to the load."""
    draw = random.Random(f"arrivals {scenario.seed}")
    drawn = [
        (draw.choice(scenario.known), math.exp(draw.uniform(0, math.log(LONGEST))))
        for _ in range(scenario.jobs)
    ]
    work = sum(program.job.ranks * program.alone * length for program, length in drawn)
    horizon = work / (SITES * HOSTS * LOAD)
    times = sorted(draw.uniform(0, horizon) for _ in drawn)
    return [Arrival(program, at, length) for (program, length), at in zip(drawn, times)]


def stretched(spread: Sequence[tuple[float, float]], carried: float) -> list[float]:
    """Speeds of programs on two sites that share a WAN, of those on one site.

    Of each (seconds longer, share of the WAN that it takes at full speed); `carried` is what there is for all of
    them. What they send takes longer by one factor, the least at which they together take no more than that.
    """

    def speeds(factor: float) -> list[float]:
        return [1 / (1 + extra + share * (factor - 1)) for extra, share in spread]

    def taken(factor: float) -> float:
        return sum(share * speed for (_, share), speed in zip(spread, speeds(factor)))

    low, high = 1.0, 1.0
    while taken(high) > carried:
        low, high = high, 2 * high
    for _ in range(40 if high > 1 else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(middle) > carried else (low, middle)
    return speeds(high)


@dataclasses.dataclass
class Running:
    """A program on its hosts."""

    arrival: Arrival
    started: float
    left: float
    hosts: tuple[int, ...]
    before: tuple[int, ...] | None = None
    """Where it still runs while its guests are copied."""
    speed: float = 1.0
    moved_at: float = -math.inf
    moved: bool = False
    been: list[set[int]] = dataclasses.field(default_factory=list)
    """Of every guest, the sites that it has left."""


class Cloud:
    """Two sites over hours."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.extra = dict(zip(scenario.known, scenario.extra))
        self.coming = arrivals(scenario)
        self.waiting: list[Arrival] = []
        self.running: list[Running] = []
        self.now, self.copied, self.moves, self.returned, self.programs_moved = 0.0, -math.inf, 0, 0, 0
        self.looks = math.inf
        self.ended: list[tuple[Arrival, float, float]] = []

    def played(self) -> Outcome:
        """Plays all of it."""
        self.settle()
        while self.coming or self.waiting or self.running:
            self.pass_to(self.next_event())
            self.settle()
        return Outcome(
            self.scenario.policy,
            self.scenario.seed,
            self.now,
            statistics.fmean((end - start) / arrival.alone for arrival, start, end in self.ended),
            statistics.fmean((end - arrival.at) / arrival.alone for arrival, _, end in self.ended),
            self.moves,
            self.programs_moved,
            self.returned,
        )

    def settle(self) -> None:
        """What happens at this moment: ends, copies that are complete, arrivals, a choice."""
        changed = self.now >= self.looks
        for running in [each for each in self.running if each.left <= 1e-6]:
            self.running.remove(running)
            self.ended.append((running.arrival, running.started, self.now))
            changed = True
        if self.now >= self.copied:
            changed = changed or self.copied > 0
            self.copied = -math.inf
            for running in self.running:
                running.before = None
        while self.coming and self.coming[0].at <= self.now:
            self.waiting.append(self.coming.pop(0))
            changed = True
        if changed and self.copied < 0:
            self.choose()
        self.set_speeds()

    def next_event(self) -> float:
        """When something happens next."""
        ends = [self.now + each.left / each.speed for each in self.running]
        # While guests are copied nothing else is decided.
        look = self.copied if self.copied > 0 else self.looks
        return min([*ends, *(each.at for each in self.coming[:1]), look])

    def pass_to(self, moment: float) -> None:
        """Lets time pass."""
        for running in self.running:
            running.left -= (moment - self.now) * running.speed
        self.now = moment

    def choose(self) -> None:
        """Asks the policy about those that run and those of the queue, in its order, for whom there are hosts."""
        free = SITES * HOSTS - sum(len(each.hosts) for each in self.running)
        heads = 0
        while heads < len(self.waiting) and free >= self.waiting[heads].program.job.ranks:
            free -= self.waiting[heads].program.job.ranks
            heads += 1
        standings = [self.standing(each) for each in self.running]
        standings += [Standing(each.program, (), each.alone, 0.0) for each in self.waiting[:heads]]
        self.looks = self.now + TICK if self.running or heads else math.inf
        if not standings:
            return
        wanted = sites_cloud.asked(self.scenario.policy, self.scenario.wan, standings)
        copies = [0] * SITES
        for running, hosts in zip(self.running, wanted):
            self.move(running, hosts, copies)
        for hosts in wanted[len(self.running) :]:
            if not hosts:
                break
            arrival = self.waiting.pop(0)
            been = [set[int]() for _ in hosts]
            self.running.append(Running(arrival, self.now, arrival.alone, hosts, been=been))
            self.looks = min(self.looks, self.now + sites_jobs.WATCHED)
        if any(copies):
            self.copied = self.now + max(copies) * GUEST / (COPYING * self.scenario.wan.bandwidth)

    def standing(self, running: Running) -> Standing:
        """What the manager knows: nothing of the traffic at first, and never how long a program will run. It takes it
        that a program runs on for as long as it has run (Harchol-Balter and Downey, Exploiting process lifetime
        distributions for dynamic load balancing, 1997)."""
        age = self.now - running.started
        watched = age >= sites_jobs.WATCHED
        return Standing(
            running.arrival.program,
            running.hosts,
            max(age, sites_jobs.WATCHED),
            running.speed if watched else 0.0,
            self.now - running.moved_at,
        )

    def move(self, running: Running, hosts: tuple[int, ...], copies: list[int]) -> None:
        """Takes over where a program is to be; hosts change hands at once, the program when its guests are copied."""
        if sites_cloud.moved(running.hosts, hosts):
            running.before = running.hosts
            running.moved_at = self.now
            self.programs_moved += not running.moved
            running.moved = True
        for guest, (before, after) in enumerate(zip(running.hosts, hosts)):
            left, entered = sites_cloud.site(before), sites_cloud.site(after)
            if left != entered:
                copies[left] += 1
                self.moves += 1
                self.returned += entered in running.been[guest]
                running.been[guest].add(left)
        running.hosts = hosts

    def set_speeds(self) -> None:
        """Of all that run."""
        spread: list[tuple[Running, tuple[float, float]]] = []
        for running in self.running:
            running.speed = 1.0
            program = running.arrival.program
            counts = [
                sites_cloud.sites_of(running.before or running.hosts).count(site) for site in range(SITES)
            ]
            if min(counts) > 0:
                crossing = 4 * counts[0] * counts[1] / sum(counts) ** 2
                share = crossing * program.bytes / self.scenario.wan.bandwidth
                spread.append((running, (self.extra[program], share)))
        carried = 1 - COPYING if self.copied > 0 else 1.0
        for (running, _), speed in zip(spread, stretched([of for _, of in spread], carried)):
            running.speed = speed


def play(scenario: Scenario) -> Outcome:
    """Plays a scenario."""
    return Cloud(scenario).played()


def row(found: Sequence[Outcome]) -> Row:
    """What the paper left open."""
    mean = {
        policy: statistics.fmean(each.slowdown for each in found if each.policy == policy)
        for policy in POLICIES
    }
    returned = {policy: sum(each.returned for each in found if each.policy == policy) for policy in POLICIES}
    return Row(
        "programs that come and go: mean slowdown by ours",
        "left open",
        f"{mean['predicted-loss'] / mean['stay'] - 1:+.0%} of first fit's",
        "not measured",
        f"the paper's rule {mean['inter-site-traffic'] / mean['stay'] - 1:+.0%}; guests that came back to a site: "
        f"{returned['predicted-loss']}, by the paper's rule {returned['inter-site-traffic']}",
        "none",
    )
