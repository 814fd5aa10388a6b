"""Draws a report and then puts its files in place: nothing in the directory changes before all is drawn."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from topolane import files

from .contention_words import bought_back, words
from .data import MachinePicture, ReportedRun, distinct
from .figures import (
    aph,
    contention,
    contention_by_pattern,
    contention_by_size,
    dragonfly,
    fat_tree,
    job_sizes,
    makespan,
    mean_wait,
    nodes_in_use,
    racks,
    room,
    stranded,
    switches,
    utilisation,
    wait_by_size,
    wait_cdf,
    wait_change,
)
from .gpus import common_moment
from .heat import HeatScale
from .own import OWN
from .page import Section, Shown, render
from .plot import Plot
from .room import with_room
from .svg import inline, to_svg

if TYPE_CHECKING:
    from topolane.baseline import Baseline
    from topolane.verdict import Verdict

FIGURES = (
    mean_wait,
    wait_by_size,
    wait_change,
    wait_cdf,
    nodes_in_use,
    utilisation,
    makespan,
    aph,
    job_sizes,
)
WORDS_OF_ROOM = (
    "The state of the machine at 720 moments of the run, at equal distances from the first submission to the last, "
    "and what jobs would have found there."
)
MOST_RUNS = 20
DOTS_PER_INCH = 130


@dataclasses.dataclass(frozen=True)
class FigureFolder:
    """The folder of the figures, and whether to draw each as PNG too."""

    path: Path
    png: bool


def write(
    directory: str | os.PathLike[str],
    runs: Sequence[ReportedRun],
    picture: MachinePicture,
    at: float | None,
    png: bool,
    sentence: str,
    baseline: Baseline | None,
    verdict: Verdict | None = None,
) -> Path:
    """See `topolane.report.write_report`."""
    runs = distinct(runs)
    _check(runs, picture)
    directory = Path(directory)
    with files.drafted(directory, OWN, "report") as draft:
        figures = FigureFolder(draft / "figures", png)
        figures.path.mkdir()
        sections = [
            section(module.NAME, module.TITLE, [module.draw(runs, picture)], figures) for module in FIGURES
        ]
        if baseline is not None:
            sections.insert(0, _baseline_section(baseline, figures))
        sections += _network_sections(runs, picture, figures)
        sections += _gpu_sections(runs, picture, at, figures)
        sections.append(_moment_section(runs, picture, at, figures))
        (draft / "report.html").write_text(
            render(runs, picture, sections, png, sentence, verdict), encoding="utf-8"
        )
    return directory / "report.html"


def _moment_section(
    runs: Sequence[ReportedRun], picture: MachinePicture, at: float | None, figures: FigureFolder
) -> Section:
    """Who holds which nodes at one moment."""
    figure = {"tree": fat_tree, "dragonfly": dragonfly}.get(picture.wiring, switches)
    drawn = (figure.draw(run, picture, at, number) for number, run in enumerate(runs, start=1))
    return section(figure.NAME, figure.TITLE, drawn, figures, figure.words(picture))


def _baseline_section(baseline: Baseline, figures: FigureFolder) -> Section:
    from .figures import baseline as figure

    plots = [figure.draw(baseline)]
    return section("baseline-figures", figure.SECTION, plots, figures, baseline.sentence, baseline.notes)


def _network_sections(
    runs: Sequence[ReportedRun], picture: MachinePicture, figures: FigureFolder
) -> list[Section]:
    """The sections about runs on a network; none without such runs."""
    if not any(run.network for run in runs):
        return []
    plots = [each.draw(runs, picture) for each in (contention, contention_by_pattern, contention_by_size)]
    name, notes = f"{contention.NAME}-figures", bought_back(runs)
    sections = [section(name, "What jobs cost each other", plots, figures, words(runs), notes)]
    loaded = [run for run in runs if run.links is not None]
    if loaded:
        from .figures import link_heat

        scale = HeatScale.of(loaded)
        loaded = loaded if picture.wiring == "tree" else []
        maps = (link_heat.draw(run, picture, scale, number) for number, run in enumerate(loaded, start=1))
        sections.append(section(link_heat.NAME, link_heat.TITLE, maps, figures, link_heat.words(picture)))
    return sections


def _gpu_sections(
    runs: Sequence[ReportedRun], picture: MachinePicture, at: float | None, figures: FigureFolder
) -> list[Section]:
    """The sections about GPUs; none on a machine without GPUs."""
    if not picture.resources:
        return []
    time = common_moment(runs) if at is None else at
    plans = (racks.draw(run, picture, time, number) for number, run in enumerate(runs, start=1))
    sections = [section(racks.NAME, racks.TITLE, plans, figures, racks.words(picture))]
    if with_room(runs):
        plots = [room.draw(runs, picture), stranded.draw(runs, picture)]
        sections.insert(0, section("gpu-room", "What more would have fitted", plots, figures, WORDS_OF_ROOM))
    return sections


def _check(runs: Sequence[ReportedRun], picture: MachinePicture) -> None:
    if not 1 <= len(runs) <= MOST_RUNS:
        raise ValueError(f"a report shows 1 to {MOST_RUNS} runs, not {len(runs)}")
    for run in runs:
        nodes = run.number("nodes")
        if nodes is not None and nodes != picture.nodes:
            raise ValueError(
                f"run {run.label!r} is of a machine of {nodes:,.0f} nodes, "
                f"the picture of one of {picture.nodes:,}"
            )


def section(
    name: str,
    title: str,
    plots: Sequence[Plot] | Iterator[Plot],
    figures: FigureFolder,
    words: str = "",
    notes: Sequence[str] = (),
) -> Section:
    """Write the files of each plot and keep what the page shows. Each figure is freed when it is written."""
    shown = []
    for plot in plots:
        text = to_svg(plot.figure, plot.tips)
        (figures.path / f"{plot.name}.svg").write_text(text, encoding="utf-8")
        if figures.png:
            from .png import to_png

            (figures.path / f"{plot.name}.png").write_bytes(to_png(plot.figure, DOTS_PER_INCH))
        svg = Markup(inline(plot.figure, text, plot.name, plot.title, plot.alt))
        shown.append(Shown(plot.name, plot.title, plot.words, svg, plot.numbers, plot.numbers_name))
    return Section(name, title, words, shown, notes)
