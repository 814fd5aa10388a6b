"""What `status` of every live system prints: tables of jobs, and lines of nodes and links."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from topolane import texts

if TYPE_CHECKING:
    from rich.table import Table

    from topolane.cluster.status import RunningRow, Status, WaitingRow

FIGURES = ("nodes", "pods")
"""Columns whose cells are numbers."""


def tables(found: Status, running: Sequence[str], waiting: Sequence[str]) -> list[Table]:
    """The jobs that run and those that wait, with these columns. None for no jobs."""
    from topolane.units import clock

    def at(when: float | None) -> str:
        return "-" if when is None else clock(when, found.time)

    def of_running(row: RunningRow) -> dict[str, str]:
        return {
            "name": row.name,
            "user": row.user,
            "pods": _of(row.slots, row.size),
            "nodes": str(row.nodes),
            "lies in": _place(row),
            "policy": row.policy or "?",
            "since": at(row.start),
            "ends by": at(row.expected_end),
        }

    def of_waiting(row: WaitingRow) -> dict[str, str]:
        return {
            "name": row.name,
            "user": row.user,
            "pods": _of(row.slots, row.size),
            "nodes": str(row.size),
            "policy": row.policy or "?",
            "since": at(row.submit),
            "expected": at(row.expected_start),
            "Slurm says": row.reason or "-",
            "why": row.why,
        }

    runs = [(row.job, of_running(row)) for row in found.running]
    waits = [(name, of_waiting(row)) for name, row in _rows(found.waiting)]
    made = (_table("runs", running, runs), _table("waits", waiting, waits))
    return [each for each in made if each.row_count]


def totals(found: Status, word: str = "job") -> list[str]:
    """Nodes and links, in lines."""
    from topolane.units import clock, plural

    if found.nodes is None or found.sharing is None:
        return []
    counted, links = found.nodes, found.sharing
    own = f"{plural(links.owned, 'link')} owned, {plural(links.shared, 'link')} may carry the traffic of two {word}s"
    state = (
        f"{plural(counted.idle, 'node')} idle, {counted.busy} busy, {counted.out_of_service} out of service"
    )
    lines = [f"{clock(found.time, found.time)}: {state}; {own}"]
    if links.isolated_sharing:
        lines.append(f"isolated {word}s that may meet others: {', '.join(links.isolated_sharing)}")
    return lines


def _table(jobs: str, columns: Sequence[str], rows: Sequence[tuple[str, dict[str, str]]]) -> Table:
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in (jobs, *columns):
        made.add_column(column, justify="right" if column in FIGURES else "left", overflow="fold")
    for job, cells in rows:
        made.add_row(*map(texts.printable, (job, *(cells[column] for column in columns))))
    return made


def _of(slots: int, size: int) -> str:
    return str(size) if slots == size else f"{slots} of {size}"


def _place(row: RunningRow) -> str:
    from topolane.units import plural

    where = "?" if row.level is None else f"T{row.level} {row.home}"
    if row.may_meet:
        where += f", may meet {', '.join(row.may_meet)}"
    if row.links:
        where += f", {plural(row.links, 'own link')}"
        share = row.bandwidth_share
        where += f", bandwidth share {share:g}" if share is not None and share != 1 else ""
    return where


def _rows(waiting: list[WaitingRow]) -> list[tuple[str, WaitingRow]]:
    """The waiting jobs. Tasks of an array that wait for the same reason share a row, with the first task's
    values.
    """
    found = []
    for _, group in itertools.groupby(waiting, key=lambda row: (row.record, row.why)):
        rows = list(group)
        array, _, first = rows[0].job.partition("_")
        last = rows[-1].job.partition("_")[2]
        found.append((rows[0].job if len(rows) == 1 else f"{array}_[{first}..{last}]", rows[0]))
    return found
