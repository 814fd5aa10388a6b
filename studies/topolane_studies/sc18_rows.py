"""All rows of the two studies of SC'18."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane_studies import sc18, sc18_hops, sc18_months, sc18_network, sc18_waits

if TYPE_CHECKING:
    from topolane_studies import PaperRow
    from topolane_studies.sc18 import Sc18Results

SEEDS, QUICK_WORKLOADS = 5, 3


def rows(results: Sc18Results) -> list[PaperRow]:
    """Of the study of queues."""
    return [row for part in (sc18, sc18_waits, sc18_hops, sc18_months) for row in part.rows(results)]


def rows_for_summary(quick: bool, workers: int | None) -> list[PaperRow]:
    """Runs the study of queues. quick: one seed."""
    return rows(sc18.study(range(1, 2 if quick else SEEDS + 1), workers=workers))


def network_rows_for_summary(quick: bool, workers: int | None) -> list[PaperRow]:
    """Runs the network study. quick: three workloads."""
    workloads = QUICK_WORKLOADS if quick else sc18_network.WORKLOADS
    return sc18_network.rows(sc18_network.study(workloads, workers=workers))
