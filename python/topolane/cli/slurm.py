"""`topolane slurm`: the plugin of slurmctld, and what reads Slurm."""

from __future__ import annotations

import click

from topolane.cli import (
    slurm_metrics,
    slurm_outages,
    slurm_plan,
    slurm_plugin,
    slurm_routes,
    slurm_shadow,
    slurm_status,
)


@click.group("slurm")
def command() -> None:
    """Let Topolane choose the nodes of Slurm's jobs, inside slurmctld."""


for other in (
    slurm_plugin.command,
    slurm_routes.routes,
    slurm_outages.outages,
    slurm_shadow.shadow,
    slurm_shadow.replay,
    slurm_status.status,
    slurm_status.explain,
    slurm_plan.plan,
    slurm_plan.apply,
    slurm_metrics.metrics,
):
    command.add_command(other)
