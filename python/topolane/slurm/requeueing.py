"""What plans that requeue running jobs of Slurm have in common: the jobs in a plan, and how a plan is carried out."""

from __future__ import annotations

import dataclasses
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from topolane import texts
from topolane._engine import InputError
from topolane.cluster import room_files
from topolane.cluster.clients.scontrol import scontrol
from topolane.cluster.room_files import BEGIN, DONE, Journal, alone, journal_of, sum_of
from topolane.slurm.explain import tasks_named
from topolane.slurm.inspection import Inspection, Settings, inspect, names_in
from topolane.slurm.records import Job, Snapshot

P = TypeVar("P")

HOUR = 3600.0
NUMBER = re.compile("[0-9]+(_[0-9]+)?")
"""Of a job, or of a task of an array."""
KINDS = {"partition": "NAME", "qos": "NAME", "account": "NAME"}
"""What `--untouchable` may name, and how."""
REQUEUE = "requeue"
"""The step that is written to the journal before a job is requeued."""


@dataclasses.dataclass(frozen=True)
class Requeued:
    """A running job that must go. Times in seconds since 1970."""

    job: str
    """Its number, as Slurm prints it."""
    name: str
    user: str
    nodes: str
    """Hostlist."""
    node_count: int
    start: float
    restarts: int
    """How often it had been requeued before. Together with `start` it identifies this run of the job."""
    node_hours: float
    """What it has done since its start, which is lost."""

    @classmethod
    def of(cls, job: Job, nodes: int, now: float) -> Requeued:
        """A job that runs on `nodes` nodes."""
        cost = round(cost_of(job, now, nodes) / HOUR, 6)
        return cls(job.number, job.name, job.user, job.nodes, nodes, job.start, job.restarts, cost)

    def is_run_of(self, job: Job | None) -> bool:
        """Whether a job runs since the plan was made, on the same nodes."""
        return (
            job is not None
            and job.state == "RUNNING"
            and (job.start, job.restarts) == (self.start, self.restarts)
            and set(names_in(job.nodes)) == set(names_in(self.nodes))
        )


@dataclasses.dataclass(frozen=True)
class Untouchable:
    """Which jobs the operator wants to stay."""

    named: frozenset[tuple[str, str]] = frozenset()
    """(kind, name): see `KINDS`."""
    any_priority: bool = False
    """Whether jobs of a higher priority than that of the waiting job may go too."""

    @classmethod
    def of(cls, words: Sequence[str], any_priority: bool = False) -> Untouchable:
        """Of words such as `qos=urgent`. Raises InputError."""
        return cls(room_files.named(words, KINDS), any_priority)

    def why(self, job: Job, waiting: Job | None = None) -> str | None:
        """Why a running job must stay, as what follows `a job`; None if it may go. `waiting` is the job that waits for it, if one does."""
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


def cost_of(job: Job, now: float, nodes: int) -> float:
    """What requeueing a running job costs, node-seconds: its work since it started."""
    return nodes * max(now - job.start, 0.0)


def check_numbers(numbers: Iterable[str], source: str) -> None:
    """Raises InputError for a word that is no number of a job."""
    for word in numbers:
        if not NUMBER.fullmatch(word):
            raise InputError(f"{source}: {texts.shown(word)} is no number of a job")


def snapshot_of(look: Inspection) -> Snapshot:
    """Slurm's records. Raises InputError if slurmctld does not answer."""
    if look.snapshot is None:
        raise InputError("; ".join(one.rstrip(".") for one in look.problems) or "slurmctld does not answer")
    return look.snapshot


def task(look: Inspection, number: str) -> Job | None:
    """The job, or the task of an array, of that number."""
    return next((job for job in tasks_named(look, number) if job.number == number), None)


class Applying(ABC, Generic[P]):
    """Carries out a plan, with a journal next to it.

    Each step is in the journal before it is taken, and looks at Slurm before it changes anything. So after a crash it goes on where it
    was, and no job is requeued twice for one plan: a run of a job is known by its start and by how often it had been requeued.
    """

    PAUSE = 1.0
    """Seconds between two looks at Slurm."""
    STEPS: ClassVar[Sequence[str]]
    """What may stand in the journal."""

    def __init__(
        self, plan: P, journal: Journal, settings: Settings, seconds: float, tell: Callable[[str], None]
    ) -> None:
        self.plan, self.journal, self.settings, self.tell = plan, journal, settings, tell
        self.end = time.monotonic() + seconds

    @classmethod
    def apply(cls, path: Path, settings: Settings, *, seconds: float, tell: Callable[[str], None]) -> None:
        """Carries out the plan in a file, or goes on with it.

        seconds: how long to wait for Slurm. tell: gets a sentence for each step. Raises NotAppliedError if the plan is no longer
        true (then nothing was changed) or if what it waits for does not happen; InputError for bad input and if Slurm refuses.
        """
        plan = cls.read(path)
        with alone(path, "topolane slurm apply"):
            journal = Journal(journal_of(path), sum_of(path), cls.STEPS)
            cls(plan, journal, settings, seconds, tell).run()

    def run(self) -> None:
        """Carries the plan out, or goes on with it. Raises NotAppliedError if that fails, InputError if Slurm refuses."""
        if self.journal.has(DONE):
            self.tell("The plan has been carried out already: nothing is changed.")
            return
        if self.journal.has(BEGIN):
            self.tell(f"Going on with {self.journal.path}.")
        else:
            self.check()
            self.journal.write(BEGIN)
        self.carry_out()

    @staticmethod
    @abstractmethod
    def read(path: Path) -> P:
        """The plan in a file. Raises InputError."""

    @abstractmethod
    def check(self) -> None:
        """Raises NotAppliedError, with what has changed, if the plan is no longer true."""

    @abstractmethod
    def carry_out(self) -> None:
        """All steps, up to `DONE`."""

    def look(self) -> Inspection:
        """Slurm now. Raises InputError if it does not answer."""
        look = inspect(self.settings)
        snapshot_of(look)
        return look

    def requeue(self, each: Requeued) -> None:
        """Requeues a job, unless it has ended or been requeued since the plan was made."""
        if not each.is_run_of(task(self.look(), each.job)):
            return
        self.journal.write(REQUEUE, each.job)
        try:
            scontrol("requeue", each.job)
        except InputError:
            if each.is_run_of(task(self.look(), each.job)):
                raise
            return  # it has just ended by itself
        self.tell(f"Job {each.job} is requeued: {each.nodes} becomes free.")

    def is_late(self) -> bool:
        """Whether there is no more time to wait; waits a moment if there is."""
        if time.monotonic() > self.end:
            return True
        time.sleep(self.PAUSE)
        return False
