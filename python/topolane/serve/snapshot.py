"""A machine with its jobs at one moment: what every source gives, and all that the page shows."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from topolane._engine import Machine
from topolane.untrusted import finite, line


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A job on its nodes. Times in seconds."""

    id: int
    name: str
    """As its system prints it: 12, or 12_3 for a task."""
    title: str
    user: str
    nodes: tuple[int, ...]
    start: float
    end: float | None
    """When its walltime ends it; None without one."""
    links: tuple[int, ...] = ()
    """Cables between switches that it owns."""
    bandwidth_share: float = 1.0
    share: Mapping[str, float] | None = None
    """What it takes of each node; None for whole nodes."""
    requeueable: bool = True
    shadow_note: str = ""
    """What a policy in the shadow would have done with it, a sentence; empty without one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits. Times in seconds."""

    id: int
    name: str
    title: str
    user: str
    nodes: int
    submit: float
    walltime: float | None
    why: str = ""
    """Its system's reason in a few words; empty if the system gives none."""
    expected_start: float | None = None
    """As its system expects it."""
    share: Mapping[str, float] | None = None
    held: bool = False
    """Whether it waits for something other than nodes, so that no forecast has it."""
    eligible: tuple[int, ...] | None = None
    """The nodes that it may use; None for all."""
    reservations: tuple[str, ...] = ()
    """It is to run in one of these, which are tried in this order; empty for none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reserved:
    """A reservation: from `start` to `end`, only its own jobs start on its nodes. Times in seconds."""

    name: str
    nodes: tuple[int, ...]
    start: float
    end: float


@dataclasses.dataclass(frozen=True, slots=True)
class HeadWait:
    """How the head of the queue waits under a policy with a rule for heads."""

    id: int
    policy: str
    """Only under this policy it waits so."""
    until: float | None
    """By when the rule for heads has to place it; None if it goes by the policy itself."""


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A machine at one moment. Times in seconds, Unix time or since second 0 of a log."""

    time: float
    running: tuple[Running, ...]
    waiting: tuple[Waiting, ...]
    """In order of the queue."""
    out: tuple[int, ...] = ()
    """Nodes that take no new jobs."""
    problems: tuple[str, ...] = ()
    """What could not be read, a sentence each."""
    is_old: bool = False
    """Whether the source did not answer, so that the jobs are those of its last answer."""
    reserved: tuple[Reserved, ...] = ()
    """Reservations that have not ended."""
    head_wait: HeadWait | None = None
    """None if it is not known."""


@dataclasses.dataclass(frozen=True)
class Line:
    """Figures over time, of one policy. Of one length, if not empty."""

    name: str
    utilisation: Sequence[float | None]
    """Busy nodes by all nodes, 0 to 1; None where it is not known."""
    waiting: Sequence[float | None]
    """How many jobs wait; None where it is not known."""
    wait: Sequence[float | None]
    """Mean wait of the jobs that started since the last point, seconds; None if none did."""
    hops: Sequence[float | None] = ()
    """Mean average pairwise hops of these jobs; empty if it is not known."""
    sharing: Sequence[float | None] = ()
    """How many of these jobs may share links, in per cent; empty if it is not known."""


@dataclasses.dataclass(frozen=True)
class Series:
    """Lines over the same times."""

    times: list[float]
    lines: list[Line]


class Source(Protocol):
    """Where snapshots come from. The methods are called from one thread at a time."""

    machine: Machine
    policy: str
    """The policy that a question is asked with by default."""
    queue: str
    """The queue that forecasts assume."""
    partitions: dict[str, tuple[int, ...]]
    """Nodes that a job may be restricted to, by name; empty if the system has no such parts."""
    title: str
    """What the page shows, in a few words."""
    notes: tuple[str, ...]
    """What a viewer must know to read the page, a sentence each."""
    epoch: float
    """Unix time of second 0."""
    interval: float
    """Seconds between two looks."""

    def now(self) -> Snapshot:
        """The present."""

    def at(self, time: float) -> Snapshot | None:
        """The past at a time; None if the source remembers nothing, so that only the history has it."""

    def span(self) -> tuple[float, float] | None:
        """The times that `at` knows; None if the source remembers nothing."""

    def explain(self, snapshot: Snapshot, job: Waiting) -> list[str] | None:
        """Why a job of the newest snapshot waits, in sentences; None if only the engine knows."""

    def series(self) -> Series | None:
        """Figures over time; None if only the history has them."""


class Look(Protocol):
    """What a live source has read at one moment."""

    @property
    def time(self) -> float: ...


L = TypeVar("L", bound=Look)


def look_of(looks: Iterable[L], snapshot: Snapshot) -> L | None:
    """The look from which a snapshot was made; None if it is not among these.

    A source keeps two looks: while it makes a snapshot from the second, viewers still ask about that of the first.
    """
    return next((look for look in looks if look.time == snapshot.time), None)


def ranges(numbers: Iterable[int]) -> list[int]:
    """Ascending numbers as half-open ranges, one after the other: 0, 1, 2, 7 is [0, 3, 7, 8]."""
    found: list[int] = []
    for number in sorted(numbers):
        if found and found[-1] == number:
            found[-1] = number + 1
        else:
            found += (number, number + 1)
    return found


def running_row(job: Running) -> list[Any]:
    """A running job as the page reads it."""
    return [
        *(job.id, *map(line, (job.name, job.title, job.user)), ranges(job.nodes)),
        *(finite(job.start), finite(job.end)),
        *(ranges(job.links), finite(job.bandwidth_share), line(job.shadow_note)),
    ]


def waiting_row(job: Waiting) -> list[Any]:
    """A waiting job as the page reads it."""
    return [
        *(job.id, *map(line, (job.name, job.title, job.user)), job.nodes),
        *(finite(job.submit), finite(job.walltime), line(job.why), finite(job.expected_start)),
    ]


def reserved_row(one: Reserved) -> list[Any]:
    """A reservation as the page reads it."""
    return [line(one.name), ranges(one.nodes), finite(one.start), finite(one.end)]


def picture(machine: Machine) -> dict[str, Any]:
    """The machine as the page reads it: its groups by level from the leaves up, its nodes, the links of each group,
    its NVLink domains, the most GPUs of a node, and the number of rails at each level from the leaves."""
    levels = [machine.groups(level) for level in range(1, machine.depth + 1)]
    return {
        "name": machine.name,
        "nodes": [machine.node_name(node) for node in range(machine.nodes)],
        "levels": [[[start, end, name] for start, end, name in groups] for groups in levels],
        "uplinks": _uplinks(machine, levels),
        "rails": machine.rails_by_level(),
        "domains": [[name, ranges(nodes)] for name, nodes, _ in machine.domains()],
        "gpus": max((machine.resources_of(node).get("gpu", 0) for node in range(machine.nodes)), default=0),
    }


def _uplinks(machine: Machine, levels: Sequence[Sequence[tuple[int, int, str]]]) -> list[list[int]]:
    """(level from 1, group, first link, end, rail) of every rail of every group with links to switches above it."""
    known: dict[str, tuple[int, int]] = {}
    for level, groups in enumerate(levels, 1):
        for index, (_, _, name) in enumerate(groups):
            known.setdefault(name, (level, index))
    rails = machine.rails_by_level()
    found, link = [], 0
    for group, same in itertools.groupby(row[1] for row in machine.link_names()):
        count = sum(1 for _ in same)
        if group in known:
            level, index = known[group]
            # The links of a group stand rail after rail, as many of each.
            apart = rails[level - 1] if count % rails[level - 1] == 0 else 1
            each = count // apart
            for rail in range(apart):
                found.append([level, index, link + rail * each, link + (rail + 1) * each, rail])
        link += count
    return found
