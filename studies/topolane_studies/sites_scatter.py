"""The paper's central figure: loss of speed on two sites against the traffic between them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy

from topolane_studies import claims, sites
from topolane_studies.sites import SitesProgram, Wan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from topolane_studies.claims import Claim
    from topolane_studies.sites import SmpiRun
    from topolane_studies.sites_loss import IterationTimes

CLEAR = 0.7
"""The correlation is clear if Spearman's coefficient is at least this; the paper gives none."""
CLEAR_CLAIM = f"a clear correlation: Spearman from {CLEAR:g} up"


@dataclasses.dataclass(frozen=True)
class Point:
    """A program in two halves at 5 ms."""

    job: SitesProgram
    traffic: float
    """Bytes per second between the halves, on one site."""
    turns: float
    """Per second between the halves, on one site."""
    loss: float
    """Of speed, 0 to 1."""


def jobs(quick: bool) -> list[SitesProgram]:
    """Five kernels, classes B and C, 16, 32 and 64 ranks."""
    return [
        SitesProgram(kernel, sites.sized(kernel, ranks), size)
        for kernel in sites.KERNELS
        for size in ("B", "C")
        for ranks in ((16,) if quick else (16, 32, 64))
    ]


def runs(programs: Path, quick: bool) -> list[SmpiRun]:
    """All runs of this part."""
    wanted = [sites.alone(programs, job) for job in jobs(quick)]
    # The prediction of the engine knows no tunnel.
    return wanted + [
        sites.spread(programs, job, wan) for wan in (sites.tunnelled(), Wan()) for job in jobs(quick)
    ]


def points(times: IterationTimes, quick: bool) -> list[Point]:
    """A point for every program, with the tunnel."""
    return [
        Point(
            job,
            times.traffic(job),
            times.across(job)[2] / times.one(job),
            times.loss(job, sites.tunnelled()),
        )
        for job in jobs(quick)
    ]


def pearson(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's coefficient of correlation."""
    return float(numpy.corrcoef(first, second)[0, 1])


def ranked(values: Sequence[float]) -> list[float]:
    """The place of every value in their order, from 1 up; equal ones share the mean of theirs."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's: Pearson's of the places."""
    return pearson(ranked(first), ranked(second))


def is_clear(traffic: Sequence[float], loss: Sequence[float]) -> tuple[bool, str, str]:
    """Whether loss grows with traffic, for a claim: whether it holds, the coefficients, and of how many programs."""
    by_place = spearman(traffic, loss)
    seen = f"Spearman {by_place:.2f}, Pearson {pearson(traffic, loss):.2f}"
    return by_place >= CLEAR, seen, f"{len(loss)} programs"


def claim(quick: bool) -> Claim[IterationTimes]:
    """That there is a correlation."""

    def seen(times: IterationTimes) -> tuple[bool, str, str]:
        found = points(times, quick)
        loss = [point.loss for point in found]
        holds, ours, count = is_clear([point.traffic for point in found], loss)
        by_turns = spearman([point.turns for point in found], loss)
        return holds, ours, f"{count}; with turns/s instead Spearman {by_turns:.2f}"

    return claims.direction("loss at 5 ms against traffic, classes B and C", CLEAR_CLAIM, seen)


def figure(found: Sequence[Point]) -> Figure:
    """Loss against bytes per second, a colour for each kernel, a form for each class, a size for the ranks."""
    from topolane.report.style import MUTED, series
    from topolane.report.with_matplotlib import figure as blank

    drawn = blank(7.2, 4.6)
    axes = drawn.add_subplot()
    colours = {kernel: series(index) for index, kernel in enumerate(sites.KERNELS)}
    for point in found:
        axes.scatter(
            point.traffic / 1e6,
            100 * point.loss,
            s=point.job.ranks * 1.5,
            marker="o" if point.job.size == "C" else "^",
            color=colours[point.job.kernel],
            alpha=0.75,
            linewidths=0,
        )
    for kernel in sites.KERNELS:
        axes.scatter([], [], color=colours[kernel], label=kernel.upper())
    axes.scatter([], [], color=MUTED, marker="^", label="class B")
    axes.scatter([], [], color=MUTED, marker="o", label="class C")
    axes.set_xscale("symlog", linthresh=1.0)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlim(-0.15, 1000)
    axes.set_xlabel("between the halves, MB/s on one site (linear to 1)")
    axes.set_ylabel("loss of speed in halves at 5 ms, %")
    axes.set_ylim(-3, 103)
    axes.legend(loc="upper left")
    axes.set_title("Larger marks: more ranks (16, 32 or 36, 64)")
    return drawn


def write(folder: Path, found: Sequence[Point]) -> None:
    """The figure and its points into a folder."""
    import polars
    from topolane.report.with_matplotlib import drawing

    with drawing():
        figure(found).savefig(folder / "loss-against-traffic.png", dpi=150, metadata={"Software": None})
    polars.DataFrame(
        {
            "program": [point.job.kernel for point in found],
            "class": [point.job.size for point in found],
            "ranks": [point.job.ranks for point in found],
            "bytes_per_second": [point.traffic for point in found],
            "turns_per_second": [point.turns for point in found],
            "loss": [point.loss for point in found],
        }
    ).write_csv(folder / "points.csv")
