"""One request of Nova's scheduler, instance after instance: what every host costs its group."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topolane._engine import Refusal, State
from topolane.nova.topology import Topology
from topolane.nova.traffic import Ranks
from topolane.nova.underway import Entry

POLICIES = {"isolated": "isolated-hop-bytes", "spread": "spread"}
"""The engine's policy of every placement; that of compact groups is the operator's choice."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What every node costs, or why none will do."""

    costs: NDArray[np.float64] | None
    """By node, infinite where it must not go."""
    refusal: str | None = None
    """In a sentence."""
    shares: bool = False
    """Whether there is room, but only on links of others."""


@dataclasses.dataclass
class Placing:
    """The placement of one request's servers, as it goes on."""

    topology: Topology
    policy: str
    stacked: bool
    """Whether several of the group may lie on one host, or its hosts' own links are looked at."""
    members: list[int]
    """Nodes of the members that have a host, those of this request included."""
    awaiting: int
    """Servers of the request without a host."""
    ranks: Ranks | None = None
    """The group's traffic, where it names a profile."""
    beyond: int = 0
    """Members on hosts that are not on the machine."""
    others: Sequence[tuple[list[int], bool, bool]] = ()
    """The nodes of every other group, whether it owns its links, and whether some of it is not on the machine."""

    def __post_init__(self) -> None:
        self._underway: list[Entry] = []
        self._met = 0
        self._members_there: list[int] = []
        self._build()

    def meet(self, group: str, underway: list[Entry]) -> None:
        """Other requests that are placed at the same time, those for the same group among them."""
        if underway == self._underway:
            return
        self._underway = underway
        self._met += 1
        given = [host for entry in underway if entry.group == group for host in entry.given]
        self._members_there = self._nodes(given)
        self._build()
        for entry in underway:
            if entry.group != group and (nodes := self._nodes(entry.hosts)):
                self._state.overlay(nodes, entry.owned, len(nodes) < len(entry.hosts))
                # The links of hosts matter where groups must not meet on them.
                self.stacked = self.stacked or entry.owned

    @property
    def others_underway(self) -> int:
        """How often other requests have been met: what was answered before is old then."""
        return self._met

    def _nodes(self, hosts: list[str]) -> list[int]:
        return [node for host in hosts if (node := self.topology.node_of.get(host)) is not None]

    def _build(self) -> None:
        self._state = State(self.topology.machine)
        for nodes, owned, beyond in self.others:
            self._state.overlay(nodes, owned, beyond)

    def give(self, host: str) -> None:
        """A server of the request was given the host."""
        node = self.topology.node_of.get(host)
        if node is not None:
            self.members.append(node)
        else:
            self.beyond += 1
        self.awaiting = max(1, self.awaiting - 1)
        if self.ranks is not None:
            self.ranks.give(node)

    def costs(self, slots: NDArray[np.uint32]) -> Answer:
        """What it costs to give each node the server at hand; `slots` are free, by node."""
        free = int(slots.sum()) if self.stacked else int(np.count_nonzero(slots))
        if free == 0:
            return Answer(None, "no host that is on the topology has room")
        # Where not all fit the request will fail, or hosts unknown to the topology take the rest.
        wanted = min(self.awaiting, free)
        if wanted < self.awaiting and self.policy == POLICIES["isolated"]:
            return Answer(None, f"{self.awaiting} servers do not fit: {free} slots are free")
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
            return Answer(None, costs.why, shares=costs.name == "would-share-links")
        if self.ranks is not None and self.policy != POLICIES["spread"]:
            costs = self.ranks.sharpen(self._state, self.policy, wanted, members, slots, self.stacked, costs)
        return Answer(costs)


def tiers(costs: NDArray[np.float64], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weights of hosts on `nodes` (-1: not on the machine): whole numbers, the best host's the highest.

    Hosts that cost the same have the same weight. A host that must not be used, or of which nothing is
    known, has 0, any other at least 1.
    """
    cost = np.where(nodes >= 0, costs[nodes], np.inf)
    known = np.isfinite(cost)
    ranks = np.zeros(len(nodes))
    if known.any():
        _, inverse = np.unique(cost[known], return_inverse=True)
        ranks[known] = inverse.max() + 1 - inverse
    return ranks
