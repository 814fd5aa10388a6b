"""Chooses hosts for a cluster that is about to be built, and finds moves that make room for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from topolane import _engine
from topolane.mpi.counts import Matrix, WatchedProgram

from topolane_sites.bisect import Bisection, crossing, least_halves
from topolane_sites.planner import choose, make
from topolane_sites.plans import SitesPlan
from topolane_sites.problem import Problem

NOTHING = Bisection(0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class ClusterArrival:
    """The guests of a new cluster, all of one size."""

    guests: int
    cores: int
    memory: int
    """Bytes."""
    sites: tuple[str, ...] = ()
    """The sites that it may use; empty for all sites."""
    cut: Bisection = NOTHING
    """What crosses its middle per second, if a similar program was watched before."""
    remaining: float = 3600.0
    """Seconds that it is expected to run."""
    cluster_hosts: tuple[str, ...] = ()
    """The hosts of guests of the same cluster that run already, a host for each guest."""


def like(programs: Iterable[WatchedProgram], name: str) -> Bisection:
    """What crossed the middle of the newest program of that name per second, over its whole run."""
    known = [one for one in programs if one.name == name and one.observed > 0]
    if not known:
        return NOTHING
    newest = max(known, key=lambda one: one.started)
    total = newest.matrix()
    each = Matrix(total.ranks, total.sender, total.receiver, total.counts / newest.observed)
    return crossing(each, least_halves(each))


def place(problem: Problem, arrival: ClusterArrival, policy: str) -> list[str]:
    """A host for every guest, in their order; empty if they do not fit now. Running guests are not moved.

    Guests that come to others of their cluster go to one of its sites, the one with most of its guests first;
    else to its sites together; else to any.
    """
    for sites in _nearest(problem, arrival):
        if hosts := _place(problem, replace(arrival, sites=sites), policy):
            return hosts
    return []


def _nearest(problem: Problem, arrival: ClusterArrival) -> list[tuple[str, ...]]:
    """The sites to try, one try after the other."""
    site_of = {host.name: host.site for host in problem.hosts}
    guests = Counter(site_of[host] for host in arrival.cluster_hosts if host in site_of)
    own = [site for site, _ in guests.most_common() if site in (arrival.sites or problem.sites)]
    together = [tuple(own)] if own else []
    return list(dict.fromkeys([*((site,) for site in own), *together, arrival.sites]))


def _place(problem: Problem, arrival: ClusterArrival, policy: str) -> list[str]:
    # Whoever runs is not asked again here: the loop does that when the guests are there.
    held = replace(
        problem,
        groups=(),
        others=(*problem.others, *(guest for group in problem.groups for guest in group.guests)),
    )
    choices, host_of = choose(held, _asked(problem, arrival), policy)
    return [host_of[node] for choice in choices for node in choice.nodes]


def make_room(problem: Problem, arrival: ClusterArrival) -> SitesPlan:
    """Plans moves of programs so that all guests fit on one site, with the site policy `make-room`. `room` is empty
    if none was found.
    """
    return make(problem, "make-room", _asked(problem, arrival))


def _asked(problem: Problem, arrival: ClusterArrival) -> list[_engine.SiteProgram]:
    """The arrival as the engine's request; None if no site that it may use has a host."""
    used = [site for site in problem.sites if any(host.site == site for host in problem.hosts)]
    sites = [used.index(site) for site in arrival.sites if site in used]
    if arrival.sites and not sites:
        return []
    cut = _engine.Cut(arrival.cut.turns, arrival.cut.bytes, arrival.cut.pair_bursts, arrival.cut.pair_bytes)
    return [
        _engine.SiteProgram(
            arrival.guests,
            cut,
            cores=arrival.cores,
            memory=arrival.memory,
            sites=sites,
            remaining=arrival.remaining,
        )
    ]
