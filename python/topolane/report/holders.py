"""Which jobs hold a machine's nodes at one moment, and where their traffic may meet.

On a tree, a job crosses a group if it holds nodes inside and outside it: then it may use that group's uplinks, whatever
the routing. Two jobs that cross one group may meet there (SC'18, isolation), unless each keeps to uplinks of
its own. A job whose nodes all lie in one domain uses the domain's network and crosses nothing.

On other wirings the engine says which jobs may use the same links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from topolane._engine import LinkUse, crossings

from .data import MachinePicture
from .style import IDLE, JOBS, LOCAL, MUTED

EMPTY = {"idle": IDLE, "out-of-service": MUTED}
"""The colours of nodes without a job."""

Ranges = Sequence[tuple[int, int]]
"""Nodes, as half-open ranges."""
JobPair = tuple[Sequence[int], Sequence[int]]
"""The jobs on two switches."""


@dataclass(frozen=True)
class Held:
    """The state of a machine at `time`, in seconds."""

    time: float
    holder: list[int | None]  # the job on each node; the largest one if there are several
    size: dict[int, int]  # number of nodes of each running job
    crossing: list[list[list[int]]]  # jobs that cross [level][group], ascending
    colour: dict[int, str]  # colour of each running job
    out_of_service: frozenset[int] = frozenset()  # nodes that get no new jobs
    apart: frozenset[int] = (
        frozenset()
    )  # jobs that share no link with another job, because they have links of their own
    met: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """By job the others that may use the same links, of jobs with such others; empty on a tree."""

    def holder_of(self, node: int) -> int | str:
        """The job on a node, or the word for why there is none."""
        job = self.holder[node]
        if job is None:
            return "out-of-service" if node in self.out_of_service else "idle"
        return job

    def colour_of(self, holder: int | str) -> str:
        """The colour of a job or of nodes without one."""
        return EMPTY[holder] if isinstance(holder, str) else self.colour[holder]

    @property
    def spanning(self) -> list[int]:
        """The jobs with nodes on several leaves, which cross these; largest first."""
        jobs = {job for jobs in self.crossing[0] for job in jobs}
        return sorted(jobs, key=lambda job: (-self.size[job], job))

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
    colour = colours(crossing, size, _next_cells(picture, crossing[0]))
    return Held(time, holder, size, crossing, colour, out_of_service, apart, _met(nodes, picture))


def _next_cells(picture: MachinePicture, users: Sequence[Sequence[int]]) -> list[JobPair]:
    """The jobs of each two switches that are neighbours in a panel."""
    found = []
    for panel in picture.panels.panels:
        leaf_in = dict(zip(panel.cells, panel.leaves))
        for cell, leaf in leaf_in.items():
            right = cell + 1 if (cell + 1) % panel.columns else -1
            for other in (right, cell + panel.columns):
                if other in leaf_in:
                    found.append((users[leaf], users[leaf_in[other]]))
    return found


def _met(nodes: Mapping[int, Ranges], picture: MachinePicture) -> dict[int, list[int]]:
    if picture.machine is None:
        return {}
    rows = [
        (job, [node for start, end in ranges for node in range(start, end)], ())
        for job, ranges in nodes.items()
    ]
    use = LinkUse(picture.machine, rows)
    met = {job: sorted({other for _, others in use.meetings(job) for other in others}) for job in nodes}
    return {job: others for job, others in met.items() if others}


def _in_one_domain(ranges: Ranges, picture: MachinePicture) -> bool:
    domains = {picture.domain_of.get(node) for start, end in ranges for node in range(start, end)}
    return len(domains) == 1 and None not in domains


def colours(
    crossing: list[list[list[int]]], size: dict[int, int], next_cells: Sequence[JobPair] = ()
) -> dict[int, str]:
    """The colour of each job: grey inside one leaf; otherwise different from its neighbours' colours.

    Larger jobs choose first. A job avoids colours used on its leaf first, then on the next leaf or in the next cell of a panel, then in
    its pod, and last anywhere.
    """
    near: dict[int, Counter[int]] = {}
    pairs: list[tuple[int, Iterable[JobPair]]] = [(1000, zip(crossing[0], crossing[0]))]
    pairs.append((100, next_cells or zip(crossing[0], crossing[0][1:])))
    pairs += [(10, zip(groups, groups)) for groups in crossing[1:]]
    for weight, cells in pairs:
        for one, other in cells:
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
