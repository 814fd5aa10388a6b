"""Boxes of the utilisation (SC'18: sampled every minute)."""

from __future__ import annotations

from collections.abc import Sequence

import polars

from topolane.units import percent

from ..data import MachinePicture, Run
from ..plot import Plot, box, box_statistics, empty, label, name_rows, panels
from ..style import series

NAME = "utilisation"
TITLE = "Utilisation, minute by minute"
WORDS = (
    "The share of the nodes that run a job, sampled every minute. On the left only the minutes in which "
    "jobs wait: a node idle then was not enough for the next job, or the policy refused it, or the queue "
    "kept it back. On the right every minute. Box: the middle half of the minutes; line: median; dot: "
    "mean; whiskers: 5th to 95th percentile."
)


def draw(runs: Sequence[Run], picture: MachinePicture) -> Plot:
    """Two panels of boxes, in per cent of the nodes, a row per run."""
    if all(run.utilization.is_empty() for run in runs):
        return Plot(NAME, TITLE, WORDS, "Nothing ran.", empty("Nothing ran."))
    drawn, axes = panels(2, len(runs), 2)
    numbers = [["run", "mean while jobs wait", "mean of all minutes"]]
    lowest = 100.0
    for row, run in enumerate(runs):
        samples = run.utilization.with_columns(polars.col("utilization") * 100)
        numbers.append([run.label])
        for one, part in zip(axes, (samples.filter(polars.col("waiting_jobs") > 0), samples)):
            statistics = box_statistics(part["utilization"])
            if statistics is None:
                one.text(
                    0.02,
                    row,
                    "no job ever waited",
                    transform=one.get_yaxis_transform(),
                    va="center",
                    fontsize=8,
                )
            else:
                box(one, row, statistics, series(row))
                lowest = min(lowest, statistics["whislo"], statistics["mean"])
            numbers[-1].append(percent(statistics and statistics["mean"] / 100))
    axes[0].set_title("Minutes in which jobs wait")
    axes[1].set_title("All minutes")
    axes[0].set_xlim(max(0.0, 10 * (lowest // 10) - 2) if lowest > 50 else -1.5, 101.5)
    name_rows(axes[0], [label(run) for run in runs])
    drawn.supxlabel("busy nodes, % of the machine", fontsize=9)
    alt = "; ".join(
        f"{name}: mean {waiting} while jobs wait, {every} over all minutes"
        for name, waiting, every in numbers[1:]
    )
    return Plot(NAME, TITLE, WORDS, alt, drawn, numbers=numbers)
