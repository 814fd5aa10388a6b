"""Options and tables that several commands share."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from topolane import files, texts
from topolane._engine import InputError
from topolane.sources import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


HOUR = 3600.0
WORD = click.IntRange(0, 2**64 - 1)


class Number(click.FloatRange):
    """A range that nan is not in."""

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


machine_options = options(
    click.option(
        "--machine",
        default="cab",
        show_default=True,
        help="Machine: a name (cab, pinot, sc18-network, 'fat-tree(radix=R, pods=P)') or a file.",
    ),
    click.option(
        "--machine-format",
        type=click.Choice(["toml", "slurm", "ibnetdiscover"]),
        help="Format of the machine file [default: guessed].",
    ),
    click.option(
        "--nodes",
        help="Use only these nodes of the machine, as a host list (for example those of a partition).",
    ),
)


def cores(_: click.Context, __: click.Parameter, text: str | None) -> int | str | None:
    """A number of cores, or how each job's is chosen."""
    if text is None or text == "auto" or re.fullmatch(r"fixed:[1-9][0-9]{0,8}", text):
        return text
    if re.fullmatch(r"[0-9]{1,10}", text) and 1 <= int(text) <= 2**31:
        return int(text)
    raise click.BadParameter(f"{text} is neither a number from 1 to 2147483648, nor auto, nor fixed:K")


workload_shape_options = options(
    click.option("--seed", type=WORD, default=0, show_default=True, help="Seed of all random draws."),
    click.option(
        "--cores-per-node",
        metavar="N|auto|fixed:K",
        callback=cores,
        help="N: turn processors of the log into nodes of N cores [default: as its header says]. auto or fixed:K, with "
        "--network: cores of each node that a job uses (docs/guides/cores-per-node.md).",
    ),
    click.option("--limit", type=click.IntRange(1, 2**63), help="Only so many jobs."),
    click.option("--partition", help="Use only the jobs of this partition of the log."),
    click.option("--shared", is_flag=True, help="Let jobs of a sacct log share nodes, by cores and memory."),
    click.option("--days", type=float, metavar="D", help="Use only the jobs submitted in the first D days."),
    click.option("--nodes-x", type=float, help="Multiply the node count of every job by this factor."),
    click.option(
        "--squeeze",
        type=float,
        help="Multiply the time between submissions by this factor (0.6: a long queue).",
    ),
    click.option(
        "--load", type=float, help="Scale the time between submissions to reach this load of the machine."
    ),
)

workload_options = options(
    click.option(
        "--workload", help="A synthetic workload: cab-aug, exp-16, ... (`topolane workload show` lists them)."
    ),
    click.option("--trace", help="A job log instead: SWF, CSV or output of sacct -P, gzipped or not."),
    workload_shape_options,
)


def moment(_: click.Context, __: click.Parameter, hours: float | None) -> float | None:
    """Hours after the first submission."""
    if hours is not None and not 0 <= hours < float("inf"):
        raise click.BadParameter(f"{hours} is not a number of hours from 0")
    return hours


at_option = click.option(
    "--at",
    type=float,
    callback=moment,
    help="Time at which to draw the machine, in hours after the first submission [default: the busiest minute].",
)

default_walltime_option = click.option(
    "--default-walltime",
    type=float,
    help="Walltime in seconds of jobs that have none [default: their run time].",
)

min_bandwidth_option = click.option(
    "--min-bandwidth",
    type=float,
    metavar="SHARE",
    help="Minimum share of full bandwidth, above 0 and up to 1, that jobs accept on dedicated links [default: 1].",
)


def _defrag(_context: click.Context, _parameter: click.Parameter, value: float | None) -> Any:
    from topolane.run import Defrag

    return None if value is None else Defrag(per_start=value)


defrag_option = click.option(
    "--defrag",
    type=click.FloatRange(0),
    callback=_defrag,
    metavar="MOVES",
    help="Move up to three running jobs at a time to make room for a job that is refused because of links. MOVES limits "
    "the mean number of moves for each started job (0.05: one for twenty) [default: no moves].",
)

outages_option = click.option(
    "--outages",
    metavar="FILE.csv",
    help="Links and switches that fail, one per line: name,from,until (seconds, or empty). Running jobs on them are "
    "listed; no job is placed on them until they are back.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def source_of(workload: str | None, trace: str | None, default: str | None = None) -> str:
    """The one workload that is meant."""
    if workload and trace:
        raise InputError("--workload and --trace both name a workload: give one of them")
    source = trace or workload or default
    if source is None:
        raise InputError("give a workload with --workload NAME or a log with --trace FILE")
    return source


SHAPE = ("cores_per_node", "limit", "partition", "shared", "days", "nodes_x", "squeeze", "load")


def shape_alone(options: dict[str, Any]) -> Shape:
    """The same where nothing runs, and so no job can choose its cores."""
    shape = shape_of(options)
    if "chosen_cores" in options:
        raise InputError(
            f"--cores-per-node {options['chosen_cores']}: give a number; only a run can choose the cores of each job"
        )
    return shape


def shape_of(options: dict[str, Any]) -> Shape:
    """Takes what shapes a workload out of a command's options.

    Cores that each job chooses are left, as `chosen_cores`: they shape no workload.
    """
    if isinstance(options["cores_per_node"], str):
        options["chosen_cores"] = options["cores_per_node"]
        options["cores_per_node"] = None
    return Shape(**{name: options.pop(name) for name in SHAPE})


TABLES = (
    "jobs.csv",
    "utilization.csv",
    "links.csv",
    "jobs.parquet",
    "utilization.parquet",
    "links.parquet",
)
OWN = (
    *TABLES,
    *(f"runs/*/{table}" for table in TABLES),
    "summary.json",
    "report.html",
    "figures/fat-tree-*.???",
    "figures/link-heat-*.???",
    "figures/contention*.???",
    "runs/*/",
)
"""What a run leaves behind: of an earlier run into the same directory, these do not stay."""


@contextlib.contextmanager
def outputs(out: str | None, own: Sequence[str] = OWN) -> Iterator[Path | None]:
    """A directory to write into, moved to `out` when all is written and removed on an error.

    Of what stands in `out`, an earlier run's files (`own`) are replaced and all others stay. Raises
    InputError, before any work is done, where `out` cannot be written; see `files.drafted`.
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
    """Prints what there is by name, with a summary of each."""
    if as_json:
        print_json([{"name": name, "summary": summary} for name, summary in known])
        return
    width = max(len(name) for name, _ in known)
    for name, summary in known:
        click.echo(f"{name:{width}}  {summary}")


VERDICTS = ("agrees", "better", "differs", "not measured")


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], text_columns: Sequence[str] = ()
) -> None:
    """Prints a table, its first column and columns of text to the left, figures to the right."""
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


@contextlib.contextmanager
def progress_bar(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal, nothing in a pipe; yields a function that sets how much is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    if total > 1:
        columns.insert(2, MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


@contextlib.contextmanager
def counting_bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar over `total` things; yields a function to call after each."""
    with progress_bar(what, total) as show:
        counter = itertools.count(1)
        yield lambda: show(next(counter))


def hours(seconds: float) -> str:
    """A wait in hours, as the SC'18 tables have it."""
    return f"{seconds / HOUR:,.2f}"


def check_outputs(out: str | None, at: float | None, parquet: bool) -> None:
    """Options that say what to write need a place to write it."""
    for name, given in (("--at", at is not None), ("--parquet", parquet)):
        if given and out is None:
            raise InputError(f"{name} needs a directory to write into: give --out")
