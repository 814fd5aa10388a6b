"""From a request spec of Nova to a placing: the glue between its objects and ours."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from nova import objects
from numpy.typing import NDArray
from oslo_log import log as logging

from topolane import sources
from topolane._engine import InputError
from topolane.nova import members as who
from topolane.nova.capacity import capacity, most_per_host
from topolane.nova.placing import POLICIES, Answer, Placing, nodes_of, tiers
from topolane.nova.topology import Aggregate, Topology, from_aggregates
from topolane.nova.traffic import Ranks, profile
from topolane.nova.wishes import Wish

LOG = logging.getLogger(__name__)


class Topologies:
    """The topology as it is now: from the machine file if one is named, else from the aggregates."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._read_at = -float("inf")
        self._seen: object = None
        self._topology: Topology | None = None

    def now(self, context: Any) -> Topology | None:
        """The topology, at most `topology_lifetime` old; None, said once, where there is none."""
        if time.monotonic() - self._read_at < self._options.topology_lifetime:
            return self._topology
        file = self._options.machine_file
        seen: object
        try:
            if file:
                status = os.stat(file)
                seen = (file, status.st_mtime_ns, status.st_size)
            else:
                seen = _aggregates(context)
            if seen != self._seen:
                self._topology = _of_file(file) if file else self._of_aggregates(seen)
                if self._topology is None:
                    LOG.warning("No aggregate has topolane:leaf: servers are placed as without Topolane.")
        except (InputError, OSError) as error:
            seen = str(error)
            if seen != self._seen:
                LOG.error("The machine file cannot be used, the last one that could be stays: %s", error)
        self._seen = seen
        self._read_at = time.monotonic()
        return self._topology

    @staticmethod
    def _of_aggregates(aggregates: Any) -> Topology | None:
        topology, problems = from_aggregates(
            Aggregate(name, hosts, dict(meta)) for name, hosts, meta in aggregates
        )
        for problem in problems:
            LOG.error("Aggregates contradict each other: %s", problem)
        return topology


def _of_file(file: str) -> Topology:
    return Topology.of(sources.machine(file))


def _aggregates(context: Any) -> list[tuple[str, list[str], tuple[tuple[str, str], ...]]]:
    """Aggregates with metadata of ours."""
    found = []
    for aggregate in objects.AggregateList.get_all(context):
        metadata = tuple(
            sorted(item for item in aggregate.metadata.items() if item[0].startswith("topolane:"))
        )
        if metadata:
            found.append((aggregate.name, sorted(aggregate.hosts), metadata))
    return sorted(found)


class Request:
    """What is remembered of a request from instance to instance."""

    def __init__(self, placing: Placing, spec: Any, *, moves: bool) -> None:
        self.placing = placing
        self.isolates = placing.policy == POLICIES["isolated"]
        self.moves = moves
        self.is_new = True
        self._spec = spec
        self._group = spec.instance_group
        self._members = set(self._group.members)
        self._most = most_per_host(self._group)
        self._server: str | None = None
        # Hosts in the group's list that have been taken notice of: Nova appends what it gives.
        self._noticed = len(self._group.hosts)
        self._slots: dict[tuple[str, str], int] = {}
        self._given: set[str] = set()
        self._answer: tuple[object, Answer] | None = None

    def ask(self, hosts: list[Any]) -> tuple[Answer, NDArray[np.int64]]:
        """What every node costs for the instance at hand, if it is to go to one of `hosts`; and their nodes."""
        self._take_notice()
        nodes = nodes_of(self.placing.topology, hosts)
        own = np.fromiter((self.slots(host) for host in hosts), dtype=np.uint32, count=len(hosts))
        free = np.zeros(self.placing.topology.machine.nodes, dtype=np.uint32)
        on_machine = nodes >= 0
        np.add.at(free, nodes[on_machine], own[on_machine])
        question = (self._server, free.tobytes())
        if self._answer is None or self._answer[0] != question:
            self._answer = (question, self.placing.costs(free))
        return self._answer[1], nodes

    def weights(self, costs: NDArray[np.float64], nodes: NDArray[np.int64]) -> list[float]:
        """The weights of hosts on `nodes`: in tiers, or the listing's own numbers."""
        if self.placing.policy == "bunch":
            listed = np.where(nodes >= 0, -costs[nodes], 0.0)
            return [float(weight) for weight in np.where(np.isfinite(listed), listed, 0.0)]
        return [float(weight) for weight in tiers(costs, nodes)]

    def slots(self, host: Any) -> int:
        """How many more of the group the host can take."""
        key = (host.host, host.nodename)
        if key not in self._slots:
            fits = capacity(host, self._spec)
            if host.host not in self._given:
                # It would not be in the list if Placement did not have room for one.
                fits = max(1, fits)
            there = sum(uuid in self._members for uuid in host.instances) if self._most < fits else 0
            self._slots[key] = max(0, min(fits, self._most - there))
        return self._slots[key]

    def expect(self, host: str) -> None:
        """The instance at hand will most likely be given the host: the databases know it in a while."""
        if self._server is not None and not self.moves:
            who.IN_FLIGHT.note(self._server, host)

    def _take_notice(self) -> None:
        for host in self._group.hosts[self._noticed :]:
            self.placing.give(host)
            self._given.add(host)
            if self._server is not None and not self.moves:
                who.IN_FLIGHT.note(self._server, host)
            for key in [key for key in self._slots if key[0] == host]:
                del self._slots[key]
        self._noticed = len(self._group.hosts)
        self._server = self._spec.instance_uuid


def open_request(spec: Any, wish: Wish, topology: Topology, options: Any, others: who.Others) -> Request:
    """The request as it stands when its first instance is to be placed."""
    group = spec.instance_group
    context = spec._context.elevated()
    known = who.known(context, group.members)
    at_hand = spec.instance_uuid
    # What a cell knows is being moved; num_instances then tells of the time when it was created.
    moves = at_hand in known
    running = [member for member in known.values() if member.host is not None and member.uuid != at_hand]
    on_their_way = [
        who.IN_FLIGHT.host(uuid) for uuid in group.members if uuid not in known and uuid != at_hand
    ]
    hosts = [member.host for member in running] + [host for host in on_their_way if host is not None]
    find = topology.node_of.get
    nodes = [node for host in hosts if (node := find(host or "")) is not None]
    policy = POLICIES.get(wish.placement or "", options.compact_policy)
    crossing = []
    if wish.placement != "spread":
        for other in others.of(context, group.uuid, options.default_placement):
            crossing.append(([node for host in other.hosts if (node := find(host)) is not None], other.owned))
    awaiting = 1
    if not moves:
        awaiting = max(1, spec.num_instances, (wish.size or 0) - len(hosts))
    placing = Placing(
        topology,
        policy,
        stacked=most_per_host(group) > 1,
        members=nodes,
        awaiting=awaiting,
        ranks=_ranks(wish, topology, running, known.get(at_hand), options),
        others=[(nodes, owned) for nodes, owned in crossing if nodes],
    )
    return Request(placing, spec, moves=moves)


def _ranks(
    wish: Wish, topology: Topology, running: list[who.Member], at_hand: who.Member | None, options: Any
) -> Ranks | None:
    if wish.traffic is None:
        return None
    try:
        traffic = profile(options.traffic_directory, wish.traffic)
    except InputError as error:
        LOG.warning("A group is placed as if all its servers talked alike: %s", error)
        return None
    group = [*running, at_hand] if at_hand is not None else running
    rank = {member.uuid: index for index, member in enumerate(sorted(group, key=who.Member.age))}
    on_machine = [member for member in running if member.host in topology.node_of]
    at = {rank[member.uuid]: topology.node_of[member.host or ""] for member in on_machine}
    next_rank = rank[at_hand.uuid] if at_hand is not None else len(running)
    return Ranks(topology.machine, traffic, at, next_rank)
