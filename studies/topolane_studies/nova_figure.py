"""The figures of `topolane paper nova --out`: hop-bytes of a split, and times of all kernels (the paper's 4 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane_studies import nova
from topolane_studies.whiskers import whiskers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from topolane_studies.nova_study import KernelTimes

OWN = ("splits.png", "splits.csv", "times.png", "times.csv")
SHOWN = ("stock", "ours")


def splits_figure() -> Figure:
    """Hop-bytes over the VMs on the first of two switches."""
    from topolane.report.style import series
    from topolane.report.with_matplotlib import figure as blank

    drawn = blank(5.4, 3.2)
    axes = drawn.add_subplot()
    axes.plot(range(nova.VMS + 1), nova.splits(), marker="o", color=series(0))
    axes.set_xlabel("VMs on the first switch")
    axes.set_ylabel("hop-bytes (switches)")
    axes.set_title(f"{nova.VMS} VMs on two switches")
    return drawn


def times_figure(found: Sequence[KernelTimes]) -> Figure:
    """Bars of the mean over stock's mean, with the shortest and the longest run."""
    from topolane.report.style import MUTED, series
    from topolane.report.with_matplotlib import figure as blank

    drawn = blank(7.2, 3.8)
    axes = drawn.add_subplot()
    for place, who in enumerate(SHOWN):
        means = [each.mean(who) / each.mean("stock") for each in found]
        scaled = [[one / each.mean("stock") for one in each.seconds[who]] for each in found]
        errors = list(zip(*map(whiskers, scaled)))
        where = [index + 0.4 * (place - 0.5) for index in range(len(found))]
        axes.bar(where, means, 0.38, yerr=errors, color=series(place), ecolor=MUTED, capsize=3, label=who)
    axes.set_xticks(range(len(found)), [each.kernel.upper() for each in found])
    axes.set_ylabel("time over stock's mean")
    axes.legend(loc="lower right")
    axes.set_title("16 VMs: mean, shortest and longest run")
    return drawn


def write(folder: Path, times: Sequence[KernelTimes]) -> None:
    """The figures and their points, of the setting as chosen; without times that of the splits."""
    import polars
    from topolane.report.with_matplotlib import drawing

    found = [each for each in times if each.setting == nova.CHOSEN]
    with drawing():
        figures = [splits_figure(), *([times_figure(found)] if found else [])]
        for name, drawn in zip(OWN[::2], figures):
            drawn.savefig(folder / name, dpi=150, metadata={"Software": None})
    points = [{"first": first, "hop_bytes": of} for first, of in enumerate(nova.splits())]
    polars.DataFrame(points).write_csv(folder / OWN[1])
    if not found:
        return
    polars.DataFrame(
        [
            {
                "kernel": each.kernel,
                "placed_by": who,
                "mean": each.mean(who),
                "shortest": min(of),
                "longest": each.most(who),
            }
            for each in found
            for who, of in each.seconds.items()
        ]
    ).write_csv(folder / OWN[3])
