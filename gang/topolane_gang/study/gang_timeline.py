"""Who was on which core when, drawn: a panel for every policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane_gang.study import gang, gang_simulated
from topolane_gang.study.gang import Play
from topolane_gang.study.gang_simulated import PlayTask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from topolane_gang.study.gang import PlayOutcome

CORES = 2
"""Simulated cores: the number that small machines have."""
SLICE = 0.05
"""Seconds of a row: long enough to be seen."""


def plays(cores: int) -> list[Play]:
    """What is drawn, under every policy."""
    return [Play(policy, gang.drawn_jobs(cores), 60.0, SLICE) for policy in gang.POLICIES]


def simulated() -> list[PlayOutcome]:
    """The same on simulated cores."""
    return [gang_simulated.play(PlayTask(CORES, play, trace=True)) for play in plays(CORES)]


def figure(columns: Mapping[str, Sequence[PlayOutcome]]) -> Figure:
    """Cores downward, time across, a colour for each job; a column for each kind of cores."""
    from topolane.report.plot import WIDTH
    from topolane.report.with_matplotlib import figure as blank

    cores = max((spell.core for of in columns.values() for one in of for spell in one.spells), default=0) + 1
    drawn = blank(WIDTH, 0.8 + len(gang.POLICIES) * (0.55 + 0.16 * cores))
    grid = drawn.subplots(len(gang.POLICIES), len(columns), sharex="col", squeeze=False)
    for column, (where, played) in enumerate(columns.items()):
        end = max((spell.end for one in played for spell in one.spells), default=1.0)
        for row, (policy, one) in enumerate(zip(gang.POLICIES, played)):
            panel(grid[row, column], one, cores, end)
            grid[row, column].set_title(f"{policy}, {where}")
        grid[-1, column].set_xlabel("seconds")
    drawn.legend(*marks(), loc="outside lower center", ncols=3)
    return drawn


def panel(axes: Axes, one: PlayOutcome, cores: int, end: float) -> None:
    """One policy."""
    from topolane.report.style import IDLE, SERIES

    axes.grid(visible=False)
    for core in range(cores):
        axes.broken_barh([(0.0, end)], (core - 0.4, 0.8), facecolors=IDLE, linewidth=0)
    for job in range(len(one.done)):
        for core in range(cores):
            own = [spell for spell in one.spells if (spell.core, spell.job) == (core, job)]
            bars = [(spell.start, spell.end - spell.start) for spell in own]
            axes.broken_barh(bars, (core - 0.4, 0.8), facecolors=SERIES[job], linewidth=0)
    axes.set_xlim(0, end)
    axes.set_ylim(cores - 0.4, -0.6)
    axes.set_yticks(range(cores), [f"core {core}" for core in range(cores)])


def marks() -> tuple[list[Artist], list[str]]:
    """The legend."""
    from matplotlib.patches import Patch
    from topolane.report.style import SERIES

    names = [job.name for job in gang.drawn_jobs(CORES)]
    return [Patch(color=SERIES[number]) for number in range(len(names))], names


def write(folder: Path, columns: Mapping[str, Sequence[PlayOutcome]]) -> None:
    """The picture into a folder; none where there is nothing to draw."""
    from topolane.report.with_matplotlib import drawing

    if not columns:
        return
    with drawing():
        figure(columns).savefig(folder / "gang-timeline.png", dpi=150, metadata={"Software": None})
