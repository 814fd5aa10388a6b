"""Which jobs may use which links, and which links keep a job from its nodes, in words.

The engine knows which groups a job crosses, which jobs it may meet there and what keeps a job waiting
(docs/reference/semantics.md). This module translates its answers to the job names of the driver's system.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from topolane._engine import LinkUse, Machine, Obstacle, Refusal, crossings
from topolane.cluster.view import ISOLATED, ISOLATED_GLOBAL, NONE, Running, View
from topolane.units import plural

LISTED = 6
"""Groups that are named one by one."""
GROUP = 2
"""The level of a dragonfly's groups."""
MOST_MET = 100
"""Jobs that a row of a status names as those that a job may meet."""


@dataclasses.dataclass(frozen=True)
class CrossedGroup:
    """A group of the machine, and the jobs that may use its uplinks, in order."""

    name: str
    users: tuple[int, ...]
    sharing: tuple[int, ...]
    """The users that own no links. Two jobs that own links never meet."""

    def others(self, job: int, owns: bool) -> Iterator[int]:
        """The jobs that a job may meet there."""
        return (other for other in (self.sharing if owns else self.users) if other != job)

    @property
    def is_shared(self) -> bool:
        """Whether two jobs may meet there."""
        return len(self.users) > 1 and bool(self.sharing)


def crossed(machine: Machine, jobs: Iterable[Running]) -> dict[int, list[CrossedGroup]]:
    """The groups whose uplinks each job may use, from the leaves up, by the job's number.

    On a dragonfly: its groups in which the job has nodes, if it has several switches, with the jobs that it may meet there.
    """
    jobs = [job for job in jobs if job.nodes]
    if machine.wiring != "tree":
        return _met_inside(machine, jobs)
    if machine.domains():
        # A job inside one domain, whose nodes a faster network joins, crosses nothing: only the engine knows that.
        jobs = [job for job in jobs if LinkUse(machine, [(job.id, job.nodes, ())]).meetings(job.id)]
    rows = [(job.id, [(node, node + 1) for node in job.nodes]) for job in jobs]
    owners = {job.id for job in jobs if job.links}
    levels = [machine.groups(level) for level in range(1, machine.depth + 1)]
    found: dict[int, list[CrossedGroup]] = {job.id: [] for job in jobs}
    users = crossings(machine.nodes, [[first for first, *_ in groups] for groups in levels], rows)
    for groups, by_group in zip(levels, users, strict=True):
        for (_, _, name), crossing in zip(groups, by_group, strict=True):
            sharing = tuple(job for job in crossing if job not in owners)
            group = CrossedGroup(name, tuple(crossing), sharing)
            for job in crossing:
                found[job].append(group)
    return found


def _met_inside(machine: Machine, jobs: Sequence[Running]) -> dict[int, list[CrossedGroup]]:
    """`crossed`, on a machine that is not a tree."""
    use = LinkUse(machine, [(job.id, job.nodes, ()) for job in jobs])
    found: dict[int, list[CrossedGroup]] = {}
    for job in jobs:
        met = dict(use.meetings(job.id))
        own = [name for level, name, *_ in machine.outline(list(job.nodes)) if level == GROUP]
        is_spread = machine.home(list(job.nodes))[0] > 1
        names = dict.fromkeys([*(own if is_spread else ()), *met])
        users = {name: (job.id, *met.get(name, ())) for name in names}
        found[job.id] = [CrossedGroup(name, all_of, all_of) for name, all_of in users.items()]
    return found


class Links:
    """Which jobs may use which links, of the jobs of a view that count as users.

    On common links each job may meet all others. So what is counted for all jobs grows with the jobs and the groups that they cross;
    only what is asked of one job goes through the others.
    """

    def __init__(self, machine: Machine, view: View) -> None:
        self._machine, self._claiming = machine, {job.id: job for job in view.claiming}
        self._crossed = crossed(machine, self._claiming.values())
        self.words = "uplinks" if machine.wiring == "tree" else "links"
        """What a job uses of a group."""

    def shared(self) -> int:
        """How many links two jobs or more may use."""
        if self._machine.wiring != "tree":
            jobs = [(job.id, job.nodes, ()) for job in self._claiming.values() if job.nodes]
            return LinkUse(self._machine, jobs).shared
        shared = {
            id(group): group for groups in self._crossed.values() for group in groups if group.is_shared
        }
        # Two users of each group stand for all, so the engine need not compare each with each.
        some = {job for group in shared.values() for job in (group.sharing[0], *group.users[:2])}
        users = (self._claiming[job] for job in some)
        return LinkUse(self._machine, [(job.id, job.nodes, job.links) for job in users]).shared

    def of(self, job: Running) -> list[tuple[str, list[str]]]:
        """The groups whose uplinks a job may use, and the other jobs that it may meet there."""
        return [
            (group.name, [self._claiming[other].name for other in group.others(job.id, bool(job.links))])
            for group in self._crossed.get(job.id, ())
        ]

    def met(self, job: Running, most: int | None = None) -> list[str]:
        """The other jobs that a job may meet on links; at most `most` of them."""
        groups = self._crossed.get(job.id, ())
        others = (other for group in groups for other in group.others(job.id, bool(job.links)))
        found: dict[int, str] = {}
        for other in others:
            if most is not None and len(found) == most:
                break
            found[other] = self._claiming[other].name
        return sorted(found.values())

    @property
    def apart(self) -> frozenset[int]:
        """The jobs with links of their own that share no link with any other job."""
        return frozenset(job.id for job in self._claiming.values() if job.links and not self.met(job, 1))

    def home(self, job: Running) -> tuple[int | None, str | None]:
        """The lowest group that holds all nodes of a job: its level from 1 (leaves) on, and its name; None without nodes."""
        if not job.nodes:
            return None, None
        level, name = self._machine.home(list(job.nodes))
        return level, name or "several sites"


@dataclasses.dataclass(frozen=True)
class Words:
    """What a system calls its jobs, and what they ask for."""

    job: str = "job"
    slot: str = "node"
    free: str = "idle node"
    no_limit: str = " (no time limit)"
    """What follows the name of a job of which no end is known."""


def in_the_way(
    refusal: Refusal, wanted: int, names: Mapping[int, str], words: Words | None = None
) -> list[str]:
    """Sentences that say what keeps a job of `wanted` nodes from a placement without shared links."""
    words = words or Words()
    said = []
    if refusal.within is not None:
        said.append(f"To share no link, {plural(wanted, words.slot)} must lie in one {refusal.within}.")
    obstacles = refusal.obstacles
    said += [_sentence(each, wanted, refusal.within or "group", names, words) for each in obstacles[:LISTED]]
    if len(obstacles) > LISTED:
        said.append(f"So it is with {len(obstacles) - LISTED} more.")
    return said


def _sentence(obstacle: Obstacle, wanted: int, kind: str, names: Mapping[int, str], words: Words) -> str:
    name, idle = obstacle.name, plural(obstacle.free, words.free)
    if obstacle.uplinks is None:
        return f"No {kind} has {wanted} {words.free.split()[0]}: {name} has the most, {obstacle.free}."
    jobs = [names.get(job, str(job)) for job in obstacle.jobs]
    use = f"{jobs_named(jobs, words.job)} {'uses' if len(jobs) == 1 else 'use'}" if jobs else ""
    free = obstacle.uplinks - obstacle.missing
    if use and not free:
        return f"{name} has {idle}, but {use} {name}'s uplinks."
    others = f": {use} the others" if use else ""
    return f"{name} has {idle} and {free} of {obstacle.uplinks} uplinks free{others}."


def jobs_named(names: Sequence[str], word: str = "job") -> str:
    """`job 12`, `jobs 12 and 13`."""
    if len(names) == 1:
        return f"{word} {names[0]}"
    return f"{word}s {', '.join(names[:-1])} and {names[-1]}"


def links_used(
    where: str,
    job: Running,
    used: Sequence[tuple[str, Sequence[str]]],
    word: str = "job",
    links: str = "uplinks",
    detours: tuple[float, float] | None = None,
) -> Iterator[str]:
    """Which links a running job uses, and with which jobs it could share them.

    where: its nodes, in words. used: each group whose links it uses, with the jobs that may use them too. word: what the system calls a
    job. links: what a job uses of a group, `Links.words`. detours: `Machine.detours`, if the job is in several groups of a dragonfly.
    """
    if job.link_use == NONE:
        yield f"{where}: it may use any link, because jobs outside may share them (Outside=share)."
        return
    if not used:
        yield f"{where}: it uses no link between switches."
        return
    groups = ", ".join(group for group, _ in used[:LISTED]) + (" and others" if len(used) > LISTED else "")
    if not job.links:
        yield f"{where}: it may use the {links} of {groups}."
    else:
        share = job.bandwidth_share
        full = "full bandwidth" if share >= 1 else f"{share:g} of full bandwidth"
        yield f"{where}: it owns {plural(len(job.links), 'link')} of {groups}, with {full} on them."
    if detours is not None and job.link_use in (ISOLATED, ISOLATED_GLOBAL):
        part, share = detours
        yield (
            f"If at most {part:.3g} of the bytes between groups take detours, other jobs leave it at least {share:.3g} of each "
            "cable between its groups."
        )
    met = [(group, others) for group, others in used if others]
    yield from (
        f"On those of {group} it may meet {jobs_named(others, word)}." for group, others in met[:LISTED]
    )
    if not met:
        yield f"No other {word} may use them."


@dataclasses.dataclass(frozen=True)
class Touched:
    """A running job and the failed links that it uses."""

    owns: tuple[int, ...]
    may_use: tuple[int, ...]
    """Links that it does not own and may use: those of its groups, and the cables of its nodes."""


def touched(machine: Machine, links: Collection[int], jobs: Iterable[Running]) -> dict[int, Touched]:
    """The jobs that own or may use some of these links, by number."""
    if not links:
        return {}
    jobs = list(jobs)
    over = crossed(machine, jobs)
    rows, found = machine.link_names(), {}
    lower = {link: rows[link][1] for link in links}
    for job in jobs:
        groups = set() if job.links else {group.name for group in over.get(job.id, ())}
        groups |= {machine.node_name(node) for node in job.nodes} if len(job.nodes) > 1 else set()
        owns = tuple(sorted(set(job.links) & set(links)))
        may_use = tuple(sorted(link for link, group in lower.items() if group in groups and link not in owns))
        if owns or may_use:
            found[job.id] = Touched(owns, may_use)
    return found


def links_in(target: Machine, source: Machine) -> list[int | None]:
    """The link of `target` that has the ends of each link of `source`; None if it has none."""
    known = {(lower, upper, of): link for link, (lower, _, upper, _, of) in enumerate(target.link_names())}
    return [known.get((lower, upper, of)) for lower, _, upper, _, of in source.link_names()]
