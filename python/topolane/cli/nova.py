"""`topolane nova`: server groups of an OpenStack on the tree, and moves that bring them together."""

from __future__ import annotations

import click

from topolane.cli import nova_metrics, nova_plan, nova_status


@click.group("nova")
def command() -> None:
    """Place groups of servers in OpenStack Nova by the tree of the network."""


for other in (
    nova_status.status,
    nova_status.explain,
    nova_plan.plan,
    nova_plan.apply,
    nova_metrics.metrics,
):
    command.add_command(other)
