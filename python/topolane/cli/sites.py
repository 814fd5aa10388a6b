"""`topolane sites`: programs over several sites."""

from __future__ import annotations

import click

from topolane.cli import sites_explain, sites_guest, sites_host, sites_plan, sites_run, sites_status, sites_up


@click.group("sites")
def command() -> None:
    """Watch MPI programs on several sites, and move guests so that those that communicate most are on one site."""


for other in (
    sites_run.run,
    sites_status.status,
    sites_plan.plan,
    sites_plan.apply,
    sites_explain.explain,
    sites_status.planning,
    sites_up.up,
    sites_up.down,
    sites_host.host,
    sites_guest.guest,
):
    command.add_command(other)
