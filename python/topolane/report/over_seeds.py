"""The page of a comparison over seeds: means with their confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topolane.sweep.seeds import Mean, SeedsRow, text
from topolane.units import HOUR, count

from .figures import wait_over_seeds
from .page import Cell, Section, render_rows
from .write import FigureFolder, section

COLUMNS = (
    ("Load", "load of the machine to which submissions are scaled"),
    ("Mean wait (h)", "submission to start"),
    ("Difference (h)", "mean wait less that of the first policy, between runs with the same seed"),
    ("Weighted wait (h)", "mean weighted by node-seconds"),
    ("95 % wait (h)", "95 of 100 jobs wait no longer"),
    ("Utilisation while jobs wait (%)", "mean over the time in which a job waits"),
    ("Makespan (h)", "first submission to last completion"),
    ("APH", "mean average pairwise hops"),
    ("Jobs sharing links", "jobs whose traffic may meet another's"),
)


def write(directory: Path, heading: str, runs: int, rows: Sequence[SeedsRow], notes: Sequence[str]) -> None:
    """Write `report.html` and its figure into a directory that has neither of them."""
    folder = FigureFolder(directory / "figures", png=False)
    folder.path.mkdir()
    sections: list[Section] = [
        section(wait_over_seeds.NAME, wait_over_seeds.TITLE, [wait_over_seeds.draw(rows)], folder)
    ]
    page = render_rows(
        heading=heading,
        what="A Topolane report: the same rules under several seeds and loads.",
        row_words="A row is a rule at a load. " + " ".join(f"{note[0].upper()}{note[1:]}." for note in notes),
        facts=[("Runs", count(runs)), ("Seeds", count(rows[0].seeds))],
        columns=COLUMNS,
        rows=[(row, _cells(row)) for row in rows],
        sections=sections,
    )
    (directory / "report.html").write_text(page, encoding="utf-8")


def _cells(row: SeedsRow) -> list[Cell]:
    figures = row.figures
    return [
        Cell("-" if row.load is None else f"{row.load:g}", row.load),
        _cell(figures["mean_wait"], ",.2f", HOUR),
        _cell(row.difference["mean_wait"] if row.difference else None, "+,.2f", HOUR),
        _cell(figures["mean_wait_by_work"], ",.2f", HOUR),
        _cell(figures["p95_wait"], ",.2f", HOUR),
        _cell(figures["utilization_while_waiting"], ".1f", 0.01),
        _cell(figures["makespan"], ",.1f", HOUR),
        _cell(figures["mean_aph"], ".3f"),
        _cell(figures["jobs_sharing_links"], ",.0f"),
    ]


def _cell(mean: Mean | None, form: str, unit: float = 1.0) -> Cell:
    return Cell(text(mean, form, unit), None if mean is None else mean.mean / unit)
