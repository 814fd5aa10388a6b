"""A table that a command prints, or gives as JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from topolane.cli import common


@dataclasses.dataclass(frozen=True)
class PrintedTable:
    """What is printed as a table or as JSON."""

    name: str
    title: str
    columns: tuple[str, ...]
    lines: list[tuple[Any, ...]]
    text_columns: tuple[str, ...] = ()

    def dicts(self) -> list[dict[str, Any]]:
        """For JSON."""
        return [dict(zip(self.columns, line)) for line in self.lines]

    def show(self) -> None:
        """With its title."""
        click.echo(self.title)
        common.print_table(
            self.columns, [[shown(cell) for cell in line] for line in self.lines], self.text_columns
        )


def shown(cell: Any) -> str:
    """A cell: nothing for what is not there, three or so digits of a number."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    return str(cell)
