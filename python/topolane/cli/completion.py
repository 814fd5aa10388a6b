"""`topolane completion`: the script by which a shell completes commands, options and names."""

from __future__ import annotations

import click

from topolane.cli.explained import ExplainedCommand


@click.command(
    "completion",
    cls=ExplainedCommand,
    examples={
        "Complete in this bash, or in all from ~/.bashrc": "source <({} bash)",
        "Complete in every new fish": "fish > ~/.config/fish/completions/topolane.fish",
    },
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes commands, options and names in a shell."""
    from click.shell_completion import get_completion_class

    from topolane.cli import cli

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(cli, {}, "topolane", "_TOPOLANE_COMPLETE").source())
