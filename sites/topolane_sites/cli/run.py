"""`topolane sites run`: the manager."""

from __future__ import annotations

import click
from topolane import extras
from topolane.cli.explained import ExplainedCommand


@click.command(
    cls=ExplainedCommand,
    examples={
        "Watch, and move guests where the file says so": "--config sites.toml",
        "Watch and plan only": "--config sites.toml --dry-run",
    },
)
@click.option(
    "--config",
    required=True,
    metavar="FILE",
    help="Configuration: the sites file (docs/reference/sites-file.md).",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Watch and plan only: move nothing, even if the file or a request asks for it.",
)
def run(config: str, dry_run: bool) -> None:
    """Watch programs and plan where they run, until a signal ends it. With 'act = true', also move guests."""
    try:
        from topolane_sites.files import read_config
        from topolane_sites.server import serve
    except ImportError as error:
        raise extras.missing("this command", "topolane-sites", error) from error
    serve(read_config(config), dry_run=dry_run)
