"""`topolane slurm status` and `topolane slurm explain`: what a live system does, and why."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import time
from typing import TYPE_CHECKING

import click

from topolane._engine import InputError
from topolane.cli.common import json_option, print_json, write_text
from topolane.cli.slurm_install import config_option, extra

if TYPE_CHECKING:
    from rich.console import Group

    from topolane.slurm.config import Config
    from topolane.slurm.preview import Preview
    from topolane.slurm.status import Status, WaitingRow


@click.command()
@config_option
@click.option("--svg", metavar="FILE", help="Also draw the tree with its jobs into this SVG file.")
@click.option("--watch", type=click.FloatRange(0.2, 3600), metavar="SECONDS", help="Repeat at this interval.")
@json_option
def status(config: str, svg: str | None, watch: float | None, as_json: bool) -> None:
    """Show what runs, what waits and why, and when each job is expected to start.

    This reads from Slurm only: the daemon need not run, and nothing is changed.
    """
    settings = _settings(config)
    if watch is not None and sys.stdout.isatty() and not as_json:
        _live(settings, svg, watch)
        return
    while True:
        _print(_look(settings, svg), as_json)
        if watch is None:
            return
        sys.stdout.flush()
        time.sleep(watch)


@click.command()
@config_option
@click.argument("job", metavar="JOBID")
@json_option
def explain(config: str, job: str, as_json: bool) -> None:
    """Explain why a job does not run yet. JOBID is 12, or 12_3 for a task of an array."""
    settings = _settings(config)
    from topolane.slurm.explain import explain as explanation
    from topolane.slurm.preview import preview_or_exit

    said = explanation(preview_or_exit(settings), job)
    if as_json:
        print_json(dataclasses.asdict(said))
        return
    for sentence in said.sentences:
        click.echo(sentence)


def _settings(path: str) -> Config:
    from topolane.slurm import config

    with extra():
        import httpx  # noqa: F401
    return config.read(path)


def _look(settings: Config, svg: str | None) -> Status:
    from topolane.slurm.preview import preview_or_exit
    from topolane.slurm.status import status as rows

    preview = preview_or_exit(settings)
    if svg is not None:
        _draw(preview, svg)
    return rows(preview)


def _draw(preview: Preview, file: str) -> None:
    from topolane.live.links import Links
    from topolane.report.live_tree import Holder, svg
    from topolane.slurm.usage import closed_nodes, holding
    from topolane.slurm.wait_reasons import clock
    from topolane.units import plural

    snapshot, machine = preview.snapshot, preview.machine
    nodes = {job: nodes for job, nodes in holding(snapshot, machine).items() if nodes}
    holders = {}
    for job, own in nodes.items():
        record = snapshot.jobs[job]
        count = plural(len(own), "node")
        tip = f"job {record.number} {record.name} of {record.user}: {count}, {record.nodes}"
        holders[job] = Holder(own, f"job {record.number}", tip)
    apart = Links(machine, nodes, {job: str(job) for job in nodes}, preview.dedicated).apart
    title = f"{clock(snapshot.time, 0)}: "
    closed = closed_nodes(snapshot, machine)
    write_text(file, svg(machine, holders, closed=closed, apart=apart, title=title), "--svg")


def _print(found: Status, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else 200
    Console(width=width, highlight=False, markup=False).print(_shown(found))


def _live(settings: Config, svg: str | None, seconds: float) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(_shown(_look(settings, svg)), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(seconds)
            try:
                live.update(_shown(_look(settings, svg)), refresh=True)
            except InputError as error:
                live.update(Text(f"{error}; next try in {seconds:g} s"), refresh=True)


def _shown(found: Status) -> Group:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from topolane.slurm.wait_reasons import clock
    from topolane.units import plural

    def at(when: float | None) -> str:
        return "-" if when is None else clock(when, found.time)

    def table(*columns: str) -> Table:
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            made.add_column(column, justify="right" if column == "nodes" else "left", overflow="fold")
        return made

    running = table("runs", "name", "user", "nodes", "lies in", "since", "ends by")
    for row in found.running:
        where = f"T{row.level} {row.home}" + (f", may meet {', '.join(row.may_meet)}" if row.may_meet else "")
        if row.links:
            where += f", {plural(row.links, 'dedicated link')}"
            where += f" and {row.lent} lent" if row.lent else ""
            where += f", bandwidth share {row.bandwidth_share:g}" if row.bandwidth_share != 1 else ""
            if row.mean_bandwidth_share is not None and row.mean_bandwidth_share != row.bandwidth_share:
                where += f" ({row.mean_bandwidth_share:.2f} so far)"
        if row.failed_links:
            where += f", {plural(len(row.failed_links), 'link')} failed"
        running.add_row(
            row.job, row.name, row.user, str(row.nodes), where, at(row.start), at(row.expected_end)
        )
    waiting = table("waits", "name", "user", "nodes", "expected", "why")
    for number, first in _rows(found.waiting):
        why = first.why
        if first.latest_start is not None:
            why = f"first in the queue, starts by {at(first.latest_start)}: {why}"
        expected = "now" if first.kind in ("starts", "released") else at(first.expected_start)
        waiting.add_row(number, first.name, first.user, str(first.nodes), expected, why)
    nodes = found.nodes
    summary = (
        f"{at(found.time)}: {nodes.idle} nodes idle, {nodes.busy} busy, {nodes.out_of_service} out of service; "
        f"{plural(found.links_shared, 'link')} may carry the traffic of two jobs"
    )
    if found.links_out:
        summary += f"; {plural(found.links_out, 'link')} out of service"
    if found.forecast_until is not None:
        summary += (
            f"\nexpected starts are computed up to {at(found.forecast_until)} only: the time for more ran out"
        )
    parts = [each for each in (running, waiting) if each.row_count]
    return Group(Text(summary), *parts)


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
