"""`topolane paper sites`: MPI programs on one site and on two, their loss, and what a manager gains."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane.cli import common

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane.studies import Row
    from topolane.studies.cli.sites_tables import Table
    from topolane.studies.sites_loss import Times

OWN = ("loss-against-traffic.png", "points.csv")


@click.command("sites")
@click.option(
    "--quick",
    is_flag=True,
    help="Fewer latencies and programs, not the four together nor collectives: under a minute.",
)
@click.option("--out", help="A directory for the figure and its points.")
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@common.json_option
def command(quick: bool, out: str | None, workers: int | None, as_json: bool) -> None:
    """MPI on virtual clusters over several sites (2007), under SimGrid's SMPI."""
    from topolane.studies import sites, sites_loss

    with common.outputs(out, OWN) as folder, tempfile.TemporaryDirectory(prefix="topolane-sites-") as name:
        times, missing = simulated(Path(name), quick, workers)
        tables: list[Table] = []
        rows = sites_loss.not_measured(missing)
        if times is not None:
            tables, rows = study(times, quick, workers, folder)
    if as_json:
        common.print_json(
            {
                "assumed": sites.ASSUMED,
                "tables": {table.name: table.dicts() for table in tables},
                "rows": [dataclasses.asdict(row) for row in rows],
            }
        )
        return
    for table in tables:
        table.show()
    print_judged(rows)
    for assumption in sites.ASSUMED:
        click.echo(f"assumed: {assumption}")


def print_judged(rows: Sequence[Row]) -> None:
    """The paper's figures beside ours; one that was not reproduced has failed."""
    verdicts = {"differs": "differs: failed"}
    common.print_table(
        ("what", "paper", "ours", "tolerance", "verdict", "why"),
        [
            [row.what, row.paper, row.ours, row.tolerance, verdicts.get(row.verdict, row.verdict), row.why]
            for row in rows
        ],
        text_columns=("what", "why"),
    )


def simulated(programs: Path, quick: bool, workers: int | None) -> tuple[Times | None, str]:
    """The times of single programs, or none and the reason why."""
    from topolane.studies import sites, sites_arrivals, sites_jobs, sites_loss, sites_scatter, sites_smpi

    try:
        sites_smpi.build(programs)
    except sites_smpi.Missing as missing:
        return None, str(missing)
    parts = [sites_loss.runs(programs, quick), sites_scatter.runs(programs, quick)]
    parts += [sites_arrivals.runs(programs)] + ([] if quick else [sites_jobs.runs(programs)])
    runs = sites.unique(run for part in parts for run in part)
    with common.counting_bar("simulating", sites_loss.total(runs)) as done:
        return sites_loss.simulated(programs, runs, workers=workers, done=done), ""


def study(
    times: Times, quick: bool, workers: int | None, folder: Path | None
) -> tuple[list[Table], list[Row]]:
    """All tables and the paper's figures beside ours; the scatter is drawn into a folder."""
    from topolane.studies import (
        sites_arrivals,
        sites_hours,
        sites_jobs,
        sites_levels,
        sites_loss,
        sites_predict,
        sites_scatter,
    )
    from topolane.studies.cli import sites_tables as tables
    from topolane.sweep import over

    points = sites_scatter.points(times, quick)
    if folder is not None:
        sites_scatter.write(folder, points)
    found = tables.measured(times, quick)
    rows = [*sites_loss.rows(times, quick), sites_scatter.row(points)]
    rows += sites_predict.rows(times, sites_scatter.jobs(quick))
    if not quick:
        with common.counting_bar("four programs", len(sites_jobs.POLICIES)) as done:
            played = sites_jobs.study(times, workers=workers, done=done)
        with common.counting_bar("collectives", len(sites_levels.tasks(times.programs))) as done:
            levels = sites_levels.study(times.programs, workers=workers, done=done)
        found.append(tables.levels_table(levels))
        found += [tables.jobs_table(played), tables.shared_table(times, played)]
        rows += sites_jobs.rows(played)
    scenarios = sites_arrivals.scenarios(times, quick)
    with common.counting_bar("programs that come and go", len(scenarios)) as done:
        outcomes = over(sites_hours.play, scenarios, workers=workers, done=done)
    found.append(tables.arrivals_table(outcomes))
    return found, [*rows, *sites_arrivals.rows(outcomes)]
