"""What the commands `metrics` of all drivers share: `--listen` and `--once`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from topolane import extras
from topolane._engine import InputError
from topolane.cli.common import options

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


def metrics_options(port: int) -> Callable[[Any], Any]:
    """The options of a command that gives Prometheus metrics. port: the one that its help suggests."""
    return options(
        click.option(
            "--listen",
            metavar="ADDRESS",
            help=f"Serve the metrics at HOST:PORT of a loopback address, such as 127.0.0.1:{port}, or at unix:PATH.",
        ),
        click.option(
            "--once", is_flag=True, help="Print the metrics once, for node_exporter's textfile collector."
        ),
    )


def give(
    system: str, extra: str, listen: str | None, once: bool, registry: Callable[[], CollectorRegistry]
) -> None:
    """Prints the metrics of a registry once, or serves them until the process ends.

    extra: the extra, or the distribution of a wing, that has what `registry` imports. Raises InputError if the options do not fit, if something is not
    installed, or if the address cannot be used.
    """
    if once == (listen is not None):
        raise InputError("give one of --listen and --once")
    try:
        from prometheus_client import generate_latest

        from topolane.cluster.metrics import checked, serve

        if listen is not None:
            checked(listen)
        made = registry()
    except ImportError as error:
        raise extras.missing("this command", extra, error) from error
    if listen is None:
        click.echo(generate_latest(made).decode(), nl=False)
        return
    serve(listen, made)
    click.echo(f"topolane: metrics of {system} at {listen}", err=True)
    threading.Event().wait()
