"""Places the servers of groups with a known traffic profile on the group's hosts."""

from __future__ import annotations

import pathlib

import numpy as np
from numpy.typing import NDArray

from topolane import texts
from topolane._engine import Decision, InputError, Machine, State, Traffic, map_ranks

ENDINGS = (".csv", ".mtx")


def profile(directory: str, name: str) -> Traffic:
    """The traffic profile with this name. Raises InputError if it does not exist or cannot be read."""
    for ending in ENDINGS:
        path = pathlib.Path(directory, name + ending)
        try:
            return Traffic.parse(texts.read_text(path, texts.LARGE), str(path))
        except texts.NoFileError:
            continue
    raise InputError(f"there is no traffic profile {name} in {directory} ({', '.join(ENDINGS)})")


class GroupRanks:
    """The ranks of a group: rank r is its r-th server by the order of creation.

    If no member runs yet, all ranks are mapped at once onto the nodes that the policy would take (`topolane
    map`), and every server goes to its rank's node. Running members are not moved: a new member goes where
    its own traffic has the fewest hop-bytes.
    """

    def __init__(self, machine: Machine, traffic: Traffic, at: dict[int, int], next_rank: int) -> None:
        """at: the node of each rank that has one. next_rank: the rank of the current server."""
        self._machine = machine
        self._at = dict(at)
        self._next = next_rank
        self._bytes = _both_ways(traffic)
        self._plan: dict[int, int] | None = None
        self._fresh = not at

    def give(self, node: int | None) -> None:
        """Records that the current server was given this node; None for a host outside the machine."""
        if node is not None:
            self._at[self._next] = node
        self._next += 1

    def sharpen(
        self,
        state: State,
        policy: str,
        wanted: int,
        members: list[int],
        slots: NDArray[np.uint32],
        stacked: bool,
        costs: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """The costs, refined so that the best nodes for the current rank come first. Infinite costs stay
        infinite.
        """
        if self._next >= len(self._bytes):
            return costs
        if self._fresh and self._plan is None:
            placed = state.place(policy, wanted, members=members, slots=slots.tolist(), stacked=stacked)
            self._plan = self._mapped(placed.nodes) if isinstance(placed, Decision) else {}
        planned = self._plan.get(self._next) if self._plan else None
        finite = np.isfinite(costs)
        if planned is not None and slots[planned] > 0 and finite[planned]:
            own = np.ones(len(costs))
            own[planned] = 0.0
        else:
            own = self._hop_bytes()
        # The policy's own order decides between nodes that are equally good for the rank.
        order = np.full(len(costs), np.inf)
        _, inverse = np.unique(costs[finite], return_inverse=True)
        _, suits = np.unique(own[finite], return_inverse=True)
        order[finite] = suits * (inverse.max(initial=0) + 1.0) + inverse
        return order

    def _mapped(self, nodes: list[int]) -> dict[int, int]:
        """The node of every rank. Ranks in the profile are mapped for the fewest hop-bytes."""
        ranks = min(len(nodes), len(self._bytes))
        sender, receiver = np.nonzero(self._bytes[:ranks, :ranks])
        traffic = Traffic.of(
            ranks,
            sender.astype(np.uint32),
            receiver.astype(np.uint32),
            self._bytes[sender, receiver],
        )
        mapping = map_ranks(self._machine, nodes, traffic, effort="eco", threads=1)
        return {rank: nodes[slot] for rank, slot in enumerate(mapping.slots)}

    def _hop_bytes(self) -> NDArray[np.float64]:
        """By node: the hop-bytes between the current rank there and all placed ranks."""
        sums = np.zeros(self._machine.nodes)
        for rank, node in self._at.items():
            if rank < len(self._bytes) and self._bytes[self._next, rank] > 0:
                sums += self._machine.hops_from(node) * self._bytes[self._next, rank]
        return sums


def _both_ways(traffic: Traffic) -> NDArray[np.float64]:
    """Bytes between every two ranks in both directions: (ranks, ranks)."""
    sender, receiver, size, _ = traffic.arrays()
    sums = np.zeros((traffic.ranks, traffic.ranks))
    np.add.at(sums, (sender, receiver), size)
    return sums + sums.T
