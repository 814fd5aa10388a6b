"""SC'18: whose wait grows, in which order the columns stand, and from which speed-up isolation pays."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from topolane_studies import sc18
from topolane_studies.judging import direction, figure, missing, rank, within_points
from topolane_studies.sc18 import AWARE, BINS, COLUMNS, FITTED, HOUR, OBLIVIOUS, V1, V2

if TYPE_CHECKING:
    from topolane_studies import PaperRow
    from topolane_studies.sc18 import Pair, Sc18Results

PAYS = 10.0
"""Per cent of speed-up above which isolation pays, as we read the paper."""
PAYS_POINTS = within_points(5.0)
SPEEDUPS = {AWARE: 0.0, "5 %": 5.0, "10 %": 10.0, "20 %": 20.0}
WIDE = "65-256"


def lines(results: Sc18Results) -> list[list[str]]:
    """Of every pair and column the mean wait in hours by size of the jobs."""
    found = []
    for pair in sc18.PAIRS:
        for column in COLUMNS:
            waits = [results.per_job(pair, column, "wait", [size]) / HOUR for size in BINS]
            found.append(
                [pair.name, column, *("-" if math.isnan(wait) else f"{wait:,.2f}" for wait in waits)]
            )
    return found


def rows(results: Sc18Results) -> list[PaperRow]:
    """Directions, ranks, and the break-even of wait and run together."""
    return [
        *(row for pair in sc18.PAIRS for row in (order(results, pair), falling(results, pair))),
        *between_pairs(results),
        *(row for pair in sc18.PAIRS for row in whose(results, pair)),
        *(row for pair in sc18.PAIRS for row in pays(results, pair)),
        by_priority(),
    ]


def order(results: Sc18Results, pair: Pair) -> PaperRow:
    """Of the four columns that the paper prints."""
    ours = {column: results.mean(pair, column, "mean_wait") for column in pair.waits}
    return rank(f"order of mean waits, {pair.name}", [(pair.waits, ours)])


def falling(results: Sc18Results, pair: Pair) -> PaperRow:
    """More speed-up, shorter waits: the columns of 5, 10 and 20 %."""
    waits = [results.mean(pair, column, "mean_wait", HOUR) for column in SPEEDUPS]
    return direction(
        f"mean wait at 0, 5, 10, 20 % speed-up, {pair.name} (h)",
        "falls",
        all(later <= before for before, later in pairwise(waits)),
        ", ".join(f"{wait:,.2f}" for wait in waits),
    )


def between_pairs(results: Sc18Results) -> list[PaperRow]:
    """The order of the months and machines in each column."""
    found = []
    for column in (OBLIVIOUS, AWARE, V1, V2):
        paper = {pair.name: pair.waits[column] for pair in sc18.PAIRS}
        ours = {pair.name: results.mean(pair, column, "mean_wait") for pair in sc18.PAIRS}
        what, given = f"order of the pairs by mean wait, {column}", FITTED if column == OBLIVIOUS else ""
        found.append(rank(what, [(paper, ours)], given=given))
    return found


def whose(results: Sc18Results, pair: Pair) -> list[PaperRow]:
    """Wide jobs pay for isolation, and a speed-up of 20 % gives them most of it back (the paper: August on Cab)."""
    waits = {
        column: results.per_job(pair, column, "wait", [WIDE]) / HOUR for column in (OBLIVIOUS, AWARE, "20 %")
    }
    added = {
        size: results.per_job(pair, AWARE, "wait", [size]) - results.per_job(pair, OBLIVIOUS, "wait", [size])
        for size in BINS
    }
    most = max((size for size in added if not math.isnan(added[size])), key=lambda size: added[size])
    shown = ", ".join(f"{wait:,.2f} {column}" for column, wait in waits.items())
    taken, back = waits[AWARE] - waits[OBLIVIOUS], waits[AWARE] - waits["20 %"]
    return [
        direction(
            f"wait of 65-256 nodes, {pair.name} (h)",
            "aware above oblivious",
            waits[AWARE] > waits[OBLIVIOUS],
            shown,
            f"isolation adds most for jobs of {most} nodes",
        ),
        direction(
            f"the same, {pair.name}: 20 % speed-up",
            "takes back more than half of what isolation adds",
            back > taken / 2 > 0,
            f"{back:,.2f} of {taken:,.2f}",
        ),
    ]


def break_even(ratios: dict[str, float]) -> float:
    """The speed-up in per cent at which a ratio to oblivious is 1, on straight lines between the columns.

    0 where it is no more without a speed-up, infinite where it is still more at 20 %.
    """
    points = [(SPEEDUPS[column], ratios[column]) for column in SPEEDUPS]
    if points[0][1] <= 1:
        return 0.0
    for (low, before), (high, after) in pairwise(points):
        if after <= 1:
            return low + (high - low) * (before - 1) / (before - after)
    return math.inf


def ratios(results: Sc18Results, pair: Pair, key: str) -> dict[str, float]:
    """A measure over oblivious', both in the mean over the seeds."""
    base = results.mean(pair, OBLIVIOUS, key)
    return {column: results.mean(pair, column, key) / base for column in SPEEDUPS}


def pays(results: Sc18Results, pair: Pair) -> list[PaperRow]:
    """Wait and run together: not yet at 5 %, at 20 % surely, from about 10 % on."""
    mean, work = (ratios(results, pair, key) for key in ("mean_turnaround", "turnaround_by_work"))
    even = break_even(mean)
    return [
        figure(
            f"speed-up from which isolation pays, {pair.name}",
            PAYS,
            even,
            PAYS_POINTS,
            neutral=0.0,
            shown=(f"about {PAYS:g} %", percent(even)),
            why=f"weighted by node-seconds {percent(break_even(work))}",
        ),
        *(
            direction(
                f"wait + run at {column} speed-up, {pair.name}",
                f"{claim} than oblivious",
                (mean[column] < 1) == (claim == "shorter"),
                f"{mean[column]:.3f} of it",
                f"weighted by node-seconds {work[column]:.3f}",
            )
            for column, claim in (("5 %", "longer"), ("20 %", "shorter"))
        ),
    ]


def percent(speedup: float) -> str:
    """A break-even in words."""
    return "above 20 %" if math.isinf(speedup) else f"{speedup:.1f} %"


def by_priority() -> PaperRow:
    """The other order of the queue."""
    return missing(
        "waits where the queue is ordered by user priority and usage",
        "studied",
        "the synthetic months have no users",
        side=True,
    )
