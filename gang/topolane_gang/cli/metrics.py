"""`topolane gang metrics`: the jobs of a running agent for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from topolane.cli.explained import ExplainedCommand
from topolane.cli.metrics import give, metrics_options

from topolane_gang.cli import shared

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


@click.command(
    cls=ExplainedCommand,
    examples={
        "Serve Prometheus on this host": "--listen 127.0.0.1:9756",
        "Print them once, for node_exporter": "--once",
    },
)
@shared.socket_option
@metrics_options(9756)
def metrics(socket: str | None, listen: str | None, once: bool) -> None:
    """Give Prometheus the jobs of the running agent and the time that each has had (docs/reference/metrics.md).

    Run it as the user of the agent.
    """

    def registry() -> CollectorRegistry:
        from topolane_gang.metrics import registry

        return registry(shared.socket_of(socket))

    give("the agent", "topolane-gang", listen, once, registry)
