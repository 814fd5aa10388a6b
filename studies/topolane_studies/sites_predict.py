"""The engine's prediction of what a program loses over a WAN, compared with what SMPI says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane._engine import Cut

from topolane_studies import sites
from topolane_studies.sites import SitesProgram, Wan
from topolane_studies.sites_scatter import spearman

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_studies.sites_loss import IterationTimes

WITHIN = 0.10
"""Of a predicted loss from the simulated one."""


def crossing(times: IterationTimes, job: SitesProgram) -> tuple[float, float, float, float]:
    """What crosses the middle of a program, a second of its run on one site.

    Turns of the rank with the most, bytes in the busier direction, bursts and bytes of the busiest pair.
    """
    half = sites.halves(job.ranks)
    turns = [0] * job.ranks
    ways = [0, 0]
    busiest = (0, 0)
    for (source, target), (messages, size, waits) in times.sent[job].items():
        if half[source] != half[target]:
            turns[source] += waits
            ways[half[source]] += size
            # Messages that follow each other without an answer are one burst.
            busiest = max(busiest, (size, min(messages, waits) or messages))
    seconds = times.one(job)
    return max(turns) / seconds, max(ways) / seconds, busiest[1] / seconds, busiest[0] / seconds


def tunnelled(times: IterationTimes, job: SitesProgram) -> float:
    """Bytes that a tunnel between the halves passes, both ways, a second of the run on one site."""
    half = sites.halves(job.ranks)
    passed = 0.0
    for (source, target), (messages, size, _) in times.sent[job].items():
        if half[source] != half[target]:
            ways = 3 if size > sites.EAGER * messages else 1  # asked for, answered, sent
            passed += size + ways * sites.EXTRA * messages
    return passed / times.one(job)


def cut(times: IterationTimes, job: SitesProgram) -> Cut:
    """The same as the engine takes it."""
    return Cut(*crossing(times, job))


def loss(times: IterationTimes, job: SitesProgram, wan: Wan) -> float:
    """Of speed, 0 to 1, as predicted."""
    longer = cut(times, job).loss(wan.latency, wan.bandwidth, wan.window)
    return longer / (1 + longer)


def near(times: IterationTimes, jobs: Sequence[SitesProgram]) -> str:
    """How near the predicted losses at 5 ms are to SMPI's, in words."""
    predicted = [loss(times, job, Wan()) for job in jobs]
    simulated = [times.loss(job, Wan()) for job in jobs]
    right = sum(abs(a - b) <= WITHIN for a, b in zip(predicted, simulated))
    off = max(zip(jobs, predicted, simulated), key=lambda each: abs(each[1] - each[2]))
    return (
        f"{right} of {len(jobs)} programs within {WITHIN * 100:.0f} points at 5 ms, Spearman "
        f"{spearman(predicted, simulated):.2f}, farthest off {off[0].name} class {off[0].size} ({off[1]:.0%} / {off[2]:.0%})"
    )
