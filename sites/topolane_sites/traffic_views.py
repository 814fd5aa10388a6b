"""The measured traffic of programs between their hosts, for schedulers that place these hosts' servers."""

from __future__ import annotations

import math
from typing import Any

from topolane.mpi.counts import WatchedProgram
from topolane.mpi.host_traffic import between_hosts

from topolane_sites.manager import Manager

Shown = dict[str, Any]


def rows(manager: Manager, since: float) -> list[Shown]:
    """The programs that run or ended after `since` (seconds since 1970), newest first, without their counts."""
    known = manager.receiver.programs
    found = [(one.id, one.name, one.ended) for one in known.values()]
    found += [
        (row["id"], row["name"], row["ended"]) for row in manager.state.programs() if row["id"] not in known
    ]
    recent = [(math.inf if ended is None else ended, id, name, ended) for id, name, ended in found]
    newest = sorted((one for one in recent if one[0] >= since), key=lambda one: -one[0])
    return [{"id": id, "name": name, "ended": ended} for _, id, name, ended in newest]


def traffic(manager: Manager, one: WatchedProgram) -> Shown:
    """What the hosts of a program sent to each other, and their addresses as far as the manager knows them."""
    matrix = one.matrix()
    found = between_hosts(
        [one.hosts.get(rank, "") for rank in range(one.ranks)], matrix.sender, matrix.receiver, matrix.bytes
    )
    guests = [manager.inventory.guest_of(host) for host in found.hosts]
    return {
        "id": one.id,
        "name": one.name,
        "ended": one.ended,
        "ranks": one.ranks,
        "reported": len(one.hosts),
        "hosts": found.hosts,
        "addresses": [guest.address if guest is not None else "" for guest in guests],
        "sent": found.sent,
    }
