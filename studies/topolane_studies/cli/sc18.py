"""`topolane paper sc18` and `sc18-network`."""

from __future__ import annotations

import click
from topolane.cli import common, values
from topolane.cli.explained import ExplainedCommand

from topolane_studies import sc18, sc18_figures, sc18_hops, sc18_months, sc18_network, sc18_rows, sc18_waits
from topolane_studies.cli.judged import print_rows, rows_json


@click.command(
    "sc18",
    cls=ExplainedCommand,
    examples={
        "The study with one seed": "--quick",
        "With its figures, under another queue": "--queue easy-pinned --out figures",
    },
)
@click.option(
    "--seeds", type=click.IntRange(1), help="How many synthetic months of each [default: 5; 1 with --quick]."
)
@click.option("--quick", is_flag=True, help="One seed.")
@click.option(
    "--queue",
    type=values.QUEUE,
    default="easy",
    show_default=True,
    help="Queue discipline, such as easy-strict or easy-pinned.",
)
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@click.option(
    "--executor", help="dask://HOST:PORT, or dask:// for a Dask cluster made here, instead of processes."
)
@click.option("--out", help="A directory for the figures.")
@common.resume_option
@common.json_option
def command(
    seeds: int | None,
    quick: bool,
    queue: str,
    workers: int | None,
    executor: str | None,
    out: str | None,
    resume: str | None,
    as_json: bool,
) -> None:
    """Interference-free node allocation on fat trees (SC'18)."""
    chosen = range(1, (seeds or (1 if quick else 5)) + 1)
    with common.outputs(out, sc18_figures.OWN) as folder, common.keeping(resume) as kept:
        with common.counting_bar("simulating", len(sc18.tasks(chosen))) as done:
            results = sc18.study(
                chosen, queue=queue, executor=executor, workers=workers, done=done, kept=kept
            )
        if folder is not None:
            sc18_figures.write(folder, results)
    rows = sc18_rows.rows(results)
    if as_json:
        common.print_json(rows_json(rows))
        return
    waits = [[pair.name, *(f"{mean:,.2f}" for mean in sc18.mean_waits(results, pair))] for pair in sc18.PAIRS]
    common.print_table(("mean wait (h)", *sc18.COLUMNS), waits)
    common.print_table(
        ("mean wait (h) by nodes", "", *sc18.BINS), sc18_waits.lines(results), text_columns=("",)
    )
    common.print_table(
        ("APH of jobs of several nodes", "nodes", "oblivious", "aware", "least"), sc18_hops.lines(results)
    )
    common.print_table(
        ("jobs by nodes (%)", *sc18.BINS, "nodes asked for\nan hour, mean", "median", "most"),
        sc18_months.lines(results),
    )
    print_rows(rows, "ours (range over seeds)")


@click.command(
    "sc18-network",
    cls=ExplainedCommand,
    examples={
        "The study with 15 workloads": "",
        "With fewer": "--workloads 3",
    },
)
@click.option("--workloads", type=click.IntRange(1), default=15, show_default=True, help="Random workloads.")
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@common.json_option
def network(workloads: int, workers: int | None, as_json: bool) -> None:
    """What isolation gives jobs that communicate (SC'18, network study)."""
    with common.counting_bar("workloads", len(sc18_network.cases(workloads))) as done:
        found = sc18_network.study(workloads, workers=workers, done=done)
    rows = sc18_network.rows(found)
    if as_json:
        common.print_json(rows_json(rows))
        return
    for study in sc18_network.STUDIES:
        speedups = found[study.name]
        count = sum(len(one.patterns) for one in speedups) / len(speedups)
        click.echo(f"{study.name}: {count:.0f} jobs a workload, speed-up of isolation in the mean")
        patterns = list(study.paper)
        table = [["paper", "", "", *(f"{value:.2f}" for value in study.paper.values())]]
        for setting in sc18_network.settings():
            values = [sc18_network.speedups_of(speedups, setting, pattern) for pattern in patterns]
            table.append([*setting, *(f"{sum(each) / len(each):.2f}" if each else "-" for each in values)])
        common.print_table(
            ("oblivious", "routing", "model", *patterns), table, text_columns=("routing", "model")
        )
    print_rows(rows, "ours (range over workloads)")
    click.echo(f"judged: {', '.join(sc18_network.JUDGED)}")
