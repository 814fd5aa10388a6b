"""SC'18: what the synthetic months ask for: sizes, and nodes requested each hour."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from topolane_studies import sc18
from topolane_studies.judging import direction, figure, within_points
from topolane_studies.sc18 import BINS, HOUR, OBLIVIOUS

if TYPE_CHECKING:
    from topolane_studies import PaperRow
    from topolane_studies.sc18 import Pair, Sc18Results

NARROW, NARROW_POINTS = 87.0, within_points(2.0)
"""Per cent of September's jobs under 18 nodes, and how near ours must be."""
MADE = "the months were made from this figure"
WIDEST, LONGEST = 256, 24.0
"""Nodes and hours of a job, at most."""


def months() -> list[Pair]:
    """The months as they are, on Cab."""
    return [pair for pair in sc18.PAIRS if pair.nodes_x == 1]


def asked(results: Sc18Results, pair: Pair) -> list[list[int]]:
    """Nodes requested each hour, of every seed."""
    return [run["nodes_each_hour"] for run in results.runs[pair.name, OBLIVIOUS]]


def mean_asked(results: Sc18Results, pair: Pair) -> float:
    """Nodes requested an hour, in the mean over hours and seeds."""
    return statistics.mean(statistics.mean(hours) for hours in asked(results, pair))


def shares(results: Sc18Results, pair: Pair) -> list[float]:
    """Per cent of the jobs in each of BINS, over all seeds."""
    counts = [sum(run[f"wait {size}"][0] for run in results.runs[pair.name, OBLIVIOUS]) for size in BINS]
    return [100 * count / sum(counts) for count in counts]


def lines(results: Sc18Results) -> list[list[str]]:
    """Of every month: histogram of the sizes, and the nodes requested an hour."""
    found = []
    for pair in months():
        hours = asked(results, pair)
        found.append(
            [
                pair.name,
                *(f"{share:.1f}" for share in shares(results, pair)),
                f"{mean_asked(results, pair):,.0f}",
                f"{statistics.mean(statistics.median(each) for each in hours):,.0f}",
                f"{statistics.mean(max(each) for each in hours):,.0f}",
            ]
        )
    return found


def rows(results: Sc18Results) -> list[PaperRow]:
    """What the paper says of its logs. The months were made from it, so these rows only check them."""
    found = []
    for pair in (pair for pair in months() if pair.name == "Sep Cab"):
        under = sum(shares(results, pair)[: list(BINS).index("5-17") + 1])
        found.append(
            figure("jobs under 18 nodes, Sep (%)", NARROW, under, NARROW_POINTS, form=".1f", given=MADE)
        )
    for pair in months():
        widest = max(results.values(pair, OBLIVIOUS, "widest"))
        longest = max(results.values(pair, OBLIVIOUS, "longest", HOUR))
        found.append(
            direction(
                f"widest and longest job, {pair.name}",
                f"at most {WIDEST} nodes, {LONGEST:g} h",
                widest <= WIDEST and longest <= LONGEST,
                f"{widest:.0f} nodes, {longest:.1f} h",
                given=MADE,
            )
        )
    asked_for = {pair.name: mean_asked(results, pair) for pair in months()}
    if "Sep Cab" in asked_for:
        found.append(
            direction(
                "nodes requested an hour, Sep",
                "the month that is loaded heavily",
                asked_for["Sep Cab"] == max(asked_for.values()),
                ", ".join(f"{name} {value:,.0f}" for name, value in asked_for.items()),
                given="the loads follow from the paper's waits",
            )
        )
    return found
