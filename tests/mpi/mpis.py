"""The MPIs that tests run with, and programs for them."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from topolane.mpi import build, matrix, watched_run
from waiting import DEADLINE

TOPOLANE = [sys.executable, "-c", "from topolane.cli import main; main()"]
HERE = Path(__file__).parent
# More ranks than cores, by whomever the tests are run.
AROUND = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@dataclasses.dataclass(frozen=True)
class Mpi:
    """One MPI of this machine."""

    name: str
    """mpich or openmpi, as Debian's commands end."""

    @property
    def missing(self) -> list[str]:
        """The commands of it that are not here."""
        commands = [f"{base}.{self.name}" for base in ("mpicc", "mpiexec")]
        return [command for command in commands if shutil.which(command) is None]

    def compile(
        self,
        sources: Sequence[Path],
        made: Path,
        compiler: str = "mpicc",
        language: str = "",
        more: Sequence[str] = (),
    ) -> Path:
        """A program of those sources, with `more` flags."""
        # -w: gcc takes MPI_STATUSES_IGNORE for an array that is too short.
        flags = ["-O1", "-w", *more, *(["-x", language] if language else [])]
        command = [f"{compiler}.{self.name}", *flags, "-o", str(made), *map(str, sources), "-lpthread"]
        subprocess.run(command, check=True, cwd=made.parent)
        return made

    def launch(self, program: Path, *words: object, ranks: int = 4) -> list[str]:
        """The command that starts it."""
        return [f"mpiexec.{self.name}", "-n", str(ranks), str(program), *map(str, words)]

    def watched(
        self,
        program: Path,
        *words: object,
        ranks: int = 4,
        environment: Mapping[str, str] | None = None,
        messages: list[str] | None = None,
    ) -> tuple[int, matrix.Recorded | None]:
        """Exit code and matrix of a run. What was said of reports is appended to `messages`."""
        command = self.launch(program, *words, ranks=ranks)
        library = build.library(build.mpicc_for(command))
        messages = [] if messages is None else messages
        return watched_run.run(command, library, environment or {}, tell=messages.append)

    def printed(
        self, program: Path, *words: object, ranks: int = 4, environment: Mapping[str, str] | None = None
    ) -> tuple[str, matrix.Recorded]:
        """What a run prints that is watched by the command, and its matrix."""
        out = program.parent / "matrix.csv"
        command = [
            *TOPOLANE,
            "mpi",
            "run",
            "--out",
            str(out),
            "--",
            *self.launch(program, *words, ranks=ranks),
        ]
        around = os.environ | AROUND | dict(environment or {})
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=around)
        assert done.returncode == 0, done.stderr
        return done.stdout, matrix.read(out)

    def plain(self, program: Path, *words: object, ranks: int = 4) -> subprocess.CompletedProcess[str]:
        """A run that is not watched."""
        command = self.launch(program, *words, ranks=ranks)
        return subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE, env=os.environ | AROUND
        )


EVERY = [Mpi("mpich"), Mpi("openmpi")]
