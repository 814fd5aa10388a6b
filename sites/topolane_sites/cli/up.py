"""`topolane sites up` and `topolane sites down`: virtual clusters."""

from __future__ import annotations

from pathlib import Path

import click
from topolane import extras
from topolane._engine import InputError
from topolane.cli.explained import ExplainedCommand

from topolane_sites.cli.client import client, manager_options

config_option = click.option(
    "--config", required=True, metavar="FILE", help="The manager's sites file, which names the hosts."
)


@click.command(
    cls=ExplainedCommand,
    examples={
        "Build a virtual cluster": "pairs.toml --config sites.toml",
        "Also end guests that the file does not name any more": "pairs.toml --config sites.toml --remove",
    },
)
@click.argument("file", metavar="FILE")
@config_option
@click.option("--remove", is_flag=True, help="End guests of the cluster that FILE does not name any more.")
@manager_options
def up(file: str, config: str, remove: bool, manager: str, token_file: str | None, ca: str | None) -> None:
    """Build the virtual cluster that FILE describes, or its missing parts, and register it with the manager.

    If FILE names no hosts for guests, and all new guests have the same size, the manager's policy chooses the hosts.
    If a part cannot be built, everything that this command built is taken down again.
    """
    asked = client(manager, token_file, ca)
    try:
        from topolane_sites import changes
        from topolane_sites.files import read_config
    except ImportError as error:
        raise extras.missing("this command", "topolane-sites", error) from error
    cluster = changes.up(asked, file, read_config(config), remove=remove, tell=click.echo)
    click.echo(f"{cluster.name} is up: {len(cluster.guests)} guests on {cluster.network}")


@click.command(
    cls=ExplainedCommand,
    examples={
        "Take a virtual cluster down": "pairs.toml --config sites.toml",
        "Take two of its guests away": "pairs.toml --config sites.toml --guests g3,g4",
    },
)
@click.argument("file", metavar="FILE")
@config_option
@click.option("--guests", metavar="NAMES", help="Take only these guests away, such as g3,g4.")
@click.option("--force", is_flag=True, help="Take guests away even if a program still runs in them.")
@manager_options
def down(
    file: str,
    config: str,
    guests: str | None,
    force: bool,
    manager: str,
    token_file: str | None,
    ca: str | None,
) -> None:
    """Take down the virtual cluster that FILE describes, or some of its guests, wherever they run now.

    The commands that run on the hosts come from the two files only. The manager is informed at the end.
    """
    if force and guests is None:
        raise InputError("--force needs --guests; without it the whole cluster is taken down in any case")
    asked = client(manager, token_file, ca)
    try:
        from topolane_sites import changes
        from topolane_sites.files import read_config
    except ImportError as error:
        raise extras.missing("this command", "topolane-sites", error) from error
    if not Path(file).exists():
        raise InputError(f"{file}: no such file; give 'sites down' the file that you gave 'sites up'")
    settings = read_config(config)
    if guests is None:
        cluster = changes.down(asked, file, settings, click.echo)
        click.echo(f"{cluster.name} is down")
        return
    names = [name.strip() for name in guests.split(",") if name.strip()]
    if not names:
        raise InputError(f"--guests {guests!r}: names no guest")
    cluster = changes.take(asked, file, settings, names, force=force, tell=click.echo)
    if listed := [guest.name for guest in cluster.guests if guest.name in names]:
        click.echo(f"{file} still names {', '.join(listed)}: the next 'sites up' would build it again")
    click.echo(f"{', '.join(names)} is taken away from {cluster.name}")
