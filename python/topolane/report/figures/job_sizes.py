"""The sizes of the workload's jobs (SC'18: 87 % of Cab's jobs in September fit one leaf)."""

from __future__ import annotations

from collections.abc import Sequence

import polars
from matplotlib.ticker import MaxNLocator

from topolane.units import HOUR, count, percent

from ..bins import bin_label, size_bins
from ..data import MachinePicture, Run
from ..plot import WIDTH, Plot, empty, figure
from ..style import MUTED, SERIES

NAME = "job-sizes"
TITLE = "Job sizes of the workload"
SIZE = "requested_number_of_resources"


def draw(runs: Sequence[Run], picture: MachinePicture) -> Plot:
    """Shares of the jobs and of the node hours by job size in nodes, from the first run."""
    first = runs[0]
    words = (
        "Small jobs are usually the most numerous while large ones fill the machine, so both are shown: "
        "the share of the jobs and the share of the node hours (nodes × run time, of the run "
        f"“{first.label}”). A leaf of this machine holds {picture.leaf:,} nodes; a job no larger can run "
        "without using a link between switches."
    )
    jobs = first.jobs.select(
        polars.col(SIZE).alias("size"),
        (polars.col(SIZE) * polars.col("execution_time").fill_null(0.0).fill_nan(0.0) / HOUR).alias("hours"),
    )
    if jobs.is_empty():
        return Plot(NAME, TITLE, words, "The workload has no jobs.", empty("The workload has no jobs."))

    bins = size_bins(picture.leaf, jobs["size"].max())
    rows = []
    for low, high in bins:
        inside = jobs.filter(polars.col("size").is_between(low, jobs["size"].max() if high is None else high))
        rows.append((bin_label((low, high)), inside.height, inside["hours"].sum()))
    all_hours = sum(hours for _, _, hours in rows) or 1.0

    drawn = figure(WIDTH, 0.9 + 0.3 * len(rows))
    left, right = drawn.subplots(1, 2, sharey=True)
    for axes, shares, labels, title, colour in (
        (
            left,
            [n / jobs.height for _, n, _ in rows],
            [count(n) for _, n, _ in rows],
            "Share of jobs (count)",
            SERIES[0],
        ),
        (
            right,
            [h / all_hours for *_, h in rows],
            [count(h) for *_, h in rows],
            "Share of node hours (hours)",
            SERIES[2],
        ),
    ):
        bars = axes.barh(range(len(rows)), [100 * share for share in shares], height=0.7, color=colour)
        axes.bar_label(
            bars, [f"{percent(s)}  ({text})" for s, text in zip(shares, labels)], padding=3, fontsize=8.5
        )
        axes.set_xlim(0, 100 * max(max(shares), 0.01) * 1.75)
        axes.set_title(title)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.set_xlabel("%")
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    left.set_yticks(range(len(rows)), [name for name, *_ in rows])
    left.set_ylabel("nodes of the job")
    left.invert_yaxis()
    if (edge := next((i for i, (low, _) in enumerate(bins) if low == picture.leaf + 1), None)) is not None:
        for axes in (left, right):
            axes.axhline(edge - 0.5, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)))
        right.annotate(
            "one leaf",
            (1, edge - 0.5),
            xycoords=("axes fraction", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=MUTED,
        )
    alt = "; ".join(
        f"{name} nodes: {percent(n / jobs.height)} of jobs, {percent(h / all_hours)} of node hours"
        for name, n, h in rows
    )
    numbers = [["nodes", "jobs", "node hours"], *([name, count(n), count(h)] for name, n, h in rows)]
    return Plot(NAME, TITLE, words, alt, drawn, numbers=numbers)
