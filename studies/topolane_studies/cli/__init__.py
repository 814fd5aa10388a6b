"""`topolane paper`: a paper's figures next to ours."""

from __future__ import annotations

import dataclasses

import click
from topolane import wings
from topolane.cli import common

from topolane_studies.cli import jigsaw, nova, rank_k, sites
from topolane_studies.cli.judged import counts, print_rows


class Papers(click.Group):
    """A group to which wings add the studies of their own papers."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *wings.added(wings.PAPERS)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.commands.get(cmd_name) or wings.command(ctx, wings.PAPERS, cmd_name)


@click.group("paper", cls=Papers)
def command() -> None:
    """Rerun a paper's experiment and print its figures next to ours."""


command.add_command(jigsaw.command)
command.add_command(nova.command)
command.add_command(rank_k.command)
command.add_command(sites.command)


@command.command()
@click.option(
    "--seeds", type=click.IntRange(1), help="How many synthetic months of each [default: 5; 1 with --quick]."
)
@click.option("--quick", is_flag=True, help="One seed.")
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@click.option(
    "--executor", help="dask://HOST:PORT, or dask:// for a Dask cluster made here, instead of processes."
)
@common.resume_option
@common.json_option
def sc18(
    seeds: int | None,
    quick: bool,
    workers: int | None,
    executor: str | None,
    resume: str | None,
    as_json: bool,
) -> None:
    """Interference-free node allocation on fat trees (SC'18)."""
    from topolane_studies import sc18, sc18_hops, sc18_months, sc18_waits

    chosen = range(1, (seeds or (1 if quick else 5)) + 1)
    with common.keeping(resume) as kept:
        with common.counting_bar("simulating", len(sc18.tasks(chosen))) as done:
            results = sc18.study(chosen, executor=executor, workers=workers, done=done, kept=kept)
    rows = [part for study in (sc18, sc18_waits, sc18_hops, sc18_months) for part in study.rows(results)]
    if as_json:
        common.print_json([dataclasses.asdict(row) for row in rows])
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
    click.echo(f"{len(rows)} rows over {len(chosen)} seeds; {counts(rows)}")


@command.command("sc18-network")
@click.option("--workloads", type=click.IntRange(1), default=15, show_default=True, help="Random workloads.")
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@common.json_option
def sc18_network(workloads: int, workers: int | None, as_json: bool) -> None:
    """What isolation gives jobs that communicate (SC'18, network study)."""
    from topolane_studies import sc18_network

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
    print_rows(rows, "ours (range over workloads)")
    click.echo(f"judged: {', '.join(sc18_network.JUDGED)}; {len(rows)} rows, {counts(rows)}")
