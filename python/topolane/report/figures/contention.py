"""The distribution of jobs' run times divided by their run times alone."""

from __future__ import annotations

from collections.abc import Sequence

from topolane.units import percent

from ..data import MachinePicture, ReportedRun
from ..plot import TOGETHER, Plot, empty, lines, share_x
from ..scale import WHOLE, linear
from ..stretch import NONE, Spread, networked, stretches
from .wait_cdf import OVERLAID, curve

NAME = "contention"
TITLE = "How much longer jobs run among others"
WORDS = (
    "For each factor (to the right), the share of the jobs of more than one node (upward) whose run time "
    "is at most that factor times their run time alone. A line that rises at the left edge is of jobs "
    "that no other job slowed down. Higher is better."
)
SLOWED = 1.0 + 1e-6  # tolerance, because the times of a month are rounded


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """Cumulative distributions of run time divided by run time alone, in per cent of the jobs."""
    shown = networked(runs)
    values = [jobs["contention"].sort() for _, _, jobs in shown]
    if all(each.is_empty() for each in values):
        return Plot(NAME, TITLE, WORDS, NONE, empty(NONE))
    end = max(1.01, *(each.max() for each in values if not each.is_empty()))
    drawn, axes = lines(
        [run for run, *_ in shown],
        [curve(each, end + 0.05 * (end - 1.0)) for each in values],
        3.0,
        OVERLAID,
        2 if len(shown) <= 8 else 3,
        [colour for _, colour, _ in shown],
    )
    share_x(axes, stretches(1.0 - 0.02 * (end - 1.0), end + 0.05 * (end - 1.0)))
    for one in axes:
        one.y = linear(0.0, 102.0, most=6, steps=WHOLE)
    drawn.x_name, drawn.y_name = "times longer than alone", "% of the jobs"
    numbers = [["run", "slowed", "mean", "95 % of the jobs at most", "worst"]]
    for (run, *_), each in zip(shown, values):
        spread = Spread.of(each)
        cells = str(spread).split(" / ") if spread else ["–"] * 3
        numbers.append([run.label, percent((each > SLOWED).mean() if spread else None), *cells])
    alt = "; ".join(
        f"{name}: {slowed} slowed, mean {mean}, worst {most}" for name, slowed, mean, _, most in numbers[1:]
    )
    words = WORDS + (TOGETHER if len(shown) > OVERLAID else "")
    return Plot(NAME, TITLE, words, alt, drawn, numbers=numbers)
