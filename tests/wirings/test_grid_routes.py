"""Routes of tori and HyperX, next to all shortest routes over the cables that the machine file says: nothing of the engine is in
the comparison.

`minimal` divides a message alike over all shortest routes; `dimension-order` over those that pass the dimensions in order, so
two ways around half of a ring get half each.
"""

from __future__ import annotations

import itertools
import random
import tomllib
from collections import defaultdict
from collections.abc import Iterator

import pytest
import test_hyperx
import test_tori
from closure import ShortestWays
from test_isolation import states
from topolane import InputError
from topolane._engine import Loads, Machine, Routing, Traffic, contend
from topolane.routes import MachineLinks
from topolane.sources import machine

Place = tuple[int, ...]
Link = tuple[object, object]
"""From a node or the place of a switch to another."""
Parts = dict[Link, float]

GRIDS = [
    *(f"torus: {name}" for name in test_tori.WIRINGS if "pod" not in name),
    *(f"hyperx: {name}" for name in test_hyperx.WIRINGS),
]
"""Tori and HyperX by the names that they have there."""
WAYS = [
    (name, routing)
    for name in GRIDS
    for routing in ("dimension-order", "minimal")
    if routing == "dimension-order" or name.startswith("hyperx")
]


class Grid:
    """The switches and cables of a machine in Topolane's own format: places in the grid, and which differ by one cable."""

    def __init__(self, text: str, place_of: dict[str, Place], wrap: list[bool] | None) -> None:
        self.text = tomllib.loads(text)
        table = self.text["torus" if wrap else "hyperx"]
        sizes: list[int] = table["dimensions"]
        self.place_of = place_of
        """The switch of each node."""
        places = list(itertools.product(*map(range, sizes)))
        self.near: dict[Place, list[Place]] = {place: [] for place in places}
        self.bandwidth: Parts = {}
        for one, other in itertools.permutations(places, 2):
            differing = [d for d, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
            if len(differing) != 1:
                continue
            d = differing[0]
            step = abs(one[d] - other[d])
            if wrap and step != 1 and not (wrap[d] and step == sizes[d] - 1):
                continue
            self.near[one].append(other)
            cables, each = table.get("cables", 1), table.get("bandwidth", 4e9)
            count = cables[d] if isinstance(cables, list) else cables
            self.bandwidth[one, other] = count * (each[d] if isinstance(each, list) else each)
        self.far = ShortestWays(self.near).far
        for node, place in place_of.items():
            self.bandwidth[node, place] = self.bandwidth[place, node] = self.text.get("node", {}).get(
                "nic-bandwidth", 4e9
            )

    def routes(self, a: Place, b: Place) -> Iterator[tuple[Link, ...]]:
        """All shortest routes over the cables."""
        if a == b:
            yield ()
        for other in self.near[a]:
            if self.far[other][b] == self.far[a][b] - 1:
                for rest in self.routes(other, b):
                    yield ((a, other), *rest)

    def parts(self, routing: str, a: str, b: str) -> Parts:
        """The part of a message between two nodes on each link."""
        start, end = self.place_of[a], self.place_of[b]
        found = list(self.routes(start, end))
        if routing == "dimension-order":
            found = [route for route in found if is_in_order(route)]
        parts: Parts = defaultdict(float)
        for route in found:
            for link in ((a, start), *route, (end, b)):
                parts[link] += 1 / len(found)
        return parts


def is_in_order(route: tuple[Link, ...]) -> bool:
    """Whether a route is done with each dimension before it begins with the next."""
    passed = [
        next(d for d, (a, b) in enumerate(zip(one, other, strict=True)) if a != b) for one, other in route
    ]
    return passed == sorted(passed)


def made(name: str) -> tuple[Machine, Grid, dict[str, Place]]:
    """The machine, its grid as its file has it, and the place of each switch by name."""
    kind, _, wiring = name.partition(": ")
    if kind == "torus":
        fabric, torus = test_tori.made(wiring)
        grid = Grid(fabric.to("toml"), torus.router_of, torus.wrap)
        bare, listed = test_tori.with_bare_routers(), "routers"
    else:
        fabric, hyperx = test_hyperx.made(wiring)
        places = {node: hyperx.place_of[switch] for node, switch in hyperx.switch_of.items()}
        grid = Grid(fabric.to("toml"), places, None)
        bare, listed = test_hyperx.with_bare_switches(), "switches"
    names = {
        upper: grid.place_of[lower] for lower, _, upper, *_ in fabric.link_names() if lower in grid.place_of
    }
    if wiring.startswith("bare"):
        order = tomllib.loads(bare)[kind][listed].split(",")
        names = dict(zip(order, grid.near, strict=True))
    return fabric, grid, names


class Divided:
    """What is on each link between nodes and places, of what is on the channels of the engine."""

    def __init__(self, fabric: Machine, names: dict[str, Place]) -> None:
        self.links, self.names = MachineLinks(fabric), names

    def link(self, routing: Routing, channel: int) -> Link:
        """The link that a channel is: all of its cables join the same two ends."""
        cables = {self.links.link(*link) for link in routing.links(channel)}
        (ends,) = {(cable.source, cable.target) for cable in cables}
        return tuple(self.names.get(end, end) for end in ends)

    def parts(self, routing: Routing, a: int, b: int) -> Parts:
        return {self.link(routing, channel): part for channel, part in routing.parts(a, b)}


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_a_message_is_divided_over_all_routes(name: str, way: str) -> None:
    fabric, grid, names = made(name)
    routing, divided = fabric.routing(way), Divided(fabric, names)
    nodes = range(0, fabric.nodes, max(fabric.nodes // 16, 1))
    for a, b in itertools.permutations(nodes, 2):
        assert divided.parts(routing, a, b) == pytest.approx(
            grid.parts(way, fabric.hostlist([a]), fabric.hostlist([b]))
        )


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_loads_of_links_add_up(name: str, way: str) -> None:
    """Two jobs with random messages: each wants of a link its bytes there over the bandwidth in the file and its own time, which
    is that of its slowest link."""
    fabric, grid, names = made(name)
    routing, divided, draw = fabric.routing(way), Divided(fabric, names), random.Random(7)
    nodes = draw.sample(range(fabric.nodes), min(fabric.nodes, 12))
    jobs, expected = [], defaultdict(float)
    for own in (nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]):
        messages = [(a, b, draw.uniform(1e6, 1e9)) for a, b in itertools.permutations(range(len(own)), 2)]
        jobs.append((own, Traffic.of(len(own), *map(list, zip(*messages, strict=True)))))
        seconds: Parts = defaultdict(float)
        for a, b, size in messages:
            for link, part in grid.parts(way, *(fabric.hostlist([own[rank]]) for rank in (a, b))).items():
                seconds[link] += size * part / grid.bandwidth[link]
        for link, own_seconds in seconds.items():
            expected[link] += own_seconds / max(seconds.values())
    shares = Loads(routing, jobs).shares
    found = {divided.link(routing, channel): share for channel, share in enumerate(shares) if share > 0}
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_isolated_jobs_do_not_slow_each_other(name: str, way: str) -> None:
    """In random states under `isolated`, no two jobs have a channel in common, and every job has a slowdown of exactly 1. Under
    `random` some have."""
    fabric, _, _ = made(name)
    routing = fabric.routing(way)
    shared, worst = dict.fromkeys(("isolated", "random"), 0), 1.0
    for policy in shared:
        for jobs in itertools.islice(states(fabric, policy, 30, seed=3), 30):
            running = [[fabric.nodes_named(node)[0] for node in nodes] for nodes in jobs.values()]
            sent = [(nodes, Traffic.pattern("alltoall", len(nodes))) for nodes in running if len(nodes) > 1]
            if not sent:
                continue
            loads = Loads(routing, sent)
            shared[policy] += sum(len(loads.users(channel)) > 1 for channel in range(len(loads.shares)))
            if policy == "isolated":
                worst = max(worst, *contend(routing, "congestion", sent).slowdowns)
    assert (shared["isolated"], worst) == (0, 1.0)
    # In a plane of switches with one node each, the first link of a message in the order of the dimensions is used by the sender's
    # job alone, and the second by the receiver's.
    assert shared["random"] or (name, way) == ("hyperx: rectangle", "dimension-order")


@pytest.mark.parametrize(
    ("size", "routing", "sentence"),
    [
        ("torus(size=8x4, cube=4x4)", "default", "is a pod, whose optical switches are set for each job"),
        ("torus(size=8x4)", "minimal", "routing minimal needs a dragonfly or a HyperX, but"),
        ("hyperx(size=8x4)", "valiant", "take one of minimal, dimension-order"),
    ],
)
def test_what_has_no_routes_is_refused(size: str, routing: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        machine(size).routing(routing)
