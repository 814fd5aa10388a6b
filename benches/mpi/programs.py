"""Runs whole programs plain, watched and in two levels. Compares their results and their times.

The programs come from Debian's packages hpcc, lammps, mumps-test and scalapack-mpi-test, with 4 ranks of Open
MPI on two sites, assigned in turn. `--delay` puts the sites into network namespaces with a real delay between
them (far_sites.py, root only), and compares the times of flat collectives and two levels there. Times are
those of whole runs, including the start of MPI.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from measure import Options, Result
from topolane.mpi import build

SITES = (0, 1, 0, 1)
SCALAPACK = Path("/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests")
MUMPS = Path("/usr/lib/mumps")
HPCC_INPUT = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
CLOSE = 1e-9
"""Two numbers are equal up to this fraction of the larger one, because two levels add in another order."""
SMALL = 1e-12
"""Smaller differences are rounding errors, for example of residuals."""
AROUND = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
# Charges on a melting lattice: short-range forces and PPPM's transforms.
LAMMPS_INPUT = """units lj
atom_style charge
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
set group all charge 0.5
group half id <= 432
set group half charge -0.5
velocity all create 1.44 87287 loop geom
pair_style lj/cut/coul/long 2.5 2.5
pair_coeff 1 1 1.0 1.0
kspace_style pppm 1e-4
fix 1 all nve
thermo 10
run 20
"""
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


@dataclasses.dataclass(frozen=True)
class Program:
    """A program with its input and the lines of its output that are results."""

    name: str
    package: str
    path: Path
    results: str
    """A pattern for the lines whose numbers are compared."""
    words: tuple[str, ...] = ()
    files: Mapping[str, Callable[[], str]] = dataclasses.field(default_factory=dict)
    stdin: Path | None = None
    output: str | None = None
    """The file with the results [default: standard output]."""

    def numbers(self, folder: Path, printed: str) -> list[float]:
        text = (folder / self.output).read_text() if self.output else printed
        lines = re.findall(self.results, text, re.MULTILINE)
        return [float(number) for line in lines for number in NUMBER.findall(line)]


def hpcc_input() -> str:
    """HPCC's example input with a small matrix."""
    return re.sub(r"^1000( +Ns)$", r"200\1", HPCC_INPUT.read_text(), flags=re.MULTILINE)


def scalapack(name: str, data: str) -> Program:
    finished = r"^ +\d+ tests (?:completed|skipped).*$"
    files = {data: (SCALAPACK / data).read_text}
    return Program(name, "scalapack-mpi-test", SCALAPACK / name, finished, files=files)


def mumps(name: str, data: str) -> Program:
    return Program(name, "mumps-test", MUMPS / name, r"Solution is(.*(?:\n +[-(\d].*)*)", stdin=MUMPS / data)


PROGRAMS = (
    scalapack("xdlu", "LU.dat"),
    scalapack("xdqr", "QR.dat"),
    mumps("dsimpletest", "input_simpletest_real"),
    mumps("zsimpletest", "input_simpletest_cmplx"),
    Program(
        "lammps",
        "lammps",
        Path("/usr/bin/lmp"),
        r"^ +\d+(?: +[-+.\de]+){5} *$",
        ("-in", "in.lmp", "-log", "none"),
        {"in.lmp": lambda: LAMMPS_INPUT},
    ),
    Program(
        "hpcc",
        "hpcc",
        Path("/usr/bin/hpcc"),
        r"^(?:Success|HPL_N|PTRANS_residual|MPIFFT_maxErr|MPIRandomAccess_Errors)(=.*)$",
        files={"hpccinf.txt": hpcc_input},
        output="hpccoutf.txt",
    ),
)

Launch = Callable[[Mapping[str, str], "list[str]"], "list[str]"]


def launched_here(environment: Mapping[str, str], command: list[str]) -> list[str]:
    exported = [word for name, value in environment.items() for word in ("-x", f"{name}={value}")]
    return ["mpiexec.openmpi", "-n", str(len(SITES)), *exported, *command]


@dataclasses.dataclass(frozen=True)
class Row:
    """The results of a program run in one way."""

    program: str
    way: str
    compared: int
    """The number of values in its results."""
    same: bool
    difference: float
    """The largest difference from the plain run, relative to the larger number."""
    seconds: list[float]
    failed: str = ""

    def __str__(self) -> str:
        took = f"{statistics.median(self.seconds):.1f} ({min(self.seconds):.1f} to {max(self.seconds):.1f})"
        same = self.failed or f"{'same' if self.same else 'DIFFERENT'}, by {self.difference:.1g}"
        return f"| {self.program} | {self.way} | {self.compared} | {same} | {took} |"


def run(
    program: Program, launch: Launch, environment: Mapping[str, str], limit: float
) -> tuple[float, list[float], str]:
    """Runs a program. Returns seconds, the numbers of the results, and why it failed."""
    with (
        tempfile.TemporaryDirectory(prefix="topolane-") as folder,
        open(program.stdin or os.devnull) as given,
    ):
        for name, text in program.files.items():
            Path(folder, name).write_text(text())
        command = launch(environment, [str(program.path), *program.words])
        began = time.perf_counter()
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=given,
                capture_output=True,
                text=True,
                errors="replace",
                env=os.environ | AROUND,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return time.perf_counter() - began, [], f"not done after {limit:.0f} s"
        seconds = time.perf_counter() - began
        if done.returncode:
            return seconds, [], f"exit code {done.returncode}"
        return seconds, program.numbers(Path(folder), done.stdout), ""


def difference(numbers: list[float], plain: list[float]) -> float:
    """The largest difference between two results, relative to the larger number; inf if they have different
    lengths.
    """
    if len(numbers) != len(plain) or not plain:
        return float("inf")
    apart = (
        abs(a - b) / max(abs(a), abs(b)) for a, b in zip(numbers, plain, strict=True) if abs(a - b) > SMALL
    )
    return max(apart, default=0.0)


def measured(program: Program, launch: Launch, where: str, times: int, limit: float) -> Iterator[Row]:
    """The rows of a program. The ways alternate, so that disturbances affect all of them."""
    library = str(build.library("mpicc.openmpi"))
    sites = {"LD_PRELOAD": library, "TOPOLANE_MPI_SITES": ",".join(map(str, SITES))}
    ways: dict[str, dict[str, str]] = {
        "plain": {},
        "watched": {"LD_PRELOAD": library, "TOPOLANE_MPI_TWO_LEVEL": "never"},
        "two levels": sites | {"TOPOLANE_MPI_TWO_LEVEL": "auto" if where else "always"},
    }
    if where:
        del ways["watched"]
    runs: dict[str, list[tuple[float, list[float], str]]] = {way: [] for way in ways}
    for _ in range(times):
        for way, environment in ways.items():
            runs[way].append(run(program, launch, environment, limit))
    plain = runs["plain"][0][1]
    for way, all_runs in runs.items():
        apart = max(difference(numbers, plain) for _, numbers, _ in all_runs)
        failed = next((why for _, _, why in all_runs if why), "")
        seconds = [took for took, _, _ in all_runs]
        yield Row(program.name, way + where, len(plain), apart <= CLOSE, apart, seconds, failed)


def rows(options: Options) -> Iterator[Row]:
    """All rows. A program that is not installed is named and skipped."""
    chosen = [each for each in PROGRAMS if each.name in (options.program or [each.name])]
    for done, program in enumerate(chosen):
        if not program.path.exists():
            print(f"not run: {program.name}: apt-get install {program.package}", file=sys.stderr)
            continue
        if sys.stderr.isatty():
            bar = "#" * done + "." * (len(chosen) - done)
            print(f"\r[{bar}] {program.name}          ", end="", file=sys.stderr)
        with contextlib.ExitStack() as stack:
            launch, where = launched_here, ""
            if options.delay is not None:
                from far_sites import far_sites

                far = stack.enter_context(far_sites(SITES, 1e-3 * options.delay, 1000.0))
                launch, where = lambda *given, far=far: far.launch("openmpi", *given), " over the WAN"
            yield from measured(program, launch, where, options.times, options.limit)
    if sys.stderr.isatty():
        print(file=sys.stderr)


def measure(options: Options) -> Result:
    """Prints a row for each program and way. Raises RuntimeError or ValueError for options that cannot be
    met.
    """
    if unknown := set(options.program or ()) - {each.name for each in PROGRAMS}:
        raise ValueError(
            f"there is no program {min(unknown)}; there are {', '.join(each.name for each in PROGRAMS)}"
        )
    if options.delay is not None and os.geteuid() != 0:
        raise RuntimeError("--delay makes network namespaces: run it as root")
    print("| program | way | numbers | results | seconds of a run, median (least to most) |")
    print("|---|---|---|---|---|")
    found = []
    for row in rows(options):
        found.append(row)
        print(row, flush=True)
    failed = any(row.failed or not row.same for row in found)
    return Result(facts=[dataclasses.asdict(row) for row in found], failed=failed)
