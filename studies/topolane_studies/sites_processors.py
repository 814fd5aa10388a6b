"""Two sites whose processors differ: how much work programs get done under each policy while others wait.

Seconds on one site at every speed, and in halves over the WAN, are those that SMPI gave. A program runs at the speed of
its slowest host. What programs do to each other on the WAN is the model of `sites_cloud.stretched`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import random
import statistics
from typing import TYPE_CHECKING

from topolane._engine import Machine, SiteProgram, choose_sites

from topolane_studies import sites, sites_cloud, sites_jobs
from topolane_studies.sites import SitesProgram, Wan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from topolane_studies.sites import SmpiRun
    from topolane_studies.sites_cloud import KnownProgram
    from topolane_studies.sites_loss import IterationTimes

POLICIES = {
    "paper's rule": "paper",
    "traffic alone": "inter-site-traffic",
    "processors alone": "processors",
    "ours": "predicted-time",
}
FACTORS = (1.0, 1.5, 2.0)
"""The speed of the fast hosts; the others have 1."""
LAYOUTS = ("one fast site", "half of each site fast")
PAPERS = (SitesProgram("ep", 16), SitesProgram("lu", 32), SitesProgram("cg", 16), SitesProgram("bt", 36))
"""The paper's four programs."""
MIXES = {
    "the paper's four": PAPERS,
    "all kernels": tuple(
        SitesProgram(kernel, sites.sized(kernel, ranks)) for kernel in sites.KERNELS for ranks in (16, 32)
    ),
    "much computing": (
        SitesProgram("ep", 16),
        SitesProgram("ep", 32),
        SitesProgram("lu", 16),
        SitesProgram("bt", 16),
    ),
    "much communication": (
        SitesProgram("cg", 16),
        SitesProgram("cg", 32),
        SitesProgram("mg", 16),
        SitesProgram("mg", 32),
    ),
}
LONGEST = 30.0
"""Times that a program runs its benchmark, at most: from 1, even on a logarithmic scale."""
TICK = 120.0
"""Seconds after which the manager looks again, where nothing happens."""
COPYING = 0.5
"""Of the network that copies of guests get."""
UNKNOWN = 3600.0
"""Seconds that a program is expected to run before any has ended."""
WITHIN = 0.01
"""Ours is as good as another rule if its throughput is at most this share lower. Fixed before the first run."""
HOSTS = sites_cloud.SITES * sites_cloud.HOSTS


@dataclasses.dataclass(frozen=True)
class ProgramKind:
    """A program, as it is in truth and as it is measured."""

    program: KnownProgram
    relative: tuple[float, ...]
    """Seconds on one site at each of FACTORS, over those at 1."""
    extra: float
    """Seconds that a second on one site takes longer in halves, with no other program running."""

    @property
    def compute(self) -> float:
        """Of a second on one site at speed 1, what doubling the speed takes away twice over."""
        return min(1.0, max(0.0, 2 * (1 - self.relative[-1])))


@dataclasses.dataclass(frozen=True)
class ProcessorsScenario:
    """One policy on one layout; small enough to send to a process."""

    who: str
    mix: str
    layout: str
    factor: float
    seed: int
    kinds: tuple[ProgramKind, ...]
    jobs: int

    @property
    def speeds(self) -> tuple[float, ...]:
        """Of every host."""
        half = sites_cloud.HOSTS // 2
        if self.layout == LAYOUTS[0]:
            return (1.0,) * sites_cloud.HOSTS + (self.factor,) * sites_cloud.HOSTS
        return ((1.0,) * half + (self.factor,) * half) * sites_cloud.SITES


@dataclasses.dataclass(frozen=True)
class ProcessorsOutcome:
    """What a scenario gave."""

    scenario: ProcessorsScenario
    throughput: float
    """Seconds of work, as on one site at speed 1, that a host does in a second while programs wait."""
    moves: int
    """Guests moved to other hosts."""


@dataclasses.dataclass
class PlacedProgram:
    """A program on its hosts, or waiting for some."""

    kind: ProgramKind
    left: float
    """Seconds on one site at speed 1."""
    started: float = 0.0
    hosts: tuple[int, ...] = ()
    before: tuple[int, ...] | None = None
    """Where it still runs while its guests are copied."""
    speed: float = 1.0
    moved_at: float = -math.inf

    @property
    def where(self) -> tuple[int, ...]:
        """The hosts on which it runs now."""
        return self.before or self.hosts


def jobs(quick: bool) -> list[SitesProgram]:
    """All programs that are simulated."""
    return list(PAPERS) if quick else list(dict.fromkeys(job for mix in MIXES.values() for job in mix))


def runs(programs: Path, quick: bool) -> list[SmpiRun]:
    """What SMPI must say of them."""
    wanted = []
    for job in jobs(quick):
        wanted += [sites.alone(programs, job, sites.SPEED * factor) for factor in FACTORS]
        wanted.append(sites.spread(programs, job, Wan()))
    return sites.unique(wanted)


def kind(times: IterationTimes, job: SitesProgram) -> ProgramKind:
    """What is known of a program."""
    relative = tuple(times.one(job, sites.SPEED * factor) / times.one(job) for factor in FACTORS)
    return ProgramKind(sites_jobs.known(times, job), relative, 1 / times.speed(job, Wan()) - 1)


def scenarios(times: IterationTimes, quick: bool) -> list[ProcessorsScenario]:
    """All mixes, layouts, factors, policies and seeds."""
    count, seeds = (24, 1) if quick else (48, 3)
    cases = [
        (mix, layout, factor)
        for mix in (list(MIXES)[:1] if quick else MIXES)
        for factor in FACTORS
        for layout in (LAYOUTS if factor > 1 else LAYOUTS[:1])
    ]
    kinds = {mix: tuple(kind(times, job) for job in MIXES[mix]) for mix, _, _ in cases}
    return [
        ProcessorsScenario(who, mix, layout, factor, seed, kinds[mix], count)
        for mix, layout, factor in cases
        for who in POLICIES
        for seed in range(1, seeds + 1)
    ]


def play(scenario: ProcessorsScenario) -> ProcessorsOutcome:
    """Plays a scenario until no program waits any more."""
    game = ProcessorsGame(scenario)
    while game.waiting:
        game.choose()
        game.pass_to(game.next_event())
    return ProcessorsOutcome(scenario, game.work / (HOSTS * game.now), game.moves)


class ProcessorsGame:
    """Two sites; programs are all there from the beginning, and start first come, first served."""

    def __init__(self, scenario: ProcessorsScenario) -> None:
        draw = random.Random(f"processors {scenario.mix} {scenario.seed}")
        self.scenario, self.speeds = scenario, scenario.speeds
        self.waiting = [
            PlacedProgram(one, one.program.alone * math.exp(draw.uniform(0, math.log(LONGEST))))
            for one in draw.choices(scenario.kinds, k=scenario.jobs)
        ]
        self.running: list[PlacedProgram] = []
        self.ended: list[float] = []
        self.seen: list[ProgramKind] = []
        self.now = self.work = 0.0
        self.copied = -math.inf
        self.moves = 0

    def choose(self) -> None:
        """Asks the policy about those that run and those of the queue for whom there are hosts; then sets speeds."""
        if self.copied < 0:
            free, heads = HOSTS - sum(len(one.hosts) for one in self.running), 0
            while heads < len(self.waiting) and free >= self.waiting[heads].kind.program.job.ranks:
                free -= self.waiting[heads].kind.program.job.ranks
                heads += 1
            asked = [*self.running, *self.waiting[:heads]]
            wanted = choose_sites(
                machine(self.speeds),
                [self.known(one) for one in asked],
                policy=POLICIES[self.scenario.who],
                window=Wan().window,
            )
            for one, choice in zip(asked, wanted):
                if one.hosts:
                    self.move(one, tuple(choice.nodes))
                elif choice.nodes and one is self.waiting[0]:
                    self.waiting.pop(0)
                    one.hosts, one.started = tuple(sorted(choice.nodes)), self.now
                    self.running.append(one)
        self.set_speeds()

    def known(self, one: PlacedProgram) -> SiteProgram:
        """What the manager knows of a program, measured where it runs."""
        age = self.now - one.started
        if not one.hosts or age < sites_jobs.WATCHED:
            program, compute, speed, slowest = *self.median(), 1.0, 1.0
        else:
            program, compute, speed = one.kind.program, one.kind.compute, one.speed
            slowest = min(self.speeds[host] for host in one.where)
        expected = statistics.median(self.ended) if self.ended else UNKNOWN
        return SiteProgram(
            one.kind.program.job.ranks,
            program.cut(speed),
            memory=sites_cloud.GUEST,
            nodes=one.hosts,
            remaining=max(age, sites_jobs.WATCHED) if one.hosts else expected,
            settled=self.now - one.moved_at,
            compute=compute * speed,
            in_mpi=max(0.0, 1 - compute / slowest * speed),
        )

    def median(self) -> tuple[KnownProgram, float]:
        """A program of which nothing is known yet: the median of all that were watched."""
        watched = [
            one.kind for one in self.running if self.now - one.started >= sites_jobs.WATCHED
        ] + self.seen
        if not watched:
            return dataclasses.replace(
                self.scenario.kinds[0].program, turns=0.0, bytes=0.0, messages=0.0, largest=0.0
            ), 0.0
        figures = [
            (one.program.turns, one.program.bytes, one.program.messages, one.program.largest)
            for one in watched
        ]
        turns, sent, messages, largest = (statistics.median(each) for each in zip(*figures))
        program = dataclasses.replace(
            watched[0].program, turns=turns, bytes=sent, messages=messages, largest=largest
        )
        return program, statistics.median(one.compute for one in watched)

    def move(self, one: PlacedProgram, hosts: tuple[int, ...]) -> None:
        """Hosts change hands at once; the program runs on where it was until its guests are copied."""
        coming = [host for host in hosts if host not in one.hosts]
        if not coming:
            return
        away = sites_cloud.moved(
            sites_cloud.in_order(one.hosts, one.hosts), sites_cloud.in_order(hosts, one.hosts)
        )
        over_wan = away * sites_cloud.GUEST / (COPYING * Wan().bandwidth)
        within = sites_cloud.GUEST / (COPYING * sites.GIGABIT)
        self.copied = max(self.copied, self.now + max(over_wan, within))
        self.moves += len(coming)
        one.before, one.hosts, one.moved_at = one.hosts, tuple(sorted(hosts)), self.now

    def set_speeds(self) -> None:
        """Of all that run."""
        carried = 1 - COPYING if self.copied > 0 else 1.0
        spread = []
        for one in self.running:
            slowest = min(self.speeds[host] for host in one.where)
            relative = one.kind.relative[FACTORS.index(slowest)]
            one.speed = 1 / relative
            crossing = sites_cloud.crossing(sites_cloud.sites_of(one.where))
            if crossing > 0:
                share = crossing * one.kind.program.bytes / Wan().bandwidth
                spread.append((one, (one.kind.extra + relative - 1, share)))
        for (one, _), speed in zip(spread, sites_cloud.stretched([of for _, of in spread], carried)):
            one.speed = speed

    def next_event(self) -> float:
        """When a program ends or was watched for long enough, guests are copied, or the manager looks again."""
        ends = [self.now + one.left / one.speed for one in self.running]
        watched = [one.started + sites_jobs.WATCHED for one in self.running]
        look = self.copied if self.copied > 0 else self.now + TICK
        return min([*ends, look, *(when for when in watched if when > self.now)])

    def pass_to(self, moment: float) -> None:
        """Lets time pass, and ends programs and copies."""
        for one in self.running:
            done = (moment - self.now) * one.speed
            one.left -= done
            self.work += done * len(one.hosts)
        self.now = moment
        if self.now >= self.copied:
            self.copied = -math.inf
            for one in self.running:
                one.before = None
        for one in [one for one in self.running if one.left <= 1e-6]:
            self.running.remove(one)
            self.ended.append(self.now - one.started)
            self.seen.append(one.kind)


@functools.cache
def machine(speeds: tuple[float, ...]) -> Machine:
    """Two sites with a guest a host, whose hosts have these speeds."""
    text = [
        'name = "sites"',
        "[node]",
        "sockets = 1",
        "cores-per-socket = 1",
        f"memory = {sites_cloud.GUEST}",
    ]
    text.append(f"nic-bandwidth = {sites.GIGABIT}")
    for host, speed in enumerate(speeds):
        text += ["[[node-kind]]", f'nodes = "h{host}"', f"core-speed = {2.6e9 * speed!r}"]
    for site in range(sites_cloud.SITES):
        first = site * sites_cloud.HOSTS
        nodes = f"h[{first}-{first + sites_cloud.HOSTS - 1}]"
        text += ["[[site]]", f'name = "s{site}"', f"children = [{sites_cloud.HOSTS}]", f'nodes = "{nodes}"']
    text += ["[[wan]]", 'between = ["s0", "s1"]']
    text += [f"latency = {Wan().latency!r}", f"bandwidth = {Wan().bandwidth!r}"]
    return Machine.parse("\n".join(text) + "\n", "sites.toml", "toml")


@dataclasses.dataclass(frozen=True)
class MixLine:
    """One mix on one layout: the mean throughput under each policy."""

    mix: str
    layout: str
    factor: float
    throughput: dict[str, float]

    @property
    def gain(self) -> float:
        """Of ours over the best of the others."""
        return self.throughput["ours"] / max(self.others()) - 1

    @property
    def missed(self) -> bool:
        """Whether another rule is better."""
        return self.gain < -WITHIN

    def others(self) -> list[float]:
        """The throughput of the other rules."""
        return [found for who, found in self.throughput.items() if who != "ours"]


def lines(found: Sequence[ProcessorsOutcome]) -> list[MixLine]:
    """Means over the seeds."""
    cases = dict.fromkeys((one.scenario.mix, one.scenario.layout, one.scenario.factor) for one in found)

    def mean(case: tuple[str, str, float], who: str) -> float:
        return statistics.fmean(
            one.throughput
            for one in found
            if (one.scenario.mix, one.scenario.layout, one.scenario.factor) == case
            and one.scenario.who == who
        )

    return [MixLine(*case, {who: mean(case, who) for who in POLICIES}) for case in cases]


def gains(found: Sequence[MixLine]) -> dict[str, float]:
    """The mean gain of ours over each of the other rules."""
    return {
        who: statistics.fmean(line.throughput["ours"] / line.throughput[who] for line in found) - 1
        for who in POLICIES
        if who != "ours"
    }
