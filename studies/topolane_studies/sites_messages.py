"""Messages between the halves compared with the paper's logs, and the correlation of loss and traffic at each latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane_studies import PaperRow, sites, sites_loss
from topolane_studies.judging import rank
from topolane_studies.sites import SitesProgram, Wan
from topolane_studies.sites_scatter import CLEAR, pearson, spearman

if TYPE_CHECKING:
    from topolane_studies import Verdict
    from topolane_studies.sites_loss import IterationTimes

PAPER_RATE = {"lu": 137.0, "cg": 78.0, "bt": 29.0}
"""Messages a second between the sites, class C on 32 ranks."""
PAPER_BYTES = {"lu": 200.0, "cg": 18e3, "bt": 18e3}
"""Of such a message."""
PAPER_LU_SENDS, PAPER_LU_BYTES = 195_393, 763.0
"""Another slide: sends of LU between the sites, and their mean bytes."""
DISAGREE = "the paper's slides disagree with each other"


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


def rows(times: IterationTimes, quick: bool) -> list[PaperRow]:
    """All of them."""
    rates = {kernel: rate(times, kernel) for kernel in PAPER_RATE}
    sizes = {kernel: size(times, kernel) for kernel in PAPER_BYTES}
    return [
        *(within_factor(f"{job_of(k).name}: messages/s across", PAPER_RATE[k], rates[k]) for k in rates),
        *(
            within_factor(f"{job_of(k).name}: bytes of a message across", PAPER_BYTES[k], sizes[k])
            for k in sizes
        ),
        rank("order of messages/s across, 32 ranks", [(PAPER_RATE, rates)]),
        rank("order of their bytes", [(PAPER_BYTES, sizes)]),
        *lu_slide(times),
        PaperRow(
            "MPI_Bcast calls",
            "counted",
            "-",
            "not measured",
            "the kernels leave out what NPB sends once at the start",
        ),
        *(correlation(times, quick, latency) for latency in latencies(quick)),
    ]


def within_factor(what: str, paper: float, ours: float) -> PaperRow:
    """A figure that agrees within FACTOR."""
    factor = sites_loss.FACTOR
    verdict: Verdict = "agrees" if 1 / factor <= ours / paper <= factor else "differs"
    return PaperRow(what, f"{paper:,.0f}", f"{ours:,.0f}", verdict, DISAGREE, f"a factor of {factor:g}")


def lu_slide(times: IterationTimes) -> list[PaperRow]:
    """The other slide on LU."""
    job = job_of("lu")
    ours = times.across(job)[0] * job.whole
    near = abs(ours / PAPER_LU_SENDS - 1) <= sites_loss.COUNTS
    return [
        PaperRow(
            "LU 32: sends across in the whole run",
            f"{PAPER_LU_SENDS:,}",
            f"{ours:,.0f}",
            "agrees" if near else "differs",
            "both ways; ours are NPB's calls, counted",
            f"{sites_loss.COUNTS:.0%}",
        ),
        within_factor("LU 32: mean bytes of these sends", PAPER_LU_BYTES, size(times, "lu")),
    ]


def latencies(quick: bool) -> list[float]:
    """Those at which all programs were simulated with TCP's window."""
    return sorted({wan.latency for wan in sites_loss.wans(quick)})


def correlation(times: IterationTimes, quick: bool, latency: float) -> PaperRow:
    """Loss against bytes per second between the halves, class C."""
    jobs = sites_loss.jobs(quick)
    traffic = [times.traffic(job) for job in jobs]
    loss = [times.loss(job, Wan(latency)) for job in jobs]
    by_place = spearman(traffic, loss)
    return PaperRow(
        f"loss at {1e3 * latency:g} ms against traffic, class C",
        "a clear correlation",
        f"Spearman {by_place:.2f}, Pearson {pearson(traffic, loss):.2f}",
        "agrees" if by_place >= CLEAR else "differs",
        f"{len(jobs)} programs",
        f"Spearman from {CLEAR:g} up",
    )
