"""`topolane gang`: jobs whose threads all run in the same time slice."""

from __future__ import annotations

import click

from topolane_gang.cli import client, metrics, run, trial


@click.group("gang")
def command() -> None:
    """Run jobs as gangs on the cores of this machine: all threads of a job in the same time slice."""


for other in (
    run.run,
    client.add,
    client.list_,
    client.stop,
    client.top,
    metrics.metrics,
    trial.try_,
):
    command.add_command(other)
