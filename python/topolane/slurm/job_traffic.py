"""What a job sends: its user's word, or the administrator's description of its program."""

from __future__ import annotations

import re
from collections.abc import Iterable

from topolane._engine import InputError, Traffic
from topolane.live.job_request import JobTraffic, for_engine
from topolane.slurm.candidates import IneligibleJobError
from topolane.slurm.comments import user_comment
from topolane.slurm.programs import MOST_PROCESSES, Program, program_of
from topolane.slurm.records import Job

REQUEST = re.compile(r"(?<![^\s,;])traffic=([^\s;]*)")
"""A word of a user's comment."""


class TrafficOfJobs:
    """Says what jobs send, for a policy that looks at it."""

    def __init__(self, programs: Iterable[Program]) -> None:
        self._programs = tuple(programs)
        for program in self._programs:
            try:
                Traffic.pattern(program.pattern, 2)
            except InputError as error:
                raise InputError(f"programs: {program.name}: {error}") from error

    def of(self, job: Job) -> JobTraffic | None:
        """None if it is not known, or if the job has one process or too many.

        The word `traffic=stencil4d` in the user's comment overrides the description. Raises IneligibleJobError
        for a pattern that cannot be.
        """
        if not 1 < job.processes <= MOST_PROCESSES:
            return None
        program = program_of(job, self._programs)
        asked = REQUEST.search(user_comment(job.comment))
        if asked is None and program is None:
            return None
        pattern = asked[1] if asked else program.pattern if program else ""
        communication = program.communication if program else Program.communication
        traffic = JobTraffic(pattern, job.processes, communication)
        try:
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
