"""The examples in the help of every command: each can be typed in."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from topolane.cli import cli
from topolane.cli.explained import ExplainedCommand

RUN = frozenset(
    {
        "topolane compare --workload cab-aug --policies first-fit,slurm-tree,isolated",
        "source <(topolane completion bash)",
        "topolane completion fish > ~/.config/fish/completions/topolane.fish",
        "flux module load $(topolane flux module)",
        "topolane flux modprobe policy=isolated > topolane.toml",
        "topolane machine convert cab --to slurm",
        "topolane machine route cab cab1 cab600",
        "topolane machine route nvl72-5000 gb1 gb19 --rails 0 3",
        "topolane machine show",
        "topolane map --traffic stencil4d --ranks 512 --ranks-per-node 16",
        "topolane patterns",
        "topolane patterns --json",
        "topolane policies",
        "topolane policies --json",
        "topolane racks --machine nvl72-5000 --limit 500 --policy segments",
        "topolane simulate --workload cab-aug --policy isolated",
        "topolane traffic stencil4d --ranks 512",
        "topolane workload import --commands --since 2026-10-01",
        "topolane workload make cab-aug --to swf --out month.swf",
        "topolane workload make exp-16 --limit 1000 --nodes-x 2 --out jobs.csv",
        "topolane workload show",
    }
)
"""Examples that need no file and no other system: these are run, the others are only parsed."""


def leaves(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """Every command without subcommands that is installed here, with its context."""
    if not isinstance(command, click.Group):
        yield command, context
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, click.Context(below, info_name=name, parent=context))


LEAVES = {
    context.command_path: (command, context)
    for command, context in leaves(cli, click.Context(cli, info_name="topolane"))
}
LINES = [
    line
    for command, context in LEAVES.values()
    if isinstance(command, ExplainedCommand)
    for _, line in command.lines(context)
]


def words(line: str) -> list[str]:
    """The words of Topolane's part of a line, without redirections and without `topolane`."""
    found = re.search(r"topolane [^>)]*", line)
    assert found is not None, line
    return shlex.split(found[0])[1:]


@pytest.mark.parametrize("path", LEAVES)
def test_the_help_of_every_command_ends_with_two_examples(path: str) -> None:
    """They differ, say what they do, fit on a line of 80, and are the last that a reader sees."""
    command, context = LEAVES[path]
    assert isinstance(command, ExplainedCommand)
    shown = list(command.lines(context))
    assert len(shown) == len({line for _, line in shown}) == 2
    end = command.get_help(context).partition("\nExamples:\n")[2]
    assert end.splitlines() == [
        part for sentence, line in shown for part in (f"  {sentence}:", f"    {line}")
    ]
    assert all(path in line and sentence[0].isupper() for sentence, line in shown)
    assert [line for _, line in shown if len(line) > 76] == []


@pytest.mark.parametrize("line", LINES)
def test_an_example_has_only_options_that_there_are(
    line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Click takes every word of it, and no word is missing."""
    invoked = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ExplainedCommand, "invoke", lambda _, context: invoked.append(context.command_path))
    cli.main(words(line), prog_name="topolane", standalone_mode=False)
    assert len(invoked) == 1 and f"{' '.join(['topolane', *words(line)])} ".startswith(f"{invoked[0]} ")


def test_examples_that_are_run_are_in_the_help() -> None:
    assert set(LINES) >= RUN


@pytest.mark.parametrize("line", sorted(RUN))
def test_an_example_that_needs_nothing_else_works(
    line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It ends with exit code 0, and prints or writes something."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, words(line), prog_name="topolane")
    assert done.exit_code == 0, done.output
    assert done.stdout or os.listdir()
