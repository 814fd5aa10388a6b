"""`topolane paper`: a paper's figures beside ours."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from topolane.cli import common
from topolane.studies.cli import gang, jigsaw, nova, rank_k, sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane.studies import Row


@click.group("paper")
def command() -> None:
    """Rerun a paper's experiment and print its figures beside ours."""


command.add_command(gang.command)
command.add_command(jigsaw.command)
command.add_command(nova.command)
command.add_command(rank_k.command)
command.add_command(sites.command)


def print_rows(rows: Sequence[Row]) -> None:
    """Prints figures of a paper beside ours."""
    common.print_table(
        ("what", "paper", "ours (range over seeds)", "tolerance", "verdict", "why"),
        [[row.what, row.paper, row.ours, row.tolerance, row.verdict, row.why] for row in rows],
        text_columns=("what", "why"),
    )


def counts(rows: Sequence[Row]) -> str:
    """How many rows there are of each verdict."""
    return ", ".join(
        f"{sum(row.verdict == verdict for row in rows)} {verdict}" for verdict in common.VERDICTS
    )


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
    from topolane.studies import sc18

    chosen = range(1, seeds + 1)
    with common.counting_bar("simulating", len(sc18.tasks(chosen))) as done:
        results = sc18.study(chosen, executor=executor, workers=workers, done=done)
    rows = sc18.rows(results)
    if as_json:
        common.print_json([dataclasses.asdict(row) for row in rows])
        return
    waits = [[pair.name, *(f"{mean:,.2f}" for mean in sc18.mean_waits(results, pair))] for pair in sc18.PAIRS]
    common.print_table(("mean wait (h)", *sc18.COLUMNS), waits)
    print_rows(rows)
    click.echo(f"{len(rows)} rows over {seeds} seeds: {counts(rows)}")


@command.command("sc18-network")
@click.option("--workloads", type=click.IntRange(1), default=15, show_default=True, help="Random workloads.")
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@common.json_option
def sc18_network(workloads: int, workers: int | None, as_json: bool) -> None:
    """What isolation gives jobs that communicate (SC'18, network study)."""
    from topolane.studies import sc18_network

    with common.counting_bar("workloads", len(sc18_network.cases(workloads))) as done:
        found = sc18_network.study(workloads, workers=workers, done=done)
    rows = sc18_network.rows(found)
    if as_json:
        common.print_json([dataclasses.asdict(row) for row in rows])
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
    print_rows(rows)
    click.echo(f"judged: {', '.join(sc18_network.JUDGED)}; {len(rows)} rows, {counts(rows)}")
