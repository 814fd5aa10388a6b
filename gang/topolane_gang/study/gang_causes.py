"""What hangs on what: the micro-benchmark together with what puts threads out of step, and other mixes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from topolane_gang.study import gang, gang_studies
from topolane_gang.study.gang import Play, PlayedJob
from topolane_gang.study.gang_programs import Coevp, Independent, ProgramRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_gang.study.gang import Expectation, PlayOutcome
    from topolane_gang.study.gang_studies import Even

CORES = 16
HOST = (0.02, 0.1)
"""Shares of every core that the host's own work takes, as Xen's dom0 does in bursts."""


@dataclasses.dataclass(frozen=True)
class Cause:
    """The micro-benchmark in a setting, under both schedulers."""

    what: str
    cores: int
    credit: Even
    gang: Even


def settings(seconds: float) -> dict[str, Play]:
    """What is run together with the domains; only these are looked at."""
    even = gang.even_jobs(CORES, gang.LONGER * seconds)
    long = 10 * gang.LONGER * seconds
    odd = PlayedJob("odd", ProgramRun(Independent(gang.ITERATION), seconds=long), 1)
    half = PlayedJob("half", ProgramRun(Independent(gang.ITERATION), seconds=long), CORES // 2)
    blocking = ProgramRun(
        Coevp(gang.COARSE, gang.TASKS * CORES, gang.FINE, gang.SPREAD, gang.WAIT), seconds=long
    )
    found = {
        "the domains alone": Play("free", even, long),
        "with a domain of one thread": Play("free", (*even, odd), long),
        "with a domain of half as many threads": Play("free", (*even, half), long),
        "with a domain that blocks (CoEVP-like)": Play(
            "free", (*even, PlayedJob("coevp", blocking, CORES)), long
        ),
    }
    for share in HOST:
        what = f"with work of the host, {share:.0%} of every core"
        found[what] = dataclasses.replace(found["the domains alone"], background=share)
    return found


def plays(seconds: float) -> list[Play]:
    """Every setting under the credit scheduler, then under gang."""
    return [
        dataclasses.replace(play, policy=policy)
        for play in settings(seconds).values()
        for policy in ("free", "gang")
    ]


def causes(seconds: float, played: Sequence[PlayOutcome]) -> list[Cause]:
    """How even the domains were in every setting."""
    evens = [
        gang_studies.even(policy, [done for done in one.done if done.job.name.startswith("domain")])
        for policy, one in zip(("free", "gang") * len(played), played)
    ]
    return [
        Cause(what, CORES, credit, ganged)
        for what, credit, ganged in zip(settings(seconds), evens[::2], evens[1::2])
    ]


def fewer(found: Sequence[Cause]) -> list[Expectation]:
    """What the poster saw: many late iterations under the credit scheduler, far fewer under gang."""
    return [
        gang.Expectation(
            f"simulated, {one.cores} cores: late iterations under gang, {one.what}",
            "fewer than half of credit's",
            f"{one.gang.share:.1%} (credit {one.credit.share:.1%})",
            one.gang.share < one.credit.share / 2,
            why(one),
        )
        for one in found
    ]


def why(cause: Cause) -> str:
    """Where gangs are not more even."""
    if not cause.credit.late:
        return "the credit scheduler keeps them in step by itself"
    if cause.gang.share >= cause.credit.share / 2:
        return (
            "a gang's threads stay on their cores, and they cannot catch up what the host takes from one core"
        )
    return ""


@dataclasses.dataclass(frozen=True)
class Other:
    """A mix: the mean run time under every policy, in seconds; None where a job had not ended."""

    what: str
    cores: int
    turnarounds: tuple[float | None, ...]


def mixes_plays(seconds: float) -> list[Play]:
    """Every mix under every policy."""
    return [
        play for mix in gang.OTHER_MIXES.values() for play in gang_studies.mixed_plays(CORES, seconds, mix)
    ]


def mixes(played: Sequence[PlayOutcome]) -> list[Other]:
    """How soon the jobs of every mix ended."""
    means = [gang_studies.mean([done.turnaround for done in one.done]) for one in played]
    each = len(gang.POLICIES)
    return [
        Other(what, CORES, tuple(means[number * each : (number + 1) * each]))
        for number, what in enumerate(gang.OTHER_MIXES)
    ]
