"""`topolane slurm`: the live driver."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from topolane._engine import InputError
from topolane.cli import slurm_ranks


@click.group("slurm")
def command() -> None:
    """Drive a running Slurm by the policies and queues of the simulator."""


@command.command()
@click.option("--config", required=True, help="The daemon's configuration (docs/slurm.md).")
@click.option("--dry-run", is_flag=True, help="Decide and log, change nothing.")
def run(config: str, dry_run: bool) -> None:
    """Start the jobs of the managed partitions, until a signal ends it."""
    from topolane.slurm import config as configuration

    settings = configuration.read(config)
    try:
        from topolane.slurm.client import Slurm, SlurmError
        from topolane.slurm.daemon import Daemon, Log
    except ImportError as error:
        raise InputError(
            f"this command needs the extra slurm (pip install 'topolane[slurm]'): {error}"
        ) from error
    token = Path(settings.token_file).read_text(encoding="utf-8").strip() if settings.token_file else None
    try:
        daemon = Daemon(settings, Slurm(settings.slurmrestd, token=token), Log(settings.log), dry_run=dry_run)
    except SlurmError as error:
        raise InputError(str(error)) from error
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: daemon.stopping.set())
    daemon.run()


command.add_command(slurm_ranks.hosts)
command.add_command(slurm_ranks.spank)
