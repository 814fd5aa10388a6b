"""What `status` of every live system prints: tables of jobs, and lines of nodes and links."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from topolane import texts
from topolane.cli.common import write_text

if TYPE_CHECKING:
    from rich.table import Table

    from topolane._engine import Machine
    from topolane.cluster.status import RunningRow, Status, WaitingRow
    from topolane.cluster.view import View

FIGURES = ("nodes", "pods", "servers", "hops", "least")
"""Columns whose cells are numbers."""


def tables(
    found: Status,
    running: Sequence[str],
    waiting: Sequence[str],
    more: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> list[Table]:
    """The jobs that run and those that wait, with these columns. None for no jobs. more: a host's own cells of running jobs."""
    from topolane.units import clock

    def at(when: float | None) -> str:
        return "-" if when is None else clock(when, found.time)

    def of_running(row: RunningRow) -> dict[str, str]:
        return {
            "name": row.name,
            "user": row.user,
            "pods": _of(row.slots, row.size),
            "servers": _of(row.slots, row.size),
            "nodes": str(row.nodes),
            "lies in": _place(row),
            "policy": row.policy or "?",
            "since": at(row.start),
            "ends by": at(row.expected_end),
            **more.get(row.job, {}),
        }

    def of_waiting(row: WaitingRow) -> dict[str, str]:
        return {
            "name": row.name,
            "user": row.user,
            "pods": _of(row.slots, row.size),
            "servers": _of(row.slots, row.size),
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


def draw(
    file: str,
    machine: Machine,
    seen: View,
    closed: frozenset[int],
    word: str = "job",
    only: int | None = None,
) -> None:
    """Draws the tree with its jobs, or with one, into an SVG file. closed: nodes that accept no new jobs."""
    from topolane.cluster.links import Links
    from topolane.report.live_tree import DrawnHolder, svg
    from topolane.units import clean, clock, plural

    holders = {}
    for job in seen.running:
        if job.nodes and job.is_ours and only in (None, job.id):
            title = f" {clean(job.title)}" if job.title not in ("", job.name) else ""
            user = f" of {clean(job.user)}" if job.user else ""
            name = f"{word} {texts.sentence(job.name)}"
            tip = f"{name}{title}{user}: {plural(len(job.nodes), 'node')}, {job.hosts}"
            holders[job.id] = DrawnHolder(job.nodes, name, tip)
    apart, title = Links(machine, seen).apart, f"{clock(seen.time, 0)}: "
    write_text(file, svg(machine, holders, closed=closed, apart=apart, title=title), "--svg")


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
    from topolane.cluster.links import LISTED
    from topolane.units import plural

    where = "?" if row.level is None else f"T{row.level} {row.home}"
    if row.may_meet:
        more = " and others" if len(row.may_meet) > LISTED else ""
        where += f", may meet {', '.join(row.may_meet[:LISTED])}{more}"
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
