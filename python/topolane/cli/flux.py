"""`topolane flux`: what the scheduler of Flux instances needs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from topolane._engine import InputError
from topolane.cli.explained import ExplainedCommand
from topolane.flux import module_file
from topolane.flux.settings import FLUX_WORDS, WORDS, FluxSettings


@click.group("flux")
def command() -> None:
    """Let Topolane choose the nodes of a Flux instance's jobs, as its scheduler."""


@command.command(
    cls=ExplainedCommand,
    examples={
        "Load the scheduler into the running instance": "flux module load $({})",
        "Load it with a policy of your choice": "flux module load $({}) policy=isolated",
    },
)
def module() -> None:
    """Print the path of the scheduler module, for: flux module load $(topolane flux module) policy=isolated."""
    click.echo(module_file())


@command.command(
    cls=ExplainedCommand,
    examples={
        "Write a file for modprobe.d": "policy=isolated > topolane.toml",
        "Name a machine file, too": "machine=/etc/topolane/machine.toml policy=isolated",
    },
)
@click.argument("words", metavar="[NAME=VALUE]...", nargs=-1)
def modprobe(words: tuple[str, ...]) -> None:
    """Print the file for Flux's modprobe.d that loads the scheduler at every start, with these arguments of the module."""
    others = list(words)
    FluxSettings.taken_from(others).check_machine()
    for word in others:
        if word.partition("=")[0] not in FLUX_WORDS:
            raise InputError(f"{word}: the module takes {', '.join((*WORDS, *FLUX_WORDS))}")
    click.echo(
        MODPROBE.format(
            file=json.dumps(str(module_file())), words=json.dumps([_absolute(word) for word in words])
        ),
        nl=False,
    )


MODPROBE = """\
[[modules]]
name = "sched-topolane"
module = {file}
args = {words}
provides = ["sched", "feasibility"]
requires = ["job-manager", "resource"]
after = ["job-manager", "resource"]
ranks = "0"
priority = 200
"""


def _absolute(word: str) -> str:
    """The argument with the path of its machine file from the root, since the broker starts in another folder."""
    name, _, value = word.partition("=")
    return f"machine={Path(value).absolute()}" if name == "machine" and Path(value).exists() else word
