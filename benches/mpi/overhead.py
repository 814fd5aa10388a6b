"""Measures the cost of watching.

There are two methods. In one run, watched calls alternate with unwatched ones (pairs.h): this shows the cost
of the calls without the differences between runs; the same without the library shows how far the method can
be trusted. In pairs of runs, without and with the library, the difference contains the whole cost, including
the thread that reports every second and the receiver, but also all disturbances. Each watched run has an
unwatched one before and after it, in alternating order, and these two form a control pair. The whole program
is LAMMPS with PPPM (programs.py) with Open MPI, whose loop is timed. `--programs` names a directory with
programs that print "Time in seconds = T", like NPB's, for the MPI that --mpi names; their names end in the
number of ranks, for example cg.W.2.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from measure import Options, Result
from programs import LAMMPS_INPUT

HERE = Path(__file__).resolve().parent
TOPOLANE = [
    sys.executable,
    "-c",
    "from topolane.cli import main; main()",
    "mpi",
    "run",
    "--out",
    os.devnull,
    "--",
]
# Allow more ranks than cores in every run.
AROUND = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
STEPS = {"cg": 2000, "lu": 2000, "mg": 1500, "ep": 1500}
"""Steps of each kernel, enough for some seconds."""


@dataclasses.dataclass(frozen=True)
class Calls:
    """The results of runs in which watched and unwatched calls alternate: the median of each run."""

    mpi: str
    what: str
    unit: str
    without: list[float]
    watched: list[float]
    more: list[float]
    unwatched: list[float]
    """The same difference without the library; without disturbances it would be zero."""

    def __str__(self) -> str:
        without, more = statistics.median(self.without), statistics.median(self.more)
        return (
            f"| {self.mpi} | {self.what} | {without:.4g} {self.unit} | {statistics.median(self.watched):.4g} {self.unit} | "
            f"{more:+.3g} {self.unit} | {100 * more / without:+.2f} % | {100 * min(self.more) / without:+.2f} to "
            f"{100 * max(self.more) / without:+.2f} % | {100 * statistics.median(self.unwatched) / without:+.2f} % |"
        )


@dataclasses.dataclass(frozen=True)
class Runs:
    """The seconds of paired runs, without and with the library."""

    mpi: str
    what: str
    without: list[float]
    watched: list[float]
    again: list[float]
    """A second run without the library. With the first one it forms a control pair."""

    def __str__(self) -> str:
        least, watched = min(self.without + self.again), min(self.watched)
        return (
            f"| {self.mpi} | {self.what} | {least:.4g} s | {watched:.4g} s | {100 * (watched / least - 1):+.1f} % | "
            f"{spread(self.without, self.watched)} | {spread(self.without, self.again)} |"
        )


def spread(before: Sequence[float], after: Sequence[float]) -> str:
    """The increase within pairs: the median, the least and the largest."""
    more = sorted(100 * (second / first - 1) for first, second in zip(before, after, strict=True))
    return f"{statistics.median(more):+.1f} % | {more[0]:+.1f} to {more[-1]:+.1f} %"


Row = TypeVar("Row", Calls, Runs)
HEADS = {
    Calls: "| MPI | a call or step, in one run | without | watched | more | | of all runs | without the library |",
    Runs: "| MPI | whole runs | without | watched | more, least of all | more, median of pairs | of all pairs "
    "| control, median | of all control pairs |",
}


def figures(command: Sequence[str]) -> list[float]:
    """The numbers that a program prints."""
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | AROUND)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    found = re.search(r"(?:Time in seconds\s*=|Loop time of)\s*([0-9.]+)", done.stdout)
    return [float(number) for number in ([found[1]] if found else done.stdout.split())]


def calls(mpi: str, what: str, unit: str, command: Sequence[str], times: int) -> Calls:
    """Runs watched and unwatched calls in turn, with and without the library."""
    control, watched = [], []
    figures([*TOPOLANE, *command])  # this run compiles the library
    for _ in range(times):
        control.append(figures(command))
        watched.append(figures([*TOPOLANE, *command]))
    without, seen, more = (list(column) for column in zip(*watched))
    return shown(Calls(mpi, what, unit, without, seen, more, [run[2] for run in control]))


def runs(mpi: str, what: str, command: Sequence[str], times: int) -> Runs:
    """Alternates runs. A first run, which compiles the library and warms up, is not counted."""
    figures([*TOPOLANE, *command])
    without: list[float] = []
    watched: list[float] = []
    again: list[float] = []
    for turn in range(times):
        plain = (without, again) if turn % 2 == 0 else (again, without)
        plain[0].extend(figures(command))
        watched += figures([*TOPOLANE, *command])
        plain[1].extend(figures(command))
    return shown(Runs(mpi, what, without, watched, again))


def whole_program(mpi: str, launch: Sequence[str], scratch: str, times: int, quick: bool) -> Iterator[Runs]:
    """The runs of LAMMPS, if it is installed; Debian's is built with Open MPI."""
    if mpi != "openmpi" or shutil.which("lmp") is None:
        return
    given = Path(scratch, "in.lmp")
    given.write_text(LAMMPS_INPUT.replace("run 20", f"run {50 if quick else 1000}"))
    yield runs(mpi, "LAMMPS, PPPM, 2 ranks", [*launch, "2", "lmp", "-in", str(given), "-log", "none"], times)


def shown(row: Row) -> Row:
    """Prints a row to show progress, and returns it."""
    print(row, file=sys.stderr, flush=True)
    return row


def measured(mpi: str, times: int, quick: bool, programs: Path | None) -> Iterator[Calls | Runs]:
    """All rows of one MPI."""
    # Two ranks suit two cores; with more ranks the scheduler would be measured.
    launch = [f"mpiexec.{mpi}", "-n"]
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("pingpong", "kernels"):
            made = ["-O2", "-w", "-o", f"{scratch}/{name}", str(HERE / f"{name}.c")]
            subprocess.run([f"mpicc.{mpi}", *made], check=True)
        for ranks, what in ((1, "a call, to itself"), (2, "a call, ping-pong")):
            yield calls(mpi, what, "ns", [*launch, str(ranks), f"{scratch}/pingpong"], times)
        for name, steps in STEPS.items():
            command = [*launch, "2", f"{scratch}/kernels", name, str(steps // 10 if quick else steps)]
            yield calls(mpi, f"a step, {name}-like", "us", [*command, "pairs"], times)
            yield runs(mpi, f"{name}-like, 2 ranks", command, times)
        yield from whole_program(mpi, launch, scratch, times, quick)
    for program in sorted(programs.iterdir()) if programs else ():
        yield runs(mpi, program.name, [*launch, program.suffix[1:], str(program)], times)


def measure(options: Options) -> Result:
    """Prints the rows of every installed MPI."""
    rows: list[Calls | Runs] = []
    for mpi in options.mpi:
        if shutil.which(f"mpiexec.{mpi}") is None or shutil.which(f"mpicc.{mpi}") is None:
            print(f"not measured: mpicc.{mpi} or mpiexec.{mpi} is missing", file=sys.stderr)
            continue
        rows += measured(mpi, 2 if options.quick else 7, options.quick, options.programs)
    for kind, head in HEADS.items():
        print(head, "|---" * (head.count("|") - 1) + "|", sep="\n")
        print("\n".join(str(row) for row in rows if isinstance(row, kind)), end="\n\n")
    return Result(facts=[dataclasses.asdict(row) for row in rows])
