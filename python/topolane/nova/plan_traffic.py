"""Plans moves within a group whose traffic is known: like the weigher, it brings servers close to those that
they talk to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topolane._engine import Machine, Traffic


@dataclasses.dataclass(frozen=True)
class PairWeights:
    """The weight of the hops between each two servers of a group: proportional to their bytes, 1 on average."""

    servers: list[str]
    pairs: list[tuple[int, int, float]]
    """Two indices into `servers`, and the weight. Other pairs have weight 0."""

    @staticmethod
    def of(servers: Sequence[str], traffic: Traffic) -> PairWeights | None:
        """The weights of servers that have the first ranks of the traffic; None if these send nothing to each
        other.
        """
        sender, receiver, size, _ = traffic.arrays()
        own = (sender < len(servers)) & (receiver < len(servers)) & (sender != receiver)
        low, high = np.minimum(sender, receiver)[own], np.maximum(sender, receiver)[own]
        ends, place = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
        sums: NDArray[np.float64] = np.zeros(len(ends))
        np.add.at(sums, place.reshape(-1), np.asarray(size, np.float64)[own])
        if not sums.sum() > 0:
            return None
        sums *= len(servers) * (len(servers) - 1) / 2 / sums.sum()
        rows = zip(ends[:, 0].tolist(), ends[:, 1].tolist(), sums.tolist(), strict=True)
        return PairWeights(list(servers), [row for row in rows if row[2] > 0])

    @staticmethod
    def read(fields: Any) -> PairWeights:
        """The weights in a JSON value. Raises ValueError, KeyError or TypeError if it is invalid."""
        servers = [str(server) for server in fields["servers"]]
        pairs = [(int(one), int(other), float(weight)) for one, other, weight in fields["pairs"]]
        if not all(0 <= one < other < len(servers) and 0 < weight < np.inf for one, other, weight in pairs):
            raise ValueError("weights of servers that are out of range")
        return PairWeights(servers, pairs)

    def hops(self, machine: Machine, at: Mapping[str, int]) -> float:
        """Weighted hops, summed over the pairs of servers that have a node. at: the node of every server."""
        on = self.hops_on(machine, at)
        own = [on[place, at[server]] for place, server in enumerate(self.servers) if server in at]
        return float(sum(own)) / 2

    def hops_on(self, machine: Machine, at: Mapping[str, int]) -> NDArray[np.float64]:
        """The weighted hops of each server on each node, while the other servers stay where they are:
        (servers, nodes).
        """
        weights: NDArray[np.float64] = np.zeros((len(self.servers), len(self.servers)))
        for one, other, weight in self.pairs:
            weights[one, other] = weights[other, one] = weight
        placed = [place for place, server in enumerate(self.servers) if server in at]
        if not placed:
            return np.zeros((len(self.servers), machine.nodes))
        hops = np.stack([np.asarray(machine.hops_from(at[self.servers[place]])) for place in placed])
        return np.asarray(weights[:, placed] @ hops, np.float64)


class ServerMove(NamedTuple):
    """The move of one server to another node."""

    server: str
    source: int
    target: int
    before: float
    """Weighted hops of the group before it."""
    after: float
    """Weighted hops of the group after it."""


Costs = Callable[[str, dict[str, int], NDArray[np.uint32]], NDArray[np.float64] | None]
"""The policy's cost of every node for a server, given the nodes of all servers and the free slots. Infinite
on nodes that the filter refuses; None if it refuses all.
"""


def moves(
    machine: Machine,
    weights: PairWeights,
    at: Mapping[str, int],
    movable: Sequence[str],
    slots: Sequence[int],
    least_gain: float,
    costs: Costs,
) -> Iterator[ServerMove]:
    """Moves that each lower the weighted hops by `least_gain` or more; each is the best move after the
    previous ones.

    at: the nodes of the group's servers. No server moves twice. A node that a server leaves is not used
    again.
    """
    now, free = dict(at), np.array(slots, np.uint32)
    may = set(movable)
    left = {place for place, server in enumerate(weights.servers) if server in may and server in now}
    total = weights.hops(machine, now)
    on = weights.hops_on(machine, now)
    while left:
        gains = np.full(on.shape, -np.inf)
        for place in left:
            gains[place] = np.where(free > 0, on[place, now[weights.servers[place]]] - on[place], -np.inf)
        found = _best(gains, least_gain, weights.servers, now, free, costs)
        if found is None:
            return
        place, target = found
        server, gain = weights.servers[place], float(gains[place, target])
        yield ServerMove(server, now[server], target, total, total - gain)
        total -= gain
        now[server] = target
        free[target] -= 1
        left.remove(place)
        on = weights.hops_on(machine, now)


def _best(
    gains: NDArray[np.float64],
    least: float,
    servers: list[str],
    now: dict[str, int],
    free: NDArray[np.uint32],
    costs: Costs,
) -> tuple[int, int] | None:
    """The server (an index) and the node with the highest gain that the filter allows; None if no gain
    reaches `least`. Of equal nodes, the one with the lowest cost for the policy.
    """
    gains = gains.copy()
    while True:
        place, node = divmod(int(gains.argmax()), gains.shape[1])
        highest = gains[place, node]
        if not highest >= least - 1e-9:
            return None
        cost = costs(servers[place], now, free)
        allowed = np.zeros(gains.shape[1], bool) if cost is None else np.isfinite(cost)
        gains[place, ~allowed] = -np.inf
        if cost is not None and gains[place].max() >= highest - 1e-9:
            equal = np.flatnonzero(gains[place] >= highest - 1e-9)
            return place, int(equal[np.argmin(cost[equal])])
