"""The poster's three questions: how even, how coupled, how soon; asked of plays, real or simulated."""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING

from topolane_gang.study import gang
from topolane_gang.study.gang import Done, Play

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_gang.study.gang import PlayOutcome


def lags(ends: Sequence[Sequence[float]]) -> list[float]:
    """By how much each thread's iterations end after the median of the same one on the other threads, seconds.

    Only iterations that all threads have done count.
    """
    found = []
    for same in zip(*ends):
        for thread, end in enumerate(same):
            others = [*same[:thread], *same[thread + 1 :]]
            if others:
                found.append(end - statistics.median(others))
    return found


@dataclasses.dataclass(frozen=True)
class Even:
    """The micro-benchmark under a policy."""

    policy: str
    iterations: int
    """Of all threads of all jobs."""
    late: int
    """More than an iteration after the others."""
    worst: float
    """The longest lag, seconds."""

    @property
    def share(self) -> float:
        """Of the iterations that were late."""
        return self.late / max(self.iterations, 1)


def even_plays(cores: int, seconds: float) -> list[Play]:
    """The micro-benchmark under every policy."""
    jobs = gang.even_jobs(cores, seconds)
    return [Play(policy, jobs, 5 * seconds + 30.0) for policy in gang.POLICIES]


def even(policy: str, done: Sequence[Done]) -> Even:
    """How even the jobs' threads were."""
    found = [lag for one in done for lag in lags(one.ends)]
    late = sum(lag > gang.ITERATION for lag in found)
    return Even(policy, len(found), late, max(found, default=0.0))


@dataclasses.dataclass(frozen=True)
class Coupled:
    """Two barrier-coupled jobs under a policy."""

    interval: float
    policy: str
    alone: float
    """Iterations a second of one of them alone."""
    shares: tuple[float, ...]
    """Of a fair half, each job's iterations."""


def coupled_plays(cores: int, seconds: float) -> list[Play]:
    """For each interval one job alone before and after two under every policy."""
    plays = []
    for interval in gang.INTERVALS:
        one, two = (gang.coupled_jobs(cores, interval, seconds, count) for count in (1, 2))
        plays += [Play("free", one, seconds), *(Play(policy, two, seconds) for policy in gang.POLICIES)]
        plays.append(Play("free", one, seconds))
    return plays


def coupled(plays: Sequence[Play], played: Sequence[PlayOutcome]) -> list[Coupled]:
    """Each job's iterations against a fair half of what it does alone."""
    found = []
    size = len(plays) // len(gang.INTERVALS)
    for number, interval in enumerate(gang.INTERVALS):
        own = list(zip(plays, played))[number * size : (number + 1) * size]
        alone = statistics.mean(rate(play, done) for play, one in (own[0], own[-1]) for done in one.done)
        for play, both in own[1:-1]:
            rates = [statistics.mean(rate(play, done) for done in each) for each in by_job(both.done)]
            shares = tuple(each / (alone / 2) if alone else 0.0 for each in rates)
            found.append(Coupled(interval, play.policy, alone, shares))
    return found


def rate(play: Play, done: Done) -> float:
    """Iterations a second once all have settled."""
    start = min(gang.SETTLING, play.seconds / 2)
    return done.iterations(start, play.seconds) / (play.seconds - start)


@dataclasses.dataclass(frozen=True)
class PolicyMix:
    """The CoEVP-like mix under a policy; seconds in the mean, None where a job had not ended."""

    policy: str
    turnaround: float | None
    running: float | None
    last: float | None
    """When the last job ended."""
    each: tuple[float | None, ...]
    """The turnaround of every job."""


def mixed_plays(cores: int, seconds: float, mix: gang.Mix = gang.MIX) -> list[Play]:
    """A mix under every policy."""
    jobs = mix.jobs(cores, seconds)
    return [Play(policy, jobs, 15 * seconds + 30.0) for policy in gang.POLICIES]


def mixed(policy: str, done: Sequence[Done]) -> PolicyMix:
    """How soon the jobs ended."""
    own = by_job(done)
    return PolicyMix(
        policy,
        mean([one.turnaround for one in done]),
        mean([one.running for one in done]),
        largest([mean([one.finished for one in each]) for each in own]),
        tuple(mean([one.turnaround for one in each]) for each in own),
    )


def by_job(done: Sequence[Done]) -> list[list[Done]]:
    """What became of each job, with every seed."""
    found: dict[str, list[Done]] = {}
    for one in done:
        found.setdefault(one.job.name, []).append(one)
    return list(found.values())


def mean(values: Sequence[float | None]) -> float | None:
    """None where one is not known."""
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known and len(known) == len(values) else None


def largest(values: Sequence[float | None]) -> float | None:
    """None where one is not known."""
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


@dataclasses.dataclass(frozen=True)
class Seen:
    """All that was seen on one kind of cores."""

    even: list[Even]
    coupled: list[Coupled]
    mixed: list[PolicyMix]


def plays(cores: int, seconds: float, longer: int = 1) -> list[Play]:
    """All that is run on `cores` cores, in order; the domains run `longer` times as long."""
    return [
        *even_plays(cores, longer * seconds),
        *coupled_plays(cores, seconds),
        *mixed_plays(cores, seconds),
    ]


def seen(asked: Sequence[Play], played: Sequence[PlayOutcome]) -> Seen:
    """What the plays of `plays` have shown."""
    policies = len(gang.POLICIES)
    evens, mixes = played[:policies], played[-policies:]
    return Seen(
        [even(policy, one.done) for policy, one in zip(gang.POLICIES, evens)],
        coupled(asked[policies:-policies], played[policies:-policies]),
        [mixed(policy, one.done) for policy, one in zip(gang.POLICIES, mixes)],
    )
