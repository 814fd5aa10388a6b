"""`topolane paper`: a paper's figures beside ours."""

from __future__ import annotations

import dataclasses

import click

from topolane.cli import common


@click.group("paper")
def command() -> None:
    """Rerun a paper's experiment and print its figures beside ours."""


@command.command()
@click.option(
    "--seeds", type=click.IntRange(1), default=5, show_default=True, help="How many made-up months of each."
)
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@click.option(
    "--executor", help="dask://HOST:PORT, or dask:// for a Dask cluster made here, instead of processes."
)
@common.json_option
def sc18(seeds: int, workers: int | None, executor: str | None, as_json: bool) -> None:
    """Interference-free node allocation on fat trees (SC'18)."""
    from topolane.papers import sc18

    chosen = range(1, seeds + 1)
    with common.counting_bar("simulating", len(sc18.tasks(chosen))) as done:
        results = sc18.study(chosen, executor=executor, workers=workers, done=done)
    rows = sc18.rows(results)
    if as_json:
        common.print_json([dataclasses.asdict(row) for row in rows])
        return
    waits = [[pair.name, *(f"{mean:,.2f}" for mean in sc18.mean_waits(results, pair))] for pair in sc18.PAIRS]
    common.print_table(("mean wait (h)", *sc18.COLUMNS), waits)
    common.print_table(
        ("what", "paper", "ours (range over seeds)", "tolerance", "verdict", "why"),
        [[row.what, row.paper, row.ours, row.tolerance, row.verdict, row.why] for row in rows],
        text_columns=("what", "why"),
    )
    counts = [f"{sum(row.verdict == verdict for row in rows)} {verdict}" for verdict in common.VERDICTS]
    click.echo(f"{len(rows)} rows over {seeds} seeds: {', '.join(counts)}")
