"""Makespan relative to the first run (SC'18: first submission to last completion)."""

from __future__ import annotations

from collections.abc import Sequence

from topolane.units import NOTHING, decimal, span

from ..axes import DASHED, Guide
from ..chart import Figure
from ..data import MachinePicture, ReportedRun
from ..plot import WIDTH, Plot, colours_of, empty, label
from ..scale import linear, rows

NAME = "makespan"
TITLE = "Makespan"


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """Bars of the makespan, in per cent of the first run's, labelled with the duration."""
    words = (
        f"From the first submission to the last completion, relative to “{runs[0].label}” (100 %). Shorter "
        "is better. On a machine that is not overloaded the last jobs submitted decide the makespan, and "
        "policies hardly differ."
    )
    first = runs[0].number("makespan")
    if not first:
        return Plot(
            NAME, TITLE, words, "The first run has no makespan.", empty("The first run has no makespan.")
        )
    spans = [run.number("makespan") for run in runs]
    shares = [100 * (value or 0.0) / first for value in spans]
    texts = [
        NOTHING if value is None else f"{share:.1f} %   {span(value)}" for value, share in zip(spans, shares)
    ]
    drawn = Figure(WIDTH, 0.75 + 0.3 * len(runs))
    (axes,) = drawn.grid(1)
    axes.bars(shares, colours_of(runs))
    for row, text in enumerate(texts):
        axes.text(max(100.0, *shares) * 1.012, row, text, size=8.5)
    axes.items.append(Guide(100.0, upright=True, dash=DASHED))
    axes.x = linear(0.0, max(shares) * 1.2, most=7)
    axes.y, axes.has_rows = rows([label(run) for run in runs]), True
    axes.x_name = "makespan, % of the first run's"
    alt = "; ".join(f"{run.label}: {text}" for run, text in zip(runs, texts))
    numbers = [["run", "% of the first run's", "makespan"]]
    numbers += [
        [run.label, decimal(None if value is None else share, 1), span(value)]
        for run, value, share in zip(runs, spans, shares)
    ]
    return Plot(NAME, TITLE, words, alt, drawn, numbers=numbers)
