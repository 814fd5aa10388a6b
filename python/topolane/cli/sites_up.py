"""`topolane sites up` and `topolane sites down`: virtual clusters."""

from __future__ import annotations

from pathlib import Path

import click

from topolane._engine import InputError
from topolane.cli.sites_client import client, manager_options, missing, segment


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--config", required=True, metavar="FILE", help="The manager's sites file: it names the hosts.")
@manager_options
def up(file: str, config: str, manager: str, token_file: str | None, ca: str | None) -> None:
    """Build the virtual cluster that FILE describes, or what is missing of it, and tell the manager.

    Where FILE names no guest's host, and the guests are of one size, the manager's policy says where they begin.
    A cluster that cannot be built whole is taken down again.
    """
    asked = client(manager, token_file, ca)
    try:
        from topolane.sites import building
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
        cluster, there = building.located(cluster)
    except CommandFailed as error:
        raise InputError(f"{cluster.name} is not built: {error}") from error
    if not there and (wanted := cluster.wanted()) is not None:
        cluster = cluster.on(asked.post("/place", wanted)["hosts"])
    known = cluster.name in asked.get("/clusters")
    asked.put(f"/clusters/{cluster.name}", cluster.told())
    try:
        building.up(cluster, there, click.echo)
    except CommandFailed as error:
        if not known:
            asked.delete(f"/clusters/{cluster.name}")
        raise InputError(
            f"{cluster.name} cannot be built, and what was begun is taken down: {error}"
        ) from error
    click.echo(f"{cluster.name} is up: {len(cluster.guests)} guests on {cluster.network}")


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--config", required=True, metavar="FILE", help="The manager's sites file: it names the hosts.")
@manager_options
def down(file: str, config: str, manager: str, token_file: str | None, ca: str | None) -> None:
    """Take down the virtual cluster that FILE describes, wherever its guests are by now.

    What runs on the hosts comes from the two files only; the manager is told when it is done.
    """
    asked = client(manager, token_file, ca)
    try:
        from topolane.sites import building
        from topolane.sites.clusters import read_cluster
        from topolane.sites.files import read_config
    except ImportError as error:
        raise missing(error) from error
    if not Path(file).exists():
        raise InputError(f"{file}: there is no such file; 'sites down' takes the file that 'sites up' took")
    cluster = read_cluster(file, read_config(config).hosts)
    known = asked.get("/clusters").get(cluster.name)
    if known is None:
        raise InputError(f"{file}: the manager knows no cluster {cluster.name}")
    unnamed = {guest["name"] for guest in known.get("guests", ())} - {guest.name for guest in cluster.guests}
    if unnamed:
        raise InputError(
            f"{file}: {', '.join(sorted(unnamed))} of {cluster.name}, as the manager knows it, is not in this file: "
            "name every guest that is to be ended"
        )
    if left := building.down(cluster, click.echo):
        raise InputError(f"{cluster.name} is not down: {'; '.join(left)}")
    asked.delete(f"/clusters/{segment(cluster.name)}")
    click.echo(f"{cluster.name} is down")
