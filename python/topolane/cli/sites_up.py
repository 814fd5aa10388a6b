"""`topolane sites up` and `topolane sites down`: virtual clusters."""

from __future__ import annotations

from pathlib import Path

import click

from topolane._engine import InputError
from topolane.cli.sites_client import client, manager_options, missing, segment


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--config", required=True, metavar="FILE", help="The manager's sites file, which names the hosts."
)
@manager_options
def up(file: str, config: str, manager: str, token_file: str | None, ca: str | None) -> None:
    """Build the virtual cluster that FILE describes, or its missing parts, and register it with the manager.

    If FILE names no hosts for guests, and all guests have the same size, the manager's policy chooses the hosts.
    If a part of the cluster cannot be built, the whole cluster is taken down again.
    """
    asked = client(manager, token_file, ca)
    try:
        from topolane.sites import builders
        from topolane.sites.clusters import read_cluster
        from topolane.sites.files import read_config
        from topolane.sites.model import Guest
        from topolane.sites.remote import CommandFailed
    except ImportError as error:
        raise missing(error) from error
    fields = Guest.__dataclass_fields__
    guests = [Guest(**{key: one[key] for key in fields}) for one in asked.get("/guests")]
    cluster = read_cluster(file, read_config(config).hosts, guests)
    try:
        cluster, there = builders.located(cluster)
    except CommandFailed as error:
        raise InputError(f"{cluster.name} is not built: {error}") from error
    if not there and (wanted := cluster.wanted()) is not None:
        cluster = cluster.on(asked.post("/place", wanted)["hosts"])
    known = cluster.name in asked.get("/clusters")
    asked.put(f"/clusters/{cluster.name}", cluster.told())
    try:
        builders.up(cluster, there, click.echo)
    except CommandFailed as error:
        if not known:
            asked.delete(f"/clusters/{cluster.name}")
        raise InputError(
            f"{cluster.name} cannot be built; the parts that were built are taken down again: {error}"
        ) from error
    click.echo(f"{cluster.name} is up: {len(cluster.guests)} guests on {cluster.network}")


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--config", required=True, metavar="FILE", help="The manager's sites file, which names the hosts."
)
@manager_options
def down(file: str, config: str, manager: str, token_file: str | None, ca: str | None) -> None:
    """Take down the virtual cluster that FILE describes, wherever its guests run now.

    The commands that run on the hosts come from the two files only. The manager is informed at the end.
    """
    asked = client(manager, token_file, ca)
    try:
        from topolane.sites import builders
        from topolane.sites.clusters import read_cluster
        from topolane.sites.files import read_config
    except ImportError as error:
        raise missing(error) from error
    if not Path(file).exists():
        raise InputError(f"{file}: no such file; give 'sites down' the file that you gave 'sites up'")
    cluster = read_cluster(file, read_config(config).hosts)
    known = asked.get("/clusters").get(cluster.name)
    if known is None:
        raise InputError(f"{file}: the manager knows no cluster {cluster.name}")
    unnamed = {guest["name"] for guest in known.get("guests", ())} - {guest.name for guest in cluster.guests}
    if unnamed:
        raise InputError(
            f"{file}: {', '.join(sorted(unnamed))} of {cluster.name}, as the manager knows it, is not in this file: "
            "list every guest to end in it"
        )
    if left := builders.down(cluster, click.echo):
        raise InputError(f"{cluster.name} is not down: {'; '.join(left)}")
    asked.delete(f"/clusters/{segment(cluster.name)}")
    click.echo(f"{cluster.name} is down")
