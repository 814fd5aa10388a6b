"""The hosts that Nova lists for a request: their nodes, and the number of the group's servers that each can
take.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topolane.nova.capacity import Demand, capacity, most_per_host
from topolane.nova.topology import Topology


class Hosts:
    """The nodes and slots of hosts, cached because Nova passes the same `HostState`s for every instance of a
    request.
    """

    def __init__(
        self, topology: Topology, spec: Any, *, moves: bool, room: Mapping[str, int] | None = None
    ) -> None:
        """room: the number of servers of the request that a compute node (by UUID) could take at the start,
        according to Placement; for hosts without an entry, Nova's `HostState` is used.
        """
        self._node_of = topology.node_of
        # A server that is resized on its own host must not count against itself.
        at_hand = {spec.instance_uuid} if moves else set()
        self._members = set(spec.instance_group.members) - at_hand
        self._most = most_per_host(spec.instance_group)
        self._demand = Demand.of(spec)
        self._room = room or {}
        self._given: collections.Counter[str] = collections.Counter()
        # Node and slots by `id` of the host. The host is kept too, so that no other object gets the same
        # `id`.
        self._known: dict[int, tuple[int, int, Any]] = {}

    def look(self, hosts: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The node of each host (-1: unknown) and its slots. A host is found by its own name or its
        hypervisor's.
        """
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
        # Placement offers only hosts where at least one server fits.
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
