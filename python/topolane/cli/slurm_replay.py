"""`topolane slurm replay`: repeats the decisions in a daemon's log."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

from topolane.cli import common

if TYPE_CHECKING:
    from topolane.live.replay import Outcome


@click.command()
@click.argument("log")
@click.option(
    "--csv",
    "table",
    help="File to write the jobs that Slurm ran to, as a workload for `topolane simulate --trace`.",
)
@click.option("--policy", metavar="MODULE:CLASS", help="Policy of the daemon, if it is a class of your own.")
@common.json_option
def replay(log: str, table: str | None, policy: str | None, as_json: bool) -> None:
    """Repeat the decisions in a daemon's LOG with this engine, and compare the results.

    This also compares when and where the daemon would have started the jobs with when and where Slurm started them.
    The exit code is 1 if a decision differs.
    """
    from topolane.live import replay as replaying

    found = replaying.replay(log, policy)
    ours, slurms = replaying.outcomes(found)
    if table is not None:
        common.write_text(table, found.csv(), "--csv")
    if as_json:
        facts: dict[str, Any] = {"passes": found.passes, "starts": found.starts, "differing": found.differing}
        if found.assumed:
            facts["assumed"] = found.assumed
        outcomes = {"would": dataclasses.asdict(ours), "slurm": dataclasses.asdict(slurms)}
        common.print_json({"dry_run": found.dry_run, **facts, **outcomes})
    else:
        if found.assumed:
            click.echo(found.assumed)
        same = "all the same" if not found.differing else f"{len(found.differing)} differ"
        click.echo(f"{found.passes} decisions with {found.starts} starts: {same}")
        for sentence in found.differing[:5]:
            click.echo(sentence)
        click.echo(f"{ours.jobs} of the {found.started} jobs that Slurm started were decided on before:")
        name = "would have been" if found.dry_run else "decided"
        rows = [[name, *_cells(ours)], ["Slurm", *_cells(slurms)]]
        common.print_table(["starts", "jobs", "mean wait, s", "APH", "sharing links"], rows)
    sys.exit(1 if found.differing else 0)


def _cells(side: Outcome) -> list[str]:
    return ["-" if value is None else f"{round(value, 3):.10g}" for value in dataclasses.astuple(side)]
