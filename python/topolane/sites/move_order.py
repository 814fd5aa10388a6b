"""The order in which moves find room at their targets: a full host takes nobody before somebody has left it."""

from __future__ import annotations

from collections.abc import Iterable

from topolane.sites.model import Guest, Host
from topolane.sites.plans import PlannedMove


def in_order(
    moves: Iterable[PlannedMove], guests: Iterable[Guest], hosts: Iterable[Host]
) -> tuple[list[PlannedMove], list[PlannedMove]]:
    """The moves one after another, each to a host that then has room, and those for which there never is any.

    guests: all that run, with the cores and memory (bytes) they hold. A host may hold more than it has; then
    nobody comes before enough have left.
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
