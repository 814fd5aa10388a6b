"""`topolane paper sites`: MPI programs on one site and on two, their loss, and what a manager gains."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
from topolane._engine import InputError
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand

from topolane_studies.cli import sites_trace
from topolane_studies.cli.judged import print_rows, rows_json

if TYPE_CHECKING:
    from topolane.cli.table import PrintedTable

OWN = ("loss-against-traffic.png", "points.csv")


@click.command(
    "sites",
    cls=ExplainedCommand,
    examples={
        "The study in under a minute": "--quick",
        "Play the submissions of a log": "--trace log.swf --sites 2 --limit 60",
    },
)
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
    from topolane_studies import sites, sites_scatter, sites_smpi, sites_study
    from topolane_studies.cli import sites_tables

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
        tables: list[PrintedTable] = []
        try:
            found = sites_study.study(Path(name), quick, workers=workers, bar=common.counting_bar)
        except sites_smpi.Missing as missing:
            rows = sites_study.missing(str(missing), quick)
        else:
            tables, rows = sites_tables.every(found, quick), sites_study.judged(found, quick)
            if folder is not None:
                sites_scatter.write(folder, sites_scatter.points(found.times, quick))
    if as_json:
        common.print_json(
            {
                "assumed": sites.ASSUMED,
                "tables": {table.name: table.dicts() for table in tables},
                "rows": rows_json(rows),
            }
        )
        return
    for table in tables:
        table.show()
    print_rows(rows)
    for assumption in sites.ASSUMED:
        click.echo(f"assumed: {assumption}")
