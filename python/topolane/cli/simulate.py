"""`topolane simulate`: one run with all its outputs."""

from __future__ import annotations

from typing import Any

import click

from topolane.cli import common, settings, tables
from topolane.cli.explained import ExplainedCommand


@click.command(
    "simulate",
    cls=ExplainedCommand,
    examples={
        "Run a synthetic month under isolation": "--workload cab-aug --policy isolated",
        "Write all tables and a report": "--trace log.txt --machine topology.conf --out out",
    },
    common="machine workload trace policy queue scenario network seed out json",
)
@common.machine_options
@settings.workload_options
@settings.run_options
@settings.network_options
@click.option("--out", help="Directory for jobs.csv and the other tables, summary.json and the report.")
@click.option(
    "--report/--no-report", default=True, show_default=True, help="Write report.html and its figures."
)
@common.png_option
@common.at_option
@click.option("--parquet", is_flag=True, help="Also write the tables as Parquet.")
@common.json_option
def command(
    workload: str | None,
    trace: str | None,
    out: str | None,
    report: bool,
    png: bool,
    at: float | None,
    parquet: bool,
    as_json: bool,
    **others: Any,
) -> None:
    """Run one workload under one policy and one queue discipline."""
    common.check_outputs(out, at, png=png, parquet=parquet)
    task = settings.task_of(common.source_of(workload, trace, default="cab-aug"), others)
    with common.outputs(out) as directory:
        common.tell_notes(task.notes())
        with common.progress_bar("simulating", 1) as show:
            run = task.run(show)
        if directory is not None:
            from topolane.writing import write_all

            write_all(directory, [run], task, at=at, parquet=parquet, report=report, png=png)
    if as_json:
        common.print_json(run.facts)
        return
    for note in tables.notes([run], task, trace):
        click.echo(note)
    tables.print_runs([run])
    rows = [
        [common.size_name(bin), f"{bin['jobs']:,}", common.hours(bin["mean_wait"])]
        for bin in run.summary["wait_by_size"]
    ]
    common.print_table(("nodes", "jobs", "mean wait (h)"), rows)
    tables.print_room([run])
    tables.print_networks([run])
    tables.print_patterns([run])
    if out:
        click.echo(f"written: {out}")
