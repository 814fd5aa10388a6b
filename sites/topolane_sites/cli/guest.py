"""`topolane sites guest`: the daemon in a guest."""

from __future__ import annotations

import os
import threading

import click
from topolane import extras
from topolane._engine import InputError
from topolane.cli.explained import ExplainedCommand

from topolane_sites.cli.client import client, manager_options, segment
from topolane_sites.cli.host import end_when_asked, every_option


@click.command(
    cls=ExplainedCommand,
    examples={
        "Report this guest to the manager of its host": "",
        "Forward reports of its ranks, too": "--relay /run/ranks.sock --programs 10.0.0.1:7077",
    },
)
@click.option("--name", help="Name of the guest [default: its host name].")
@click.option(
    "--relay", metavar="PATH", help="Unix socket for reports of the ranks in this guest; needs --programs."
)
@click.option(
    "--programs", metavar="HOST:PORT", help="Address where the manager receives reports of programs."
)
@every_option
@manager_options
def guest(
    name: str | None,
    relay: str | None,
    programs: str | None,
    every: float,
    manager: str,
    token_file: str | None,
    ca: str | None,
) -> None:
    """Report to the manager what runs in this guest, and forward reports of its ranks, until a signal ends it."""
    asked = client(manager, token_file, ca)
    try:
        from topolane.mpi.address import Address

        from topolane_sites import guest as daemon
        from topolane_sites import host
    except ImportError as error:
        raise extras.missing("this command", "topolane-sites", error) from error
    if (relay is None) != (programs is None):
        raise InputError("--relay and --programs need each other: give both or none")
    path = f"/guests/{segment(name or os.uname().nodename)}/report"
    end_when_asked()
    if not daemon.keep_windows():
        click.echo(
            "the kernel does not let this user set net.ipv4.tcp_slow_start_after_idle = 0: collectives after a pause "
            "cross the WAN more slowly",
            err=True,
        )
    reporting = (every, asked, path, daemon.GuestWatch().look)
    if relay is None or programs is None:
        host.every(*reporting)
        return
    far = Address.parse(programs)
    if far.path is not None:
        raise InputError(f"--programs {programs}: give host:port")
    threading.Thread(target=host.every, args=reporting, daemon=True).start()
    daemon.serve(relay, far.host, far.port)
