"""Places the group of one request, instance by instance: the cost of every host."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topolane._engine import Decision, Refusal, State
from topolane.nova.concurrent_requests import Entry
from topolane.nova.topology import Topology
from topolane.nova.traffic import Ranks

POLICIES = {"isolated": "isolated-hop-bytes", "spread": "spread"}
"""The engine's policy for every placement. The operator chooses the one for compact groups."""


@dataclasses.dataclass(frozen=True)
class HostCosts:
    """The cost of every node, or why no node is allowed."""

    costs: NDArray[np.float64] | None
    """By node; infinite if the server must not use it."""
    refusal: str | None = None
    """A sentence, if no node is allowed."""
    kind: str = "not-now"
    """The kind of a refusal: the engine's name of it."""

    @property
    def shares(self) -> bool:
        """Whether it was refused because it would share links."""
        return self.costs is None and self.kind == "would-share-links"


@dataclasses.dataclass
class GroupPlacement:
    """The placement of the servers of one request, instance by instance."""

    topology: Topology
    policy: str
    stacked: bool
    """Whether several members may share a host, or the links of the hosts themselves matter."""
    members: list[int]
    """Nodes of the members that have a host, including those of this request."""
    awaiting: int
    """Servers of the request without a host."""
    ranks: Ranks | None = None
    """The group's traffic, if it names a profile."""
    beyond: int = 0
    """How many members are on hosts outside the machine."""
    shelved: int = 0
    """Other members that are shelved. The server goes where they will fit too, if there is such a place."""
    others: Sequence[tuple[list[int], bool, bool]] = ()
    """For every other group: its nodes, whether its links are dedicated, and whether some members are outside
    the machine.
    """

    def __post_init__(self) -> None:
        self._concurrent: list[Entry] = []
        self._met = 0
        self._members_there: list[int] = []
        self._build()

    def update_concurrent(self, group: str, concurrent: list[Entry]) -> None:
        """Updates the requests that are placed at the same time, including those for the same group."""
        if concurrent == self._concurrent:
            return
        self._concurrent = concurrent
        self._met += 1
        own = [entry for entry in concurrent if entry.group == group]
        self._members_there = self._nodes([host for entry in own for host in (*entry.given, *entry.planned)])
        self._build()
        for entry in concurrent:
            if entry.group != group and (nodes := self._nodes(entry.hosts)):
                self._state.overlay(nodes, entry.dedicated, len(nodes) < len(entry.hosts))
                # The links of hosts matter if groups must not share them.
                self.stacked = self.stacked or entry.dedicated

    @property
    def times_updated(self) -> int:
        """How often concurrent requests were updated: earlier answers are then outdated."""
        return self._met

    def _nodes(self, hosts: list[str]) -> list[int]:
        return [node for host in hosts if (node := self.topology.node_of.get(host)) is not None]

    def _build(self) -> None:
        self._state = State(self.topology.machine)
        for nodes, dedicated, beyond in self.others:
            self._state.overlay(nodes, dedicated, beyond)

    def give(self, host: str) -> None:
        """Records that a server of the request was given the host."""
        node = self.topology.node_of.get(host)
        if node is not None:
            self.members.append(node)
        else:
            self.beyond += 1
        self.awaiting = max(1, self.awaiting - 1)
        if self.ranks is not None:
            self.ranks.give(node)

    def costs(self, slots: NDArray[np.uint32]) -> HostCosts:
        """The cost of placing the current server on each node; `slots` are the free slots by node."""
        if self.shelved:
            together = self._costs(slots, self.awaiting + self.shelved)
            if together.costs is not None:
                return together
        return self._costs(slots, self.awaiting)

    def _costs(self, slots: NDArray[np.uint32], awaiting: int) -> HostCosts:
        free = int(slots.sum()) if self.stacked else int(np.count_nonzero(slots))
        if free == 0:
            return HostCosts(None, "no host that is on the topology has room")
        # If not all fit, the request will fail, or hosts outside the topology take the rest.
        wanted = min(awaiting, free)
        if wanted < awaiting and self.policy == POLICIES["isolated"]:
            return HostCosts(None, f"{awaiting} servers do not fit: {free} slots are free")
        members = [*self.members, *self._members_there]
        costs = self._state.costs(
            self.policy,
            wanted,
            members=members,
            slots=slots.tolist(),
            stacked=self.stacked,
            beyond=self.beyond,
        )
        if isinstance(costs, Refusal):
            return HostCosts(None, costs.why, kind=costs.name)
        if self.ranks is not None and self.policy != POLICIES["spread"]:
            costs = self.ranks.sharpen(self._state, self.policy, wanted, members, slots, self.stacked, costs)
        return HostCosts(costs)

    def price(self, slots: NDArray[np.uint32]) -> float:
        """What the policy pays to place all awaited servers on these slots; infinite if it cannot."""
        placed = self._place(slots, self.awaiting)
        if placed is None:
            return float("inf")
        return -placed.hop_bytes if self.policy == POLICIES["spread"] else placed.hop_bytes

    def plan(self, slots: NDArray[np.uint32]) -> list[int] | None:
        """Nodes for all awaited servers, once per server; None if the policy has none for them."""
        # What the engine places knows nothing of members outside the machine.
        if self.beyond > 0:
            return None
        placed = self._place(slots, self.awaiting + self.shelved) or self._place(slots, self.awaiting)
        return None if placed is None else list(placed.nodes)

    @property
    def keeps_off(self) -> bool:
        """Whether some links are closed to the group, or those that it uses to others."""
        if self.policy == POLICIES["isolated"]:
            return True
        dedicated = any(owned for _, owned, _ in self.others) or any(
            one.dedicated for one in self._concurrent
        )
        return self.policy == "hop-bytes-exact" and dedicated

    def _place(self, slots: NDArray[np.uint32], awaiting: int) -> Decision | None:
        free = int(slots.sum()) if self.stacked else int(np.count_nonzero(slots))
        if free == 0:
            return None
        placed = self._state.place(
            self.policy,
            min(awaiting, free),
            members=[*self.members, *self._members_there],
            slots=slots.tolist(),
            stacked=self.stacked,
        )
        return placed if isinstance(placed, Decision) else None


def by_cost(costs: NDArray[np.float64], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weights of hosts on `nodes` (-1: not on the machine): 0 for the best host, less in proportion to the cost.

    Hosts of the same cost weigh the same: the part of the cost that orders them by index is below 1. A host that must not be
    used, or is not known, weighs less than any other.
    """
    cost = np.floor(np.where(nodes >= 0, costs[nodes], np.inf))
    known = np.isfinite(cost)
    worst = cost[known].max(initial=0.0)
    return -np.where(known, cost, worst + max(1.0, 0.001 * worst))


def tiers(costs: NDArray[np.float64], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weights of hosts on `nodes` (-1: not on the machine): whole numbers, highest for the best host.

    Hosts of the same cost have the same weight. A host that must not be used, or is not known, has 0; any
    other has at least 1.
    """
    cost = np.where(nodes >= 0, costs[nodes], np.inf)
    known = np.isfinite(cost)
    ranks = np.zeros(len(nodes))
    if known.any():
        _, inverse = np.unique(cost[known], return_inverse=True)
        ranks[known] = inverse.max() + 1 - inverse
    return ranks
