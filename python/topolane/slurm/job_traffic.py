"""What a job sends: its user's word, or the administrator's description of its program."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable
from pathlib import Path

from topolane import texts
from topolane._engine import InputError, Traffic
from topolane.live.job_request import JobTraffic, for_engine
from topolane.slurm.candidates import IneligibleJobError
from topolane.slurm.comments import named_traffic
from topolane.slurm.programs import MOST_PROCESSES, Program, is_matrix, program_of
from topolane.slurm.records import Job

MATRIX = re.compile(r"\w[\w.-]*", re.ASCII)
"""The name of a file in the directory of matrices: none outside it."""
LARGEST = 4 * texts.MIB
"""The most bytes of a matrix, which the log repeats."""


class TrafficOfJobs:
    """Says what jobs send, for a policy that looks at it."""

    def __init__(self, programs: Iterable[Program], matrices: str | None = None) -> None:
        """`matrices`: the directory of the matrices that may be named. Each is read once, when it is first named.

        Raises InputError for a description with a pattern or a matrix that cannot be.
        """
        self._programs = tuple(programs)
        self._directory = matrices
        self._matrices: dict[str, tuple[int, str]] = {}
        """Ranks and text of those read, by name."""
        self._refused: dict[str, tuple[tuple[int, int], str]] = {}
        """Those that are no matrix, by name: the state of the file, and why. They are not read again until it changes."""
        for program in self._programs:
            try:
                if is_matrix(program.pattern):
                    self._matrix(program.pattern)
                else:
                    Traffic.pattern(program.pattern, 2)
            except InputError as error:
                raise InputError(f"programs: {program.name}: {error}") from error

    def of(self, job: Job) -> JobTraffic | None:
        """None if it is not known, or if the job has one process or too many.

        The word `traffic=stencil4d` in the user's comment overrides the description. A name that ends in `.csv` is that
        of a matrix, for jobs of as many processes as it has ranks. Raises IneligibleJobError for a pattern or a
        matrix that cannot be.
        """
        if not 1 < job.processes <= MOST_PROCESSES:
            return None
        program = program_of(job, self._programs)
        asked = named_traffic(job)
        if asked is None and program is None:
            return None
        pattern = asked if asked is not None else program.pattern if program else ""
        communication = program.communication if program else Program.communication
        try:
            traffic = JobTraffic(pattern, job.processes, communication, self._csv(pattern, job.processes))
            for_engine(traffic)
        except InputError as error:
            if asked is None:
                return None  # the job's user cannot change how its program is described
            raise IneligibleJobError(f"traffic in its comment: {error}") from error
        return traffic

    def of_running(self, job: Job) -> JobTraffic | None:
        """The same, with None for a pattern that cannot be."""
        try:
            return self.of(job)
        except IneligibleJobError:
            return None

    def _csv(self, name: str, processes: int) -> str | None:
        """The matrix of that name, or None for a pattern."""
        if not is_matrix(name):
            return None
        ranks, text = self._matrix(name)
        if ranks != processes:
            raise InputError(f"the matrix {name} has {ranks} ranks, and the job {processes} processes")
        return text

    def _matrix(self, name: str) -> tuple[int, str]:
        if name not in self._matrices:
            if self._directory is None:
                raise InputError(
                    f"the matrix {texts.shown(name)} is named, but no directory of matrices is configured"
                )
            if MATRIX.fullmatch(name) is None:
                raise InputError(f"{texts.shown(name)} is no name of a matrix")
            path = Path(self._directory, name)
            as_it_is = _state_of(path, name)
            refused = self._refused.get(name)
            if refused is not None and refused[0] == as_it_is:
                raise InputError(refused[1])
            text = texts.read_text(path, LARGEST)
            try:
                traffic = Traffic.parse(text, name)
            except InputError as error:
                self._refused[name] = as_it_is, str(error)
                raise
            self._matrices[name] = traffic.ranks, traffic.csv()
        return self._matrices[name]


def _state_of(path: Path, name: str) -> tuple[int, int]:
    """The time of the last change and the length of a matrix's file. Raises InputError if there is none."""
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"there is no matrix {name}") from error
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"the matrix {name} is not a file")
    return found.st_mtime_ns, found.st_size
