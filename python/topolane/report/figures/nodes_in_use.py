"""Nodes in use over time (SC'18: utilisation, sampled every minute)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars

from topolane.units import DAY, HOUR, percent, plural

from ..axes import Guide
from ..data import MachinePicture, ReportedRun
from ..plot import TOGETHER, Plot, empty, lines
from ..scale import linear
from ..style import MUTED

NAME = "nodes-in-use"
TITLE = "Nodes in use"
MOST_POINTS = 1000
OVERLAID = 1  # runs per panel: hourly lines are too jagged to overlay


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """Busy nodes as hourly means (means over several hours for a long run)."""
    last = max((run.utilization["time"].max() or 0.0 for run in runs), default=0.0)
    hours = next(
        h for h in (1, 2, 3, 6, 12, *(24 * 2**i for i in range(40))) if last / HOUR / h <= MOST_POINTS
    )
    every = "hour" if hours == 1 else f"{hours} hours"
    words = (
        f"How many of the machine's {plural(picture.nodes, 'node')} run a job, as the mean of every {every}. "
        "The dotted line is the whole machine: the space beneath it is idle. A run that ends further to the "
        "right took longer for the same jobs."
    ) + (TOGETHER if len(runs) > OVERLAID else "")
    if all(run.utilization.is_empty() for run in runs):
        return Plot(NAME, TITLE, words, "Nothing ran.", empty("Nothing ran."))

    days = last >= 3 * DAY
    unit = DAY if days else HOUR
    curves = []
    for run in runs:
        block = (
            run.utilization.group_by((polars.col("time") // (hours * HOUR)).alias("block"))
            .agg(polars.col("busy_nodes").mean())
            .sort("block")
        )
        curves.append(list(zip((block["block"] + 0.5) * hours * HOUR / unit, block["busy_nodes"])))
    drawn, axes = lines(runs, curves, 3.0, OVERLAID, 1 if len(runs) <= 6 else 2)
    across = linear(
        0.0, float(math.ceil(last / unit)) if days else max(last / unit, 1.0), "{:,.0f}".format, 9
    )
    upward = linear(0.0, picture.nodes * 1.12, "{:,.0f}".format, 4)
    for one in axes:
        one.x, one.y = across, upward
        one.items.append(Guide(picture.nodes, upright=False, dash=(1.0, 1.5)))
    axes[0].text(
        1.0,
        picture.nodes,
        plural(picture.nodes, "node"),
        size=8.0,
        colour=MUTED,
        anchor="end",
        rise="bottom",
        offset=(0.0, -2.0),
        shares="x",
    )
    drawn.x_name, drawn.y_name = (
        f"{'days' if days else 'hours'} since second 0 of the workload",
        "busy nodes",
    )
    means = [f"{run.label}: {percent(run.number('utilization'))} of the node time used" for run in runs]
    return Plot(
        NAME,
        TITLE,
        words,
        "Busy nodes over time. " + "; ".join(means) + f". The machine has {plural(picture.nodes, 'node')}.",
        drawn,
    )
