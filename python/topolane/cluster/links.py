"""Which jobs may use which links, and which links keep a job from its nodes, in words.

The engine knows which groups a job crosses, which jobs it may meet there and what keeps a job waiting
(docs/reference/semantics.md). This module translates its answers to the job names of the driver's system.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence

from topolane._engine import LinkUse, Machine, Obstacle, Refusal
from topolane.cluster.allocation import Allocation
from topolane.units import plural

LISTED = 6
"""Groups that are named one by one."""


class Links:
    """Which jobs may use which links, if these jobs hold these nodes.

    names: of the jobs. dedicated: the allocations of the jobs that have dedicated links.
    """

    def __init__(
        self,
        machine: Machine,
        holders: Mapping[int, Sequence[int]],
        names: Mapping[int, str],
        dedicated: Mapping[int, Allocation] | None = None,
    ):
        own = dedicated or {}
        self._machine, self._names = machine, names
        self._owners = own.keys() & holders.keys()
        rows = [(job, nodes, own[job].links if job in own else ()) for job, nodes in holders.items()]
        self._use = LinkUse(machine, rows)

    def shared(self) -> int:
        """How many links two jobs or more may use."""
        return self._use.shared

    def of(self, job: int) -> list[tuple[str, list[str]]]:
        """The groups whose uplinks a job may use, and the other jobs that it may meet there."""
        return [
            (group, [self._names[other] for other in others]) for group, others in self._use.meetings(job)
        ]

    @property
    def apart(self) -> frozenset[int]:
        """The jobs with dedicated links that share no link with any other job."""
        return frozenset(
            job for job in self._owners if not any(others for _, others in self._use.meetings(job))
        )

    def home(self, nodes: Collection[int]) -> tuple[int, str]:
        """The lowest group that holds all of these nodes: its level from 1 (leaves) on, and its name."""
        level, name = self._machine.home(list(nodes))
        return level, name or "several sites"


@dataclasses.dataclass(frozen=True)
class Words:
    """What a system calls its jobs, and what they ask for."""

    job: str = "job"
    slot: str = "node"
    free: str = "idle node"


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
    where: str, own: Allocation | None, used: Sequence[tuple[str, Sequence[str]]], word: str = "job"
) -> Iterator[str]:
    """Which links a running job uses, and with which jobs it could share them.

    where: its nodes, in words. own: what it holds if it has dedicated links. used: each group whose links it uses, with the jobs that may
    use them too. word: what the system calls a job.
    """
    if not used:
        yield f"{where}: it uses no link between switches."
        return
    groups = ", ".join(group for group, _ in used[:LISTED]) + (" and others" if len(used) > LISTED else "")
    if own is None:
        yield f"{where}: it may use the uplinks of {groups}."
    else:
        share = own.bandwidth_share
        full = "full bandwidth" if share >= 1 else f"{share:g} of full bandwidth"
        yield f"{where}: it owns {plural(len(own.links), 'link')} of {groups}, with {full} on them."
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


def touched(
    machine: Machine,
    links: Collection[int],
    holders: Mapping[int, Sequence[int]],
    own: Mapping[int, Allocation],
) -> dict[int, Touched]:
    """The jobs that own or may use some of these links, of jobs that hold these nodes."""
    if not links:
        return {}
    use = LinkUse(
        machine, [(job, held, own[job].links if job in own else ()) for job, held in holders.items()]
    )
    rows, found = machine.link_names(), {}
    lower = {link: rows[link][1] for link in links}
    for job, held in holders.items():
        mine = own[job].links if job in own else ()
        groups = set() if mine else {group for group, _ in use.meetings(job)}
        groups |= {machine.node_name(node) for node in held} if len(held) > 1 else set()
        owns = tuple(sorted(set(mine) & set(links)))
        may_use = tuple(sorted(link for link, group in lower.items() if group in groups and link not in owns))
        if owns or may_use:
            found[job] = Touched(owns, may_use)
    return found


def links_in(target: Machine, source: Machine) -> list[int | None]:
    """The link of `target` that has the ends of each link of `source`; None if it has none."""
    known = {(lower, upper, of): link for link, (lower, _, upper, _, of) in enumerate(target.link_names())}
    return [known.get((lower, upper, of)) for lower, _, upper, _, of in source.link_names()]
