"""The input of a plan: hosts, guests and programs at one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from topolane.mpi.counts import Matrix, WatchedProgram

from topolane_sites.bisect import Parts
from topolane_sites.character import UNKNOWN, Character, character, effective_speeds
from topolane_sites.inventory import Inventory
from topolane_sites.model import Guest, Host, WanLink

LEAST_OBSERVED = 10.0
"""Seconds for which a program must be watched before its guests are moved."""


@dataclass(frozen=True)
class ProgramGroup:
    """Programs that share guests, and so move together."""

    programs: tuple[str, ...]
    guests: tuple[Guest, ...]
    matrix: Matrix
    """Recent rates between the ranks of all its programs, one program after the other."""
    guest_of: Parts
    """The index in `guests` of every rank."""
    sites: tuple[str, ...]
    """The sites that its cluster allows; empty for all."""
    remaining: float
    settled: float
    """Seconds since one of its guests moved."""
    character: Character = UNKNOWN
    correction: float | None = None
    """What it loses to the WAN over what is predicted, if that is known from before."""
    home: str = ""
    """The site of its storage or database; empty if unknown."""


@dataclass(frozen=True)
class Problem:
    """The input of a policy."""

    sites: tuple[str, ...]
    hosts: tuple[Host, ...]
    links: tuple[WanLink, ...]
    down: frozenset[str]
    """Hosts to which no guest may move."""
    groups: tuple[ProgramGroup, ...]
    others: tuple[Guest, ...]
    """Guests that stay in their places."""
    skipped: dict[str, str]
    speeds: dict[str, float] = field(default_factory=dict)
    """What a core of a host is worth to a guest now, if that differs from the host's speed."""
    busy: dict[str, float] = field(default_factory=dict)
    """Cores that processes other than guests keep busy, by host."""


def current_problem(
    inventory: Inventory,
    programs: Mapping[str, WatchedProgram],
    now: float,
    *,
    remaining: Mapping[str, float],
    moved: Callable[[str], float | None],
    moving: set[str],
    correction: Callable[[str], float | None] = lambda _: None,
    home: Callable[[str, str], str] = lambda _, site: site,
) -> Problem:
    """The present input.

    remaining: declared seconds, by program. moved: when a guest was last moved. moving: guests that are being
    moved. correction: what a program loses to the WAN over what is predicted. home: the site at which a program
    was first seen, given the one with most of its guests now.
    """
    hosts = tuple(inventory.hosts.values())
    used = Counter[str]()
    for guest in inventory.guests.values():
        used[guest.host or ""] += guest.cores
    busy = {host.name: inventory.other_load(host.name) for host in hosts}
    speeds = effective_speeds(hosts, used, busy)
    skipped: dict[str, str] = {}
    movable: list[tuple[WatchedProgram, list[Guest]]] = []
    for program in programs.values():
        if program.ended is None:
            guests, reason = _guests(inventory, program, moving)
            if reason:
                skipped[program.id] = reason
            else:
                movable.append((program, guests))
    groups = []
    for together in _sharing(movable):
        group = _group(inventory, together, now, remaining, moved)
        sites = Counter(inventory.site_of(guest.host) or "" for guest in group.guests)
        groups.append(
            replace(
                group,
                character=character(inventory, together, speeds),
                correction=correction(group.programs[0]),
                home=home(group.programs[0], sites.most_common(1)[0][0]),
            )
        )
    placed = {guest.name for group in groups for guest in group.guests}
    others = tuple(
        one for one in inventory.guests.values() if one.name not in placed and one.host in inventory.hosts
    )
    return Problem(
        sites=tuple(inventory.sites),
        hosts=hosts,
        links=inventory.links,
        down=frozenset(inventory.away),
        groups=tuple(groups),
        others=others,
        skipped=skipped,
        speeds=speeds,
        busy=busy,
    )


def _guests(inventory: Inventory, program: WatchedProgram, moving: set[str]) -> tuple[list[Guest], str]:
    """The guest of every rank, or the reason why the program is skipped."""
    if len(program.hosts) < program.ranks:
        return [], f"{len(program.hosts)} of its {program.ranks} ranks have reported"
    guests = []
    for rank in range(program.ranks):
        guest = inventory.guest_of(program.hosts[rank])
        if guest is None:
            return [], f"rank {rank} runs on {program.hosts[rank]}, which is no guest that is known"
        if guest.host not in inventory.hosts:
            return [], f"guest {guest.name} is on no host that is known"
        if guest.cluster in inventory.held():
            return [], f"its cluster {guest.cluster} is being changed"
        if guest.name in moving:
            return [], f"guest {guest.name} is being moved"
        if guest.host in inventory.away:
            return [], f"host {guest.host} of guest {guest.name} is silent"
        guests.append(guest)
    if program.observed < LEAST_OBSERVED:
        return [], f"it was watched for {program.observed:.0f} s; {LEAST_OBSERVED:.0f} s are wanted"
    return guests, ""


def _sharing(
    movable: list[tuple[WatchedProgram, list[Guest]]],
) -> list[list[tuple[WatchedProgram, list[Guest]]]]:
    """The programs, grouped by shared guests."""
    groups: list[tuple[set[str], list[tuple[WatchedProgram, list[Guest]]]]] = []
    for program, guests in movable:
        names = {guest.name for guest in guests}
        members = [(program, guests)]
        apart = []
        for others, programs in groups:
            if others & names:
                names |= others
                members = [*programs, *members]
            else:
                apart.append((others, programs))
        groups = [*apart, (names, members)]
    return [members for _, members in groups]


def _group(
    inventory: Inventory,
    together: list[tuple[WatchedProgram, list[Guest]]],
    now: float,
    remaining: Mapping[str, float],
    moved: Callable[[str], float | None],
) -> ProgramGroup:
    guests = {guest.name: guest for _, of_rank in together for guest in of_rank}
    index = {name: at for at, name in enumerate(guests)}
    first = np.cumsum([0, *(program.ranks for program, _ in together)])
    rates = [program.rates() for program, _ in together]
    matrix = Matrix(
        int(first[-1]),
        np.concatenate([one.sender + begin for one, begin in zip(rates, first)]),
        np.concatenate([one.receiver + begin for one, begin in zip(rates, first)]),
        np.concatenate([one.counts for one in rates]),
    )
    clusters = {guest.cluster for guest in guests.values()}
    allowed = [
        set(inventory.clusters[cluster].get("sites") or inventory.sites)
        for cluster in clusters
        if cluster in inventory.clusters
    ]
    sites = set.intersection(*allowed) if allowed else set()
    last = [when for name in guests if (when := moved(name)) is not None]
    return ProgramGroup(
        programs=tuple(program.id for program, _ in together),
        guests=tuple(guests.values()),
        matrix=matrix,
        guest_of=np.array([index[guest.name] for _, of_rank in together for guest in of_rank], np.int64),
        sites=tuple(site for site in inventory.sites if site in sites),
        # Without a word on it a program is expected to run on for as long as it has run.
        remaining=max(remaining.get(program.id, now - program.started) for program, _ in together),
        settled=now - max(last) if last else float("inf"),
    )
