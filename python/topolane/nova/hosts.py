"""The hosts that Nova lists for a request: their nodes, and how many servers of its group they can take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topolane.nova.capacity import Demand, capacity, most_per_host
from topolane.nova.topology import Topology


class Hosts:
    """Caches what is known of hosts: Nova passes the same `HostState`s for every instance of a request."""

    def __init__(self, topology: Topology, spec: Any, *, moves: bool) -> None:
        self._node_of = topology.node_of
        # A moving server does not take room from itself: it may be resized on its host.
        at_hand = {spec.instance_uuid} if moves else set()
        self._members = set(spec.instance_group.members) - at_hand
        self._most = most_per_host(spec.instance_group)
        self._demand = Demand.of(spec)
        self._given: set[str] = set()
        # Node and slots by identity of the host, which is kept so that no other object gets its identity.
        self._known: dict[int, tuple[int, int, Any]] = {}

    def look(self, hosts: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For every host its node, by its name or its hypervisor's (-1: not known), and its slots."""
        known = self._known
        found = [known.get(id(host)) or self._first_look(host) for host in hosts]
        table = np.array([one[:2] for one in found], dtype=np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def give(self, name: str) -> None:
        """Updates the host of that name after a server of the request was placed on it."""
        self._given.add(name)
        for key in [key for key, (_, _, host) in self._known.items() if host.host == name]:
            del self._known[key]

    def _first_look(self, host: Any) -> tuple[int, int, Any]:
        node = self._node_of.get(host.host, self._node_of.get(host.nodename, -1))
        found = (node, self._slots(host), host)
        self._known[id(host)] = found
        return found

    def _slots(self, host: Any) -> int:
        # Placement has room for one, or the host would not be in the list.
        fits = 0 if host.host in self._given else 1
        if self._most > fits:
            fits = max(fits, capacity(host, self._demand))
        if self._members.isdisjoint(host.instances):
            return min(fits, self._most)
        there = sum(uuid in self._members for uuid in host.instances)
        return max(0, min(fits, self._most - there))
