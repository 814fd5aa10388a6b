"""`topolane sites up` and `topolane sites down`: virtual clusters."""

from __future__ import annotations

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
    asked.put(f"/clusters/{cluster.name}", cluster.json())
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
@click.argument("name", metavar="NAME")
@manager_options
def down(name: str, manager: str, token_file: str | None, ca: str | None) -> None:
    """Take down the virtual cluster NAME, wherever its guests are by now."""
    asked = client(manager, token_file, ca)
    try:
        from topolane.sites import building
        from topolane.sites.clusters import Cluster
    except ImportError as error:
        raise missing(error) from error
    try:
        cluster = Cluster.of_json(asked.get(f"/clusters/{segment(name)}"))
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{name} was not built by 'topolane sites up': {error} is not known of it"
        ) from error
    if left := building.down(cluster, click.echo):
        raise InputError(f"{cluster.name} is not down: {'; '.join(left)}")
    asked.delete(f"/clusters/{name}")
    click.echo(f"{name} is down")
