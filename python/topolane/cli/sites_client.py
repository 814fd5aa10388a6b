"""Options of the commands that ask a manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topolane._engine import InputError
from topolane.cli.common import options

if TYPE_CHECKING:
    from topolane.sites.client import Client

manager_options = options(
    click.option(
        "--manager",
        metavar="ADDRESS",
        envvar="TOPOLANE_SITES",
        default="unix:/run/topolane/sites.sock",
        show_default=True,
        help="Where the manager listens: unix:/path, http://host:port or https://host:port.",
    ),
    click.option("--token-file", metavar="FILE", help="The token to show, at a TCP address."),
    click.option("--ca", metavar="FILE", help="Certificates to trust, in place of the system's."),
)


def client(manager: str, token_file: str | None, ca: str | None) -> Client:
    """Asks that manager. Raises InputError where the extra is missing."""
    try:
        from topolane.sites.client import Client
    except ImportError as error:
        raise missing(error) from error
    return Client(manager, token_file, ca)


def missing(error: ImportError) -> InputError:
    """Says which extra to install."""
    return InputError(
        f"this command needs the extra sites (in a clone: .venv/bin/pip install -e '.[sites]'): {error}"
    )
