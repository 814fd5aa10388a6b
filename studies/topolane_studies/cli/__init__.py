"""`topolane paper`: a paper's figures next to ours."""

from __future__ import annotations

import click
from topolane import wings

from topolane_studies.cli import every, jigsaw, nova, rank_k, sc18, sites


class Papers(click.Group):
    """A group to which wings add the studies of their own papers."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *wings.added(wings.PAPERS)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.commands.get(cmd_name) or wings.command(ctx, wings.PAPERS, cmd_name)


@click.group("paper", cls=Papers)
def command() -> None:
    """Rerun a paper's experiment and print its figures next to ours."""


command.add_command(jigsaw.command)
command.add_command(nova.command)
command.add_command(rank_k.command)
command.add_command(sites.command)
command.add_command(sc18.command)
command.add_command(sc18.network)
command.add_command(every.command)
