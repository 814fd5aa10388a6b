"""`topolane slurm shadow` and `topolane slurm replay`: what a policy would do in a Slurm that decides for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from topolane._engine import InputError
from topolane.cli import shadows, values
from topolane.cli.explained import ExplainedCommand
from topolane.units import plural

if TYPE_CHECKING:
    from topolane._engine import Machine
    from topolane.cluster.shadow import Watched
    from topolane.cluster.shadow_log import Past

replay = shadows.replay


@click.command(
    cls=ExplainedCommand,
    examples={
        "Where 'isolated' would have placed the jobs that start now": "--policy isolated",
        "Record a day for `topolane slurm replay`": "--policy isolated --for 86400 --log shadow.jsonl",
    },
)
@shadows.options("Slurm")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="NAME",
    help="Ask only about jobs of this partition; repeat it for several [default: all].",
)
@click.option(
    "--machine",
    type=values.MACHINE,
    metavar="FILE",
    help="Machine: a name or a file [default: the file of the plugin, else `scontrol show topology`].",
)
@click.option(
    "--slurmrestd",
    metavar="ADDR",
    help="Read Slurm through slurmrestd at unix:PATH or http(s)://HOST:PORT [default: by scontrol].",
)
@click.option("--token-file", metavar="FILE", help="File with the token that slurmrestd wants.")
def shadow(
    partitions: tuple[str, ...],
    machine: str | None,
    slurmrestd: str | None,
    token_file: str | None,
    **asked: Any,
) -> None:
    """Say where a policy would have placed the jobs that Slurm starts. It changes nothing in Slurm.

    Each start is a line: Slurm's nodes and the policy's, or why the job would have waited. A summary ends it.
    """
    from topolane.slurm.client import SlurmError, connect
    from topolane.slurm.shadow import WatchedSlurm

    wanted = shadows.ShadowOptions(**asked)

    def watch(before: Callable[[Machine], Past]) -> tuple[Watched, Machine]:
        slurm = connect(slurmrestd, token_file)
        watched = WatchedSlurm(slurm, machine=machine, partitions=partitions, interval=wanted.interval)
        watched.resume(before(watched.machine))
        if watched.unknown and not wanted.as_json:
            _say_unknown(watched.unknown)
        return watched, watched.machine

    try:
        wanted.show(watch, "Slurm")
    except SlurmError as error:
        raise InputError(str(error)) from error


def _say_unknown(unknown: list[str]) -> None:
    some = ", ".join([*unknown[:3], *["..."] * (len(unknown) > 3)])
    click.echo(
        f"{plural(len(unknown), 'node')} of Slurm {'is' if len(unknown) == 1 else 'are'} not in the machine ({some}): "
        "the policy is not asked about jobs there"
    )
