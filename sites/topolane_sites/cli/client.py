"""Options of the commands that query a manager."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from urllib.parse import quote

import click
from topolane import extras
from topolane._engine import InputError
from topolane.cli.common import options

if TYPE_CHECKING:
    from topolane_sites.client import Client

manager_options = options(
    click.option(
        "--manager",
        metavar="ADDRESS",
        envvar="TOPOLANE_SITES",
        default="unix:/run/topolane/sites.sock",
        show_default=True,
        show_envvar=True,
        help="Address of the manager: unix:/path, http://host:port or https://host:port.",
    ),
    click.option("--token-file", metavar="FILE", help="File with the token; needed for a TCP address."),
    click.option("--ca", metavar="FILE", help="Certificates to trust instead of those of the system."),
)


def client(manager: str, token_file: str | None, ca: str | None) -> Client:
    """A client of that manager. Raises InputError if a package of it is missing."""
    try:
        from topolane_sites.client import Client
    except ImportError as error:
        raise extras.missing("this command", "topolane-sites", error) from error
    return Client(manager, token_file, ca)


def segment(name: str) -> str:
    """A name, quoted for the path of a request. Raises InputError for an invalid name."""
    if name in ("", ".", "..") or "/" in name:
        raise InputError(f"{name!r} is not a valid name")
    return quote(name, safe="")


def lost(longer: float, all_longer: float | None = None) -> str:
    """The share of a program's time that a WAN costs, from the extra seconds per second of its run on one site.

    all_longer: those that the WAN and the processors take together, if processors count.
    """
    whole = 1 + (longer if all_longer is None else all_longer)
    return f"{100 * (longer / whole if math.isfinite(longer) else 1):.1f} %"
