"""Run times of jobs divided by their run times alone, by job size."""

from __future__ import annotations

from collections.abc import Sequence

import polars

from ..bins import nodes_label, size_bins
from ..data import MachinePicture, ReportedRun
from ..plot import Plot, empty
from ..stretch import MARKS, NONE, SIZE, Spread, draw_spreads, networked, table

NAME = "contention-by-size"
TITLE = "Slowed by others, by job size"
WORDS = f"A job that fits one leaf may still cross others if it is given nodes of several. {MARKS}"


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """A panel per size bin, a row per run."""
    shown = networked(runs)
    largest = max((jobs[SIZE].max() or 0 for *_, jobs in shown), default=0)
    if largest < 2:
        return Plot(NAME, TITLE, WORDS, NONE, empty(NONE))
    groups = []
    for low, high in size_bins(picture.leaf, largest):
        if high == 1:
            continue
        low, last = max(low, 2), largest if high is None else high
        own = [jobs.filter(polars.col(SIZE).is_between(low, last))["contention"] for *_, jobs in shown]
        if any(not values.is_empty() for values in own):
            groups.append((nodes_label((low, high)), [Spread.of(values) for values in own]))
    numbers = table(shown, groups)
    alt = "Mean, 95 % and worst. " + " ".join(f"{name}: {', '.join(cells)}." for name, *cells in numbers[1:])
    return Plot(NAME, TITLE, WORDS, alt, draw_spreads(shown, groups), numbers=numbers)
