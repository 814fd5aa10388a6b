"""Which jobs hold a tree's nodes at one moment, and which uplinks they may use.

A job crosses a group if it holds nodes inside and outside it: then it may use that group's uplinks, whatever
the routing. Two jobs that cross one group may meet there (SC'18, isolation), unless each keeps to uplinks of
its own. A job whose nodes all lie in one domain uses the domain's network and crosses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topolane._engine import crossings

from .data import MachinePicture
from .style import JOBS, LOCAL

Ranges = Sequence[tuple[int, int]]
"""Nodes, as half-open ranges."""


@dataclass(frozen=True)
class Held:
    """The state of a tree at `time`, in seconds."""

    time: float
    holder: list[int | None]  # the job on each node; the largest one if there are several
    size: dict[int, int]  # number of nodes of each running job
    crossing: list[list[list[int]]]  # jobs that cross [level][group], ascending
    colour: dict[int, str]  # colour of each running job
    out_of_service: frozenset[int] = frozenset()  # nodes that get no new jobs
    apart: frozenset[int] = (
        frozenset()
    )  # jobs that share no link with another job, because they have links of their own

    @property
    def busy(self) -> int:
        """The number of nodes that run a job."""
        return sum(job is not None for job in self.holder)

    def shared(self, level: int) -> int:
        """The number of groups of `level` whose uplinks two or more jobs may use."""
        return sum(self.meeting(level, group) > 1 for group in range(len(self.crossing[level])))

    def meeting(self, level: int, group: int) -> int:
        """The number of jobs that may meet others on the uplinks of [level][group]."""
        return sum(job not in self.apart for job in self.crossing[level][group])


def held_by(
    nodes: Mapping[int, Ranges],
    picture: MachinePicture,
    time: float,
    out_of_service: frozenset[int] = frozenset(),
    apart: frozenset[int] = frozenset(),
) -> Held:
    """The state in which these jobs hold these nodes; jobs `apart` have links of their own."""
    size = {job: sum(end - start for start, end in ranges) for job, ranges in nodes.items()}
    holder: list[int | None] = [None] * picture.nodes
    for job in sorted(nodes, key=lambda job: (size[job], -job)):
        for start, end in nodes[job]:
            holder[start:end] = [job] * (end - start)
    starts = [[group.start for group in level] for level in picture.levels]
    on_tree = [(job, ranges) for job, ranges in nodes.items() if not _in_one_domain(ranges, picture)]
    crossing = crossings(picture.nodes, starts, on_tree)
    return Held(time, holder, size, crossing, colours(crossing, size), out_of_service, apart)


def _in_one_domain(ranges: Ranges, picture: MachinePicture) -> bool:
    domains = {picture.domain_of.get(node) for start, end in ranges for node in range(start, end)}
    return len(domains) == 1 and None not in domains


def colours(crossing: list[list[list[int]]], size: dict[int, int]) -> dict[int, str]:
    """The colour of each job: grey inside one leaf; otherwise different from its neighbours' colours.

    Larger jobs choose first. A job avoids colours used on its leaf first, then on the next leaf, then in its
    pod, and last anywhere.
    """
    near: dict[int, Counter[int]] = {}
    weights = [(0, 0, 1000), (0, 1, 100)] + [(level, 0, 10) for level in range(1, len(crossing))]
    for level, step, weight in weights:
        groups = crossing[level]
        for one, other in zip(groups, groups[step:]):
            for job in one:
                for neighbour in other:
                    if job != neighbour:
                        near.setdefault(job, Counter())[neighbour] += weight
                        near.setdefault(neighbour, Counter())[job] += weight
    colour: dict[int, str] = {}
    used: Counter[str] = Counter()
    for job in sorted({job for jobs in crossing[0] for job in jobs}, key=lambda job: (-size[job], job)):
        cost = Counter({each: used[each] for each in JOBS})
        for neighbour, weight in near.get(job, Counter()).items():
            if neighbour in colour:
                cost[colour[neighbour]] += weight
        colour[job] = min(JOBS, key=lambda each: (cost[each], JOBS.index(each)))
        used[colour[job]] += 1
    return {job: colour.get(job, LOCAL) for job in size}
