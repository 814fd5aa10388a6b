"""Run times of jobs divided by their run times alone, by communication pattern."""

from __future__ import annotations

from collections.abc import Sequence

import polars

from ..data import MachinePicture, ReportedRun
from ..plot import Plot, empty
from ..stretch import MARKS, NONE, Spread, draw_spreads, networked, table

NAME = "contention-by-pattern"
TITLE = "Slowed by others, by pattern"
WORDS = f"Jobs of more than one node by the pattern that was drawn for them. {MARKS}"


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """A panel per pattern, a row per run."""
    shown = networked(runs)
    patterns = sorted({name for *_, jobs in shown for name in jobs["pattern"].unique() if name})
    if not patterns:
        return Plot(NAME, TITLE, WORDS, NONE, empty(NONE))
    groups = []
    for name in patterns:
        own = (jobs.filter(polars.col("pattern") == name)["contention"] for *_, jobs in shown)
        groups.append((name, [Spread.of(values) for values in own]))
    numbers = table(shown, groups)
    alt = "Mean, 95 % and worst. " + " ".join(f"{name}: {', '.join(cells)}." for name, *cells in numbers[1:])
    return Plot(NAME, TITLE, WORDS, alt, draw_spreads(shown, groups), numbers=numbers)
