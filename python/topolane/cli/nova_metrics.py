"""`topolane nova metrics`: server groups and refusals, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topolane.cli.explained import ExplainedCommand
from topolane.cli.metrics import give, metrics_options
from topolane.cli.nova_cloud import cloud_options

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


@click.command(
    cls=ExplainedCommand,
    examples={
        "Serve Prometheus on this host": "--listen 127.0.0.1:9754",
        "Print them once, for node_exporter": "--once",
    },
)
@cloud_options
@click.option(
    "--nova-conf",
    metavar="FILE",
    help="The nova.conf of nova-scheduler. Its API database has the refusals, and its group [topolane] says what groups "
    "get that ask for nothing.",
)
@metrics_options(9754)
def metrics(
    os_cloud: str | None, machine: str | None, nova_conf: str | None, listen: str | None, once: bool
) -> None:
    """Give Prometheus the groups that share links, their hops, and what was refused (docs/reference/metrics.md)."""

    def registry() -> CollectorRegistry:
        import openstack  # noqa: F401

        from topolane.nova.metrics import MetricsSource, registry

        return registry(MetricsSource(os_cloud, machine, nova_conf))

    give("Nova", "nova", listen, once, registry)
