"""`topolane flux`: what the scheduler of Flux instances needs."""

from __future__ import annotations

import click

from topolane.flux import module_file


@click.group("flux")
def command() -> None:
    """Let Topolane choose the nodes of a Flux instance's jobs, as its scheduler module."""


@command.command()
def module() -> None:
    """Print the path of the scheduler module, for: flux module load $(topolane flux module) policy=isolated."""
    click.echo(module_file())
