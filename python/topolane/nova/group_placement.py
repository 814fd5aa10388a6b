"""Places the group of one request, instance by instance: the cost of every host."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topolane._engine import Decision, Refusal, State
from topolane.nova.concurrent_requests import ConcurrentRequest
from topolane.nova.topology import Topology
from topolane.nova.traffic import GroupRanks

POLICIES = {"isolated": "isolated-hop-bytes", "spread": "spread"}
"""The engine's policy for each placement. For `compact`, the operator chooses it."""


@dataclasses.dataclass(frozen=True)
class HostCosts:
    """The cost of each node, or the reason why no node is allowed."""

    costs: NDArray[np.float64] | None
    """By node; infinite if the server must not use it."""
    refusal: str | None = None
    """A sentence, if no node is allowed."""
    kind: str = "not-now"
    """The engine's name for the kind of refusal."""

    @property
    def shares(self) -> bool:
        """Whether the group was refused because it would share links."""
        return self.costs is None and self.kind == "would-share-links"


@dataclasses.dataclass
class GroupPlacement:
    """The placement of the servers of one request, instance by instance."""

    topology: Topology
    policy: str
    stacked: bool
    """Whether several members may share a host, or whether other groups must keep off the hosts' own links.
    """
    members: list[int]
    """Nodes of the members that have a host, including those of this request."""
    awaiting: int
    """The number of servers of the request without a host."""
    ranks: GroupRanks | None = None
    """The group's traffic, if it names a profile."""
    beyond: int = 0
    """The number of members on hosts outside the machine."""
    shelved: int = 0
    """The number of other members that are shelved. If possible, the server goes where they will fit too."""
    others: Sequence[tuple[list[int], bool, bool]] = ()
    """For every other group: its nodes, whether its links are dedicated, and whether some members are outside
    the machine.
    """

    def __post_init__(self) -> None:
        self._concurrent: list[ConcurrentRequest] = []
        self._met = 0
        self._members_there: list[int] = []
        self._build()

    def update_concurrent(self, group: str, concurrent: list[ConcurrentRequest]) -> None:
        """Updates the requests that are placed at the same time, including those for the same group."""
        if concurrent == self._concurrent:
            return
        self._concurrent = concurrent
        self._met += 1
        own = [entry for entry in concurrent if entry.group == group]
        self._members_there = self.topology.nodes(
            [host for entry in own for host in (*entry.given, *entry.planned)]
        )
        self._build()
        for entry in concurrent:
            if entry.group != group and (nodes := self.topology.nodes(entry.hosts)):
                self._state.overlay(nodes, entry.dedicated, len(nodes) < len(entry.hosts))
                # Groups must not share the hosts' own links with a group that has dedicated links.
                self.stacked = self.stacked or entry.dedicated

    @property
    def times_updated(self) -> int:
        """How often concurrent requests were updated. Answers from before an update are outdated."""
        return self._met

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
        # If not all servers fit, the request fails or hosts outside the topology take the others.
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
        """The policy's cost of placing all awaited servers on these slots; infinite if that is impossible."""
        placed = self._place(slots, self.awaiting)
        if placed is None:
            return float("inf")
        return -placed.hop_bytes if self.policy == POLICIES["spread"] else placed.hop_bytes

    def plan(self, slots: NDArray[np.uint32]) -> list[int] | None:
        """A node for each awaited server; None if the policy cannot place them all."""
        # The engine does not consider members outside the machine when it places.
        if self.beyond > 0:
            return None
        placed = self._place(slots, self.awaiting + self.shelved) or self._place(slots, self.awaiting)
        return None if placed is None else list(placed.nodes)

    @property
    def keeps_off(self) -> bool:
        """Whether the group must avoid links of other groups, or other groups must avoid its links."""
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
    """Weights of hosts on `nodes` (-1: not on the machine): 0 for the best host, and lower in proportion to
    the cost.

    The part of the cost below 1 only orders hosts by index and is ignored. Unknown hosts and hosts that must
    not be used have the lowest weight.
    """
    cost = np.floor(np.where(nodes >= 0, costs[nodes], np.inf))
    known = np.isfinite(cost)
    worst = cost[known].max(initial=0.0)
    return -np.where(known, cost, worst + max(1.0, 0.001 * worst))


def tiers(costs: NDArray[np.float64], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weights of hosts on `nodes` (-1: not on the machine): whole numbers, highest for the best host.

    Hosts of the same cost have the same weight. Unknown hosts and hosts that must not be used have 0; any
    other has at least 1.
    """
    cost = np.where(nodes >= 0, costs[nodes], np.inf)
    known = np.isfinite(cost)
    ranks = np.zeros(len(nodes))
    if known.any():
        _, inverse = np.unique(cost[known], return_inverse=True)
        ranks[known] = inverse.max() + 1 - inverse
    return ranks
