"""Which jobs may use which links, and which links keep a job from its nodes, in words.

The engine knows which groups a job crosses, which jobs it may meet there and what keeps a job waiting
(docs/reference/semantics.md). This module translates its answers to the job names of the driver's system.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from topolane._engine import LinkUse, Machine, Obstacle, Refusal
from topolane.cluster.view import NONE, Running, View
from topolane.units import plural

LISTED = 6
"""Groups that are named one by one."""


class Links:
    """Which jobs may use which links, of the jobs of a view that count as users."""

    def __init__(self, machine: Machine, view: View) -> None:
        self._machine, self._claiming = machine, {job.id: job for job in view.claiming}
        self._use = LinkUse(machine, [(job.id, job.nodes, job.links) for job in view.claiming])

    def shared(self) -> int:
        """How many links two jobs or more may use."""
        return self._use.shared

    def of(self, job: Running) -> list[tuple[str, list[str]]]:
        """The groups whose uplinks a job may use, and the other jobs that it may meet there."""
        if job.id not in self._claiming:
            return []
        return [
            (group, [self._claiming[other].name for other in others])
            for group, others in self._use.meetings(job.id)
        ]

    def met(self, job: Running) -> list[str]:
        """The other jobs that a job may meet on links."""
        return sorted({other for _, others in self.of(job) for other in others})

    @property
    def apart(self) -> frozenset[int]:
        """The jobs with links of their own that share no link with any other job."""
        return frozenset(job.id for job in self._claiming.values() if job.links and not self.met(job))

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
    where: str, job: Running, used: Sequence[tuple[str, Sequence[str]]], word: str = "job"
) -> Iterator[str]:
    """Which links a running job uses, and with which jobs it could share them.

    where: its nodes, in words. used: each group whose links it uses, with the jobs that may use them too. word: what the system calls a
    job.
    """
    if job.link_use == NONE:
        yield f"{where}: it may use any link, because jobs outside may share them (Outside=share)."
        return
    if not used:
        yield f"{where}: it uses no link between switches."
        return
    groups = ", ".join(group for group, _ in used[:LISTED]) + (" and others" if len(used) > LISTED else "")
    if not job.links:
        yield f"{where}: it may use the uplinks of {groups}."
    else:
        share = job.bandwidth_share
        full = "full bandwidth" if share >= 1 else f"{share:g} of full bandwidth"
        yield f"{where}: it owns {plural(len(job.links), 'link')} of {groups}, with {full} on them."
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
    use = LinkUse(machine, [(job.id, job.nodes, job.links) for job in jobs])
    rows, found = machine.link_names(), {}
    lower = {link: rows[link][1] for link in links}
    for job in jobs:
        groups = set() if job.links else {group for group, _ in use.meetings(job.id)}
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
