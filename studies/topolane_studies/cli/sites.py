"""`topolane paper sites`: MPI programs on one site and on two, their loss, and what a manager gains."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
from topolane._engine import InputError
from topolane.cli import common

from topolane_studies.cli import sites_trace
from topolane_studies.cli.judged import print_rows

if TYPE_CHECKING:
    from topolane.cli.table import PrintedTable

    from topolane_studies import PaperRow
    from topolane_studies.sites_loss import IterationTimes

OWN = ("loss-against-traffic.png", "points.csv")


@click.command("sites")
@click.option(
    "--quick",
    is_flag=True,
    help="Fewer latencies and programs, not the four together nor collectives: under a minute.",
)
@click.option("--out", help="A directory for the figure and its points.")
@click.option(
    "--trace",
    help="Play the submissions of a log (SWF, CSV, sacct -P) instead, under every policy of the engine.",
)
@click.option(
    "--sites",
    "counts",
    type=click.IntRange(2, 10),
    multiple=True,
    help="With --trace: how many sites; repeat it for several [default: 2].",
)
@click.option(
    "--limit",
    type=click.IntRange(2),
    help="With --trace: only the first N jobs that ran [default: 300; 60 with --quick].",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    help="With --trace: how often kernels are drawn for the jobs [default: 3; 1 with --quick].",
)
@click.option(
    "--cores-per-node",
    type=click.IntRange(1),
    help="With --trace: turn processors of the log into nodes of N cores.",
)
@click.option(
    "--processors",
    is_flag=True,
    help="Compare the rules on sites whose processors differ by 1, 1.5 and 2 instead.",
)
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@common.json_option
def command(
    quick: bool,
    out: str | None,
    trace: str | None,
    counts: tuple[int, ...],
    limit: int | None,
    seeds: int | None,
    cores_per_node: int | None,
    processors: bool,
    workers: int | None,
    as_json: bool,
) -> None:
    """MPI on virtual clusters over several sites (2007), under SimGrid's SMPI."""
    from topolane_studies import sites, sites_loss

    if processors:
        if out is not None or trace is not None:
            raise InputError(
                "--processors draws no figure and takes no log: give it without --out and --trace"
            )
        from topolane_studies.cli import sites_processors

        sites_processors.command(quick, workers, as_json)
        return
    if trace is None and (counts or limit or seeds or cores_per_node):
        raise InputError("--sites, --limit, --seeds and --cores-per-node need a log: give --trace FILE")
    if trace is not None:
        if out is not None:
            raise InputError(
                "--out draws the figure of the paper's programs: it cannot be given with --trace"
            )
        limit = limit or (sites_trace.QUICK_JOBS if quick else sites_trace.JOBS)
        seeds = seeds or (1 if quick else sites_trace.SEEDS)
        asked = sites_trace.TraceOptions(
            trace, tuple(dict.fromkeys(counts or (2,))), limit, seeds, cores_per_node, workers
        )
        sites_trace.command(asked, as_json)
        return
    with common.outputs(out, OWN) as folder, tempfile.TemporaryDirectory(prefix="topolane-sites-") as name:
        times, missing = simulated(Path(name), quick, workers)
        tables: list[PrintedTable] = []
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
    print_rows(rows)
    for assumption in sites.ASSUMED:
        click.echo(f"assumed: {assumption}")


def simulated(programs: Path, quick: bool, workers: int | None) -> tuple[IterationTimes | None, str]:
    """The times of single programs, or none and the reason why."""
    from topolane_studies import (
        sites,
        sites_arrivals,
        sites_jobs,
        sites_levels,
        sites_loss,
        sites_scatter,
        sites_smpi,
    )

    try:
        sites_smpi.build(programs)
        if not quick:
            sites_levels.build(programs)  # now, not when hours have been simulated
    except sites_smpi.Missing as missing:
        return None, str(missing)
    parts = [sites_loss.runs(programs, quick), sites_scatter.runs(programs, quick)]
    parts += [sites_arrivals.runs(programs)] + ([] if quick else [sites_jobs.runs(programs)])
    runs = sites.unique(run for part in parts for run in part)
    with common.counting_bar("simulating", sites_loss.total(runs)) as done:
        return sites_loss.simulated(programs, runs, workers=workers, done=done), ""


def study(
    times: IterationTimes, quick: bool, workers: int | None, folder: Path | None
) -> tuple[list[PrintedTable], list[PaperRow]]:
    """All tables and the paper's figures next to ours; the scatter is drawn into a folder."""
    from topolane.sweep import over

    from topolane_studies import (
        sites_arrivals,
        sites_hours,
        sites_jobs,
        sites_levels,
        sites_loss,
        sites_messages,
        sites_predict,
        sites_scatter,
    )
    from topolane_studies.cli import sites_tables as tables

    points = sites_scatter.points(times, quick)
    if folder is not None:
        sites_scatter.write(folder, points)
    found = tables.measured(times, quick)
    rows = [*sites_loss.rows(times, quick), sites_scatter.row(points)]
    rows += sites_messages.rows(times, quick)
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
