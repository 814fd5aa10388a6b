"""Orders moves so that each finds room at its target: a guest must leave a full host before another one
enters it.
"""

from __future__ import annotations

from collections.abc import Iterable

from topolane_sites.model import Guest, Host
from topolane_sites.plans import PlannedMove


def in_order(
    moves: Iterable[PlannedMove], guests: Iterable[Guest], hosts: Iterable[Host]
) -> tuple[list[PlannedMove], list[PlannedMove]]:
    """The moves in an order in which each host has room, and the moves for which that is impossible.

    guests: all running guests, with their cores and memory (bytes). If a host is overcommitted, enough guests
    must leave before another one enters.
    """
    of = {guest.name: guest for guest in guests}
    cores = {host.name: host.cores for host in hosts}
    memory = {host.name: host.memory for host in hosts}
    for guest in of.values():
        if guest.host in cores:
            cores[guest.host] -= guest.cores
            memory[guest.host] -= guest.memory

    def fits(move: PlannedMove) -> bool:
        guest = of[move.guest]
        return cores[move.target] >= guest.cores and memory[move.target] >= guest.memory

    waiting: list[PlannedMove] = list(moves)
    ordered: list[PlannedMove] = []
    while (move := next(filter(fits, waiting), None)) is not None:
        waiting.remove(move)
        ordered.append(move)
        guest = of[move.guest]
        for host, sign in ((move.source, 1), (move.target, -1)):
            cores[host] += sign * guest.cores
            memory[host] += sign * guest.memory
    return ordered, waiting
