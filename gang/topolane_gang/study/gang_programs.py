"""The workloads of `native/gang` as programs: built on demand, their words, what they log."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from topolane.compiling import Missing, compile_with

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Barrier",
    "Coevp",
    "Independent",
    "Missing",
    "Mpi",
    "ProgramLine",
    "ProgramRun",
    "Workload",
    "build",
    "build_mpi",
    "by_thread",
    "log",
    "measured_rate",
    "mpis",
    "trace",
]

SOURCES = Path(__file__).parent / "native" / "gang"
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra")
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # The agent places ranks, so disable binding in the launchers.
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    # Else a rank that waits gives its core away by itself where there are more ranks than cores.
    "OMPI_MCA_mpi_yield_when_idle": "0",
    "HYDRA_BINDING": "none",
}


@dataclasses.dataclass(frozen=True)
class Independent:
    """Compute-bound threads, every one on its own."""

    kind: ClassVar[str] = "independent"
    iteration: float = 0.1
    """Seconds of CPU."""


@dataclasses.dataclass(frozen=True)
class Barrier:
    """All threads compute, then meet."""

    kind: ClassVar[str] = "barrier"
    interval: float = 1e-3
    """Seconds of CPU between barriers."""
    spin: bool = True
    """Whether who is early keeps its core."""
    imbalance: float = 0.0
    """Each interval is off by up to this share of it, drawn evenly."""


@dataclasses.dataclass(frozen=True)
class Coevp:
    """A coarse step on one thread, then fine-scale tasks on all from one queue, then communication."""

    kind: ClassVar[str] = "coevp"
    coarse: float = 0.01
    """Seconds of CPU of the coarse step."""
    tasks: int = 16
    """Of a step."""
    fine: float = 0.01
    """Seconds of CPU of a task, in the mean."""
    spread: float = 0.0
    """Sigma of the log-normal distribution of the tasks' seconds."""
    wait: float = 0.0
    """Seconds in which all are blocked after each step."""


Workload = Independent | Barrier | Coevp


@dataclasses.dataclass(frozen=True)
class ProgramRun:
    """A workload, and how long it runs: one of `seconds` and `iterations`."""

    workload: Workload
    seconds: float | None = None
    iterations: int | None = None
    seed: int = 0

    def words(self, rate: float, log: Path, trace: Path | None = None) -> list[str]:
        """What follows the program's name; `rate` is what `measured_rate` gave."""
        words = [self.workload.kind]
        fields = dataclasses.asdict(self.workload) | {"seconds": self.seconds, "iterations": self.iterations}
        for name, value in (fields | {"seed": self.seed, "rate": round(rate), "trace": trace}).items():
            if value is True:
                words.append(f"--{name}")
            elif value is not None and value is not False:
                words += [f"--{name}", str(value)]
        return [*words, "--log", str(log)]


@dataclasses.dataclass(frozen=True)
class ProgramLine:
    """An iteration of a log, or a time on a core of a trace; CLOCK_MONOTONIC seconds."""

    thread: int
    start: float
    end: float
    tasks: int = 0
    core: int = 0


@dataclasses.dataclass(frozen=True)
class Mpi:
    """An MPI of this machine, by its commands."""

    mpicc: str
    mpiexec: str

    def command(self, program: Path, ranks: int, words: list[str]) -> list[str]:
        """The command that starts `ranks` ranks of the program."""
        return [self.mpiexec, "-n", str(ranks), str(program), *words]


def mpis() -> list[Mpi]:
    """The MPIs that are here: Debian's MPICH and Open MPI by their own names, else whatever `mpicc` is."""
    known = [Mpi(f"mpicc{end}", f"mpiexec{end}") for end in (".mpich", ".openmpi", "")]
    here = [mpi for mpi in known if shutil.which(mpi.mpicc) and shutil.which(mpi.mpiexec)]
    return [mpi for mpi in here if mpi.mpicc != "mpicc"] or here


def build(folder: Path) -> Path:
    """Compiles the threads' form into a folder. Raises Missing where that cannot be done."""
    if shutil.which("gcc") is None:
        raise Missing("gcc not found: needs packages gcc and libc6-dev")
    return compiled("gcc", folder / "work", "-pthread")


def build_mpi(folder: Path, mpi: Mpi) -> Path:
    """Compiles the ranks' form into a folder. Raises Missing where that cannot be done."""
    return compiled(mpi.mpicc, folder / f"work-{mpi.mpicc}", "-DWITH_MPI")


def compiled(compiler: str, made: Path, *options: str) -> Path:
    """The program of all sources."""
    compile_with([compiler, *FLAGS, *options, *sorted(SOURCES.glob("*.c")), "-lm"], made)
    return made


def measured_rate(program: Path) -> float:
    """Rounds of the kernel in a second of a core, for all runs that are to do the same work."""
    done = subprocess.run([program, "rate"], capture_output=True, text=True, check=True)
    return float(done.stdout)


def log(file: Path) -> list[ProgramLine]:
    """The iterations of a log. A run that was ended before it wrote has none."""
    return [
        ProgramLine(int(thread), float(start), float(end), *map(int, tasks))
        for thread, start, end, *tasks in lines(file)
    ]


def trace(file: Path) -> list[ProgramLine]:
    """Who was on which core from when to when."""
    return [
        ProgramLine(int(thread), float(start), float(end), core=int(core))
        for thread, core, start, end in lines(file)
    ]


def lines(file: Path) -> list[list[str]]:
    """The words of each line; none where there is no such file."""
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def by_thread(iterations: list[ProgramLine]) -> Mapping[int, list[float]]:
    """When each thread's iterations ended, in order."""
    ends: dict[int, list[float]] = {}
    for line in iterations:
        ends.setdefault(line.thread, []).append(line.end)
    return ends
