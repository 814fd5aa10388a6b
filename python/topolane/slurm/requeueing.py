"""Shared by all plans that requeue running jobs of Slurm: the jobs in a plan, and the execution of a plan."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from topolane import texts
from topolane._engine import InputError
from topolane.cluster import room_files
from topolane.cluster.applying import Applying
from topolane.cluster.clients.scontrol import scontrol
from topolane.cluster.room_files import RoomJournal
from topolane.slurm.explain import tasks_named
from topolane.slurm.inspection import InspectionSettings, SlurmInspection, inspect, names_in
from topolane.slurm.records import SlurmJob, Snapshot

P = TypeVar("P")
J = TypeVar("J")

HOUR = 3600.0
NUMBER = re.compile("[0-9]+(_[0-9]+)?")
"""The number of a job, or of a task of an array."""
KINDS = {"partition": "NAME", "qos": "NAME", "account": "NAME"}
"""The kinds of words for `--untouchable`, with the form of their values."""
REQUEUE = "requeue"
"""The step that the journal records before a job is requeued."""


@dataclasses.dataclass(frozen=True)
class Requeued:
    """A running job that must be requeued. Times are in seconds since 1970."""

    job: str
    """The job's number as Slurm prints it."""
    name: str
    user: str
    nodes: str
    """Hostlist of its nodes."""
    node_count: int
    start: float
    restarts: int
    """The number of its requeues so far. Together with `start`, it identifies this run of the job."""
    node_hours: float
    """Node-hours since its start, which will be lost."""

    @classmethod
    def of(cls, job: SlurmJob, nodes: int, now: float) -> Requeued:
        """The plan's entry for a job that runs on `nodes` nodes."""
        cost = round(cost_of(job, now, nodes) / HOUR, 6)
        return cls(job.number, job.name, job.user, job.nodes, nodes, job.start, job.restarts, cost)

    def is_run_of(self, job: SlurmJob | None) -> bool:
        """Whether the job is still the run in the plan, on the same nodes."""
        return (
            job is not None
            and job.state == "RUNNING"
            and (job.start, job.restarts) == (self.start, self.restarts)
            and set(names_in(job.nodes)) == set(names_in(self.nodes))
        )


@dataclasses.dataclass(frozen=True)
class ProtectedJobs:
    """The jobs that must stay, by the operator's wish."""

    named: frozenset[tuple[str, str]] = frozenset()
    """Pairs of kind and name; see `KINDS`."""
    any_priority: bool = False
    """Whether jobs of a higher priority than the waiting job's may be requeued too."""

    @classmethod
    def of(cls, words: Sequence[str], any_priority: bool = False) -> ProtectedJobs:
        """Reads words such as `qos=urgent`. Raises InputError."""
        return cls(room_files.named(words, KINDS), any_priority)

    def why(self, job: SlurmJob, waiting: SlurmJob | None = None) -> str | None:
        """Why a running job must stay, as a phrase that follows `a job`; None if it may be requeued.
        `waiting` is the job for which room is made, if there is one.
        """
        own = {("partition", name) for name in job.partitions} | {("qos", job.qos), ("account", job.account)}
        if job.state != "RUNNING":
            return f"in state {job.state}"
        if not job.requeueable:
            return "that Slurm may not requeue"
        if own & self.named:
            return "named by --untouchable"
        if waiting is not None and not self.any_priority and job.priority > waiting.priority:
            return "of higher priority"
        return None


def cost_of(job: SlurmJob, now: float, nodes: int) -> float:
    """The cost of requeueing a running job, in node-seconds: its work since it started."""
    return nodes * max(now - job.start, 0.0)


def check_numbers(numbers: Iterable[str], source: str) -> None:
    """Raises InputError for a word that is not a job number."""
    for word in numbers:
        if not NUMBER.fullmatch(word):
            raise InputError(f"{source}: {texts.shown(word)} is no number of a job")


def snapshot_of(look: SlurmInspection) -> Snapshot:
    """Slurm's records. Raises InputError if slurmctld does not answer."""
    if look.snapshot is None:
        raise InputError("; ".join(one.rstrip(".") for one in look.problems) or "slurmctld does not answer")
    return look.snapshot


def task(look: SlurmInspection, number: str) -> SlurmJob | None:
    """The job, or the task of an array, with this number."""
    return next((job for job in tasks_named(look, number) if job.number == number), None)


class SlurmApplying(Applying[P, InspectionSettings, SlurmInspection, J]):
    """Carries out a plan that requeues jobs. A run of a job is known by its start and by how often it had been requeued."""

    COMMAND = "topolane slurm apply"

    def __init__(
        self,
        plan: P,
        journal: RoomJournal,
        host: InspectionSettings,
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(plan, journal, host, seconds, tell)
        self._asked: set[str] = set()
        """Jobs that this call has requeued."""

    def look(self) -> SlurmInspection:
        """Slurm now. Raises InputError if it does not answer."""
        look = inspect(self.host)
        snapshot_of(look)
        return look

    def requeue(self, look: SlurmInspection, jobs: Iterable[Requeued]) -> bool:
        """Requeues jobs, unless they have ended or been requeued since the plan was made; returns whether it did."""
        return sum(self._requeue(each) for each in jobs if each.is_run_of(task(look, each.job))) > 0

    def _requeue(self, each: Requeued) -> bool:
        if each.job in self._asked or not each.is_run_of(task(self.look(), each.job)):
            return False
        self.journal.write(REQUEUE, each.job)
        try:
            scontrol("requeue", each.job)
        except InputError:
            if each.is_run_of(task(self.look(), each.job)):
                raise
            return False  # it has just ended by itself
        self._asked.add(each.job)
        self.tell(f"Job {each.job} is requeued: {each.nodes} becomes free.")
        return True
