"""Whose traffic may be on which links, and which links are in the way of a job, in words.

A job crosses a group when it has nodes inside and outside it: it may then use the uplinks of that group,
whatever the routing (docs/semantics.md). The words are right for trees of any depth; the names are those of
the machine's groups.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from topolane._engine import Machine
from topolane.report.data import Group, MachinePicture
from topolane.report.holders import crossings
from topolane.report.units import plural

LISTED = 6
"""Groups that are named one by one."""


@dataclasses.dataclass(frozen=True)
class Obstacle:
    """Idle nodes that a job cannot have, because others use the uplinks of their group."""

    group: str
    idle: int
    jobs: tuple[str, ...]

    def __str__(self) -> str:
        nodes, names = plural(self.idle, "idle node"), jobs_named(self.jobs)
        uses = "uses" if len(self.jobs) == 1 else "use"
        return f"{self.group} has {nodes}, but {names} {uses} {self.group}'s uplinks"


class Links:
    """Who may use which links, when these jobs hold these nodes; `names` are those of the jobs, `owners` those that keep
    to links of their own."""

    def __init__(
        self,
        machine: Machine,
        holders: Mapping[int, Sequence[int]],
        names: Mapping[int, str],
        owners: Collection[int] = (),
    ):
        self.owners = owners
        self.picture = MachinePicture.of(machine)
        self._machine, self._names = machine, names
        ranges = {job: [(node, node + 1) for node in nodes] for job, nodes in holders.items()}
        self.crossing = crossings(ranges, self.picture)

    def shared(self) -> int:
        """How many links two jobs or more may use."""
        groups = {
            group.name
            for level, crossed in zip(self.picture.levels, self.crossing)
            for group, jobs in zip(level, crossed)
            if len(jobs) > 1 and any(job not in self.owners for job in jobs)
        }
        cables = Counter(group for _, group, _, _, _ in self._machine.link_names()) if groups else Counter()
        return sum(cables[group] for group in groups)

    def of(self, job: int) -> list[tuple[str, list[str]]]:
        """The groups whose uplinks a job may use, and the other jobs that may use the same."""
        return [
            (
                group.name,
                [self._names[other] for other in jobs if other != job and not self._apart(job, other)],
            )
            for level, crossed in zip(self.picture.levels, self.crossing)
            for group, jobs in zip(level, crossed)
            if job in jobs
        ]

    def _apart(self, job: int, other: int) -> bool:
        """Whether both keep to links of their own."""
        return job in self.owners and other in self.owners

    @property
    def apart(self) -> frozenset[int]:
        """The jobs with links of their own that meet nobody, not even one without."""
        return frozenset(
            job for job in self.owners if job in self._names and not any(others for _, others in self.of(job))
        )

    def home(self, nodes: Collection[int]) -> tuple[int, str]:
        """The lowest group that holds all of these nodes: its level from 1 (leaves) on, and its name."""
        for level, groups in enumerate(self.picture.levels, start=1):
            for group in groups:
                if group.start <= min(nodes) and max(nodes) < group.end:
                    return level, group.name
        return len(self.picture.levels) + 1, "several sites"

    def in_the_way(self, wanted: int, idle: Collection[int], eligible: Collection[int]) -> list[str]:
        """Why a job that shares no links does not get `wanted` of the `idle` nodes, in sentences.

        `eligible` are the nodes that it may use when they are free. The rule is that of the policy
        `isolated`: it lies in one group of the lowest level with a group that could hold it, and no group
        below that it crosses is crossed by another.
        """
        levels = self.picture.levels
        level = next(
            (i for i, groups in enumerate(levels) if any(_count(g, eligible) >= wanted for g in groups)),
            len(levels) - 1,
        )
        homes = levels[level]
        best = max(homes, key=lambda group: _count(group, idle))
        most = _count(best, idle)
        named = self.picture.level_name(level) + (" group" if level > 1 else "")
        kind = "site" if level == len(levels) - 1 else named
        said = []
        if len(homes) > 1:
            said.append(f"To share no link, {plural(wanted, 'node')} must lie in one {kind}.")
        if most < wanted:
            return [*said, f"No {kind} has {wanted} idle: {best.name} has the most, {most}."]
        obstacles = [
            each
            for home in homes
            if _count(home, idle) >= wanted
            for each in self._obstacles(level, home, idle)
        ]
        obstacles.sort(key=lambda each: -each.idle)
        said += [f"{each}." for each in obstacles[:LISTED]]
        if len(obstacles) > LISTED:
            said.append(f"So it is with {len(obstacles) - LISTED} more.")
        return said

    def left(self, idle: Collection[int], taken: Collection[int]) -> list[str]:
        """Where nodes are idle and how many uplinks of their leaves nobody has, `taken` being owned, in sentences.

        A job without links of its own may use all uplinks of a leaf that it crosses.
        """
        named = self._machine.link_names()
        uplinks = Counter(group for _, group, _, _, _ in named)
        owned = Counter(named[link][1] for link in taken)
        found = []
        for group, jobs in zip(self.picture.levels[0], self.crossing[0]):
            count = _count(group, idle)
            if not count or group.name not in uplinks:
                continue
            strangers = [self._names[job] for job in jobs if job not in self.owners]
            free = 0 if strangers else uplinks[group.name] - owned[group.name]
            room = f"{group.name} has {plural(count, 'idle node')} and {free} of {uplinks[group.name]} uplinks free"
            found.append(
                (count, f"{room}: {jobs_named(strangers)} may use them." if strangers else f"{room}.")
            )
        found.sort(key=lambda row: -row[0])
        said = [sentence for _, sentence in found[:LISTED]]
        return said + ([f"There are {len(found) - LISTED} more such leaves."] if len(found) > LISTED else [])

    def _obstacles(self, level: int, home: Group, idle: Collection[int]) -> list[Obstacle]:
        """The highest groups inside `home` with idle nodes that somebody crosses."""
        found: list[Obstacle] = []
        if level == 0:
            return found
        for group, jobs in zip(self.picture.levels[level - 1], self.crossing[level - 1]):
            if not (home.start <= group.start < home.end and _count(group, idle)):
                continue
            if jobs:
                names = tuple(self._names[job] for job in jobs)
                found.append(Obstacle(group.name, _count(group, idle), names))
            else:
                found += self._obstacles(level - 1, group, idle)
        return found


def _count(group: Group, nodes: Collection[int]) -> int:
    return sum(group.start <= node < group.end for node in nodes)


def jobs_named(names: Sequence[str]) -> str:
    """`job 12`, `jobs 12 and 13`."""
    if len(names) == 1:
        return f"job {names[0]}"
    return f"jobs {', '.join(names[:-1])} and {names[-1]}"
