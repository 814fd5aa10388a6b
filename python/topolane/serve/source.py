"""Where the page's views come from, and what it reads of them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from topolane._engine import Machine
from topolane.cluster.view import Reserved, Running, View, Waiting
from topolane.panels import panels_of
from topolane.untrusted import finite, line


@dataclasses.dataclass(frozen=True)
class PolicyLine:
    """Values over time for one policy. All lists that are not empty have the same length."""

    name: str
    utilisation: Sequence[float | None]
    """Busy nodes divided by all nodes, from 0 to 1; None if unknown."""
    waiting: Sequence[float | None]
    """The number of waiting jobs; None if unknown."""
    wait: Sequence[float | None]
    """Mean wait in seconds of the jobs that started since the last point; None if none did."""
    hops: Sequence[float | None] = ()
    """Mean average pairwise hops of these jobs; empty if unknown."""
    sharing: Sequence[float | None] = ()
    """The percentage of these jobs that may share links; empty if unknown."""


@dataclasses.dataclass(frozen=True)
class Series:
    """Lines over the same times."""

    times: list[float]
    lines: list[PolicyLine]


class SnapshotSource(Protocol):
    """The source of snapshots. Only one thread at a time calls its methods, except `explain`."""

    machine: Machine
    policy: str
    """The default policy of questions."""
    queue: str
    """The queue that forecasts assume."""
    partitions: dict[str, tuple[int, ...]]
    """Nodes to which a job may be restricted, by name of the partition; empty if the system has none."""
    title: str
    """What the page shows, in a few words."""
    notes: tuple[str, ...]
    """Sentences that a viewer must know to read the page."""
    epoch: float
    """The Unix time of second 0."""
    interval: float
    """Seconds between two readings."""

    def now(self) -> View:
        """The present state."""

    def at(self, time: float) -> View | None:
        """The state at a past time; None if the source keeps no past, so that the page's history is used."""

    def span(self) -> tuple[float, float] | None:
        """The first and last time that `at` knows; None if the source keeps no past."""

    def explain(self, snapshot: View, job: Waiting) -> list[str] | None:
        """Why a job of the newest snapshot waits, in sentences; None if the engine must find the reason."""

    def series(self) -> Series | None:
        """Lines over time; None if only the page's history has them."""


class SourceLook(Protocol):
    """The data that a live source has read at one moment."""

    @property
    def time(self) -> float: ...


L = TypeVar("L", bound=SourceLook)


def look_of(looks: Iterable[L], snapshot: View) -> L | None:
    """The look from which a snapshot was made; None if it is not among these.

    A source keeps two looks, because viewers still ask about the previous snapshot while it makes a new one.
    """
    return next((look for look in looks if look.time == snapshot.time), None)


def ranges(numbers: Iterable[int]) -> list[int]:
    """Ascending numbers as the starts and ends of half-open ranges: 0, 1, 2, 7 becomes [0, 3, 7, 8]."""
    found: list[int] = []
    for number in sorted(numbers):
        if found and found[-1] == number:
            found[-1] = number + 1
        else:
            found += (number, number + 1)
    return found


def running_row(job: Running) -> list[Any]:
    """A running job in the form that the page reads."""
    return [
        *(job.id, *map(line, (job.name, job.title, job.user)), ranges(job.nodes)),
        *(finite(job.start), finite(job.end)),
        *(ranges(job.links), finite(job.bandwidth_share), line(job.shadow_note)),
    ]


def waiting_row(job: Waiting) -> list[Any]:
    """A waiting job in the form that the page reads."""
    return [
        *(job.id, *map(line, (job.name, job.title, job.user)), job.nodes),
        *(finite(job.submit), finite(job.walltime), line(job.why), finite(job.expected_start)),
    ]


def reserved_row(one: Reserved) -> list[Any]:
    """A reservation in the form that the page reads."""
    return [line(one.name), ranges(one.nodes), finite(one.start), finite(one.end)]


def picture(machine: Machine) -> dict[str, Any]:
    """The machine in the form that the page reads: its groups by level from the leaves up, its nodes, the
    links of each group, its NVLink domains, the most GPUs of a node, and the number of rails at each level. If it is no
    tree, also the panels in which its switches are drawn.
    """
    layout = panels_of(machine)
    levels = [machine.groups(level) for level in range(1, machine.depth + 1)]
    return {
        "name": machine.name,
        "nodes": [machine.node_name(node) for node in range(machine.nodes)],
        "levels": [[[start, end, name] for start, end, name in groups] for groups in levels],
        "uplinks": _uplinks(machine, levels),
        "rails": machine.rails_by_level(),
        "domains": [[name, ranges(nodes)] for name, nodes, _ in machine.domains()],
        "panels": [
            [one.name, one.columns, one.rows, ranges(one.leaves), _unless_in_order(one.cells)]
            for one in layout.panels
        ],
        "panel": layout.kind,
        "block": layout.block,
        "gpus": max((machine.resources_of(node).get("gpu", 0) for node in range(machine.nodes)), default=0),
    }


def _unless_in_order(cells: Sequence[int]) -> list[int]:
    """The cells of a panel's leaves; none if they are 0, 1, 2, ..."""
    return [] if list(cells) == list(range(len(cells))) else list(cells)


def _uplinks(machine: Machine, levels: Sequence[Sequence[tuple[int, int, str]]]) -> list[list[int]]:
    """A row (level from 1, group, first link, end, rail) for each rail of each group that has uplinks to
    switches; none on a machine that is no tree.
    """
    if machine.wiring != "tree":
        return []
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
            # A group's links are ordered by rail, with the same number for each rail.
            apart = rails[level - 1] if count % rails[level - 1] == 0 else 1
            each = count // apart
            for rail in range(apart):
                found.append([level, index, link + rail * each, link + (rail + 1) * each, rail])
        link += count
    return found
