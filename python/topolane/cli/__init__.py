"""The command line: one file per command."""

from __future__ import annotations

import errno
import importlib
import io
import mmap
import os
import signal
import sys
import warnings
from typing import NoReturn

import click

from topolane import _engine, files, texts, wings
from topolane._engine import InputError

COMMANDS = {
    "calibrate": "Measure bandwidths and all-to-all times with MPI, and write a machine file.",
    "compare": "Run every policy with every queue and scenario on one workload, and compare them.",
    "completion": "Print the script that completes commands, options and names in a shell.",
    "flux": "Let Topolane choose the nodes of a Flux instance's jobs, as its scheduler.",
    "k8s": "See what topolane-scheduler does in a Kubernetes cluster, and try it before you turn it on.",
    "links": "Show the load of every link under some jobs, and which jobs use it.",
    "machine": "Show a machine, convert it to another format, check it, or show one route.",
    "map": "Map the ranks of a job to its nodes for the fewest hop-bytes.",
    "mpi": "Watch MPI programs: how much each rank sends to each other rank.",
    "nova": "Place groups of servers in OpenStack Nova by the tree of the network.",
    "patterns": "List the traffic patterns and their parameters.",
    "place": "Choose nodes for one request, or say why it cannot be placed (exit code 1).",
    "policies": "List policies, queue disciplines, routings, contention models, site policies and gang policies.",
    "racks": "Run one workload with several sizes of segments and numbers of spare nodes, and compare what each costs.",
    "room": "Say how many more jobs of each size fit, and which free GPUs no job can use.",
    "routes": "Write forwarding tables that keep the traffic of every job on its dedicated links.",
    "serve": "Show a replayed log, a running Slurm or Kubernetes, or a shadow's log on a live page.",
    "simulate": "Run one workload under one policy and one queue discipline.",
    "slurm": "Let Topolane choose the nodes of Slurm's jobs, inside slurmctld.",
    "traffic": "Summarise the traffic of a pattern or of a file.",
    "workload": "Show a workload, generate one, convert one, check a log, or import one from Slurm.",
}
"""The modules here that hold a `command`, with its first sentence: only the module of the command that runs is imported."""


class LazyGroup(click.Group):
    """A group whose commands are names with a sentence, and are imported when one of them is asked for. Wings add theirs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *wings.added(wings.COMMANDS)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            return wings.command(ctx, wings.COMMANDS, cmd_name)
        command: click.Command = importlib.import_module(f"topolane.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sentences = {name: command.sentence for name, command in wings.added(wings.COMMANDS).items()}
        sentences |= {name: command.help or "" for name, command in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(sentences.items()))


def show_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    """Prints what this installation is made of, and ends."""
    if asked and not context.resilient_parsing:
        from topolane import about

        click.echo(about.text())
        context.exit()


@click.group(
    cls=LazyGroup,
    commands=[click.Command(name, help=sentence) for name, sentence in COMMANDS.items()],
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version, what it was built from and what it reads.",
)
def cli() -> None:
    """Place parallel jobs where the network lets them run at full speed."""


def main() -> None:
    """Runs a command; bad input ends in one sentence on standard error and exit code 2."""
    _engine.end_without_memory()
    buffer_output()
    warnings.filterwarnings(
        "ignore", "Polars binary is missing"
    )  # said where memory is short; `is_short_of_memory` says why
    ended: list[int] = []

    def end(number: int, _: object) -> None:
        ended.append(128 + number)
        sys.exit(128 + number)

    for ending in (signal.SIGTERM, signal.SIGHUP):
        # Leave as on an interrupt, so that nothing half written and no worker stays behind.
        if signal.getsignal(ending) == signal.SIG_DFL:
            signal.signal(ending, end)
    try:
        code = cli(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "topolane"
        fail(f"{of_the_command_line(error)} ('{command} --help' says more)")
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): say nothing, not even at exit.
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        fail(of_the_system(error))
    except InputError as error:
        if ended:
            # It came while a policy in Python was asked, and looks like its error.
            sys.exit(ended[0])
        fail(hinted(str(error)))
    except MemoryError:
        fail(NO_MEMORY)
    except Exception as error:
        if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
            fail(NO_PROCESS)
        if is_short_of_memory():
            # Packages that cannot be loaded for want of memory fail with errors of all kinds.
            fail(NO_MEMORY)
        raise
    # Click answers with the exit code where an option like --help ended the command.
    sys.exit(code if isinstance(code, int) else 0)


NO_MEMORY = "not enough memory for this input"
NO_PROCESS = "the system starts no more processes or threads for this user: raise the limit (ulimit -u)"
WITHOUT_PATH = {
    errno.EAGAIN: NO_PROCESS,
    errno.EMFILE: "too many open files: raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
}
LIBRARY = 256 << 20
"""Bytes of addresses that the largest library of a Python package takes."""


def of_the_command_line(error: click.UsageError) -> str:
    """What is wrong with the words of a command, with the nearest option, command or value that there is."""
    near = getattr(error, "possibilities", None) or []
    word, context = getattr(error, "command_name", None), error.ctx
    if word is not None and context is not None and isinstance(context.command, click.Group):
        from difflib import get_close_matches

        # Click knows no commands of wings.
        near = get_close_matches(word, context.command.list_commands(context), 1)
    message = " ".join((error.message if near else error.format_message()).split())
    return f"{message} Did you mean '{near[0]}'?" if near else hinted(message.rstrip("."))


def hinted(sentence: str) -> str:
    """The sentence with the nearest of the names that it lists."""
    try:
        from topolane.cli import hints

        return hints.with_nearest(sentence)
    except (
        ImportError,
        MemoryError,
        OSError,
    ):  # where memory is short, the sentence is worth more than its hint
        return sentence


def buffer_output() -> None:
    """Gives standard output a buffer where PYTHONUNBUFFERED takes it away: Python loses what a full disk does not take otherwise."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and isinstance(raw := stream.buffer, io.RawIOBase):
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=True
        )


def of_the_system(error: OSError) -> str:
    """What an error of the system means, in a sentence. It names the file, if the error comes from one."""
    if error.errno == errno.ENOMEM:
        return NO_MEMORY
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    if error.errno in files.FULL:
        # Whatever writes a file names it.
        return f"standard output: {error.strerror}"
    return WITHOUT_PATH.get(error.errno or 0, error.strerror or str(error))


def is_short_of_memory() -> bool:
    """Whether this process has no place left for a library."""
    try:
        mmap.mmap(-1, LIBRARY).close()
    except OSError:
        return True
    return False


def fail(sentence: str) -> NoReturn:
    """Ends with a sentence on standard error, printable and of bounded length whatever it names."""
    click.echo(f"topolane: {texts.sentence(sentence)}", err=True)
    try:
        sys.stdout.flush()
    except OSError:
        # What cannot be written now would be tried once more at exit, and change its code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(2)
