"""Measured programs, and the traffic profile of a server group that follows from them.

A measured matrix is indexed by rank, and each rank reports the name of its host. A profile is indexed by
member of a group: first the running members, oldest first, then those still to be built.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topolane._engine import Traffic

DAY = 86_400.0
LEAST_KNOWN = 0.5
"""The part of a program's hosts that must be members of a group for the program to count as the group's."""
MOST_HOSTS = 10_000
MOST_ENTRIES = 200_000
"""The limit of entries (pairs of hosts) that the scheduler keeps for all programs together."""


@dataclasses.dataclass(frozen=True, eq=False)
class MeasuredProgram:
    """What the hosts of a program sent to each other."""

    id: str
    name: str
    ended: float | None
    """Seconds since 1970; None if it still runs."""
    hosts: tuple[str, ...]
    """Host names, in the order of their lowest ranks."""
    addresses: tuple[str, ...]
    """The addresses of the hosts; empty if unknown."""
    sent: NDArray[np.float64]
    """Sender and receiver (indices into `hosts`) and bytes: (pairs, 3)."""
    partial: bool = False
    """Whether the program's data is incomplete because some ranks never reported."""

    @staticmethod
    def of(fields: Mapping[str, Any]) -> MeasuredProgram:
        """The program in a JSON value. Raises ValueError, KeyError or TypeError if it is invalid."""
        hosts = tuple(str(host) for host in fields["hosts"])
        addresses = tuple(str(address) for address in fields["addresses"])
        if len(hosts) > MOST_HOSTS or len(addresses) != len(hosts):
            raise ValueError(f"{len(hosts)} hosts with {len(addresses)} addresses")
        rows = list(fields["sent"])
        sent = np.array(rows, np.float64).reshape(len(rows), 3)
        ends = sent[:, :2]
        if not (np.isfinite(sent).all() and (sent >= 0).all() and (ends < len(hosts)).all()):
            raise ValueError(f"bytes between {len(hosts)} hosts that are out of range")
        ended = None if fields["ended"] is None else float(fields["ended"])
        partial = int(fields["reported"]) < int(fields["ranks"])
        return MeasuredProgram(str(fields["id"]), str(fields["name"]), ended, hosts, addresses, sent, partial)


class ServerNames(NamedTuple):
    """The names by which a program may know a server."""

    uuid: str
    names: frozenset[str]
    """Its host name, its display name and its id, in lower case and without a domain."""
    addresses: frozenset[str] = frozenset()


class MeasuredTraffic(NamedTuple):
    """The measured traffic of a group."""

    traffic: Traffic
    """By member. Rows beyond the members serve servers that are added later."""
    programs: list[str]
    """The names of the programs that were measured."""


Say = Callable[[str, str], None]
"""Called with the id of a program and a sentence about it."""


def plain_name(name: str) -> str:
    """A host name in lower case and without a domain."""
    return name.strip().lower().partition(".")[0]


def usable(programs: Iterable[MeasuredProgram], now: float, days: float) -> list[MeasuredProgram]:
    """The programs that are neither too old nor partial and whose hosts sent something, newest first."""
    found = [
        one
        for one in programs
        if not one.partial and len(one.sent) and (one.ended is None or one.ended >= now - DAY * days)
    ]
    return sorted(found, key=lambda one: -math.inf if one.ended is None else -one.ended)


def profile_of(
    programs: Sequence[MeasuredProgram],
    members: Sequence[ServerNames],
    name: str | None,
    say: Say = lambda id, sentence: None,
) -> MeasuredTraffic | None:
    """The profile of a group with these members, in the group's order; None if nothing was measured for it.

    It is the sum over all programs that ran on the group's own servers. If there are none, it is the newest
    program called `name`, with its hosts in the group's order. say: called for each host that has a server's
    name but another address.
    """
    own = [(one, rows) for one in programs if (rows := _rows_by_name(one, members, say)) is not None]
    if own:
        return MeasuredTraffic(_summed(own, len(members)), sorted({one.name for one, _ in own}))
    named = next((one for one in programs if name is not None and one.name == name), None)
    if named is None:
        return None
    return MeasuredTraffic(_summed([(named, list(range(len(named.hosts))))], len(members)), [named.name])


def _rows_by_name(program: MeasuredProgram, members: Sequence[ServerNames], say: Say) -> list[int] | None:
    """The row of each host of the program; None if too few of the hosts are members.

    A host has the row of the member with its name or address, otherwise the next unused row. A member with
    the host's name but other known addresses is not the same server.
    """
    # A group can have thousands of members, so hosts are found by index, not by comparison with each member.
    by_name: dict[str, list[int]] = {}
    by_address: dict[str, list[int]] = {}
    for row, server in enumerate(members):
        for known, index in ((server.names, by_name), (server.addresses, by_address)):
            for one in known:
                index.setdefault(one, []).append(row)
    rows: list[int | None] = [None] * len(program.hosts)
    left = dict.fromkeys(range(len(members)))
    for at, (host, address) in enumerate(zip(program.hosts, program.addresses)):
        named = by_name.get(plain_name(host), ())
        others = [row for row in named if _contradict(address, members[row].addresses)]
        if others:
            own = ", ".join(sorted(members[others[0]].addresses))
            say(
                program.id,
                f"Host {host} of program {program.name} has the address {address}, server "
                f"{members[others[0]].uuid} of that name has {own}: they are not taken for the same.",
            )
        same = {*named, *by_address.get(host, ()), *by_address.get(address, ())}.difference(others)
        if found := [row for row in same if row in left]:
            rows[at] = min(found)
            del left[min(found)]
    if sum(row is not None for row in rows) < max(1.0, LEAST_KNOWN * len(rows)):
        return None
    free = iter([*left, *range(len(members), len(members) + len(rows))])
    return [next(free) if row is None else row for row in rows]


def _contradict(address: str, known: Collection[str]) -> bool:
    """Whether an address proves that a host is not the server with the `known` addresses.

    Only addresses of the same IP version are compared. Loopback and link-local addresses prove nothing.
    """
    try:
        one = ip_address(address)
        others = [ip_address(other) for other in known]
    except ValueError:
        return False
    others = [other for other in others if other.version == one.version]
    return bool(others) and not (one.is_loopback or one.is_link_local) and one not in others


def _summed(own: Sequence[tuple[MeasuredProgram, list[int]]], members: int) -> Traffic:
    """The traffic of the programs by row of the group."""
    ranks = max(members, 1 + max(row for _, rows in own for row in rows))
    ends = [np.array(rows)[program.sent[:, :2].astype(np.int64)] for program, rows in own]
    pairs = np.concatenate([begin * ranks + end for begin, end in (each.T for each in ends)])
    unique, place = np.unique(pairs, return_inverse=True)
    sums: NDArray[np.float64] = np.zeros(len(unique))
    np.add.at(sums, place, np.concatenate([program.sent[:, 2] for program, _ in own]))
    some = sums > 0
    sender, receiver = np.divmod(unique[some], ranks)
    return Traffic.of(ranks, sender.astype(np.uint32), receiver.astype(np.uint32), sums[some])
