"""The hosts that Nova lists for a request: their nodes, and how many servers of its group they can take."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topolane.nova.capacity import Demand, capacity, most_per_host
from topolane.nova.topology import Topology


class Hosts:
    """Caches what is known of hosts: Nova passes the same `HostState`s for every instance of a request."""

    def __init__(
        self, topology: Topology, spec: Any, *, moves: bool, room: Mapping[str, int] | None = None
    ) -> None:
        """room: by the UUID of a compute node, how many servers of the request it takes before it has any; for a host
        that is missing, Nova's `HostState` counts.
        """
        self._node_of = topology.node_of
        # A moving server does not take room from itself: it may be resized on its host.
        at_hand = {spec.instance_uuid} if moves else set()
        self._members = set(spec.instance_group.members) - at_hand
        self._most = most_per_host(spec.instance_group)
        self._demand = Demand.of(spec)
        self._room = room or {}
        self._given: collections.Counter[str] = collections.Counter()
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
        self._given[name] += 1
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
            fits = max(fits, self._capacity(host))
        if self._members.isdisjoint(host.instances):
            return min(fits, self._most)
        there = sum(uuid in self._members for uuid in host.instances)
        return max(0, min(fits, self._most - there))

    def _capacity(self, host: Any) -> int:
        room = self._room.get(getattr(host, "uuid", None) or "")
        given = self._given[host.host]
        return capacity(host, self._demand, given) if room is None else max(0, room - given)
