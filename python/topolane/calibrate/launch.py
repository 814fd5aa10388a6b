"""Builds the measuring program with the user's compiler and runs it with their launcher."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from topolane._engine import InputError
from topolane.calibrate.measurement import Measurement, Reader, check_hosts
from topolane.compiling import compiled, ended, first_error, split

SOURCES = Path(__file__).parent / "native"
DEFAULT_LAUNCH = "mpiexec -n {ranks} {program}"
ALLTOALL = (64 << 10, 1 << 20)


@dataclass(frozen=True)
class MeasuringPlan:
    """The measurements to make, and the command that starts them."""

    nodes: int
    processes: int
    """Processes on each node, which is the number of its cores."""
    repetitions: int = 20
    largest: int = 4 << 20
    """Bytes of the largest message."""
    alltoall: tuple[int, ...] = ALLTOALL
    """Bytes that each process sends to each other process."""
    mpicc: str = "mpicc"
    launch: str = DEFAULT_LAUNCH

    def command(self, program: Path) -> list[str]:
        """The words of the launch command. Raises InputError for an invalid template."""
        numbers = [self.repetitions, self.largest, *self.alltoall]
        started = [str(program), *map(str, numbers)]
        words = []
        for word in split(self.launch, "--launch"):
            for name in ("nodes", "processes"):
                word = word.replace(f"{{{name}}}", str(getattr(self, name)))
            word = word.replace("{ranks}", str(self.nodes * self.processes))
            words += started if word == "{program}" else [word.replace("{program}", shlex.join(started))]
        if "{program}" not in self.launch:
            raise InputError(f"--launch {self.launch!r}: {{program}} is not in it")
        return words


def build(mpicc: str, directory: Path) -> Path:
    """Compiles the program into a directory. Raises InputError with the compiler's first message."""
    sources = sorted(map(str, SOURCES.glob("*.c")))
    return compiled("--mpicc", mpicc, ["-std=c99", "-O2", *sources], directory / "calibrate")


def measure(plan: MeasuringPlan, directory: Path, show: Callable[[int, int], None]) -> Measurement:
    """Builds the program in `directory`, which all nodes must see, runs it and reads what it prints.

    `show(done, all)` is called after every measurement. Raises InputError if the compiler or the launcher
    fails, if the output is invalid, or if ranks are not placed as requested.
    """
    command = plan.command(directory / "calibrate")
    build(plan.mpicc, directory)
    reader = Reader(f"--launch {command[0]}: its output")
    with running(command) as lines:
        for line in lines:
            known = reader.expected
            reader.take(line)
            if reader.expected is None:
                continue
            if known is None:
                check_hosts(reader.hosts, f"--launch {command[0]}", plan.nodes, plan.processes)
            show(len(reader.rows), reader.expected)
    return reader.measurement()


@contextlib.contextmanager
def running(command: Sequence[str]) -> Iterator[IO[str]]:
    """The output of a command that must succeed. The command is ended if the reader stops early."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise InputError(f"--launch {command[0]}: cannot be started: {error.strerror}") from error
        with process:
            try:
                assert process.stdout is not None
                yield process.stdout
            except BaseException:  # the reader stopped early, or was interrupted
                process.terminate()
                raise
        if process.returncode != 0:
            said.seek(0)
            raise InputError(f"--launch {command[0]}: {ended(process.returncode)}{first_error(said.read())}")
