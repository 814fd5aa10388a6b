"""Chooses the cores per node of jobs that give only their number of processes (rank k)."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import functools
import math
from collections.abc import Iterable

from topolane._engine import InputError, Machine, Profile, Scheduler, Traffic
from topolane.slurm.candidates import IneligibleJobError
from topolane.slurm.comments import named_traffic
from topolane.slurm.records import Job

MOST_PROCESSES = 4096
"""The largest program with a prediction: the traffic of a larger one would take too long to predict."""


@dataclasses.dataclass(frozen=True)
class Program:
    """The administrator's description of the programs whose jobs have such a name
    (docs/guides/cores-per-node.md).
    """

    name: str
    """A pattern like those for file names: `milc*`."""
    pattern: str
    iterations: float = 1.0
    core_seconds: float = 0.0
    memory_traffic: float = 0.0
    memory: int = 0
    communication: float = 0.3
    """The part of its time for which it communicates, for policies that look at traffic."""


def is_matrix(pattern: str) -> bool:
    """Whether a pattern is the name of a measured matrix."""
    return pattern.endswith(".csv")


def program_of(job: Job, programs: Iterable[Program]) -> Program | None:
    """The first description that fits the job's name."""
    return next((each for each in programs if fnmatch.fnmatchcase(job.name, each.name)), None)


class Programs:
    """Chooses k once for each job, in the state at its first request, like the simulator."""

    def __init__(
        self, machine: Machine, programs: Iterable[Program], cores: str, *, routing: str, model: str
    ) -> None:
        self._programs, self._cores, self._model = tuple(programs), cores, model
        self._routing = machine.routing(routing)
        self._chosen: dict[int, tuple[int, int]] = {}
        for program in self._programs:
            if not is_matrix(program.pattern):
                try:
                    _profile(program, 2)
                except InputError as error:
                    raise InputError(f"programs: {program.name}: {error}") from error

    def cores_of(
        self, job: Job, eligible: tuple[int, ...], running: Iterable[Job], scheduler: Scheduler, now: float
    ) -> int | None:
        """The cores to use on each node, or None for all. The prediction includes the traffic of the running
        jobs. `now`: seconds, on the scheduler's clock. Raises IneligibleJobError if the job's comment names a pattern
        that cannot be.
        """
        if job.most_nodes or job.processes_per_node or not 1 < job.processes <= MOST_PROCESSES:
            return None
        if self._cores != "auto":
            return int(self._cores.removeprefix("fixed:"))
        program = self._program(job)
        if program is None:
            return None
        kept = self._chosen.get(job.id)
        if kept is None or kept[0] != job.processes:
            try:
                chosen = self._choose(job, program, eligible, running, scheduler, now)
            except InputError as error:
                if named_traffic(job) is None:
                    return None  # the job's user cannot change how its program is described
                raise IneligibleJobError(f"traffic in its comment: {error}") from error
            kept = (job.processes, chosen)
            self._chosen[job.id] = kept
        return kept[1] or None

    def forget(self, job: int) -> None:
        """Forgets a job that has ended."""
        self._chosen.pop(job, None)

    def _choose(
        self,
        job: Job,
        program: Program,
        eligible: tuple[int, ...],
        running: Iterable[Job],
        scheduler: Scheduler,
        now: float,
    ) -> int:
        """k, or 0 if no k fits."""
        profile, traffic = _profile(program, job.processes)
        placed = {given.id: given.nodes for given, _, _ in scheduler.running}
        running_traffic = []
        for other in running:
            its = self._program(other)
            if its is not None and other.id in placed and 1 < other.processes <= MOST_PROCESSES:
                with contextlib.suppress(InputError):  # a pattern that cannot be: nothing is known of the job
                    sent = _profile(its, other.processes)[1]
                    running_traffic.append((_node_of_each(other, placed[other.id]), sent))
        for empty in (False, True):
            ranks = scheduler.rank_k(
                self._routing,
                profile,
                cores=self._cores,
                model=self._model,
                jobs=running_traffic,
                id=job.id,
                eligible=eligible,
                empty=empty,
                traffic=(traffic, program.communication),
                walltime=math.inf if job.walltime is None else job.walltime,
                now=now,
            )
            for rank in ranks:
                if rank.chosen:
                    return rank.k
        return 0

    def _program(self, job: Job) -> Program | None:
        """The description of the job's program, with the pattern that its comment names, if any. None also for a measured
        matrix, which does not say what another k would change.
        """
        program = program_of(job, self._programs)
        if program is None:
            return None
        asked = named_traffic(job)
        pattern = program.pattern if asked is None else asked
        return None if is_matrix(pattern) else dataclasses.replace(program, pattern=pattern)


# As many as run at a time, mostly: each new job asks for all of them. 4,096 processes that all send to all take 400 MB.
@functools.lru_cache(32)
def _profile(program: Program, processes: int) -> tuple[Profile, Traffic]:
    """Raises InputError for a pattern that cannot be."""
    profile = Profile(
        processes,
        program.pattern,
        iterations=program.iterations,
        core_seconds=program.core_seconds,
        memory_traffic=program.memory_traffic,
        memory=program.memory,
    )
    return profile, Traffic.pattern(program.pattern, processes)


def _node_of_each(job: Job, nodes: list[int]) -> list[int]:
    """The node of every rank, evenly and in blocks."""
    per_node = math.ceil(job.processes / len(nodes))
    return [nodes[rank // per_node] for rank in range(job.processes)]
