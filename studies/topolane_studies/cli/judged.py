"""The table of a paper's figures next to ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane.cli import common

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_studies import PaperRow


def print_rows(rows: Sequence[PaperRow], ours: str = "ours") -> None:
    """Prints the figures; one that was not reproduced has failed."""
    verdicts = {"differs": "differs: failed"}
    common.print_table(
        ("what", "paper", ours, "by", "tolerance", "verdict", "why"),
        [
            [
                row.what,
                row.paper,
                row.ours,
                row.by,
                row.tolerance,
                verdicts.get(row.verdict, row.verdict),
                row.why,
            ]
            for row in rows
        ],
        text_columns=("what", "by", "why"),
    )


def counts(rows: Sequence[PaperRow]) -> str:
    """How many rows there are of each verdict, by what they compare."""
    return "; ".join(
        f"by {by}: "
        + ", ".join(
            f"{sum((row.by, row.verdict) == (by, verdict) for row in rows)} {verdict}"
            for verdict in common.VERDICTS
        )
        for by in dict.fromkeys(row.by for row in rows)
    )
