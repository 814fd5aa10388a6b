"""Sites over hours: what waits, runs and moves, by a policy of the engine."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from typing import TYPE_CHECKING

from topolane_studies import sites_arrivals, sites_cloud, sites_jobs
from topolane_studies.sites_cloud import GUEST, Standing

if TYPE_CHECKING:
    from topolane_studies.sites_arrivals import ArrivalsOutcome, ArrivalsScenario, ProgramArrival
    from topolane_studies.sites_cloud import KnownProgram

COPYING = 0.5
"""Of the WAN that copies of guests get while there are any."""
FLAP = 900.0
"""A guest that comes back sooner than this flaps, seconds."""
UNKNOWN = 3600.0
"""Seconds that a program is expected to run before any has ended."""


@dataclasses.dataclass
class HourlyProgram:
    """A program on its hosts."""

    arrival: ProgramArrival
    started: float
    left: float
    hosts: tuple[int, ...]
    before: tuple[int, ...] | None = None
    """Where it still runs while its guests are copied."""
    speed: float = 1.0
    moved_at: float = -math.inf
    moved: bool = False
    been: list[dict[int, float]] = dataclasses.field(default_factory=list)
    """Of every guest, when it last left each site."""


class HourlySites:
    """Sites over hours."""

    def __init__(self, scenario: ArrivalsScenario) -> None:
        self.scenario, self.layout = scenario, scenario.layout
        self.policy, self.declared = sites_arrivals.POLICIES.get(scenario.who, (scenario.who, False))
        self.extra = dict(zip(scenario.known, scenario.extra))
        self.coming = list(scenario.log) or sites_arrivals.arrivals(scenario)
        self.waiting: list[ProgramArrival] = []
        self.running: list[HourlyProgram] = []
        self.now, self.copied, self.moves, self.returned, self.programs_moved, self.flaps = (
            0.0,
            -math.inf,
            0,
            0,
            0,
            0,
        )
        self.looks = math.inf
        self.ended: list[tuple[ProgramArrival, float, float]] = []
        self.refused: list[ProgramArrival] = []

    def play_to(self, moment: float) -> None:
        """Plays on to a moment, and what happens in it."""
        self.settle()
        while (self.coming or self.waiting or self.running) and self.now < moment:
            self.pass_to(min(self.next_event(), moment))
            self.settle()

    def played(self) -> ArrivalsOutcome:
        """Plays all of it."""
        self.play_to(math.inf)
        return sites_arrivals.ArrivalsOutcome(
            self.scenario.who,
            self.scenario.seed,
            self.now,
            statistics.fmean((end - start) / arrival.alone for arrival, start, end in self.ended),
            statistics.fmean((end - arrival.at) / arrival.alone for arrival, _, end in self.ended),
            self.moves,
            self.programs_moved,
            self.returned,
            self.flaps,
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
        free = self.layout.sites * self.layout.hosts - sum(len(each.hosts) for each in self.running)
        heads = 0
        while heads < len(self.waiting) and free >= self.waiting[heads].program.job.ranks:
            free -= self.waiting[heads].program.job.ranks
            heads += 1
        standings = [self.standing(each) for each in self.running]
        standings += [self.newcomer(each) for each in self.waiting[:heads]]
        self.looks = self.now + self.scenario.tick if self.running or heads else math.inf
        if not standings:
            self.give_up()
            return
        wanted = sites_cloud.asked(self.policy, self.scenario.wan, standings, self.layout)
        copies: Counter[tuple[int, int]] = Counter()
        for running, hosts in zip(self.running, wanted):
            self.move(running, hosts, copies)
        for hosts in wanted[len(self.running) :]:
            if not hosts:
                break
            arrival = self.waiting.pop(0)
            been: list[dict[int, float]] = [{} for _ in hosts]
            self.running.append(HourlyProgram(arrival, self.now, arrival.alone, hosts, been=been))
            self.looks = min(self.looks, self.now + sites_jobs.WATCHED)
        self.give_up()
        if copies:
            self.copied = self.now + max(copies.values()) * GUEST / (COPYING * self.scenario.wan.bandwidth)

    def give_up(self) -> None:
        """Leaves out the head of the queue where all hosts are free and it gets none: it never will."""
        if not self.running and self.waiting:
            self.refused.append(self.waiting.pop(0))
            self.looks = self.now

    def standing(self, running: HourlyProgram) -> Standing:
        """What the manager knows of a program that runs.

        As the live one it expects it to run on for as long as it has run (Harchol-Balter and Downey, Exploiting
        process lifetime distributions for dynamic load balancing, 1997), unless a user has said for how long.
        """
        age = self.now - running.started
        program, speed = running.arrival.program, running.speed
        if age < sites_jobs.WATCHED:
            program, speed = self.unseen(program), 1.0
        expected = running.left if self.declared else max(age, sites_jobs.WATCHED)
        return Standing(program, running.hosts, expected, speed, self.now - running.moved_at)

    def newcomer(self, arrival: ProgramArrival) -> Standing:
        """The same of one that waits: it is taken for the median of those before it."""
        runs = [end - start for _, start, end in self.ended]
        expected = arrival.alone if self.declared else statistics.median(runs) if runs else UNKNOWN
        return Standing(self.unseen(arrival.program), (), expected)

    def unseen(self, program: KnownProgram) -> KnownProgram:
        """A program of which no traffic is known yet: that of the median of all that were watched."""
        watched = [
            each.arrival.program for each in self.running if self.now - each.started >= sites_jobs.WATCHED
        ]
        watched += [arrival.program for arrival, _, _ in self.ended]
        rates = [(each.turns, each.bytes, each.messages, each.largest) for each in watched] or [(0.0,) * 4]
        turns, sent, messages, largest = (statistics.median(each) for each in zip(*rates))
        return dataclasses.replace(program, turns=turns, bytes=sent, messages=messages, largest=largest)

    def move(self, running: HourlyProgram, hosts: tuple[int, ...], copies: Counter[tuple[int, int]]) -> None:
        """Takes over where a program is to be; hosts change hands at once, the program when its guests are copied."""
        if sites_cloud.moved(running.hosts, hosts, self.layout):
            running.before = running.hosts
            running.moved_at = self.now
            self.programs_moved += not running.moved
            running.moved = True
        for guest, (before, after) in enumerate(zip(running.hosts, hosts)):
            left, entered = self.layout.site(before), self.layout.site(after)
            if left != entered:
                copies[left, entered] += 1
                self.moves += 1
                away = self.now - running.been[guest].get(entered, math.inf)
                self.returned += away > -math.inf
                self.flaps += -math.inf < away < FLAP
                running.been[guest][left] = self.now
        running.hosts = hosts

    def set_speeds(self) -> None:
        """Of all that run: a program is as fast as the slowest link between its sites lets it be."""
        using: dict[tuple[int, int], list[tuple[HourlyProgram, float]]] = {}
        for running in self.running:
            running.speed = 1.0
            for link, crossing in sites_cloud.links(running.before or running.hosts, self.layout).items():
                using.setdefault(link, []).append((running, crossing))
        free = 1 - COPYING if self.copied > 0 else 1.0
        for spread in using.values():
            programs = ((each.arrival.program, crossing) for each, crossing in spread)
            asked = [(program, self.extra[program], crossing) for program, crossing in programs]
            speeds = sites_cloud.together(asked, self.scenario.wan, free)
            for (running, _), speed in zip(spread, speeds):
                running.speed = min(running.speed, speed)


def play(scenario: ArrivalsScenario) -> ArrivalsOutcome:
    """Plays a scenario."""
    return HourlySites(scenario).played()
