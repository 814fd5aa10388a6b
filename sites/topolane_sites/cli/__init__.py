"""`topolane sites`: programs over several sites."""

from __future__ import annotations

import click

from topolane_sites.cli import explain, guest, host, plan, run, status, up


@click.group("sites")
def command() -> None:
    """Watch MPI programs on several sites, and move guests so that those that communicate most are on one site."""


for other in (
    run.run,
    status.status,
    plan.plan,
    plan.apply,
    explain.explain,
    status.planning,
    up.up,
    up.down,
    host.host,
    guest.guest,
):
    command.add_command(other)
