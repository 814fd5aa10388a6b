"""The poster's own claims, judged by what was simulated, or by what a real Xen did.

Real cores are not judged: there Linux's scheduler stands for Xen's. It imports topolane_studies, so only what runs below
`topolane paper` may import it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

from topolane.sweep import over
from topolane_studies.judging import direction

from topolane_gang.study import gang, gang_causes, gang_simulated, gang_studies, gang_xen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from topolane_studies import PaperRow

    from topolane_gang.study.gang_causes import Cause, Other
    from topolane_gang.study.gang_simulated import PlayTask
    from topolane_gang.study.gang_studies import PolicyMix, Seen
    from topolane_gang.study.gang_xen import InStep

# Thresholds and labels: fixed before the rows were first made.
MANY = 0.1
"""Share of late iterations from which there are many."""
FEWER = 0.5
"""Far fewer are less than this share of credit's."""
CLEARLY = 0.05
"""Shares of a time that gang must be shorter to beat credit clearly."""
CHOSEN = "the domains are observed for 30 s because after 6 s no iteration was late"
BY_CONSTRUCTION = "simulated threads of a gang run at the same times and are equally fast"
SPREAD = "the lengths of the mix were spread after equal ones had been run"
QUICK_SECONDS = 1.0


@dataclasses.dataclass(frozen=True)
class Simulated:
    """What was simulated."""

    seen: dict[int, Seen]
    """By the number of cores."""
    causes: list[Cause]
    mixes: list[Other]


def tasks(seconds: float) -> list[PlayTask]:
    """All that is simulated, in order."""
    asked = [
        (cores, play)
        for cores in gang.SIMULATED_CORES
        for play in gang_studies.plays(cores, seconds, gang.LONGER)
    ]
    others = [*gang_causes.plays(seconds), *gang_causes.mixes_plays(seconds)]
    asked += [(gang_causes.CORES, play) for play in others]
    return [gang_simulated.PlayTask(cores, play) for cores, play in asked]


def simulated(
    seconds: float, *, workers: int | None = None, done: Callable[[], None] | None = None
) -> Simulated:
    """Simulates all of it."""
    played = iter(over(gang_simulated.play, tasks(seconds), workers=workers, done=done))
    seen = {}
    for cores in gang.SIMULATED_CORES:
        plays = gang_studies.plays(cores, seconds, gang.LONGER)
        seen[cores] = gang_studies.seen(plays, list(itertools.islice(played, len(plays))))
    causes = list(itertools.islice(played, len(gang_causes.plays(seconds))))
    return Simulated(seen, gang_causes.causes(seconds, causes), gang_causes.mixes(list(played)))


def judged(found: Simulated) -> list[PaperRow]:
    """The poster's claims by what was simulated."""
    rows = []
    for cores, seen in found.seen.items():
        late = {one.policy: one.share for one in seen.even}
        where = f"simulated, {cores} cores"
        rows += out_of_step(where, late["free"], late["gang"], (CHOSEN, BY_CONSTRUCTION))
    for one in found.causes:
        if one.host:
            where = f"simulated, {one.cores} cores, {one.what}"
            rows += out_of_step(where, one.credit.share, one.gang.share, (CHOSEN, ""))
    mixes = {one.what: one for one in found.mixes}
    rows += mix_rows(mixes["three equal CoEVP-like jobs"])
    return [*rows, *mix_rows(mixes["the mix"], SPREAD)]


def out_of_step(
    where: str, credit: float, ganged: float, given: tuple[str, str] = ("", "")
) -> list[PaperRow]:
    """Compute-bound domains: many late iterations under the credit scheduler, far fewer under gang."""
    return [
        direction(
            f"{where}: late iterations under credit",
            f"many: at least {MANY:.0%}",
            credit >= MANY,
            f"{credit:.1%}",
            given=given[0],
        ),
        direction(
            f"{where}: late iterations under gang",
            f"far fewer: under {FEWER:.0%} of credit's",
            ganged < FEWER * credit,
            f"{ganged:.1%} (credit {credit:.1%})",
            given=given[1],
        ),
    ]


MEASURES: dict[str, Callable[[PolicyMix], float | None]] = {
    "mean run time": lambda one: one.turnaround,
    "time until all have ended": lambda one: one.last,
}
"""The poster does not say which it has."""


def mix_rows(found: Other, given: str = "") -> list[PaperRow]:
    """Batch is the worst; gang does not clearly beat the credit scheduler. By both measures; a job that has not ended
    takes for ever.
    """
    rows = []
    for measure, seconds in MEASURES.items():
        times = {one.policy: seconds(one) or math.inf for one in found.under}
        what = f"simulated, {found.cores} cores, {found.what}: {measure} under"
        batch, free, ganged = (times[policy] for policy in ("batch", "free", "gang"))
        shown = f"batch {batch:.1f} s, gang {ganged:.1f} s, credit {free:.1f} s"
        worst = batch > max(free, ganged)
        rows.append(direction(f"{what} batch", "the longest", worst, shown, given=given))
        claim, not_clearly = (
            f"not over {CLEARLY:.0%} shorter than under credit",
            ganged > (1 - CLEARLY) * free,
        )
        rows.append(direction(f"{what} gang", claim, not_clearly, shown, given=given))
    return rows


def judged_on_xen(found: Sequence[InStep]) -> list[PaperRow]:
    """The claims on compute-bound domains by what a real Xen did."""
    late = {one.setting: 1 - one.mean.mean for one in found}
    rows = []
    for setting in (one for one in late if one.scheduler is gang_xen.GANG):
        credit = late[dataclasses.replace(setting, scheduler=gang_xen.CREDIT)]
        rows += out_of_step(f"Xen, {gang_xen.named(setting)}", credit, late[setting])
    return rows


def rows_for_summary(quick: bool, workers: int | None) -> list[PaperRow]:
    """Simulates what `topolane paper gang` simulates, and judges it. quick: shorter runs."""
    return judged(simulated(QUICK_SECONDS if quick else gang.SECONDS, workers=workers))
