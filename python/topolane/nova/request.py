"""Converts a request spec of Nova to a `GroupPlacement`, and its answers to weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topolane.nova import members as servers
from topolane.nova.capacity import most_per_host
from topolane.nova.concurrent_requests import CONCURRENT
from topolane.nova.group_placement import POLICIES, GroupPlacement, HostCosts, by_cost, tiers
from topolane.nova.group_traffic import group_traffic
from topolane.nova.hints import PlacementHint
from topolane.nova.hosts import Hosts
from topolane.nova.identical import IdenticalHosts, reported
from topolane.nova.measured_reader import MeasuredReader
from topolane.nova.topology import Topology
from topolane.nova.traffic import Ranks


class HostAnswer(NamedTuple):
    """The answer to a list of hosts."""

    answer: HostCosts
    nodes: NDArray[np.int64]
    """The node of every host of the list; -1 if it is not on the machine."""
    slots: NDArray[np.int64]
    """How many more servers of the group every host can take."""
    problem: str | None = None
    """Why no host is alike enough, if the group asks for identical hosts."""


class Request:
    """The state of a request, kept from instance to instance."""

    def __init__(
        self,
        placement: GroupPlacement,
        spec: Any,
        *,
        moves: bool,
        source: str | None = None,
        running: Sequence[str] = (),
        before: dict[object, int] | None = None,
        identical: IdenticalHosts | None = None,
    ) -> None:
        """source: the host of a server that moves. running: the hosts of its group's other members. before:
        how many hosts each other request had given when the databases were read. identical: which hosts are
        alike enough, if the group asks for it.
        """
        self.placement = placement
        self.isolates = placement.policy == POLICIES["isolated"]
        self.moves = moves
        self.is_new = True
        self._spec = spec
        self._group = spec.instance_group
        self._source = source
        self._running = list(running)
        self._given: list[str] = []
        self._before = before or {}
        self._identical = identical
        self._server: str | None = None
        self._last_given: str | None = None
        # How many hosts of the group's list were processed: Nova appends the hosts that it gives.
        self._noticed = len(self._group.hosts)
        self._hosts = Hosts(placement.topology, spec, moves=moves)
        self._answer: tuple[object, HostCosts] | None = None

    def ask(self, hosts: list[Any]) -> HostAnswer:
        """The cost of every node for the current instance, if it must go to one of `hosts`."""
        with CONCURRENT.lock:
            self._update_hosts()
            others = CONCURRENT.others(self, self._before)
            self.placement.update_concurrent(self._group.uuid, others)
            if self._identical is not None:
                given = {host for entry in others if entry.group == self._group.uuid for host in entry.given}
                self._identical.update(hosts, given.union(self._given))
            asked = self._ask(hosts)
            self._announce(hosts, asked)
        return asked

    def _ask(self, hosts: list[Any]) -> HostAnswer:
        nodes, slots = self._hosts.look(hosts)
        problem = None
        if self._identical is not None:
            slots, problem = self._identical.restrict(
                hosts,
                slots,
                self.placement.awaiting,
                self.placement.stacked,
                lambda some: self.placement.price(self._by_node(nodes, some)),
            )
        free = self._by_node(nodes, slots)
        question = (self._server, free.tobytes(), self.placement.times_updated)
        if self._answer is None or self._answer[0] != question:
            self._answer = (question, self.placement.costs(free))
        return HostAnswer(self._answer[1], nodes, slots, problem)

    def _by_node(self, nodes: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.uint32]:
        free = np.zeros(self.placement.topology.machine.nodes, dtype=np.uint32)
        on_machine = nodes >= 0
        np.add.at(free, nodes[on_machine], slots[on_machine].astype(np.uint32))
        return free

    def _announce(self, hosts: list[Any], asked: HostAnswer) -> None:
        """Tells concurrent requests where the group is, assuming the cheapest host for the current server."""
        costs = asked.answer.costs
        likely = []
        if costs is not None and len(hosts) and not self.for_alternates:
            own = np.where((asked.nodes >= 0) & (asked.slots > 0), costs[asked.nodes], np.inf)
            if np.isfinite(own.min()):
                likely = [hosts[int(own.argmin())].host]
        given = [*self._given, *likely]
        CONCURRENT.note(self, self._group.uuid, [*self._running, *given], given, self.isolates)

    def weights(self, costs: NDArray[np.float64], nodes: NDArray[np.int64], balanced: bool) -> list[float]:
        """The weights of hosts on `nodes`: in the order of the list, by cost if other weighers count as well, else
        in tiers.
        """
        if self.placement.policy == "bunch":
            listed = np.where(nodes >= 0, -costs[nodes], 0.0)
            weights: list[float] = np.where(np.isfinite(listed), listed, 0.0).tolist()
        elif balanced:
            weights = by_cost(costs, nodes).tolist()
        else:
            weights = tiers(costs, nodes).tolist()
        return weights

    @property
    def for_alternates(self) -> bool:
        """Whether all instances have a host: then Nova asks again for the last one, to get alternates."""
        return self._server is not None and self._server == self._last_given

    def expect(self, host: str) -> None:
        """Records the host that the current instance will most likely get, before the databases show it."""
        if self._server is not None and not self.for_alternates:
            servers.IN_FLIGHT.note(self._server, host, self._source)

    def _update_hosts(self) -> None:
        for host in self._group.hosts[self._noticed :]:
            self.placement.give(host)
            self._hosts.give(host)
            self._given.append(host)
            # Not always the expected host: Placement may have refused it.
            self.expect(host)
            self._last_given = self._server
        self._noticed = len(self._group.hosts)
        self._server = self._spec.instance_uuid


def open_request(
    spec: Any,
    hint: PlacementHint,
    topology: Topology,
    options: Any,
    others: servers.OtherGroups,
    measured: MeasuredReader,
) -> Request:
    """The state of a request before its first instance is placed."""
    group = spec.instance_group
    context = spec._context.elevated()
    before = CONCURRENT.given()
    known = servers.known_servers(context, group.members)
    at_hand = spec.instance_uuid
    # A server that a cell knows is being moved; num_instances then dates from its creation.
    moves = at_hand in known
    running = [member for member in known.values() if member.host is not None and member.uuid != at_hand]
    # Of two hosts, the one that the server is on its way to.
    where = [servers.hosts_of(uuid, known.get(uuid))[-1:] for uuid in group.members if uuid != at_hand]
    hosts = [host for last in where for host in last]
    find = topology.node_of.get
    nodes = [node for host in hosts if (node := find(host)) is not None]
    policy = POLICIES.get(hint.placement or "", options.compact_policy)
    crossing: list[tuple[list[int], bool, bool]] = []
    if hint.placement != "spread":
        for other in others.of(context, group.uuid, options.default_placement):
            inside = [node for host in other.hosts if (node := find(host)) is not None]
            if inside:
                crossing.append((inside, other.dedicated, len(inside) < len(other.hosts)))
    # The links of hosts matter if groups must not share them.
    apart = hint.placement == "isolated" or any(dedicated for _, dedicated, _ in crossing)
    awaiting = 1
    if not moves:
        asked = spec.num_instances if "num_instances" in spec else 1
        awaiting = max(1, asked, (hint.size or 0) - len(hosts))
    placement = GroupPlacement(
        topology,
        policy,
        stacked=most_per_host(group) > 1 or apart,
        members=nodes,
        awaiting=awaiting,
        ranks=_ranks(spec, hint, topology, running, known.get(at_hand), options, measured),
        beyond=len(hosts) - len(nodes),
        others=crossing,
    )
    source = known[at_hand].host if moves else None
    alike = hint.identical or options.default_identical
    identical = None
    if alike != "none":
        identical = IdenticalHosts(alike, reported(context, [*hosts, *([source] if source else [])]))
    return Request(
        placement, spec, moves=moves, source=source, running=hosts, before=before, identical=identical
    )


def _ranks(
    spec: Any,
    hint: PlacementHint,
    topology: Topology,
    running: list[servers.Member],
    at_hand: servers.Member | None,
    options: Any,
    measured: MeasuredReader,
) -> Ranks | None:
    if hint.placement == "spread":
        return None
    group = sorted([*running, at_hand] if at_hand is not None else running, key=servers.Member.age)
    traffic = group_traffic(spec, hint, [member.uuid for member in group], options, measured)
    if traffic is None:
        return None
    rank = {member.uuid: index for index, member in enumerate(group)}
    on_machine = [member for member in running if member.host in topology.node_of]
    at = {rank[member.uuid]: topology.node_of[member.host or ""] for member in on_machine}
    next_rank = rank[at_hand.uuid] if at_hand is not None else len(running)
    return Ranks(topology.machine, traffic, at, next_rank)
