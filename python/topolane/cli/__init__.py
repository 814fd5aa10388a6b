"""The command line: one file per command."""

from __future__ import annotations

import sys

import click

from topolane._engine import InputError
from topolane.cli import compare, machine, paper, place, policies, simulate, workload


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="topolane")
def cli() -> None:
    """Place parallel jobs where the network lets them run at full speed."""


for command in (compare, simulate, place, policies, machine, workload, paper):
    cli.add_command(command.command)


def main() -> None:
    """Runs a command; bad input ends in one sentence on standard error and exit code 2."""
    try:
        cli()
    except (InputError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader of our output has gone (`| head`): say nothing, not even at exit.
            sys.stderr.close()
            sys.exit(141)
        click.echo(f"topolane: {error}", err=True)
        sys.exit(2)
