"""Options of `topolane nova`, and the cloud that they name."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from topolane import extras, texts
from topolane._engine import InputError
from topolane.cli.common import options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openstack.connection import Connection

    from topolane.nova.cloud import Cloud

cloud_options = options(
    click.option(
        "--os-cloud", metavar="NAME", help="Cloud in clouds.yaml [default: the OS_* environment variables]."
    ),
    click.option(
        "--machine",
        metavar="FILE",
        help="A file that describes the network [default: topolane:leaf, pod and site of the host aggregates].",
    ),
)


def connected(
    os_cloud: str | None, machine: str | None, default_placement: str = "none"
) -> tuple[Connection, Cloud]:
    """The cloud, and the connection to it; what is wrong with its topology goes to standard error."""
    try:
        import openstack  # noqa: F401
    except ImportError as error:
        raise extras.missing("this command", "nova", error) from error
    from topolane.nova import cloud

    connection = cloud.connect(os_cloud)
    found = cloud.read(connection, machine, default_placement)
    for problem in found.problems:
        click.echo(f"topolane: {texts.printable(problem)}", err=True)
    return connection, found


@contextlib.contextmanager
def service_errors() -> Iterator[None]:
    """Turns the error of a service into one sentence."""
    from keystoneauth1 import exceptions as auth
    from openstack import exceptions

    try:
        yield
    except (auth.ClientException, exceptions.SDKException) as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"the cloud does not answer: {first}") from error
