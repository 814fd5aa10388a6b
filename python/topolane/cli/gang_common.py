"""Options shared by the commands on gangs."""

from __future__ import annotations

import re
from typing import Any

import click

from topolane.cli import common


class WithCommand(click.Command):
    """A command that takes another command after `--`, in `ctx.obj`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[at + 1 :])
        if at < len(args) and not ctx.obj:
            raise click.UsageError("no command after --", ctx)
        return super().parse_args(ctx, args[:at])


def core_list(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """CPU numbers as Linux writes them: 0-3,8."""
    if text is None:
        return None
    cores: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise click.BadParameter(f"{text} is not a list of cores such as 0-3,8", ctx, param)
        cores += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(cores)


socket_option = click.option(
    "--socket", metavar="PATH", help="The agent's socket [default: in the user's runtime directory]."
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(1, 1 << 20),
    help="Number of threads of the command that compute [default: the number of cores of the agent].",
)
weight_option = click.option(
    "--weight",
    type=common.Number(1e-3, 1e3),
    default=1.0,
    show_default=True,
    help="Weight of the job: its share of the time relative to other jobs.",
)
watch_option = click.option(
    "--watch",
    is_flag=True,
    help="The command starts an MPI program (mpiexec, srun): count how often its ranks synchronize.",
)
name_option = click.option("--name", help="Name of the job [default: the name of its command].")


def socket_of(given: str | None) -> str:
    """The socket of the agent."""
    from topolane.gang import control

    return given or control.default_socket()


def seconds(value: Any) -> str:
    """Seconds for a table."""
    return f"{value:,.2f}"
