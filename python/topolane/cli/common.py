"""Options and tables that several commands share."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from topolane import _engine, files, texts
from topolane._engine import InputError
from topolane.cli import values
from topolane.report.own import OWN as OF_A_REPORT
from topolane.units import plural
from topolane.writing import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from topolane._engine import Machine
    from topolane.sweep.kept import Kept, Shard


HOUR = 3600.0


WORD = click.IntRange(0, 2**64 - 1)


class Number(click.FloatRange):
    """A range of numbers that excludes nan."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


def options(*decorators: Callable[..., Any]) -> Callable[..., Any]:
    """Applies option decorators so that `--help` lists them in the order given."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def names(text: str) -> list[str]:
    """A comma-separated list, without repetitions."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


FORMATS = [name for name, *_ in _engine.machine_formats()]
"""Formats of machines that are read."""
WRITTEN = _engine.machine_writers()
"""Formats of machines that are written."""

join_options = options(
    click.option("--topology", help="The topology of that name, if the machine file holds several."),
    click.option(
        "--join",
        help="Another file on the same nodes: domains, block sizes and GPUs for a file that knows cables, or the other way round.",
    ),
)

machine_options = options(
    click.option(
        "--machine",
        type=values.MACHINE,
        default="cab",
        show_default=True,
        help="Machine: a name (`topolane machine show` lists them) or a file.",
    ),
    click.option(
        "--machine-format", type=click.Choice(FORMATS), help="Format of the machine file [default: guessed]."
    ),
    click.option(
        "--nodes",
        help="Use only these nodes of the machine, as a host list (for example those of a partition).",
    ),
    join_options,
)


def tell(fabric: Machine) -> Machine:
    """The machine; notes on what was assumed or skipped when it was read go to standard error."""
    tell_notes(fabric.notes)
    return fabric


def tell_notes(notes: Sequence[str]) -> None:
    """Writes notes to standard error, so that they do not stand in results."""
    for note in notes:
        click.echo(f"note: {texts.printable(note)}", err=True)


def moment(_: click.Context, __: click.Parameter, hours: float | None) -> float | None:
    """Hours after the first submission."""
    if hours is not None and not 0 <= hours < float("inf"):
        raise click.BadParameter(f"{hours} is not a number of hours from 0")
    return hours


run_options = options(
    click.option("--run", help="Directory of a run instead of a state (`topolane simulate --out`)."),
    click.option(
        "--at",
        type=float,
        callback=moment,
        help="With --run: hours after the first submission [default: the busiest minute].",
    ),
)
"""A moment of a run."""

at_option = click.option(
    "--at",
    type=float,
    callback=moment,
    help="Time at which to draw the machine, in hours after the first submission [default: the busiest minute].",
)

png_option = click.option("--png", is_flag=True, help="Also write the figures of the report as PNG.")

on_option = click.option(
    "--on",
    "network",
    metavar="NETWORK",
    help="On another network of the machine, by its name in the machine file, instead of the first.",
)

resume_option = click.option(
    "--resume",
    metavar="DIR",
    help="Keep every run in this folder as it ends. The same command later does only the runs that are not there.",
)


def _shard(context: click.Context, parameter: click.Parameter, text: str | None) -> Shard | None:
    """`3/16`."""
    if text is None:
        return None
    from topolane.sweep.kept import Shard

    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise click.BadParameter(f"{text!r} is not K/N, with K from 1 to N", context, parameter)
    return Shard(int(number), int(count))


shard_option = click.option(
    "--shard",
    metavar="K/N",
    callback=_shard,
    help="Do only the K-th of N parts of all runs, for a job array, and keep them with --resume. Without it, the command then shows all.",
)


@contextlib.contextmanager
def keeping(folder: str | None, shard: Shard | None = None) -> Iterator[Kept | None]:
    """Keeps runs in a folder, see `kept.opened`; says on standard error how many were there before."""
    if folder is None:
        yield None
        return
    from topolane.sweep import kept

    with kept.opened(folder, shard) as found:
        before = len(found)
        yield found
        if before:
            unused = len(found) - len(found.used)
            text = f"note: {folder}: {plural(before - unused, 'run')} kept from before"
            if unused:
                text += f"; {plural(unused, 'other')} there not used: their settings, inputs or build of Topolane differ"
            click.echo(text, err=True)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def machine_note(trace: str | None) -> list[str]:
    """A note if a log is replayed on the default machine, which its jobs probably did not run on."""
    given = click.get_current_context().get_parameter_source("machine")
    if trace is None or given is not ParameterSource.DEFAULT:
        return []
    return ["the machine is cab, because --machine names no other"]


def names_machine(names: Sequence[str]) -> bool:
    """Whether an option of those that name a machine is given."""
    context = click.get_current_context()
    return any(context.get_parameter_source(name) is not ParameterSource.DEFAULT for name in names)


def source_of(workload: str | None, trace: str | None, default: str | None = None) -> str:
    """The workload: exactly one of --workload and --trace, or the default."""
    if workload and trace:
        raise InputError("--workload and --trace both name a workload: give one of them")
    source = trace or workload or default
    if source is None:
        raise InputError("give a workload with --workload NAME or a log with --trace FILE")
    return source


OWN = (
    *(
        f"{place}{table}.{form}"
        for place in ("", "runs/*/")
        for table in TABLES
        for form in ("csv", "parquet")
    ),
    "summary.json",
    "baseline.csv",
    "runs.csv",
    *OF_A_REPORT,
    "runs/*/",
)
"""The outputs of a run: those of an earlier run in the same directory are removed."""


@contextlib.contextmanager
def outputs(out: str | None, own: Sequence[str] = OWN) -> Iterator[Path | None]:
    """A directory to write into, moved to `out` when all is written and removed on an error.

    In `out`, files of an earlier run (`own`) are replaced and all others stay. Raises InputError before any
    work if `out` cannot be written; see `files.drafted`.
    """
    if out is None:
        yield None
        return
    if not out:
        raise InputError(f"--out {out}: cannot be written: name a directory")
    with files.drafted(out, own) as draft:
        yield draft


def write_text(out: str | None, text: str, option: str = "--out") -> None:
    """Writes text to the file that `option` names, see `files.write`, or to standard output."""
    if out is None:
        click.echo(text, nl=False)
        return
    files.write(out, text, option)


def size_name(bin: dict[str, Any]) -> str:
    """The job sizes of a bin."""
    if bin["high"] is None:
        return f"{bin['low']} or more"
    return f"{bin['low']}" if bin["low"] == bin["high"] else f"{bin['low']}-{bin['high']}"


def print_json(value: Any) -> None:
    """Prints a value as JSON."""
    click.echo(json.dumps(value, indent=2))


def print_known(known: Sequence[tuple[str, str]], as_json: bool) -> None:
    """Prints names, with a summary of each."""
    if as_json:
        print_json([{"name": name, "summary": summary} for name, summary in known])
        return
    width = max(len(name) for name, _ in known)
    for name, summary in known:
        click.echo(f"{name:{width}}  {summary}")


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], text_columns: Sequence[str] = ()
) -> None:
    """Prints a table. The first column and text columns are left-aligned, figures right-aligned."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        is_text = index == 0 or column in text_columns
        table.add_column(column, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(texts.printable, row))
    # A pipe has no width: tables there are as wide as they need to be.
    width = None if sys.stdout.isatty() else 200
    Console(width=width, highlight=False, markup=False).print(table)


def print_lines(text: str) -> None:
    """Prints a sentence; on a terminal it breaks between words."""
    if not sys.stdout.isatty():
        click.echo(text)
        return
    indent = text[: len(text) - len(text.lstrip())]
    width = max(shutil.get_terminal_size().columns, 20)
    click.echo(textwrap.fill(text, width, subsequent_indent=indent or "  ", break_on_hyphens=False))


@contextlib.contextmanager
def progress_bar(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """A bar with the time passed and the time left on a terminal, nothing in a pipe; yields a function that sets how much is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    left = (TextColumn("left"), TimeRemainingColumn())
    columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), *left]
    if total > 1:
        columns.insert(2, MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


@contextlib.contextmanager
def counting_bar(what: str, total: int) -> Iterator[Callable[..., None]]:
    """A bar over `total` things; yields a function to call after each, or once with how many are done."""
    counted = 0

    def done(count: int = 1) -> None:
        nonlocal counted
        counted += count
        show(counted)

    with progress_bar(what, total) as show:
        yield done


def hours(seconds: float) -> str:
    """A wait in hours, as in the SC'18 tables."""
    return f"{seconds / HOUR:,.2f}"


def check_outputs(out: str | None, at: float | None, **forms: bool) -> None:
    """Raises InputError if --at or the option of a form (parquet, png) is given without --out."""
    for name, given in (("--at", at is not None), *((f"--{form}", given) for form, given in forms.items())):
        if given and out is None:
            raise InputError(f"{name} needs a directory to write into: give --out")
