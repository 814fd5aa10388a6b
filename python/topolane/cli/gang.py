"""`topolane gang`: jobs whose threads all run in the same time slice."""

from __future__ import annotations

import click

from topolane.cli import gang_client, gang_metrics, gang_run, gang_try


@click.group("gang")
def command() -> None:
    """Run jobs as gangs on the cores of this machine: all threads of a job in the same time slice."""


for other in (
    gang_run.run,
    gang_client.add,
    gang_client.list_,
    gang_client.stop,
    gang_client.top,
    gang_metrics.metrics,
    gang_try.try_,
):
    command.add_command(other)
