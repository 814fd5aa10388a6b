"""What a program is like: how much it computes, how much of its time is in MPI, and what it sends elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from topolane.mpi.counts import WatchedProgram

from topolane_sites.inventory import Inventory
from topolane_sites.model import Guest, Host

OVERHEAD = 1.1
"""What a network carries for one byte of MPI, with the headers of its packets."""
LEAST_OUTSIDE = 1e5
"""Bytes per second of a guest that are not MPI and that count: less than this is noise."""

Members = Sequence[tuple[WatchedProgram, Sequence[Guest]]]
"""Programs, each with the guest of every rank."""


@dataclass(frozen=True)
class Character:
    """The character of programs that share guests, as measured where they run now."""

    compute: float = 0.0
    """Seconds of computing on a reference core in a second of the run, of the rank with the most; 0 if unknown."""
    in_mpi: float | None = None
    """The share of its time in MPI of the rank with the least; None if it was not measured."""
    outside: float = 0.0
    """Bytes per second that a guest exchanges with something else than the program, in the busier direction."""


UNKNOWN = Character()


def effective_speeds(
    hosts: Sequence[Host], used: Mapping[str, int], busy: Mapping[str, float]
) -> dict[str, float]:
    """The speed of a core of every host for a guest on it.

    Guests and other processes of a host share its cores evenly if they want more than there are.
    used: cores of the host's guests. busy: cores that other processes keep busy.
    """
    return {
        host.name: host.speed
        * min(1.0, host.cores / max(1e-9, used.get(host.name, 0) + busy.get(host.name, 0.0)))
        for host in hosts
    }


def character(inventory: Inventory, together: Members, speeds: Mapping[str, float]) -> Character:
    """The character of programs that share guests; speeds: of the hosts, as `effective_speeds` gives them."""
    outside_mpi: dict[str, float] = {}
    """For every guest, cores that its ranks use outside MPI."""
    ranks = []
    for program, guests in together:
        for rank, guest in enumerate(guests):
            share = program.rank(rank).recent_in_mpi()
            if share is None:
                return UNKNOWN
            ranks.append((guest, 1.0 - share))
            outside_mpi[guest.name] = outside_mpi.get(guest.name, 0.0) + 1.0 - share
    compute = 0.0
    for guest, outside in ranks:
        host = inventory.hosts[guest.host or ""]
        use = inventory.use_of(guest)
        worth = speeds[host.name]
        if use is not None and outside_mpi[guest.name] > 0:
            # A rank that sleeps or waits for a disk is outside MPI, and computes nothing.
            worth = min(worth, host.speed * use.cpu / outside_mpi[guest.name])
        compute = max(compute, outside * worth)
    least = min(1.0 - outside for _, outside in ranks)
    return Character(compute, least, _outside(inventory, together))


def _outside(inventory: Inventory, together: Members) -> float:
    """The mean over the guests of their traffic that is not MPI; 0 where a host does not report it."""
    sent, received = Counter[str](), Counter[str]()
    for program, guests in together:
        names = np.array([guest.name for guest in guests])
        rates = program.rates()
        across = names[rates.sender] != names[rates.receiver]
        for total, end in ((sent, rates.sender), (received, rates.receiver)):
            for name, size in zip(names[end[across]].tolist(), rates.bytes[across].tolist()):
                total[name] += size
    each = {guest.name: guest for _, guests in together for guest in guests}
    found = 0.0
    for name, guest in each.items():
        use = inventory.use_of(guest)
        if use is not None:
            more = max(
                (use.sent or 0.0) - OVERHEAD * sent[name], (use.received or 0.0) - OVERHEAD * received[name]
            )
            found += more if more > LEAST_OUTSIDE else 0.0
    return found / len(each)
