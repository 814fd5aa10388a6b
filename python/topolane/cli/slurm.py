"""`topolane slurm`: the live driver."""

from __future__ import annotations

import signal

import click

from topolane._engine import InputError
from topolane.cli import slurm_install, slurm_plugin, slurm_ranks, slurm_replay, slurm_routes, slurm_status


@click.group("slurm")
def command() -> None:
    """Let the policies and queues of the simulator drive a running Slurm."""


@command.command()
@click.option(
    "--config", required=True, help="The daemon's configuration (docs/reference/slurm-configuration.md)."
)
@click.option("--dry-run", is_flag=True, help="Only decide and log; change nothing in Slurm.")
def run(config: str, dry_run: bool) -> None:
    """Run the daemon that starts the jobs of the managed partitions, until a signal ends it."""
    from topolane.slurm import config as configuration

    settings = configuration.read(config)
    try:
        from topolane.live.log import Log
        from topolane.slurm.client import SlurmError
        from topolane.slurm.daemon import Daemon
        from topolane.slurm.setup import connect
    except ImportError as error:
        raise InputError(
            f"this command needs the extra slurm (in a clone: .venv/bin/pip install -e '.[slurm]'): {error}"
        ) from error
    try:
        daemon = Daemon(settings, connect(settings), Log(settings.log), dry_run=dry_run)
    except SlurmError as error:
        raise InputError(str(error)) from error
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: daemon.stopping.set())
    daemon.run()


for other in (
    slurm_install.install,
    slurm_install.uninstall,
    slurm_install.unit,
    slurm_plugin.command,
    slurm_ranks.hosts,
    slurm_ranks.spank,
    slurm_replay.replay,
    slurm_routes.routes,
    slurm_status.status,
    slurm_status.explain,
):
    command.add_command(other)
