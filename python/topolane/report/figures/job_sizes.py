"""The sizes of the workload's jobs (SC'18: 87 % of Cab's jobs in September fit one leaf)."""

from __future__ import annotations

from collections.abc import Sequence

import polars

from topolane.units import HOUR, count, percent, plural

from ..axes import DASHED, Guide
from ..bins import bin_label, size_bins
from ..chart import Figure
from ..data import MachinePicture, ReportedRun
from ..plot import WIDTH, Plot, empty
from ..scale import WHOLE, linear, rows
from ..style import MUTED, SERIES

NAME = "job-sizes"
TITLE = "Job sizes of the workload"
SIZE = "requested_number_of_resources"


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """Shares of jobs and of node hours by job size in nodes, in the first run."""
    first = runs[0]
    words = (
        "Small jobs are usually the most numerous while large ones fill the machine, so both are shown: "
        "the share of the jobs and the share of the node hours (nodes × run time, of the run "
        f"“{first.label}”). A leaf of this machine holds {plural(picture.leaf, 'node')}; a job no larger can run "
        "without using a link between switches."
    )
    jobs = first.jobs.select(
        polars.col(SIZE).alias("size"),
        (polars.col(SIZE) * polars.col("execution_time").fill_null(0.0).fill_nan(0.0) / HOUR).alias("hours"),
    )
    if jobs.is_empty():
        return Plot(NAME, TITLE, words, "The workload has no jobs.", empty("The workload has no jobs."))

    bins = size_bins(picture.leaf, jobs["size"].max())
    sizes = []
    for low, high in bins:
        inside = jobs.filter(polars.col("size").is_between(low, jobs["size"].max() if high is None else high))
        sizes.append((bin_label((low, high)), inside.height, inside["hours"].sum()))
    all_hours = sum(hours for _, _, hours in sizes) or 1.0

    drawn = Figure(WIDTH, 0.9 + 0.3 * len(sizes))
    left, right = drawn.grid(1, 2)
    left.title, right.title = "Share of jobs (count)", "Share of node hours (hours)"
    names = rows([name for name, *_ in sizes])
    for axes, amounts, whole, colour in (
        (left, [number for _, number, _ in sizes], jobs.height, SERIES[0]),
        (right, [spent for *_, spent in sizes], all_hours, SERIES[2]),
    ):
        shares = [amount / whole for amount in amounts]
        axes.bars([100 * share for share in shares], [colour] * len(shares), 0.7)
        for row, (share, amount) in enumerate(zip(shares, amounts)):
            text = f"{percent(share)}  ({count(amount)})"
            axes.text(100 * share, row, text, size=8.5, offset=(3.0, 0.0))
        axes.x = linear(0.0, 100 * max(*shares, 0.01) * 1.75, steps=WHOLE)
        axes.x_name = "%"
        axes.y, axes.has_rows = names, True
    left.y_name = "nodes of the job"
    right.has_y_labels = False
    if (edge := next((i for i, (low, _) in enumerate(bins) if low == picture.leaf + 1), None)) is not None:
        for axes in (left, right):
            axes.items.append(Guide(edge - 0.5, upright=False, width=0.9, dash=DASHED))
        looks = {"size": 8.0, "colour": MUTED, "anchor": "end", "rise": "bottom"}
        right.text(1.0, edge - 0.5, "one leaf", offset=(0.0, -2.0), shares="x", **looks)
    alt = "; ".join(
        f"{name} nodes: {percent(n / jobs.height)} of jobs, {percent(h / all_hours)} of node hours"
        for name, n, h in sizes
    )
    numbers = [["nodes", "jobs", "node hours"], *([name, count(n), count(h)] for name, n, h in sizes)]
    return Plot(NAME, TITLE, words, alt, drawn, numbers=numbers)
