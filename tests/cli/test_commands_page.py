"""The table of questions and systems in docs/reference/commands.md, compared with the commands that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from topolane import wings
from topolane.cli import cli

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
GROUPS = {
    "Slurm": "slurm",
    "Kubernetes": "k8s",
    "Nova": "nova",
    "Flux": "flux",
    "sites": "sites",
    "gangs": "gang",
}
QUESTIONS = frozenset({"status", "explain", "shadow", "replay", "plan", "apply", "metrics", "export"})
"""Commands that ask the same in every system that has them."""
NONE = ("no", "-")


def table() -> dict[str, dict[str, str]]:
    """The cells by system and question."""
    lines = PAGE.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("| question |"))
    head, _, *rows = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in lines[start:] if line[:1] == "|"
    )
    rows = rows[: next(at for at, row in enumerate(rows) if row[0] == "details")]
    assert all(len(row) == len(head) for row in rows)
    return {
        system: {row[0]: row[at] for row in rows} for at, system in enumerate(head) if system != "question"
    }


def named(cell: str) -> Iterator[tuple[str, ...]]:
    """The commands of Topolane in a cell: of several, the later ones have the group of the first."""
    if "'s own" in cell or "' own" in cell:
        return
    group = ""
    for words in (tuple(text.split()) for text in re.findall(r"`([^`]*)`", cell)):
        if words[0] == "topolane-scheduler":
            continue
        group = group if group and words[0] not in cli.list_commands(click.Context(cli)) else words[0]
        yield words if words[0] == group else (group, *words)


def installed(name: str) -> bool:
    """Whether a group of commands can be run here."""
    return name in cli.commands or name in wings.added(wings.COMMANDS)


def found(words: tuple[str, ...]) -> click.Command:
    """The command that words name, with the options among them."""
    command: click.Command | None = cli
    context = click.Context(cli)
    for word in (word for word in words if not word.startswith("-")):
        assert isinstance(command, click.Group), words
        command = command.get_command(context, word)
        assert command is not None, words
    assert command is not None
    options = {option for parameter in command.params for option in parameter.opts}
    assert options >= {word for word in words if word.startswith("-")}, words
    return command


@pytest.mark.parametrize("system", GROUPS)
def test_every_cell_has_a_command_that_there_is_or_says_that_there_is_none(system: str) -> None:
    """No cell is empty, and each command and option in it exists."""
    for question, cell in table()[system].items():
        assert cell, f"{question}: empty"
        if cell in NONE:
            continue
        for words in named(cell):
            if installed(words[0]):
                found(words)


@pytest.mark.parametrize("system", GROUPS)
def test_every_command_that_asks_one_of_the_questions_is_in_the_table(system: str) -> None:
    """A command that a system gets fills its cell."""
    group = GROUPS[system]
    if not installed(group):
        pytest.skip(f"topolane-{group} is not installed")
    command = found((group,))
    assert isinstance(command, click.Group)
    shown = {words[1] for cell in table()[system].values() for words in named(cell) if words[0] == group}
    assert shown >= QUESTIONS & set(command.list_commands(click.Context(command)))


def test_the_live_page_has_the_systems_of_its_options() -> None:
    (question,) = (one for one in table()["Slurm"] if "live page" in one)
    shown = {words for system in GROUPS for words in named(table()[system][question]) if words[0] == "serve"}
    options = {option for parameter in found(("serve",)).params for option in parameter.opts}
    assert {words[1] for words in shown} == options & {
        "--slurm",
        "--kubernetes",
        "--nova",
        "--flux",
        "--sites",
        "--gang",
    }
