"""Wings: distributions with commands of their own, which are found where they are installed. Nothing here imports one to list it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from topolane._engine import InputError

if TYPE_CHECKING:
    import click

COMMANDS = "topolane.commands"
"""Entry points of commands."""
PAPERS = "topolane.papers"
"""Entry points of commands of `topolane paper`."""
PAPER_ROWS = "topolane.paper_rows"
"""Entry points of functions that run a study and return its rows."""
DISTRIBUTIONS = {
    COMMANDS: {"gang": "topolane-gang", "paper": "topolane-studies", "sites": "topolane-sites"},
    PAPERS: {"gang": "topolane-gang"},
    PAPER_ROWS: {"gang": "topolane-gang"},
}
"""What to install for a command that is not there."""


@dataclass(frozen=True)
class Added:
    """A command that a distribution adds."""

    distribution: str
    module: str
    attribute: str
    sentence: str
    """What the command does: the summary of the distribution."""

    def load(self) -> click.Command:
        """Imports it."""
        found: click.Command = getattr(importlib.import_module(self.module), self.attribute)
        return found


def added(group: str) -> dict[str, Added]:
    """The commands that installed distributions add to a group, by name. The distributions are called topolane-NAME.

    importlib.metadata finds the same, but loading it and reading all other distributions makes `topolane --help` a fifth slower.
    """
    found: dict[str, Added] = {}
    for folder in sys.path:
        for info in sorted(Path(folder).glob("topolane_*.dist-info")):
            for name, command in commands_of(info, group):
                found.setdefault(name, command)
    return found


def commands_of(info: Path, group: str) -> Iterator[tuple[str, Added]]:
    """The commands of one distribution, from its folder of metadata."""
    try:
        points, metadata = ((info / file).read_text("utf-8") for file in ("entry_points.txt", "METADATA"))
    except OSError:
        return
    facts = dict(line.split(": ", 1) for line in metadata.partition("\n\n")[0].splitlines() if ": " in line)
    section = ""
    for line in points.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif section == group and "=" in line:
            name, target = (part.strip() for part in line.split("=", 1))
            module, _, attribute = target.partition(":")
            yield name, Added(facts.get("Name", ""), module, attribute, f"{facts.get('Summary', '')}.")


def command(context: click.Context, group: str, name: str) -> click.Command | None:
    """A command of a wing. Raises InputError with what to install, if that is known."""
    found = added(group).get(name)
    if found is not None:
        return found.load()
    if name in DISTRIBUTIONS[group] and not context.resilient_parsing:
        raise InputError(missing(f"{context.command_path} {name}", DISTRIBUTIONS[group][name]))
    return None


def missing(command: str, distribution: str) -> str:
    """The sentence for a command whose distribution is not installed."""
    return (
        f"'{command}' is part of {distribution}, which is not installed: install its wheel, which 'make wheel' in a clone "
        "writes to dist/, or run topolane from a clone"
    )
