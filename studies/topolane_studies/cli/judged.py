"""The table of a paper's figures next to ours."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from topolane.cli import common

from topolane_studies.judging import tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_studies import PaperRow
    from topolane_studies.judging import Tally

COLUMNS = ("study", "given", "tested", "agree in value", "agree in direction")


def print_rows(rows: Sequence[PaperRow], ours: str = "ours") -> None:
    """Prints the rows and how many claims agree."""
    common.print_table(
        ("what", "paper", ours, "tolerance", "verdict", "why"),
        [
            [
                row.what,
                row.paper,
                row.ours,
                row.tolerance,
                row.verdict,
                "; ".join(filter(None, (row.given, row.why))),
            ]
            for row in rows
        ],
        text_columns=("what", "verdict", "why"),
    )
    print_tallies([tally("these rows", rows)])


def print_tallies(tallies: Sequence[Tally]) -> None:
    """Prints a line for each study."""
    common.print_table(COLUMNS, [one.cells() for one in tallies])


def rows_json(rows: Sequence[PaperRow]) -> list[dict[str, Any]]:
    """The rows with their verdicts."""
    return [dataclasses.asdict(row) | {"verdict": row.verdict} for row in rows]
