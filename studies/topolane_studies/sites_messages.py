"""Messages between the halves compared with the paper's logs, and the correlation of loss and traffic at each latency."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from topolane_studies import claims as claims_of
from topolane_studies import judging, sites, sites_loss
from topolane_studies.claims import Claim
from topolane_studies.judging import within_share
from topolane_studies.sites import SitesProgram
from topolane_studies.sites_scatter import CLEAR_CLAIM, is_clear

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_studies import PaperRow
    from topolane_studies.sites_loss import IterationTimes

# Of class C on 32 ranks. The paper's slides disagree with each other.
PAPER_RATE = {"lu": 137.0, "cg": 78.0, "bt": 29.0}
"""Messages a second between the sites."""
PAPER_BYTES = {"lu": 200.0, "cg": 18e3, "bt": 18e3}
"""Of such a message."""
PAPER_SENDS = {"lu": 1_303_278, "cg": 372_599, "bt": 239_381}
"""The appendix: sends of the whole run."""
PAPER_ACROSS = {"lu": 195_393, "cg": 26_564, "bt": 53_570}
"""Of these, those between the sites."""
PAPER_SHARE = {kernel: 100 * PAPER_ACROSS[kernel] / PAPER_SENDS[kernel] for kernel in PAPER_SENDS}
PAPER_MEAN = {"lu": 763.0, "cg": 9e3, "bt": 23e3}
"""Mean bytes of those between the sites."""
COUNTS = within_share(0.10)
"""Of numbers of sends."""


def job_of(kernel: str) -> SitesProgram:
    """The kernel on 32 ranks, class C."""
    return SitesProgram(kernel, sites.sized(kernel, 32))


def rate(times: IterationTimes, kernel: str) -> float:
    """Messages a second between the halves, both ways, on one site."""
    job = job_of(kernel)
    return times.across(job)[0] / times.one(job)


def size(times: IterationTimes, kernel: str) -> float:
    """Mean bytes of such a message."""
    messages, sent, _ = times.across(job_of(kernel))
    return sent / messages


def sends(times: IterationTimes, kernel: str) -> float:
    """Of the whole run."""
    job = job_of(kernel)
    return sum(of[0] for of in times.sent[job].values()) * job.whole


def across(times: IterationTimes, kernel: str) -> float:
    """Sends between the halves in the whole run."""
    return times.across(job_of(kernel))[0] * job_of(kernel).whole


def share(times: IterationTimes, kernel: str) -> float:
    """Of all sends, those between the halves in %."""
    return 100 * across(times, kernel) / sends(times, kernel)


FIGURES = (
    ("messages/s across", PAPER_RATE, rate, sites_loss.TRAFFIC),
    ("bytes of a message across", PAPER_BYTES, size, sites_loss.TRAFFIC),
    ("sends of the whole run", PAPER_SENDS, sends, COUNTS),
    ("sends across in the whole run", PAPER_ACROSS, across, COUNTS),
    ("sends across, % of all", PAPER_SHARE, share, COUNTS),
    ("mean bytes of a send across", PAPER_MEAN, size, sites_loss.TRAFFIC),
)
ORDERED = (rate, size, share)
"""Of what the order of the kernels is compared too."""


def claims(quick: bool) -> list[Claim[IterationTimes]]:
    """All of them, each figure and then the order of the kernels by it."""
    found: list[Claim[IterationTimes]] = []
    for what, paper, ours, tolerance in FIGURES:
        form = "{:.1f}" if ours is share else "{:,.0f}"
        for kernel in paper:
            name, own = f"{job_of(kernel).name}: {what}", partial(ours, kernel=kernel)
            found.append(claims_of.figure(name, paper[kernel], own, tolerance, shown=form.format))
        if ours in ORDERED:
            found.append(claims_of.rank(f"order by {what}", paper, partial(by_kernel, ours)))
    return [
        *found,
        broadcasts_claim(),
        *(correlation(quick, latency) for latency in sites_loss.latencies(quick)),
    ]


def broadcasts_claim() -> Claim[IterationTimes]:
    """Calls of MPI_Bcast. The paper counted them, but our notes do not have its numbers: so it cannot agree."""
    what, paper = "MPI_Bcast calls", "counted"

    def row(times: IterationTimes) -> PaperRow:
        own = ", ".join(f"{job_of(kernel).name} {times.broadcasts[job_of(kernel)]}" for kernel in PAPER_SENDS)
        return judging.missing(
            what, paper, f"our notes lack the paper's numbers; here, at the start: {own}", value=True
        )

    return Claim(what, paper, row, value=True)


def by_kernel(measure: Callable[[IterationTimes, str], float], times: IterationTimes) -> dict[str, float]:
    """A measure of each of the kernels."""
    return {kernel: measure(times, kernel) for kernel in PAPER_SENDS}


def correlation(quick: bool, latency: float) -> Claim[IterationTimes]:
    """Loss against bytes per second between the halves, class C."""

    def seen(times: IterationTimes) -> tuple[bool, str, str]:
        jobs = sites_loss.jobs(quick)
        traffic = [times.traffic(job) for job in jobs]
        return is_clear(traffic, [times.loss(job, sites.tunnelled(latency)) for job in jobs])

    what = f"loss at {1e3 * latency:g} ms against traffic, class C"
    return claims_of.direction(what, CLEAR_CLAIM, seen)
