"""`topolane mpi`: watch an MPI program, and look at what it sent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from topolane import files
from topolane._engine import InputError
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand
from topolane.units import plural


@click.group("mpi")
def command() -> None:
    """Watch MPI programs: how much each rank sends to each other rank."""


@command.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    cls=ExplainedCommand,
    examples={
        "Record what 64 ranks send": "-- mpiexec -n 64 ./program",
        "Collectives in two levels, over two sites": "--sites 0,0,1,1 -- mpiexec -n 4 ./program",
    },
)
@click.option("--out", default="matrix.csv", show_default=True, help="File to write the matrix to.")
@click.option(
    "--manager",
    metavar="ADDRESS",
    help="Report to this manager, at unix:/path or host:port, instead of writing a matrix.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Address, host:port, where ranks of other nodes reach this command [default: a Unix socket of this node].",
)
@click.option("--name", help="Name of the program [default: the name of its file].")
@click.option(
    "--seconds", type=common.Number(0.01, 3600), help="Seconds between two reports of a rank [default: 1]."
)
@click.option("--mpicc", help="Compiler of the library [default: that of the launcher].")
@click.option(
    "--two-level",
    type=click.Choice(["auto", "always", "never"]),
    help="Collectives in two levels, over the sites of a map "
    "(docs/explanation/sites-collectives.md) [default: auto].",
)
@click.option(
    "--sites",
    metavar="MAP",
    help="Site of every rank, if no manager sends it: 0,0,1,1, or a file of lines 'host site'.",
)
@click.argument("launch", nargs=-1, required=True, metavar="-- MPIEXEC...")
def run(launch: tuple[str, ...], out: str, manager: str | None, **options: Any) -> None:
    """Run an MPI program and write a matrix of the bytes that its ranks sent.

    MPIEXEC... is the command that starts it: mpiexec of MPICH or Open MPI, or srun, with all its arguments.
    The program is neither changed nor recompiled. The exit code is that of the program.
    """
    from topolane.mpi import build, watched_run

    if manager is not None:
        _check_manager(manager, options["listen"], _note)
    else:
        _check_out(out)
    library = build.library(options["mpicc"] or build.mpicc_for(launch), tell=_note)
    environment = _environment(options)
    if manager is not None:
        sys.exit(watched_run.run_unwatched(launch, library, environment | {"TOPOLANE_MPI_MANAGER": manager}))
    code, recorded = watched_run.run(launch, library, environment, listen=options["listen"], tell=_note)
    if recorded is None:
        _note(_why_no_rank(launch, code))
        sys.exit(code)
    common.write_text(out, recorded.text())
    if recorded.about.unfinished:
        ranks = ", ".join(map(str, recorded.about.unfinished[:8]))
        _note(f"ranks that did not reach MPI_Finalize, so their last reports may be missing: {ranks}")
    sys.exit(code)


def _why_no_rank(launch: tuple[str, ...], code: int) -> str:
    """The note for a run in which no rank reported."""
    from topolane.mpi import rankfile

    if code and (suspicion := rankfile.suspicion(launch)) is not None:
        return f"no rank started, so nothing is written: {suspicion}"
    return (
        f"no rank reported, so nothing is written: no process called MPI_Init of the MPI of {launch[0]} "
        "(programs that use only MPI sessions, or that are linked statically, are not watched)"
    )


def _environment(options: dict[str, Any]) -> dict[str, str]:
    """The environment variables for the ranks, from the options."""
    import secrets

    given = {
        "TOPOLANE_MPI_NAME": options["name"],
        "TOPOLANE_MPI_SECONDS": options["seconds"],
        "TOPOLANE_MPI_TWO_LEVEL": options["two_level"],
        "TOPOLANE_MPI_SITES": options["sites"],
    }
    program = {"TOPOLANE_MPI_PROGRAM": f"run-{secrets.token_hex(8)}"}
    return program | {name: str(value) for name, value in given.items() if value is not None}


def _check_manager(manager: str, listen: str | None, tell: Callable[[str], None]) -> None:
    """Prints a note, not an error, if no manager answers: it may start later, or only the ranks may reach it."""
    from topolane.mpi.address import Address

    address = Address.parse(manager.removeprefix("tcp:"))
    if listen is not None:
        raise InputError("--listen cannot be combined with --manager: the manager listens")
    if (reason := address.silent()) is not None:
        tell(f"--manager {manager}: no manager answers there now ({reason}); the ranks keep trying")


def _check_out(out: str) -> None:
    """Raises InputError if `out` cannot be written, before the program runs for hours."""
    files.check(out)


def _note(sentence: str) -> None:
    click.echo(f"topolane: {sentence}", err=True)


@command.command(
    cls=ExplainedCommand,
    examples={
        "Who sends how much to whom": "matrix.csv",
        "Draw the matrix": "matrix.csv --out matrix.svg",
    },
)
@click.argument("file")
@click.option("--out", help="File to draw the matrix into, .svg or .png.")
@click.option(
    "--pairs",
    type=click.IntRange(0, 10**6),
    default=5,
    show_default=True,
    help="Number of heaviest pairs to list.",
)
@common.json_option
def show(file: str, out: str | None, pairs: int, as_json: bool) -> None:
    """Summarise a matrix: how much each rank sent to each other rank, and where the time went."""
    from topolane.mpi import matrix, summary
    from topolane.report import traffic_matrix

    recorded = matrix.read(file)
    if out is not None:
        traffic_matrix.draw(recorded, out)
    figures = summary.summary(recorded, pairs)
    if as_json:
        common.print_json(figures)
    else:
        _print_summary(figures)


WORDS = {
    "point_to_point": "point-to-point, counted",
    "modelled": "collectives, modelled",
    "two_level": "collectives, counted",
    "one_sided": "one-sided, counted",
}


def _print_summary(figures: dict[str, Any]) -> None:
    """The summary as tables."""
    click.echo(
        f"{figures['name']}: {plural(figures['ranks'], 'rank')} on {plural(figures['hosts'], 'host')}, "
        f"{figures['mpi']}, {figures['seconds']:.3g} s"
    )
    click.echo(f"in MPI {figures['in_mpi']:.1%} of the time, waiting for other ranks {figures['skew']:.1%}")
    if figures["unfinished"]:
        click.echo(f"did not reach MPI_Finalize: {plural(len(figures['unfinished']), 'rank')}")
    rows = [(WORDS[kind], *_cells(one)) for kind, one in figures["kinds"].items() if any(one.values())]
    rows += [
        ("all", *_cells(figures["all"])),
        ("between the halves of the ranks", *_cells(figures["halves"])),
    ]
    common.print_table(("sent", "messages", "bytes", "turns"), rows)
    if figures["pairs"]:
        heaviest = [(f"{one['from']} to {one['to']}", *_cells(one)) for one in figures["pairs"]]
        common.print_table(("heaviest pairs", "messages", "bytes", "turns"), heaviest)
    if figures["calls"]:
        calls = [
            (one["call"], f"{one['calls']:,}", f"{one['bytes']:,}", f"{one['seconds']:.3f}")
            for one in figures["calls"]
        ]
        common.print_table(("call, all ranks", "calls", "bytes", "seconds"), calls)


def _cells(figures: dict[str, int]) -> tuple[str, ...]:
    return tuple(f"{figures[name]:,}" for name in ("messages", "bytes", "turns"))
