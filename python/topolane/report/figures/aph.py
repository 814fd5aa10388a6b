"""Average pairwise hops by job size (SC'18: APH compared with the least possible)."""

from __future__ import annotations

from collections.abc import Sequence

import polars

from topolane.units import decimal

from ..bins import nodes_label, size_bins
from ..data import MachinePicture, ReportedRun
from ..plot import Plot, box_statistics, boxes, colours_of, empty, label, panels, share_x
from ..scale import AxisScale
from ..style import MUTED

NAME = "aph"
TITLE = "Average pairwise hops by job size"
WORDS = (
    "How far apart a job's nodes are: the mean number of links between switches on the route from one of "
    "its nodes to another, over all pairs. The link from a node to its leaf is not counted, so two nodes "
    "of one leaf are 0 hops apart, of one pod 2, of different pods 4 (on a three-level tree). Fewer is "
    "better. A box holds the middle half of the jobs of that size, its line is the median, the dot the "
    "mean, the whiskers reach from the 5th to the 95th percentile. The grey box is the least any "
    "placement on the empty machine could have."
)
SIZE = "requested_number_of_resources"


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """Box plots of APH in hops: a panel per size bin and a row per run; the last row is the least possible
    APH.
    """
    largest = max((run.jobs[SIZE].max() or 0 for run in runs), default=0)
    if largest < 2:
        return Plot(NAME, TITLE, WORDS, "No job has two nodes.", empty("No job has two nodes."))
    columns = [(label(run), *_by_size(run, "aph"), colour) for run, colour in zip(runs, colours_of(runs))]
    columns.append(("least possible", *_by_size(runs[0], "least_aph"), MUTED))

    bins = [
        (2, high) if low == 1 else (low, high) for low, high in size_bins(picture.leaf, largest) if high != 1
    ]
    drawn, axes = panels([nodes_label(bounds) for bounds in bins], [name for name, *_ in columns])
    numbers = [["run", *(nodes_label(bounds) for bounds in bins)], *([name] for name, *_ in columns)]
    for one, (low, high) in zip(axes, bins):
        rows = []
        for row, (_, sizes, values, colour) in enumerate(columns):
            inside = sizes.is_between(low, largest if high is None else high)
            statistics = box_statistics(values.filter(inside))
            rows.append((statistics, colour))
            numbers[row + 1].append(decimal(statistics and statistics["mean"]))
        boxes(one, rows, "no jobs")
    most = 2 * (len(picture.levels) - 1)
    share_x(axes, AxisScale(-0.08, most + 0.08, [(float(hops), str(hops)) for hops in range(most + 1)]))
    drawn.x_name = "average pairwise hops of a job"
    alt = "Mean APH by job size. " + " ".join(
        f"{name}: {', '.join(values)}." for name, *values in numbers[1:]
    )
    return Plot(NAME, TITLE, WORDS, alt, drawn, numbers=[numbers[0], *numbers[1:]])


def _by_size(run: ReportedRun, column: str) -> tuple[polars.Series, polars.Series]:
    """The sizes of all jobs and the values of a column; a value is null where the column is empty."""
    return run.jobs[SIZE], run.jobs[column].cast(polars.Float64)
