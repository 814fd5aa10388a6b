"""`topolane slurm metrics`: the plugin's figures for Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane.cli.explained import ExplainedCommand
from topolane.cli.metrics import give, metrics_options
from topolane.cli.slurm_status import look_options, settings_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


@click.command(
    cls=ExplainedCommand,
    examples={
        "Serve Prometheus on this host": "--listen 127.0.0.1:9753",
        "Print them once, for node_exporter": "--once",
    },
)
@look_options
@metrics_options(9753)
def metrics(
    state: Path | None, slurmrestd: str | None, token_file: str | None, listen: str | None, once: bool
) -> None:
    """Give Prometheus the plugin's counters, its jobs and its links (docs/reference/metrics.md).

    Run it as root or as the user of slurmctld, who may read the plugin's state.
    """

    def registry() -> CollectorRegistry:
        from topolane.slurm.inspection import inspect
        from topolane.slurm.metrics import registry

        settings = settings_of(state, slurmrestd, token_file)
        inspect(settings)  # An address or a token file that cannot be used ends the command here.
        return registry(lambda: inspect(settings))

    give("slurmctld", "slurm", listen, once, registry)
