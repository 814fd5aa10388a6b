"""All rows as a page of Markdown, `docs/reference/paper-rows.md`: written by runs, and compared with runs by tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane_studies.judging import Tally, aims, total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from topolane_studies import PaperRow

HEAD = """# Every row of every study

`topolane paper all --page FILE` writes this page; with `--only`, other studies keep the rows that they have. `test_paper_rows.py`,
`test_rows_page.py` and `test_paper_sites.py` in `studies/tests` run the studies again and compare. [How rows are
judged](../explanation/paper-figures.md). A row without a value or a direction has an empty cell.
"""
SUMMARY = ("study", "given", "tested", "agree in value", "agree in direction")
COLUMNS = ("what", "paper", "ours", "value", "direction", "given")


def table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    rows = [columns, ["---"] * len(columns), *lines]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n" for row in rows)


def cells(row: PaperRow) -> list[str]:
    """A row as the page has it."""

    def said(agrees: bool | None) -> str:
        if agrees is None:
            return ""
        if not row.measured:
            return "not measured"
        return "agrees" if agrees else "failed"

    return [row.what, row.paper, row.ours, said(row.value), said(row.side), row.given]


def read(page: str) -> dict[str, list[list[str]]]:
    """The rows of a page by study, as `cells` makes them."""
    found = {}
    for section in page.split("\n## ")[1:]:
        name, _, rest = section.partition("\n")
        lines = [line for line in rest.splitlines() if line.startswith("| ")]
        found[name] = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    return found


def counted(name: str, rows: Sequence[Sequence[str]]) -> Tally:
    """The same as `judging.tally`, of rows as the page has them."""
    tested = [row for row in rows if not row[5]]
    values, sides = ([row[column] for row in tested if row[column]] for column in (3, 4))
    counts = (len(values), values.count("agrees"), len(sides), sides.count("agrees"))
    return Tally(name, len(rows) - len(tested), len(tested), *counts)


def page(rows: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """The page of rows as `cells` makes them, by study."""
    tallies = [counted(name, of) for name, of in rows.items()]
    tallies.append(total(tallies))
    text = [HEAD, table(SUMMARY, [one.cells() for one in tallies]), f"{aims(tallies[-1])}.\n"]
    text += [f"## {name}\n\n{table(COLUMNS, of)}" for name, of in rows.items()]
    return "\n".join(text)


def joined(old: str, found: Mapping[str, Sequence[PaperRow]], order: Sequence[str]) -> str:
    """The page with rows that were found, and those of an older page for other studies, in an order of studies."""
    rows = read(old) | {name: [cells(row) for row in of] for name, of in found.items()}
    return page({name: rows[name] for name in order if name in rows})
