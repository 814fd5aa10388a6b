"""The figures of `topolane paper sc18 --out`: bars of the mean over the seeds, whiskers from least to most, and the paper's
figures as diamonds where it prints them.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from topolane_studies import sc18, sc18_months
from topolane_studies.sc18 import AWARE, BINS, CLASSES, COLUMNS, HOUR, OBLIVIOUS, V1, V2
from topolane_studies.whiskers import whiskers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from topolane_studies.sc18 import Pair, Sc18Results

OWN = (
    "aph.png",
    "waits.png",
    "waits-by-size.png",
    "utilisation.png",
    "makespan.png",
    "job-sizes.png",
    "nodes-each-hour.png",
)
PAPER_BY_SIZE = {(OBLIVIOUS, "65-256"): 10 / 60, (AWARE, "65-256"): 8.0, ("20 %", "65-256"): 0.5}
"""Hours, August on Cab."""


def bars(
    axes: Axes,
    groups: Sequence[str],
    ours: Mapping[str, Sequence[Sequence[float]]],
    paper: Mapping[str, Sequence[float | None]] | None = None,
) -> None:
    """Bars side by side in each group: by name, for each group the values of all seeds and the paper's figure. A column has
    the same colour in all figures.
    """
    from topolane.report.style import INK, MUTED, series

    width, hues = 0.8 / len(ours), list(COLUMNS)
    for place, (name, values) in enumerate(ours.items()):
        where = [index + width * (place - (len(ours) - 1) / 2) for index in range(len(groups))]
        means = [statistics.fmean(each) for each in values]
        axes.bar(
            where,
            means,
            0.94 * width,
            yerr=list(zip(*map(whiskers, values))),
            color=series(hues.index(name) if name in hues else place),
            ecolor=MUTED,
            capsize=2,
            label=name,
        )
        printed = [(at, value) for at, value in zip(where, (paper or {}).get(name, ())) if value is not None]
        if printed:
            label = "paper" if place == 0 else None
            axes.plot(*zip(*printed), "D", color=INK, markersize=4, linestyle="", label=label)
    axes.set_xticks(range(len(groups)), groups)


def waits(results: Sc18Results) -> Figure:
    """Mean waits of every pair in the four columns that the paper prints."""
    from topolane.report.with_matplotlib import figure

    drawn = figure(9, 6.4)
    for row, overloaded in enumerate((False, True)):
        pairs = [pair for pair in sc18.PAIRS if pair.overloaded == overloaded]
        if not pairs:
            continue
        axes = drawn.add_subplot(2, 1, row + 1)
        columns = (OBLIVIOUS, AWARE, V1, V2)
        ours = {
            column: [results.values(pair, column, "mean_wait", HOUR) for pair in pairs] for column in columns
        }
        paper = {column: [pair.waits[column] for pair in pairs] for column in columns}
        bars(axes, [pair.name for pair in pairs], ours, paper)
        axes.set_ylabel("hours")
        axes.set_title(f"Mean wait, {'overloaded' if overloaded else 'not overloaded'}")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return drawn


def waits_by_size(results: Sc18Results) -> Figure:
    """Mean waits of the first pair (August on Cab) by nodes of the jobs."""
    from topolane.report.with_matplotlib import figure

    drawn, pair = figure(9, 3.6), sc18.PAIRS[0]
    axes = drawn.add_subplot()
    sizes = [
        size for size in BINS if all(run[f"wait {size}"][0] for run in results.runs[pair.name, OBLIVIOUS])
    ]
    columns = (OBLIVIOUS, AWARE, "5 %", "10 %", "20 %")
    ours = {
        column: [by_seed(results, pair, column, f"wait {size}", HOUR) for size in sizes] for column in columns
    }
    paper = {column: [PAPER_BY_SIZE.get((column, size)) for size in sizes] for column in columns}
    bars(axes, sizes, ours, paper)
    axes.set_xlabel("nodes of the job")
    axes.set_ylabel("hours")
    axes.set_title(f"Mean wait by size, {pair.name}")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return drawn


def by_seed(results: Sc18Results, pair: Pair, column: str, key: str, unit: float = 1.0) -> list[float]:
    """What `sums_by_size` summed up, for each job, of every seed."""
    found = (run[key] for run in results.runs[pair.name, column])
    return [total / jobs / unit for jobs, total in found if jobs]


def changes(
    results: Sc18Results, key: str, what: str, paper: Callable[[Pair], Mapping[str, float]]
) -> Figure:
    """A change in per cent against oblivious, of the pairs that are overloaded. paper: its changes by column."""
    from topolane.report.with_matplotlib import figure

    drawn = figure(9, 3.4)
    axes = drawn.add_subplot()
    pairs = [pair for pair in sc18.PAIRS if pair.overloaded] or sc18.PAIRS
    ours = {
        column: [[100 * (one - 1) for one in results.against_oblivious(pair, column, key)] for pair in pairs]
        for column in (AWARE, V1, V2)
    }
    printed = {column: [paper(pair).get(column) for pair in pairs] for column in ours}
    bars(axes, [pair.name for pair in pairs], ours, printed)
    axes.set_ylabel("per cent of oblivious")
    axes.set_title(what)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return drawn


def aph(results: Sc18Results) -> Figure:
    """APH of the jobs of all pairs by size: oblivious, aware, and the least possible."""
    from topolane.report.with_matplotlib import figure

    drawn = figure(7, 3.4)
    axes = drawn.add_subplot()
    sizes = [size for size in CLASSES if any(by_pair(results, OBLIVIOUS, "aph", size))]
    ours = {
        "oblivious": [by_pair(results, OBLIVIOUS, "aph", size) for size in sizes],
        "aware": [by_pair(results, AWARE, "aph", size) for size in sizes],
        "least": [by_pair(results, AWARE, "least", size) for size in sizes],
    }
    bars(axes, sizes, ours)
    axes.set_xlabel("nodes of the job")
    axes.set_ylabel("hops")
    axes.set_title("Average pairwise hops; whiskers over pairs and seeds")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return drawn


def by_pair(results: Sc18Results, column: str, name: str, size: str) -> list[float]:
    """A measure of the mean job of a size, of every pair and seed that has such jobs."""
    return [value for pair in sc18.PAIRS for value in by_seed(results, pair, column, f"{name} {size}")]


def job_sizes(results: Sc18Results) -> Figure:
    """Shares of the jobs of each month by nodes."""
    from topolane.report.with_matplotlib import figure

    drawn = figure(7, 3.4)
    axes = drawn.add_subplot()
    bars(
        axes,
        list(BINS),
        {
            pair.name: [[share] for share in sc18_months.shares(results, pair)]
            for pair in sc18_months.months()
        },
    )
    axes.set_xlabel("nodes of the job")
    axes.set_ylabel("per cent of the jobs")
    axes.set_title("Sizes of the synthetic months")
    axes.legend()
    return drawn


def nodes_each_hour(results: Sc18Results) -> Figure:
    """Nodes that the jobs submitted in each hour ask for, of the first seed."""
    from topolane.report.style import series
    from topolane.report.with_matplotlib import figure

    months = sc18_months.months()
    drawn = figure(9, 1.9 * max(1, len(months)))
    for place, pair in enumerate(months):
        axes = drawn.add_subplot(len(months), 1, place + 1)
        hours = sc18_months.asked(results, pair)[0]
        axes.plot([hour / 24 for hour in range(len(hours))], hours, color=series(place), linewidth=0.8)
        axes.set_title(f"Nodes asked for each hour, {pair.name}")
        axes.set_ylabel("nodes")
    axes.set_xlabel("days")
    return drawn


def write(folder: Path, results: Sc18Results) -> None:
    """All figures, into a folder."""
    from topolane.report.with_matplotlib import drawing

    use, late = "utilization_while_waiting", "makespan"
    with drawing():
        figures = (
            aph(results),
            waits(results),
            waits_by_size(results),
            changes(results, use, "Utilisation while jobs wait", lambda _: {AWARE: sc18.LOST_USE}),
            changes(results, late, "Makespan (the paper's aware: up to)", sc18.later_ends),
            job_sizes(results),
            nodes_each_hour(results),
        )
        for name, drawn in zip(OWN, figures, strict=True):
            drawn.savefig(folder / name, dpi=150, metadata={"Software": None})
