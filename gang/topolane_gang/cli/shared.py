"""Options shared by the commands on gangs."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
from topolane import _engine
from topolane.cli import common, values
from topolane.cli.explained import ExplainedCommand

if TYPE_CHECKING:
    from topolane_gang.agent import Limits


class WithCommand(ExplainedCommand):
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


policy_option = click.option(
    "--policy",
    type=values.Name(_engine.gang_policies),
    default="adaptive",
    show_default=True,
    metavar="NAME",
    help="Policy that shares out the time: batch, free, gang or adaptive (docs/guides/gangs.md).",
)
cores_option = click.option(
    "--cores",
    metavar="LIST",
    callback=core_list,
    help="CPU numbers to use, such as 0-3,8 [default: all that this process may use].",
)
slice_option = click.option(
    "--slice",
    "slice_",
    type=common.Number(0.001, 3600),
    metavar="SECONDS",
    help="Length of a slice [default: chosen from the cost of a switch and how often the jobs synchronize].",
)
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


def limits(**given: float | None) -> Limits:
    """The limits of slices that a user gave; the usual ones for what is None."""
    from topolane_gang.agent import Limits

    chosen = {key: value for key, value in given.items() if value is not None}
    if (length := chosen.get("slice")) is not None:
        chosen["shortest"] = min(0.01, length)
    return Limits(**chosen)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends what is done here as Ctrl-C does, so that no job is left."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def socket_of(given: str | None) -> str:
    """The socket of the agent."""
    from topolane_gang import control

    return given or control.default_socket()


def seconds(value: Any) -> str:
    """Seconds for a table."""
    return f"{value:,.2f}"
