"""`topolane sites host`: the daemon of a host."""

from __future__ import annotations

import os
import signal

import click
from topolane import extras
from topolane._engine import InputError
from topolane.cli.common import Number
from topolane.cli.explained import ExplainedCommand

from topolane_sites.cli.client import client, manager_options, segment
from topolane_sites.movers import DRIVERS, WANT_ADDRESS, mover

every_option = click.option(
    "--every",
    type=Number(0.2, 3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two reports.",
)


def end_when_asked() -> None:
    """Makes a signal end the daemon with exit code 0 and without cleanup."""
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: os._exit(0))


@click.command(
    cls=ExplainedCommand,
    examples={
        "Report a host whose guests are QEMU processes": "--site east --driver qmp --address /run/guests",
        "Report a host of libvirt": "--site west --driver libvirt --address qemu:///system",
    },
)
@click.option("--name", help="Name of the host [default: its host name].")
@click.option("--site", required=True, help="Site of the host.")
@click.option("--driver", type=click.Choice(tuple(DRIVERS)), required=True, help="Driver of its guests.")
@click.option("--address", default="", help="Directory of QMP sockets, or libvirt URI.")
@click.option("--cores", type=click.IntRange(1), help="Number of cores for guests [default: all].")
@click.option("--memory", metavar="SIZE", help='Memory for guests, such as "16 GiB" [default: all].')
@every_option
@manager_options
def host(
    name: str | None,
    site: str,
    driver: str,
    address: str,
    cores: int | None,
    memory: str | None,
    every: float,
    manager: str,
    token_file: str | None,
    ca: str | None,
) -> None:
    """Report to the manager what this host has and what its guests do, until a signal ends it."""
    asked = client(manager, token_file, ca)
    try:
        import psutil
        from topolane.reading import size

        from topolane_sites import host as daemon
        from topolane_sites.model import Host
    except ImportError as error:
        raise extras.missing("this command", "topolane-sites", error) from error
    if driver in WANT_ADDRESS and not address:
        raise InputError(f"--driver {driver} needs --address: {WANT_ADDRESS[driver]}")
    if driver == "libvirt":
        mover(driver)  # says what to install
    room = psutil.virtual_memory().total if memory is None else size(memory)
    if room is None:
        raise click.BadParameter(f'{memory} is neither a number of bytes nor a size such as "16 GiB"')
    described = Host(name or os.uname().nodename, site, cores or os.cpu_count() or 1, room, driver, address)
    end_when_asked()
    daemon.every(every, asked, f"/hosts/{segment(described.name)}/report", daemon.HostWatch(described).look)
