"""The options in the help of commands that have many: common ones first, all others in groups on request."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner
from test_examples import LEAVES
from topolane.cli import cli
from topolane.cli.explained import COMMON, GROUP_OF, GROUPS, MANY, ExplainedCommand

LONG = [
    path for path, (command, _) in LEAVES.items() if isinstance(command, ExplainedCommand) and command.is_long
]
LINES, COLUMNS = 40, 80
"""A screen."""


def shown(path: str, option: str) -> str:
    return CliRunner(env={"COLUMNS": str(COLUMNS)}).invoke(cli, [*path.split()[1:], option]).output


def options_of(path: str) -> list[click.Option]:
    command, _ = LEAVES[path]
    return [each for each in command.params if isinstance(each, click.Option) and each.opts != ["--help-all"]]


def test_commands_with_more_than_15_options_are_long() -> None:
    assert [path for path in LEAVES if len(options_of(path)) > 15 == MANY] == LONG
    assert "topolane compare" in LONG and "topolane serve" in LONG


@pytest.mark.parametrize("path", LONG)
def test_help_fits_on_a_screen_and_says_how_to_see_the_rest(path: str) -> None:
    """It lists at most ten options, with all that are required, and the way to the others."""
    lines = shown(path, "--help").splitlines()
    assert len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    command, context = LEAVES[path]
    assert isinstance(command, ExplainedCommand)
    common = [option.opts[0] for option in command.groups(context)[COMMON]]
    assert common == [*command.common, "--help-all", *common[-1:]] and len(command.common) <= 10
    assert {option.opts[0] for option in options_of(path) if option.required} <= set(common)
    assert any(
        line.startswith("  --help-all ") and f"all {len(options_of(path))} options" in line for line in lines
    )
    assert [line for line in lines if line.endswith(":") and line[0] != " "] == [f"{COMMON}:", "Examples:"]


@pytest.mark.parametrize("path", LONG)
def test_help_all_shows_every_option_once(path: str) -> None:
    """Those that are not common are in groups, in the order of the table."""
    text = shown(path, "--help-all")
    for option in options_of(path):
        starts = [line for line in text.splitlines() if line.startswith(f"  {option.opts[0]}")]
        assert [line.split()[0].split("/")[0].rstrip(",") for line in starts].count(option.opts[0]) == 1, (
            option
        )
    titles = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == [COMMON, *(title for title in GROUPS if title in titles), "Examples"]


def test_every_option_of_a_long_command_has_one_group() -> None:
    """The table gives an option the same group in all commands, and has no name that no command has."""
    names = [name for group in GROUPS.values() for name in group.split()]
    assert len(names) == len(set(names))
    assert set(GROUP_OF) == {option.opts[0] for path in LONG for option in options_of(path)}


def test_other_commands_list_their_options_in_full() -> None:
    for path in LEAVES.keys() - set(LONG):
        text = shown(path, "--help")
        assert "\nOptions:\n" in text and "--help-all" not in text
        assert all(option.opts[0] in text for option in options_of(path))
