"""What hangs on what: the micro-benchmark together with what puts threads out of step, and other mixes."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from topolane_gang.study import gang, gang_studies
from topolane_gang.study.gang import Play, PlayedJob
from topolane_gang.study.gang_programs import Coevp, Independent, ProgramRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_gang.study.gang import PlayOutcome
    from topolane_gang.study.gang_studies import Even, PolicyMix

CORES = 16
HOST = (0.02, 0.1)
"""Shares of every core that the host's own work takes, as Xen's dom0 does in bursts."""


@dataclasses.dataclass(frozen=True)
class Cause:
    """The micro-benchmark in a setting, under both schedulers."""

    what: str
    cores: int
    host: float
    """Share of every core that the host's own work takes."""
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
        Cause(what, CORES, play.background, credit, ganged)
        for (what, play), credit, ganged in zip(settings(seconds).items(), evens[::2], evens[1::2])
    ]


@dataclasses.dataclass(frozen=True)
class Other:
    """A mix under every policy."""

    what: str
    cores: int
    under: tuple[PolicyMix, ...]


def mixes_plays(seconds: float) -> list[Play]:
    """Every mix under every policy."""
    return [
        play for mix in gang.OTHER_MIXES.values() for play in gang_studies.mixed_plays(CORES, seconds, mix)
    ]


def mixes(played: Sequence[PlayOutcome]) -> list[Other]:
    """How soon the jobs of every mix ended."""
    under = [
        gang_studies.mixed(policy, one.done) for policy, one in zip(itertools.cycle(gang.POLICIES), played)
    ]
    each = len(gang.POLICIES)
    return [
        Other(what, CORES, tuple(under[number * each : (number + 1) * each]))
        for number, what in enumerate(gang.OTHER_MIXES)
    ]
