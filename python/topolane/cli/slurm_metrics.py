"""`topolane slurm metrics`: the plugin's figures for Prometheus."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from topolane._engine import InputError
from topolane.cli.slurm_status import look_options, settings_of


@click.command()
@look_options
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Serve the metrics at HOST:PORT of a loopback address, such as 127.0.0.1:9753, or at unix:PATH.",
)
@click.option("--once", is_flag=True, help="Print the metrics once, for node_exporter's textfile collector.")
def metrics(
    state: Path | None, slurmrestd: str | None, token_file: str | None, listen: str | None, once: bool
) -> None:
    """Give Prometheus the plugin's counters, its jobs and its links (docs/guides/slurm-operations.md).

    Run it as root or as the user of slurmctld, who may read the plugin's state.
    """
    if once == (listen is not None):
        raise InputError("give one of --listen and --once")
    try:
        from topolane.live.metrics import checked, serve
        from topolane.slurm.metrics import registry, text
    except ImportError as error:
        raise InputError(
            f"this command needs the extra slurm (in a clone: .venv/bin/pip install -e '.[slurm]'): {error}"
        ) from error
    from topolane.slurm.inspection import inspect

    settings = settings_of(state, slurmrestd, token_file)
    if listen is None:
        click.echo(text(lambda: inspect(settings)), nl=False)
        return
    checked(listen)
    inspect(settings)  # An address or a token file that cannot be used ends the command here.
    serve(listen, registry(lambda: inspect(settings)))
    click.echo(f"topolane: metrics of slurmctld at {listen}", err=True)
    threading.Event().wait()
