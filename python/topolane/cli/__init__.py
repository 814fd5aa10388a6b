"""The command line: one file per command."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import click

from topolane import texts
from topolane._engine import InputError
from topolane.cli import (
    calibrate,
    compare,
    gang,
    k8s,
    links,
    machine,
    map,
    mpi,
    nova,
    paper,
    patterns,
    place,
    policies,
    racks,
    room,
    routes,
    simulate,
    sites,
    slurm,
    traffic,
    workload,
)

FORMER_OPTIONS = {"phi": "min-bandwidth", "service-lanes": "service-uplinks"}
"""Options of an earlier release, accepted for one release, and their present names."""


@click.group(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "token_normalize_func": lambda name: FORMER_OPTIONS.get(name, name),
    }
)
@click.version_option(package_name="topolane")
def cli() -> None:
    """Place parallel jobs where the network lets them run at full speed."""


for command in (
    compare,
    simulate,
    place,
    map,
    links,
    room,
    racks,
    routes,
    policies,
    patterns,
    machine,
    traffic,
    workload,
    calibrate,
    slurm,
    k8s,
    nova,
    mpi,
    sites,
    gang,
    paper,
):
    cli.add_command(command.command)


def main() -> None:
    """Runs a command; bad input ends in one sentence on standard error and exit code 2."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        # Leave as on an interrupt, so that nothing half written and no worker stays behind.
        if signal.getsignal(ending) == signal.SIG_DFL:
            signal.signal(ending, lambda number, _: sys.exit(128 + number))
    try:
        code = cli(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "topolane"
        message = " ".join(error.format_message().split())
        fail(f"{message.rstrip('.')} ('{command} --help' says more)")
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): say nothing, not even at exit.
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        fail(f"{named}{error.strerror or error}")
    except InputError as error:
        fail(str(error))
    except MemoryError:
        fail("not enough memory for this input")
    # Click answers with the exit code where an option like --help ended the command.
    sys.exit(code if isinstance(code, int) else 0)


def fail(sentence: str) -> NoReturn:
    """Ends with a sentence on standard error, printable and of bounded length whatever it names."""
    click.echo(f"topolane: {texts.sentence(sentence)}", err=True)
    try:
        sys.stdout.flush()
    except OSError:
        # What cannot be written now would be tried once more at exit, and change its code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(2)
