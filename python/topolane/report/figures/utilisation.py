"""Box plots of utilisation (SC'18: sampled every minute)."""

from __future__ import annotations

from collections.abc import Sequence

import polars

from topolane.units import percent

from ..data import MachinePicture, ReportedRun
from ..plot import Plot, box_statistics, boxes, colours_of, empty, label, panels, share_x
from ..scale import WHOLE, linear

NAME = "utilisation"
TITLE = "Utilisation, minute by minute"
WORDS = (
    "The share of the nodes that run a job, sampled every minute. On the left only the minutes in which "
    "jobs wait: a node idle then was not enough for the next job, or the policy refused it, or the queue "
    "kept it back. On the right every minute. Box: the middle half of the minutes; line: median; dot: "
    "mean; whiskers: 5th to 95th percentile."
)


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """Two panels of box plots, in per cent of the nodes, a row per run."""
    if all(run.utilization.is_empty() for run in runs):
        return Plot(NAME, TITLE, WORDS, "Nothing ran.", empty("Nothing ran."))
    titles = ("Minutes in which jobs wait", "All minutes")
    drawn, axes = panels(titles, [label(run) for run in runs], 2)
    numbers = [["run", "mean while jobs wait", "mean of all minutes"]]
    lowest = 100.0
    rows: list[list[tuple[dict[str, float] | None, str]]] = [[], []]
    colours = colours_of(runs)
    for row, run in enumerate(runs):
        samples = 100 * run.utilization["utilization"].cast(polars.Float64)
        waits = run.utilization["waiting_jobs"] > 0
        numbers.append([run.label])
        for panel, part in zip(rows, (samples.filter(waits), samples)):
            statistics = box_statistics(part)
            panel.append((statistics, colours[row]))
            if statistics is not None:
                lowest = min(lowest, statistics["low"], statistics["mean"])
            numbers[-1].append(percent(statistics and statistics["mean"] / 100))
    for one, panel in zip(axes, rows):
        boxes(one, panel, "no job ever waited")
    share_x(
        axes, linear(max(0.0, 10 * (lowest // 10) - 2) if lowest > 50 else -1.5, 101.5, most=6, steps=WHOLE)
    )
    drawn.x_name = "busy nodes, % of the machine"
    alt = "; ".join(
        f"{name}: mean {waiting} while jobs wait, {every} over all minutes"
        for name, waiting, every in numbers[1:]
    )
    return Plot(NAME, TITLE, WORDS, alt, drawn, numbers=numbers)
