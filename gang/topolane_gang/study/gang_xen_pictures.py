"""Figures 2 and 3 of the poster from a real Xen, next to the simulated hypervisor's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane_gang.study.gang_xen import CREDIT, CREDIT2, GANG

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from topolane_gang.study.gang_xen import InStep, XenSetting

OWN = ("gang-xen-in-step.png", "gang-xen-iterations.png")
DRAWN = (CREDIT, CREDIT2, GANG)


def write(folder: Path, found: Sequence[InStep], simulated: Sequence[InStep | None]) -> None:
    """Both into a folder."""
    from topolane.report.with_matplotlib import drawing

    with drawing():
        for name, drawn in zip(OWN, (in_step(found, simulated), iterations(found, simulated))):
            drawn.savefig(folder / name, dpi=150, metadata={"Software": None})


def in_step(found: Sequence[InStep], simulated: Sequence[InStep | None]) -> Figure:
    """The share of iterations in step: a panel for each width, a bar for each scheduler and number of domains."""
    from topolane.report.plot import WIDTH
    from topolane.report.style import INK, SERIES
    from topolane.report.with_matplotlib import figure as blank

    widths = sorted({one.setting.width for one in found})
    drawn = blank(WIDTH, 3.2)
    panels = drawn.subplots(1, len(widths), sharey=True, squeeze=False)[0]
    for axes, width in zip(panels, widths):
        groups = sorted({group(one.setting) for one in found})
        for number, scheduler in enumerate(DRAWN):
            own = [
                (groups.index(group(one.setting)) + 0.27 * (number - 1), one, model)
                for one, model in zip(found, simulated)
                if (one.setting.width, one.setting.scheduler) == (width, scheduler)
            ]
            axes.bar(
                [place for place, _, _ in own],
                [100 * one.mean.mean for _, one, _ in own],
                0.25,
                color=SERIES[number],
                yerr=[100 * (one.mean.half or 0.0) for _, one, _ in own],
                label=scheduler.name,
            )
            modelled = [(place, 100 * model.mean.mean) for place, _, model in own if model is not None]
            axes.plot(*zip(*modelled), "x", color=INK) if modelled else None
        axes.set_xticks(
            range(len(groups)),
            [f"{count}\n+ one that blocks" if blocking else count for blocking, count in groups],
        )
        axes.set_xlabel("domains")
        axes.set_title(f"{width} virtual processors")
        axes.set_ylim(0, 105)
    panels[0].set_ylabel("iterations in step (%)")
    panels[0].plot([], [], "x", color=INK, label="simulated hypervisor")
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return drawn


def group(setting: XenSetting) -> tuple[bool, int]:
    """The settings that are next to each other, in their order."""
    return setting.blocking, setting.domains


def iterations(found: Sequence[InStep], simulated: Sequence[InStep | None]) -> Figure:
    """When each virtual processor of one domain ended its iterations, next to a domain that blocks if that was measured, where
    the most domains share the most cores.
    """
    from topolane.report.plot import WIDTH
    from topolane.report.with_matplotlib import figure as blank

    most = max((one.setting.width, *group(one.setting)) for one in found)
    drawn_here = [
        (one, model)
        for one, model in zip(found, simulated)
        if (one.setting.width, *group(one.setting)) == most and one.setting.scheduler in DRAWN
    ]
    drawn = blank(WIDTH, 2.0 * len(drawn_here))
    panels = drawn.subplots(len(drawn_here), 2, sharex="col", squeeze=False)
    for row, (one, model) in zip(panels, drawn_here):
        ends(row[0], one, f"{one.setting.scheduler.name}, Xen in emulation")
        ends(row[1], model, f"{one.setting.scheduler.name}, simulated")
    for axes in panels[-1]:
        axes.set_xlabel("seconds")
    return drawn


def ends(axes: Axes, seen: InStep | None, title: str) -> None:
    """A mark for each end of an iteration; a row for each virtual processor of the first domain."""
    from topolane.report.style import SERIES

    axes.set_title(title)
    axes.grid(visible=False)
    axes.set_yticks([])
    if seen is None or not seen.done:
        axes.text(0.5, 0.5, "not simulated", ha="center", va="center", transform=axes.transAxes)
        return
    axes.eventplot(seen.done[0].ends, colors=SERIES[0], linelengths=0.8, linewidths=0.8)
