"""SC'18: mean hops (APH) of the jobs, oblivious and aware, by size and by machine."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from topolane_studies import sc18
from topolane_studies.judging import direction
from topolane_studies.sc18 import AWARE, CLASSES, OBLIVIOUS

if TYPE_CHECKING:
    from topolane_studies import PaperRow
    from topolane_studies.sc18 import Pair, Sc18Results

FAR = 2.0
"""An APH is far above the least if it is at least this many times as much."""
SMALL, POD, WIDE = CLASSES


def lines(results: Sc18Results) -> list[list[str]]:
    """Of every pair and class of sizes: APH oblivious, aware, and the least possible; jobs of more than a node."""
    found = []
    for pair in sc18.PAIRS:
        for size in CLASSES:
            least = results.per_job(pair, OBLIVIOUS, "least", [size])
            if not math.isnan(least):
                values = [results.per_job(pair, column, "aph", [size]) for column in (OBLIVIOUS, AWARE)]
                found.append([pair.name, size, *(f"{value:.3f}" for value in (*values, least))])
    return found


def over_least(results: Sc18Results, pair: Pair, column: str, size: str) -> float:
    """APH over the least possible, of sums over the jobs of a size."""
    return results.per_job(pair, column, "aph", [size]) / results.per_job(pair, column, "least", [size])


def mean_aph(results: Sc18Results, pair: Pair, column: str) -> float:
    """APH of the mean job of more than one node."""
    return results.per_job(pair, column, "aph", list(CLASSES))


def rows(results: Sc18Results) -> list[PaperRow]:
    """The paper's claims about APH that name no figure."""
    return [far_above(results), *lower_aware(results), *wider_than_a_pod(results), *larger_machine(results)]


def far_above(results: Sc18Results) -> PaperRow:
    """What an oblivious policy does to jobs that a pod could hold."""
    ratios = [over_least(results, pair, OBLIVIOUS, POD) for pair in sc18.PAIRS]
    shown = f"{statistics.mean(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})"
    why = f"at least {FAR:g} times counts as far; the paper says it of placements recorded on Cab"
    return direction(
        "APH over the least possible, 19 to 324 nodes, oblivious", "far above", min(ratios) >= FAR, shown, why
    )


def lower_aware(results: Sc18Results) -> list[PaperRow]:
    """Aware against oblivious, all jobs of more than one node."""
    found = []
    for pair in sc18.PAIRS:
        oblivious, aware = (mean_aph(results, pair, column) for column in (OBLIVIOUS, AWARE))
        shown = f"{oblivious:.2f} oblivious, {aware:.2f} aware"
        found.append(direction(f"mean APH, {pair.name}", "oblivious above aware", oblivious > aware, shown))
    return found


def wider_than_a_pod(results: Sc18Results) -> list[PaperRow]:
    """Jobs of over 324 nodes span pods; the paper calls the aware ones near the least only up to 324."""
    found = []
    for pair in sc18.PAIRS:
        wide = over_least(results, pair, AWARE, WIDE)
        if math.isnan(wide):
            continue
        pod, oblivious = (
            over_least(results, pair, AWARE, POD),
            over_least(results, pair, OBLIVIOUS, WIDE),
        )
        found.append(
            direction(
                f"APH over the least possible above 324 nodes, {pair.name}, aware",
                "farther from it than up to 324",
                wide > pod,
                f"{wide:.3f}, and {pod:.3f} up to 324",
                f"oblivious {oblivious:.3f} above 324",
            )
        )
    return found


def larger_machine(results: Sc18Results) -> list[PaperRow]:
    """The same months on Cab and on Pinot, which has twice the pods."""
    by_name = {pair.name: pair for pair in sc18.PAIRS}
    found = []
    for month in ("Aug-2x", "Nov-2x"):
        if f"{month} Cab" not in by_name or f"{month} Pinot" not in by_name:
            continue
        cab, pinot = (mean_aph(results, by_name[f"{month} {name}"], OBLIVIOUS) for name in ("Cab", "Pinot"))
        aware = (mean_aph(results, by_name[f"{month} {name}"], AWARE) for name in ("Cab", "Pinot"))
        found.append(
            direction(
                f"mean APH, {month}, oblivious",
                "Pinot above Cab",
                pinot > cab,
                f"{pinot:.2f} on Pinot, {cab:.2f} on Cab",
                "aware {1:.2f} on Pinot, {0:.2f} on Cab".format(*aware),
            )
        )
    return found
