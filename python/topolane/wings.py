"""Wings: distributions with commands of their own, which are found where they are installed. Nothing here imports one to list it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane._engine import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import click

COMMANDS = "topolane.commands"
"""Entry points of commands."""
PAPERS = "topolane.papers"
"""Entry points of commands of `topolane paper`."""
DISTRIBUTIONS = {
    COMMANDS: {"gang": "topolane-gang", "paper": "topolane-studies", "sites": "topolane-sites"},
    PAPERS: {"gang": "topolane-gang"},
}
"""What to install for a command that is not there."""


def added(group: str) -> dict[str, EntryPoint]:
    """The commands that installed distributions add to a group."""
    # Starting takes longer with this module, and most commands do not need it.
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)}


def sentences(group: str) -> dict[str, str]:
    """What each of them does: the summary of its distribution."""
    return {
        name: f"{point.dist.metadata['Summary']}." if point.dist else ""
        for name, point in added(group).items()
    }


def command(context: click.Context, group: str, name: str) -> click.Command | None:
    """A command of a wing. Raises InputError with what to install, if that is known."""
    point = added(group).get(name)
    if point is not None:
        found: click.Command = point.load()
        return found
    if name in DISTRIBUTIONS[group] and not context.resilient_parsing:
        raise InputError(missing(f"{context.command_path} {name}", DISTRIBUTIONS[group][name]))
    return None


def missing(command: str, distribution: str) -> str:
    """The sentence for a command whose distribution is not installed."""
    return (
        f"'{command}' is part of {distribution}, which is not installed: install its wheel, which 'make wheel' in a clone "
        "writes to dist/, or run topolane from a clone"
    )
