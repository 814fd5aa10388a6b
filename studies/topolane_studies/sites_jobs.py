"""Four programs submitted together: as first fit places them, by the rule of 2007, and by ours."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import TYPE_CHECKING

from topolane.sweep import over

from topolane_studies import claims as claims_of
from topolane_studies import sites, sites_cloud, sites_predict, sites_smpi
from topolane_studies.sites import SitesProgram, SmpiRun
from topolane_studies.sites_cloud import GUEST, KnownProgram, Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from topolane_studies.claims import Claim
    from topolane_studies.sites import Wan
    from topolane_studies.sites_loss import IterationTimes

JOBS = (SitesProgram("ep", 16), SitesProgram("lu", 32), SitesProgram("cg", 16), SitesProgram("bt", 36))
"""In the order of their submission."""
POLICIES = ("stay", "inter-site-traffic", "predicted-loss")
"""Of the engine: as placed, the paper's, ours."""
LENGTHS = (1, 10)
"""Times that each runs its benchmark."""
WATCHED = 10.0
"""Seconds after which the manager knows what the programs send."""
SAMPLE = 4.0
"""Seconds on one site of what is simulated of each program, at least."""
PART = 2.0**24
"""Bytes of a part of a guest's memory."""


@dataclasses.dataclass(frozen=True)
class JobsOutcome:
    """What became of the four."""

    policy: str
    length: int
    ended: dict[str, float]
    """Seconds from the submission, by program."""
    moves: int
    """Guests that were moved."""
    copying: float
    """Seconds during which guests were copied."""
    first: dict[str, tuple[float, float]]
    """By program, its share of the busier crossing (1 in halves) and its speed as placed, of that on one site."""
    spread: tuple[str, ...]
    """Programs on both sites after the first decision."""

    @property
    def total(self) -> float:
        """Until the last has ended."""
        return max(self.ended.values())


@dataclasses.dataclass(frozen=True)
class JobsScenario:
    """One policy; small enough to send to a process."""

    programs: Path
    policy: str
    known: tuple[KnownProgram, ...]
    wan: Wan


def runs(programs: Path) -> list[SmpiRun]:
    """What must be known of each program alone."""
    return [
        run
        for job in JOBS
        for run in (sites.alone(programs, job), sites.spread(programs, job, sites.tunnelled()))
    ]


def known(times: IterationTimes, job: SitesProgram) -> KnownProgram:
    """What a manager learns of a program."""
    cut = sites_predict.crossing(times, job)
    some, _ = sites.ITERATIONS[job.kernel]
    through = sites_predict.tunnelled(times, job)
    return KnownProgram(job, times.one(job) / some, times.one(job) * job.whole, *cut, through)


def scenarios(times: IterationTimes) -> list[JobsScenario]:
    """One for each policy."""
    programs = tuple(known(times, job) for job in JOBS)
    return [JobsScenario(times.programs, policy, programs, sites.tunnelled()) for policy in POLICIES]


def play(scenario: JobsScenario) -> list[JobsOutcome]:
    """Plays a scenario with every length."""
    speeds = Speeds(scenario)
    return [JobsGame(scenario, length, speeds).played() for length in LENGTHS]


class Speeds:
    """How fast programs run together and during copies, by SMPI; what was asked once is kept."""

    def __init__(self, scenario: JobsScenario) -> None:
        self.scenario = scenario
        self.kept: dict[object, list[float]] = {}

    def of(
        self, placed: tuple[tuple[KnownProgram, tuple[int, ...]], ...], copies: tuple[int, int]
    ) -> tuple[list[float], list[float]]:
        """Of each program its speed on one site, and bytes a second of a guest copied from A to B and from B to A.

        No other program slows one on a single site. EP sends three numbers in a run: taken as if it were on one.
        """
        felt = [
            (program, where)
            for program, where in placed
            if len(set(where)) > 1 and program.job.kernel != "ep"
        ]
        key = (tuple(felt), copies)
        if key not in self.kept:
            self.kept[key] = self.simulated(felt, copies) if felt or any(copies) else []
        found = iter(self.kept[key])
        speeds = [next(found) if each in felt else 1.0 for each in placed]
        return speeds, [next(found) if count else 0.0 for count in copies]

    def simulated(
        self, felt: list[tuple[KnownProgram, tuple[int, ...]]], copies: tuple[int, int]
    ) -> list[float]:
        """All of them in one simulation, as far as the first that ends."""
        jobs = [program.job for program, _ in felt]
        where = [place for _, place in felt]
        counts = [max(2, math.ceil(SAMPLE / program.step)) for program, _ in felt]
        alone = [program.step for program, _ in felt]
        for source, guests in enumerate(copies):
            if guests:
                jobs.append(SitesProgram("copy", 2 * guests))
                where.append((source,) * guests + (1 - source,) * guests)
                counts.append(3)
                alone.append(PART)
        run = SmpiRun(
            self.scenario.programs,
            tuple(jobs),
            tuple(site for place in where for site in place),
            self.scenario.wan,
            iterations=tuple(counts),
            outside=tuple(range(len(felt), len(jobs))),  # guests go from host to host
        )
        ends = sites_smpi.ends(run)
        first = min(of[-1] for of in ends)
        found = []
        for of, size in zip(ends, alone):
            done = max(1, sum(end <= first for end in of))
            found.append(done * size / of[done - 1])
        return found


class JobsGame:
    """The four from their submission to the end of the last."""

    def __init__(self, scenario: JobsScenario, length: int, speeds: Speeds) -> None:
        self.scenario, self.length, self.speeds = scenario, length, speeds
        self.now, self.moves, self.copying = 0.0, 0, 0.0
        self.left = {program: program.alone * length for program in scenario.known}
        self.hosts: dict[KnownProgram, tuple[int, ...]] = {}
        for program in scenario.known:
            held = [host for hosts in self.hosts.values() for host in hosts]
            self.hosts[program] = tuple(sites_cloud.first_fit(held, program.job.ranks))
        self.moved_at: dict[KnownProgram, float] = {}
        self.ended: dict[str, float] = {}
        self.first = self.as_placed()
        self.spread: tuple[str, ...] | None = None

    def played(self) -> JobsOutcome:
        """Plays it to the end."""
        while self.left and self.now < WATCHED:
            self.run_for(WATCHED - self.now)
        while self.left:
            self.decide()
            # Until a job ends: that is when the manager looks again.
            self.run_for(math.inf)
        policy = self.scenario.policy
        spread = self.spread or ()
        return JobsOutcome(policy, self.length, self.ended, self.moves, self.copying, self.first, spread)

    def as_placed(self) -> dict[str, tuple[float, float]]:
        """How fast all run together at the start."""
        speeds, _ = self.speeds_now()
        found = {}
        for program, speed in zip(self.left, speeds):
            where = sites_cloud.sites_of(self.hosts[program])
            found[program.job.name] = (sites_cloud.crossing(where), speed)
        return found

    def speeds_now(self, copies: tuple[int, int] = (0, 0)) -> tuple[list[float], list[float]]:
        """Of the programs that run, in their order, and of copies."""
        placed = tuple((program, sites_cloud.sites_of(self.hosts[program])) for program in self.left)
        return self.speeds.of(placed, copies)

    def run_for(self, seconds: float, copies: tuple[int, int] = (0, 0)) -> float:
        """Runs on for so long, or until a program ends; answers with how long that was."""
        if not self.left:
            return 0.0
        speeds, _ = self.speeds_now(copies)
        first = min(left / speed for left, speed in zip(self.left.values(), speeds))
        passed = min(seconds, first)
        self.now += passed
        for program, speed in zip(list(self.left), speeds):
            self.left[program] -= passed * speed
            if self.left[program] <= 1e-9 * program.alone:
                del self.left[program], self.hosts[program]
                self.ended[program.job.name] = self.now
        return passed

    def decide(self) -> None:
        """Asks the policy, and copies the guests that it moves, all at once."""
        speeds, _ = self.speeds_now()
        standings = [
            Standing(
                program, self.hosts[program], left, speed, self.now - self.moved_at.get(program, -math.inf)
            )
            for (program, left), speed in zip(self.left.items(), speeds)
        ]
        wanted = dict(zip(self.left, sites_cloud.asked(self.scenario.policy, self.scenario.wan, standings)))
        copies = [0, 0]
        for program, hosts in wanted.items():
            for before, after in zip(self.hosts[program], hosts):
                if sites_cloud.site(before) != sites_cloud.site(after):
                    copies[sites_cloud.site(before)] += 1
        self.copy(copies[0], copies[1])
        for program in self.left:
            if sites_cloud.moved(self.hosts[program], wanted[program]):
                self.moves += sites_cloud.moved(self.hosts[program], wanted[program])
                self.moved_at[program] = self.now
            self.hosts[program] = wanted[program]
        if self.spread is None:
            self.spread = tuple(
                p.job.name for p in self.left if len(set(map(sites_cloud.site, self.hosts[p]))) > 1
            )

    def copy(self, there: int, back: int) -> None:
        """Copies guests; the programs run on where they were until all are there."""
        memory = [float(GUEST) if count else 0.0 for count in (there, back)]
        while any(memory) and self.left:
            copies = (there if memory[0] else 0, back if memory[1] else 0)
            _, rates = self.speeds_now(copies)
            first = min(left / rate for left, rate in zip(memory, rates) if left)
            passed = self.run_for(first, copies)
            self.copying += passed
            memory = [max(0.0, left - passed * rate) for left, rate in zip(memory, rates)]
            memory = [left if left > 1.0 else 0.0 for left in memory]


def claims() -> list[Claim[list[JobsOutcome]]]:
    """The four end sooner with a manager."""
    return [
        claims_of.direction(
            f"four programs, each {'once' if length == 1 else f'{length} times'}, with the manager",
            "sooner",
            partial(sooner, length),
        )
        for length in LENGTHS
    ]


def sooner(length: int, found: list[JobsOutcome]) -> tuple[bool, str, str]:
    """By the paper's rule; ours next to it."""
    total = {played.policy: played.total for played in found if played.length == length}
    stay, rule, ours = (total[policy] for policy in POLICIES)
    return rule < stay, f"{rule:.0f} s instead of {stay:.0f} s", f"by our rule {ours:.0f} s"


def study(
    times: IterationTimes, *, workers: int | None = None, done: Callable[[], None] | None = None
) -> list[JobsOutcome]:
    """All policies and lengths."""
    return [played for each in over(play, scenarios(times), workers=workers, done=done) for played in each]


def shared(times: IterationTimes, found: Sequence[JobsOutcome]) -> list[tuple[str, float, float, float]]:
    """Speeds as placed, %: of every program that is spread, in halves alone, with the others, and by the model."""
    first = found[0].first
    jobs = [job for job in JOBS if first[job.name][0] > 0 and job.kernel != "ep"]
    wan = sites.tunnelled()
    asked = [(known(times, job), 1 / times.speed(job, wan) - 1, first[job.name][0]) for job in jobs]
    model = sites_cloud.together(asked, wan)
    return [
        (job.name, 100 * times.speed(job, wan), 100 * first[job.name][1], 100 * speed)
        for job, speed in zip(jobs, model)
    ]
