"""`topolane paper all`: every study, and how many of its claims agree."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import click
from topolane import files, texts, wings
from topolane._engine import InputError
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand

from topolane_studies import rows_page
from topolane_studies.cli.judged import print_rows, print_tallies, rows_json
from topolane_studies.judging import aims, tally, total

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_studies import PaperRow

STUDIES = {
    "sc18": "sc18_rows:rows_for_summary",
    "sc18-network": "sc18_rows:network_rows_for_summary",
    "jigsaw": "jigsaw:rows_for_summary",
    "nova": "nova_study:rows_for_summary",
    "rank-k": "rank_k:rows_for_summary",
    "sites": "sites_study:rows_for_summary",
}
"""Where the rows of each study are made."""


def studies() -> dict[str, Callable[[bool, int | None], list[PaperRow]]]:
    """The studies of this wing and those of other wings, by name. A function takes (quick, processes)."""

    def load(target: str) -> Callable[[bool, int | None], list[PaperRow]]:
        module, _, function = target.partition(":")
        found: Callable[[bool, int | None], list[PaperRow]]
        found = getattr(importlib.import_module(module), function)
        return found

    own = {name: f"topolane_studies.{target}" for name, target in STUDIES.items()}
    others = {name: f"{one.module}:{one.attribute}" for name, one in wings.added(wings.PAPER_ROWS).items()}
    return {name: load(target) for name, target in (own | others).items()}


def chosen(only: str | None) -> dict[str, Callable[[bool, int | None], list[PaperRow]]]:
    """The studies of a list by comma, or all. Raises InputError for a name that no study has."""
    known = studies()
    names = [name.strip() for name in only.split(",")] if only is not None else list(known)
    for name in names:
        if name not in known:
            raise InputError(f"--only {name!r}: no such study; there are {', '.join(known)}")
    return {name: known[name] for name in names}


def write_page(file: Path, found: dict[str, list[PaperRow]]) -> None:
    """Writes rows into a page. Raises InputError if it cannot be written."""
    old = texts.read_text(file) if file.exists() else ""
    files.write(file, rows_page.joined(old, found, list(studies())).encode(), "--page")


@click.command(
    "all",
    cls=ExplainedCommand,
    examples={
        "A line for each study": "--summary --quick",
        "Two studies": "--only sc18,jigsaw",
    },
)
@click.option("--only", metavar="STUDIES", help="These studies, by comma: sc18,gang,...")
@click.option("--summary", is_flag=True, help="Only how many claims of each study agree.")
@click.option("--quick", is_flag=True, help="Fewer seeds and shorter runs.")
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@click.option(
    "--page", help="Also write all rows to this file, as Markdown. Studies that are not run keep theirs."
)
@common.json_option
def command(
    only: str | None, summary: bool, quick: bool, workers: int | None, page: str | None, as_json: bool
) -> None:
    """Every study, and how many of its claims agree."""
    found: dict[str, list[PaperRow]] = {}
    wanted = chosen(only)
    if page is not None:
        files.check(page, "--page")
    with common.counting_bar("studies", len(wanted)) as done:
        for name, rows_of in wanted.items():
            found[name] = rows_of(quick, workers)
            done()
    tallies = [tally(name, rows) for name, rows in found.items()]
    tallies.append(total(tallies))
    if page is not None:
        write_page(Path(page), found)
    if as_json:
        counted = {"summary": [dataclasses.asdict(one) for one in tallies]}
        rows = {} if summary else {"rows": {name: rows_json(of) for name, of in found.items()}}
        common.print_json(counted | rows)
        return
    if not summary:
        for name, of in found.items():
            click.echo(name)
            print_rows(of)
    print_tallies(tallies)
    if only is None:
        click.echo(aims(tallies[-1]))
