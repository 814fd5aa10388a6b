"""Compares `max-min` with TCP packet by packet under ns-3, on trees that `d-mod-k` routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from cases import Pair, Shape
from components import Programs, run
from topolane._engine import Routing, max_min

# Bytes per second of every cable. It is slow, so that few packets fill it.
CABLE = 5_000_000
# The fraction of a cable left for payload: 1,448 bytes of a frame of 1,502.
PAYLOAD = 1448 / 1502

TREE = Shape("32 nodes, full", (4, 4, 2), (1, 4, 2), (1, 1, 2), (CABLE,) * 3)
TAPERED = Shape("32 nodes, tapered", (4, 4, 2), (1, 2, 1), (1, 1, 2), (CABLE,) * 3)


@dataclass(frozen=True)
class PacketCase:
    """Flows on a tree."""

    name: str
    shape: Shape
    flows: list[Pair]


def _permutation(seed: int) -> list[Pair]:
    to = np.random.default_rng(seed).permutation(32).tolist()
    return [(a, b) for a, b in enumerate(to) if a != b]


def _rings() -> list[Pair]:
    """Two jobs with mixed nodes, each of which sends round a ring in both directions."""
    nodes = np.random.default_rng(5).permutation(32).tolist()
    rings = (nodes[:16], nodes[16:])
    return [(ring[i], ring[(i + step) % 16]) for ring in rings for i in range(16) for step in (1, 15)]


CASES = (
    PacketCase("two over one link", TREE, [(0, 8), (4, 8)]),
    PacketCase("five to one, and one more", TREE, [(1, 0), (4, 0), (9, 0), (17, 0), (25, 0), (25, 2)]),
    PacketCase("a permutation, full", TREE, _permutation(1)),
    PacketCase("a permutation, tapered", TAPERED, _permutation(1)),
    PacketCase("two rings in each other's way, tapered", TAPERED, _rings()),
)


@dataclass(frozen=True)
class PacketRow:
    """The differences between TCP's rates, relative to the possible payload, and Topolane's."""

    case: str
    queues: str
    flows: int
    total: float
    """All bytes of TCP divided by Topolane's."""
    mean: float
    """Mean of |TCP - Topolane| / Topolane."""
    largest: float
    spearman: float | None
    """Rank correlation of the rates; None if Topolane's are all equal."""


class _Switches:
    """The switches at the ends of cables, derived from routes alone: where one channel of a route ends, the
    next begins.
    """

    def __init__(self) -> None:
        self.same: dict[tuple[int, bool], tuple[int, bool]] = {}

    def find(self, end: tuple[int, bool]) -> tuple[int, bool]:
        """The switch at the lower (False) or upper (True) end of a cable."""
        while (above := self.same.setdefault(end, end)) != end:
            end = above
        return end

    def join(self, one: tuple[int, bool], other: tuple[int, bool]) -> None:
        """Records that two ends are at one switch."""
        self.same[self.find(one)] = self.find(other)


def _tail(channel: int) -> tuple[int, bool]:
    return channel // 2, channel % 2 == 1


def _head(channel: int) -> tuple[int, bool]:
    return channel // 2, channel % 2 == 0


def network(
    routing: Routing, nodes: int, flows: Sequence[tuple[int, ...]], bandwidth: float | None = None
) -> str:
    """The network in the format of `ns3_bulk`: all cables in use, and the routes to the ends of the flows.

    flows: from, to, and what else the program reads of a flow. bandwidth: bytes per second of every cable, if not the routing's.
    """
    pairs = {pair for a, b, *_ in flows for pair in ((a, b), (b, a))}
    ways = {pair: routing.path(*pair) for pair in pairs}
    # All routes, even those that no flow takes, show where cables end.
    switches, cables = _Switches(), sorted({channel // 2 for way in ways.values() for channel in way})
    meeting = {two for a in range(nodes) for b in range(nodes) for two in pairwise(routing.path(a, b))}
    for one, other in sorted(meeting):
        switches.join(_head(one), _tail(other))
    hosts = sorted({node for pair in pairs for node in pair})
    number = {
        switches.find(_tail(routing.path(node, (node + 1) % nodes)[0])): i for i, node in enumerate(hosts)
    }
    host = {node: i for i, node in enumerate(hosts)}
    for cable in cables:
        for upper in (False, True):
            number.setdefault(switches.find((cable, upper)), len(number))
    place = {cable: index for index, cable in enumerate(cables)}
    routes = {
        (number[switches.find(_tail(channel))], host[b]): place[channel // 2]
        for (_, b), way in ways.items()
        for channel in way
    }
    speed = routing.capacity if bandwidth is None else np.full(len(routing.capacity), bandwidth)
    lines = [f"{len(number)} {len(hosts)} {len(cables)} {len(routes)} {len(flows)}"]
    for cable in cables:
        ends = (number[switches.find((cable, upper))] for upper in (False, True))
        lines.append(" ".join(map(str, (*ends, int(speed[2 * cable])))))
    lines += [f"{at} {to} {cable}" for (at, to), cable in routes.items()]
    lines += [" ".join(map(str, (host[a], host[b], *rest))) for a, b, *rest in flows]
    return "\n".join(lines) + "\n"


def compare_packets(programs: Programs, case: PacketCase, queues: str, seconds: float) -> PacketRow:
    """Runs one case under ns-3: a second to settle, then `seconds` that are measured."""
    machine = case.shape.machine()
    routing = machine.routing("d-mod-k", 0)
    command = [programs.ns3_bulk(), "rates", queues, "1", str(seconds)]
    printed = run(command, network(routing, machine.nodes, case.flows), timeout=1800)
    tcp = np.array(printed.split(), dtype=float) / PAYLOAD
    paths = [routing.path(a, b) for a, b in case.flows]
    first = np.cumsum([0, *map(len, paths)], dtype=np.uint32)
    channels = np.array([channel for path in paths for channel in path], dtype=np.uint32)
    ours = max_min(routing.capacity, first, channels)
    apart = np.abs(tcp - ours) / ours
    alike = float(np.ptp(ours)) < 1e-9 * float(ours.max())
    frame = pl.DataFrame({"ours": ours.round(3), "tcp": tcp})
    rank = None if alike else float(frame.select(pl.corr("ours", "tcp", method="spearman")).item())
    return PacketRow(
        case.name,
        queues,
        len(tcp),
        float(tcp.sum() / ours.sum()),
        float(apart.mean()),
        float(apart.max()),
        rank,
    )


def packet_rows(programs: Programs, seconds: float) -> list[PacketRow]:
    """All cases with both kinds of queue."""
    return [
        compare_packets(programs, case, queues, seconds) for case in CASES for queues in ("fair", "shared")
    ]
