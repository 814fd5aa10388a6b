"""Boxes of the utilisation (SC'18: sampled every minute)."""

from __future__ import annotations

from collections.abc import Sequence

import polars

from topolane.units import percent

from ..data import MachinePicture, Run
from ..plot import Plot, box_statistics, boxes, empty, label, name_rows, panels
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
    rows: list[list[tuple[dict[str, float] | None, str]]] = [[], []]
    for row, run in enumerate(runs):
        samples = 100 * run.utilization["utilization"].cast(polars.Float64).to_numpy()
        waits = run.utilization["waiting_jobs"].to_numpy() > 0
        numbers.append([run.label])
        for panel, part in zip(rows, (samples[waits], samples)):
            statistics = box_statistics(part)
            panel.append((statistics, series(row)))
            if statistics is not None:
                lowest = min(lowest, statistics["whislo"], statistics["mean"])
            numbers[-1].append(percent(statistics and statistics["mean"] / 100))
    for one, panel in zip(axes, rows):
        boxes(one, panel, "no job ever waited")
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
