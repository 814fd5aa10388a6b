"""`topolane paper sites --processors`: the rules compared on sites whose processors differ."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from topolane._engine import InputError
from topolane.cli import common
from topolane.cli.table import PrintedTable

from topolane_studies import sites_processors, sites_smpi


def command(quick: bool, workers: int | None, as_json: bool) -> None:
    """Simulates the programs, plays all scenarios, and prints the table."""
    from topolane.sweep import over

    from topolane_studies import sites_loss

    with tempfile.TemporaryDirectory(prefix="topolane-sites-") as name:
        programs = Path(name)
        try:
            sites_smpi.build(programs)
        except sites_smpi.Missing as missing:
            raise InputError(f"the processors are not compared: {missing}") from missing
        runs = sites_processors.runs(programs, quick)
        with common.counting_bar("simulating", sites_loss.total(runs)) as done:
            times = sites_loss.simulated(programs, runs, workers=workers, done=done)
        scenarios = sites_processors.scenarios(times, quick)
    with common.counting_bar("comparing", len(scenarios)) as done:
        outcomes = over(sites_processors.play, scenarios, workers=workers, done=done)
    lines = sites_processors.lines(outcomes)
    shown = table(lines)
    gains, missed = sites_processors.gains(lines), sum(line.missed for line in lines)
    if as_json:
        common.print_json({"rows": shown.dicts(), "mean_gain": gains, "missed": missed})
        return
    shown.show()
    for who, gain in gains.items():
        click.echo(f"ours over {who}: {gain:+.1%} in the mean of {len(lines)} rows")
    click.echo(f"ours is worse than another rule in {missed} of {len(lines)} rows")


def table(lines: list[sites_processors.MixLine]) -> PrintedTable:
    """The throughput of every rule, mix by mix."""
    names = list(sites_processors.POLICIES)
    return PrintedTable(
        "processors",
        "work done while programs wait, of what the hosts do at speed 1; fast hosts have the speed given, others 1",
        ("mix", "fast hosts", "speed", *names, "ours over the best other", "verdict"),
        [
            (
                line.mix,
                line.layout,
                line.factor,
                *(line.throughput[name] for name in names),
                f"{line.gain:+.1%}",
                "MISSED" if line.missed else "met",
            )
            for line in lines
        ],
        ("mix", "fast hosts", "verdict"),
    )
