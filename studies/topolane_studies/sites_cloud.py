"""Sites of limited size with a WAN between each two: what runs where, and what the engine says to that."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING

from topolane._engine import Cut, Machine, SiteProgram, choose_sites

from topolane_studies import sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_studies.sites import SitesProgram, Wan

SITES = 2
RACK = 26
"""Hosts of a rack; each site has two."""
HOSTS = 2 * RACK
"""Of a site."""


@dataclasses.dataclass(frozen=True)
class SitesLayout:
    """Sites of one size; hosts are numbered site by site."""

    sites: int = SITES
    hosts: int = HOSTS
    """Of a site."""

    def site(self, host: int) -> int:
        """The site of a host."""
        return host // self.hosts

    def counts(self, hosts: Sequence[int]) -> list[int]:
        """How many of some hosts each site has."""
        where = [self.site(host) for host in hosts]
        return [where.count(site) for site in range(self.sites)]


TWO = SitesLayout()
"""The two sites of the study."""
GUEST = 2**28
"""Bytes of a guest's memory: several times what a rank of a class C benchmark holds."""


@dataclasses.dataclass(frozen=True)
class KnownProgram:
    """What a manager knows of a program; plain numbers, to be sent to a process."""

    job: SitesProgram
    step: float
    """Seconds of an iteration on one site."""
    alone: float
    """Seconds of the whole benchmark on one site."""
    turns: float
    bytes: float
    messages: float
    largest: float
    """As in the engine's Cut: turns and bytes a second, bursts and bytes a second of the busiest pair."""
    tunnelled: float = 0.0
    """Bytes a second that a tunnel between the halves passes, both ways."""

    def cut(self, speed: float = 1.0) -> Cut:
        """As measured where it has this speed, of that on one site."""
        return Cut(self.turns * speed, self.bytes * speed, self.messages * speed, self.largest * speed)


@functools.cache
def machine(wan: Wan, layout: SitesLayout = TWO) -> Machine:
    """Sites s0, s1, .., one guest a host."""
    text = f"""name = "sites"
[node]
sockets = 1
cores-per-socket = 1
memory = {GUEST}
nic-bandwidth = {sites.GIGABIT}
"""
    for site in range(layout.sites):
        text += f"""[[site]]
name = "s{site}"
children = [{layout.hosts}]
nodes = "s{site}n[1-{layout.hosts}]"
"""
    for a, b in itertools.combinations(range(layout.sites), 2):
        text += f"""[[wan]]
between = ["s{a}", "s{b}"]
latency = {wan.seen_latency!r}
bandwidth = {wan.seen_bandwidth!r}
"""
    return Machine.parse(text, "sites.toml", "toml")


def site(host: int) -> int:
    """The site of a host of the two."""
    return TWO.site(host)


def sites_of(hosts: Sequence[int]) -> tuple[int, ...]:
    """The site of every rank."""
    return tuple(site(host) for host in hosts)


def by_rack() -> list[int]:
    """Hosts in the order in which first fit takes them: rack by rack, the racks of the sites in turn."""
    racks = [site * HOSTS + rack * RACK for rack in range(HOSTS // RACK) for site in range(SITES)]
    return [first + host for first in racks for host in range(RACK)]


def first_fit(held: Sequence[int], ranks: int) -> list[int]:
    """The first free hosts; none where there are too few."""
    taken = set(held)
    free = [host for host in by_rack() if host not in taken]
    return free[:ranks] if len(free) >= ranks else []


@dataclasses.dataclass(frozen=True)
class Standing:
    """A program that runs, or waits to."""

    program: KnownProgram
    hosts: tuple[int, ...]
    """Of every rank; none where it waits."""
    remaining: float
    """Seconds on one site."""
    speed: float = 1.0
    """Of that on one site, where it is."""
    settled: float = float("inf")
    """Seconds since its last move."""


def asked(
    policy: str, wan: Wan, standings: Sequence[Standing], layout: SitesLayout = TWO
) -> list[tuple[int, ...]]:
    """Where a policy of the engine wants the programs to be; none for one that does not fit.

    The order of the ranks is the one that moves the fewest guests: which guests of a program go is the partitioner's
    business, not the policy's. On two sites the lower ranks are on one, the higher ranks on the other.
    """
    programs = [
        SiteProgram(
            standing.program.job.ranks,
            standing.program.cut(standing.speed),
            memory=GUEST,
            nodes=standing.hosts,
            remaining=standing.remaining,
            settled=standing.settled,
        )
        for standing in standings
    ]
    choices = choose_sites(machine(wan, layout), programs, policy=policy, window=wan.window)
    order = in_order if layout.sites == SITES else functools.partial(keeping, layout)
    return [order(choice.nodes, standing.hosts) for choice, standing in zip(choices, standings)]


def in_order(hosts: Sequence[int], now: Sequence[int]) -> tuple[int, ...]:
    """Hosts by site, the one first that moves fewer guests from where they are now."""
    orders = [tuple(sorted(hosts)), tuple(sorted(hosts, key=lambda host: (-site(host), host)))]
    return min(orders, key=lambda order: moved(now, order))


def keeping(layout: SitesLayout, hosts: Sequence[int], now: Sequence[int]) -> tuple[int, ...]:
    """Hosts by rank: a guest stays on its site as long as there are hosts for it."""
    free = sorted(hosts)
    order: list[int | None] = []
    for before in now:
        same = [host for host in free if layout.site(host) == layout.site(before)]
        order.append(before if before in same else same[0] if same else None)
        free = [host for host in free if host != order[-1]]
    order += [None] * (len(hosts) - len(now))
    return tuple(free.pop(0) if host is None else host for host in order)


def moved(now: Sequence[int], then: Sequence[int], layout: SitesLayout = TWO) -> int:
    """Guests that go from one site to another."""
    return sum(layout.site(a) != layout.site(b) for a, b in zip(now, then))


def links(hosts: Sequence[int], layout: SitesLayout = TWO) -> dict[tuple[int, int], float]:
    """Of what crosses between two halves, what crosses between each two sites, if all guests send to all."""
    counts = layout.counts(hosts)
    return {
        (a, b): 4 * counts[a] * counts[b] / len(hosts) ** 2
        for a, b in itertools.combinations(range(layout.sites), 2)
        if counts[a] and counts[b]
    }


def crossing(where: Sequence[int]) -> float:
    """The same between the two sites, by the site of each guest."""
    counts = [list(where).count(site) for site in range(SITES)]
    return 4 * counts[0] * counts[1] / len(where) ** 2


def together(
    programs: Sequence[tuple[KnownProgram, float, float]], wan: Wan, free: float = 1.0
) -> list[float]:
    """Speeds of programs that share a link between two sites, of those on one site.

    Of each (program, seconds longer where no other program sends, share of its crossing in halves). free: what is left of
    the WAN by copies of guests. The slower of WAN and tunnel counts.
    """
    carriers = [([share * program.bytes / wan.bandwidth for program, _, share in programs], free)]
    if wan.tunnel:
        carriers.append(
            ([share * program.tunnelled / wan.tunnel.rate for program, _, share in programs], 1.0)
        )
    longer = [extra for _, extra, _ in programs]
    return [min(speeds) for speeds in zip(*(stretched(list(zip(longer, of)), left) for of, left in carriers))]


def stretched(spread: Sequence[tuple[float, float]], carried: float) -> list[float]:
    """Speeds of programs on two sites that share a WAN, of those on one site.

    Of each (seconds longer, share of the WAN that it takes at full speed); `carried` is what there is for all of
    them. What they send takes longer by one factor, the least at which they together take no more than that.
    """

    def speeds(factor: float) -> list[float]:
        return [1 / (1 + extra + share * (factor - 1)) for extra, share in spread]

    def taken(factor: float) -> float:
        return sum(share * speed for (_, share), speed in zip(spread, speeds(factor)))

    low, high = 1.0, 1.0
    while taken(high) > carried:
        low, high = high, 2 * high
    for _ in range(40 if high > 1 else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(middle) > carried else (low, middle)
    return speeds(high)
