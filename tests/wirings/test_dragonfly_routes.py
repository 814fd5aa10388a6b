"""Routes of dragonflies, next to all routes that the list of cables has: nothing of the engine is in the comparison.

Minimal routing divides a message over all cables between the two groups by their bandwidth, and over all shortest ways
inside each group; Valiant's goes so to a group drawn from all, and then to its own; inside a group, to a switch of the group.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

import pytest
from closure import Cables, Link
from test_isolation import WIRINGS, made
from topolane._engine import Loads, Machine, Routing, Traffic, contend
from topolane.routes import MachineLinks

Parts = dict[Link, float]


def ways(cables: Cables, a: str, b: str) -> Iterator[tuple[tuple[Link, ...], float]]:
    """All shortest ways inside a group, each with the product of the bandwidths of its links."""
    if a == b:
        yield (), 1.0
        return
    for other in cables.near[a]:
        if cables.ways.far[other].get(b, -1) == cables.ways.far[a][b] - 1:
            for rest, weight in ways(cables, other, b):
                yield ((a, other), *rest), cables.bandwidth[a, other] * weight


def inside(cables: Cables, a: str, b: str, part: float, parts: Parts) -> None:
    """Divides a part of the traffic over the shortest ways."""
    found = list(ways(cables, a, b))
    total = sum(weight for _, weight in found)
    for links, weight in found:
        for link in links:
            parts[link] += part * weight / total


def between(cables: Cables, groups: tuple[int, int]) -> Iterator[tuple[Link, float]]:
    """The cables between two groups, with the part of the bandwidth of each."""
    links = cables.between[groups]
    total = sum(cables.bandwidth[link] for link in links)
    for link in links:
        yield link, cables.bandwidth[link] / total


def minimal(cables: Cables, a: str, b: str, part: float, parts: Parts) -> None:
    """Divides a part of the traffic between two switches over all minimal routes."""
    groups = cables.group_of[a], cables.group_of[b]
    if groups[0] == groups[1]:
        inside(cables, a, b, part, parts)
        return
    for (here, there), share in between(cables, groups):
        parts[here, there] += part * share
        inside(cables, a, here, part * share, parts)
        inside(cables, there, b, part * share, parts)


def valiant(cables: Cables, a: str, b: str, part: float, parts: Parts) -> None:
    """Divides a part of the traffic over routes by way of each group in turn, or of each switch of their own group."""
    own, other = cables.group_of[a], cables.group_of[b]
    groups = set(cables.group_of.values())
    if own == other:
        switches = [name for name, group in cables.group_of.items() if group == own]
        for switch in switches if a != b else []:
            inside(cables, a, switch, part / len(switches), parts)
            inside(cables, switch, b, part / len(switches), parts)
        return
    for group in groups:
        each = part / len(groups)
        if group in (own, other):
            minimal(cables, a, b, each, parts)
            continue
        for (here, there), first in between(cables, (own, group)):
            inside(cables, a, here, each * first, parts)
            parts[here, there] += each * first
            for (back, _), second in between(cables, (group, other)):
                inside(cables, there, back, each * first * second, parts)
        for (back, end), second in between(cables, (group, other)):
            parts[back, end] += each * second
            inside(cables, end, b, each * second, parts)


def divided(routing: Routing, links: MachineLinks, a: int, b: int) -> Parts:
    """The part of the traffic on the cables from one switch to another, as the engine has it."""
    parts: Parts = defaultdict(float)
    for channel, part in routing.parts(a, b):
        named = [links.link(*link) for link in routing.links(channel)]
        for link in named:
            parts[link.source, link.target] += part / len(named)
    return parts


def pairs(fabric: Machine) -> Iterator[tuple[int, int]]:
    nodes = range(0, fabric.nodes, max(fabric.nodes // 9, 1))
    return itertools.permutations(nodes, 2)


@pytest.mark.parametrize("fraction", [0.0, 1.0, 0.3])
@pytest.mark.parametrize("name", WIRINGS)
def test_traffic_is_divided_over_all_routes(name: str, fraction: float) -> None:
    fabric, cables = made(name)
    routing = fabric.routing(f"valiant(fraction={fraction})" if fraction else "minimal")
    links = MachineLinks(fabric)
    for a, b in pairs(fabric):
        ends = [cables.switch_of[fabric.hostlist([node])] for node in (a, b)]
        expected: Parts = defaultdict(float)
        minimal(cables, *ends, 1 - fraction, expected)
        valiant(cables, *ends, fraction, expected)
        found = {
            link: part for link, part in divided(routing, links, a, b).items() if link in cables.bandwidth
        }
        assert found == pytest.approx({link: part for link, part in expected.items() if part > 0})


@pytest.mark.parametrize("name", WIRINGS)
def test_the_hashed_route_is_one_of_the_minimal_ones(name: str) -> None:
    """It is a chain of links from one switch to the other, each of them on a minimal route."""
    fabric, cables = made(name)
    routing, links = fabric.routing("minimal-hashed"), MachineLinks(fabric)
    for a, b in pairs(fabric):
        here, end = (cables.switch_of[fabric.hostlist([node])] for node in (a, b))
        allowed = cables.links_of([fabric.hostlist([a]), fabric.hostlist([b])])
        for channel in routing.path(a, b)[1:-1]:
            (link,) = [links.link(*link) for link in routing.links(channel)]
            assert link.source == here and (link.source, link.target) in allowed
            here = link.target
        assert here == end


@pytest.mark.parametrize("routing", ["minimal", "minimal-hashed"])
@pytest.mark.parametrize("name", WIRINGS)
def test_isolated_jobs_do_not_slow_each_other(name: str, routing: str) -> None:
    """In random states under `isolated`, every job has a slowdown of exactly 1, and under `first-fit` some have more."""
    from test_isolation import states

    fabric, _ = made(name)
    chosen = fabric.routing(routing)
    worst = {}
    for policy in ("isolated", "first-fit"):
        worst[policy] = 1.0
        for jobs in itertools.islice(states(fabric, policy, 60, seed=3), 60):
            running = [[fabric.nodes_named(node)[0] for node in nodes] for nodes in jobs.values()]
            sent = [(nodes, Traffic.pattern("alltoall", len(nodes))) for nodes in running if len(nodes) > 1]
            if sent:
                worst[policy] = max(worst[policy], *contend(chosen, "congestion", sent).slowdowns)
    assert worst["isolated"] == 1.0 < worst["first-fit"]


def test_detours_meet_isolated_jobs() -> None:
    """Under Valiant's routing no placement keeps jobs apart that span groups."""
    fabric, _ = made("all-to-all")
    sent = [(list(range(first, first + 32)), Traffic.pattern("alltoall", 32)) for first in (0, 32)]
    met = {}
    for name in ("minimal", "valiant(fraction=0.5)"):
        loads = Loads(fabric.routing(name), sent)
        met[name] = sum(len(loads.users(channel)) == 2 for channel in range(len(loads.shares)))
    assert met["minimal"] == 0 < met["valiant(fraction=0.5)"]
