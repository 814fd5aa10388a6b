"""Converts a request spec of Nova to a `GroupPlacement`, and the resulting costs to weights."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import nova.conf
import numpy as np
from numpy.typing import NDArray
from oslo_log import log as logging

from topolane.nova import members as servers
from topolane.nova.capacity import most_per_host
from topolane.nova.concurrent_requests import CONCURRENT, since_then
from topolane.nova.group_placement import POLICIES, GroupPlacement, HostCosts, by_cost, tiers
from topolane.nova.group_traffic import group_traffic
from topolane.nova.hints import PlacementHint
from topolane.nova.hosts import Hosts
from topolane.nova.identical import IdenticalHosts, reported
from topolane.nova.measured_reader import MeasuredReader
from topolane.nova.placement_room import servers_by_host
from topolane.nova.shared_claims import RENEWED_SECONDS, Claim, Given, SharedClaims
from topolane.nova.topology import Topology
from topolane.nova.traffic import GroupRanks
from topolane.nova.unanswered import Unanswered

LOG = logging.getLogger(__name__)

DECISIONS = 12
"""How often to repeat a decision that conflicts with other schedulers before it is written anyway."""
DECISIONS_OF_PROMISE = 100
"""The same limit for a group that must be isolated (about half a minute). After it the group is refused."""


class HostAnswer(NamedTuple):
    """The answer to a list of hosts: costs by node, and the node and slots of each host."""

    answer: HostCosts
    nodes: NDArray[np.int64]
    """The node of each host of the list; -1 if it is not on the machine."""
    slots: NDArray[np.int64]
    """The number of servers of the group that each host can still take."""
    problem: str | None = None
    """Why no host is alike enough, if the group asks for identical hosts."""
    planned: NDArray[np.float64] | None = None
    """By node: costs that replace the policy's if the planned hosts come before all others."""
    only: int | None = None
    """The node that the last server of an isolated group must use."""


class NovaRequest:
    """The state of a request, kept while Nova places its instances one by one."""

    def __init__(
        self,
        placement: GroupPlacement,
        spec: Any,
        *,
        moves: bool,
        asked: int = 1,
        source: str | None = None,
        running: Sequence[str] = (),
        before: dict[object, int] | None = None,
        ended: Collection[object] = (),
        identical: IdenticalHosts | None = None,
        shared: SharedClaims | None = None,
        by_plan: bool = True,
        room: Mapping[str, int] | None = None,
    ) -> None:
        """placement: the policy and the group's members. asked: the number of servers requested. source: the
        host of a server that moves. running: the hosts of its group's other members. before: the number of
        hosts that each other request had given when the databases were read. ended: other requests that will
        give no more. identical: which hosts are alike enough, if the group asks for that. shared: the claims
        of other schedulers. by_plan: whether Nova takes the host with the highest weight. room: the number of
        servers of the request that fit on a compute node (by UUID) according to Placement.
        """
        self.placement = placement
        self.isolates = placement.policy == POLICIES["isolated"]
        self.moves = moves
        self.is_new = True
        self.problem: str | None = None
        """Why no more servers of this request can be placed; None if they can."""
        self._spec = spec
        self._group = spec.instance_group
        self._source = source
        self._running = list(running)
        self._asked = asked
        self._given: list[str] = []
        self._gave: list[Given] = []
        self._before = before or {}
        self._ended = ended
        self._identical = identical
        self._shared = shared
        self._identity = shared.new_request() if shared is not None else ""
        self._by_plan = by_plan
        self._server: str | None = None
        self._last_given: str | None = None
        # The number of hosts in the group's list that are processed: Nova appends the hosts that it gives.
        self._noticed = len(self._group.hosts)
        self._hosts = Hosts(placement.topology, spec, moves=moves, room=room)
        self._answer: tuple[object, HostCosts] | None = None
        # The nodes for the request's remaining servers, and whether these come before all others.
        self._plan: list[int] = []
        self._holds_to_plan = False
        self._costs: HostCosts | None = None
        self._refused: set[int] = set()
        self._weighed: str | None = None
        self._written: tuple[object, float] | None = None

    def ask(self, hosts: list[Any]) -> HostAnswer:
        """The cost of every node for the current instance, which must go to one of `hosts`."""
        with CONCURRENT.lock:
            self._update_hosts()
            nodes, slots = self._hosts.look(hosts)
            if self._refused:
                slots = np.where(np.isin(nodes, list(self._refused)), 0, slots)
            if self.for_alternates:
                self._note(None, [], None)
                return self._ask(hosts, nodes, slots)
            if self._holds_to_plan and self._has_room_for_plan(nodes, slots):
                return self._within_plan(nodes, slots)
            return self._decide(hosts, nodes, slots)

    def _decide(self, hosts: list[Any], nodes: NDArray[np.int64], slots: NDArray[np.int64]) -> HostAnswer:
        """Decides with respect to the hosts that all other requests have given or planned, and claims the
        result.

        Raises Unanswered if the group must be isolated and the plans of the others cannot be read.
        """
        context = self._spec._context.elevated()
        most = DECISIONS_OF_PROMISE if self.isolates else DECISIONS
        for attempt in itertools.count():
            claims = self._shared.read(context, needed=self.isolates) if self._shared is not None else None
            others = CONCURRENT.others(self, self._before, self._ended)
            if claims is not None:
                others += [
                    left
                    for key, (claim, _) in claims.by_request.items()
                    if key not in self._ended
                    and (left := since_then(claim.entry(), self._before.get(key, 0)))
                ]
            self.placement.update_concurrent(self._group.uuid, others)
            if self._identical is not None:
                given = {host for entry in others if entry.group == self._group.uuid for host in entry.given}
                self._identical.update(hosts, given.union(self._given))
            asked = self._ask(hosts, nodes, slots)
            last = attempt == most
            version = claims.version if claims is not None and (self.isolates or not last) else None
            if self._claim(hosts, asked, version):
                break
            if claims is None or self._shared is None:
                break
            if last and self.isolates:
                self._withdraw()
                raise Unanswered("other schedulers kept changing what they place")
            if last:
                LOG.warning(
                    "Server %s is placed though other schedulers kept changing their claims.", self._server
                )
                break
            self._shared.wait(attempt)
        if asked.answer.costs is not None and self._holds_to_plan:
            return self._within_plan(nodes, asked.slots)
        return asked

    def _claim(self, hosts: list[Any], asked: HostAnswer, version: int | None) -> bool:
        """Makes and records the plan. Returns False if the claims have changed since `version`."""
        costs, free = asked.answer.costs, self._by_node(asked.nodes, asked.slots)
        self._costs, self._plan, self._holds_to_plan = asked.answer, [], False
        if costs is None:
            if asked.problem is not None or self.isolates or asked.answer.shares:
                return self._withdraw()
            return self._note(None, [], version)
        left = max(1, self._asked - len(self._given))
        plan = (self.placement.plan(free) or [])[:left]
        self._holds_to_plan = bool(plan) and self._by_plan and self.placement.keeps_off
        if self._holds_to_plan:
            self._plan = plan
            first: str | None = self.placement.topology.machine.node_name(self._first(free))
        else:
            own = np.where((asked.nodes >= 0) & (asked.slots > 0), costs[asked.nodes], np.inf)
            first = hosts[int(own.argmin())].host if len(hosts) and np.isfinite(own.min()) else None
        return self._note(first, plan, version)

    def _first(self, free: NDArray[np.uint32]) -> int:
        """The node of the plan that the current server gets."""
        ranks = self._plan_costs(free)
        return min(self._plan, key=lambda node: ranks[node])

    def _plan_costs(self, free: NDArray[np.uint32]) -> NDArray[np.float64]:
        """By node: the cost according to the group's traffic, or without traffic the index in the plan;
        infinite outside the plan.
        """
        ranks = np.full(self.placement.topology.machine.nodes, np.inf)
        for place, node in reversed(list(enumerate(self._plan))):
            ranks[node] = place
        if self.placement.ranks is not None:
            costs = self.placement.costs(np.where(np.isfinite(ranks), free, 0).astype(np.uint32)).costs
            if costs is not None and np.isfinite(costs[self._plan]).any():
                return np.where(np.isfinite(ranks), costs, np.inf)
        return ranks

    def _has_room_for_plan(self, nodes: NDArray[np.int64], slots: NDArray[np.int64]) -> bool:
        wanted = np.bincount(self._plan, minlength=self.placement.topology.machine.nodes)
        return bool(self._plan) and bool((wanted <= self._by_node(nodes, slots)).all())

    def _within_plan(self, nodes: NDArray[np.int64], slots: NDArray[np.int64]) -> HostAnswer:
        """The answer while the plan is valid: other requests avoid its hosts, so their claims need no second
        look.
        """
        assert self._costs is not None
        free = self._by_node(nodes, slots)
        first = self._first(free)
        self._note(self.placement.topology.machine.node_name(first), self._plan, None)
        last = self.isolates and len(self._given) + 1 >= self._asked
        return HostAnswer(
            self._costs, nodes, slots, planned=self._plan_costs(free), only=first if last else None
        )

    def _ask(self, hosts: list[Any], nodes: NDArray[np.int64], slots: NDArray[np.int64]) -> HostAnswer:
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

    def _note(self, first: str | None, plan: list[int], version: int | None) -> bool:
        """Shows other requests the given and planned hosts of this one. `first` is expected for the current
        server.

        Returns False if the claims of other schedulers have changed since `version`.
        """
        name = self.placement.topology.machine.node_name
        likely = [] if first is None else [first]
        planned = [name(node) for node in plan]
        if first in planned:
            planned.remove(first)
        planned = planned[: max(0, self._asked - len(self._given) - len(likely))]
        given = [*self._given, *likely]
        if first is not None:
            # Do this before the host counts as given: a request that opens in between must find it in flight.
            self.expect(first)
        hosts = [*self._running, *given, *planned]
        group, server = self._group.uuid, self._server or ""
        CONCURRENT.note(self, group, hosts, given, self.isolates, planned, server)
        if self._shared is None:
            return True
        said, now = (sorted(hosts), bool(planned)), time.monotonic()
        if (
            self._written is not None
            and self._written[0] == said
            and now - self._written[1] < RENEWED_SECONDS
        ):
            return True
        gave = [*self._gave, *(Given(server, host, self._source) for host in likely)]
        claim = Claim(group, server, hosts, gave, planned, self.isolates)
        context, needed = self._spec._context.elevated(), self.isolates and version is not None
        if not self._shared.write(context, self._identity, claim, version, needed=needed):
            return False
        self._written = (said, now)
        return True

    def _withdraw(self) -> bool:
        """Removes the claims of a refused request."""
        CONCURRENT.drop(self)
        if self._shared is not None and self._written is not None:
            context = self._spec._context.elevated()
            self._shared.write(context, self._identity, None, None, needed=False)
            self._written = None
        return True

    def weights(self, costs: NDArray[np.float64], nodes: NDArray[np.int64], balanced: bool) -> list[float]:
        """The weights of hosts on `nodes`, in the order of the list: by cost if other weighers count as well,
        otherwise in tiers.
        """
        self._weighed = self._server
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
        """Whether all instances have a host and Nova only asks for alternate hosts of the last one."""
        return self._server is not None and self._server == self._last_given

    @property
    def has_given(self) -> bool:
        """Whether a server of the request has a host already."""
        return bool(self._all_given)

    @property
    def is_complete(self) -> bool:
        """Whether all servers of the request have a host."""
        return self._all_given >= self._asked

    @property
    def _all_given(self) -> int:
        """The number of hosts that the request gave, including those that Nova added since the last call."""
        return len(self._given) + len(self._group.hosts) - self._noticed

    def expect(self, host: str) -> None:
        """Records the host that the current instance will most likely get, before the databases show it."""
        if self._server is not None and not self.for_alternates:
            servers.IN_FLIGHT.note(self._server, host, self._source)

    def _update_hosts(self) -> None:
        for host in self._group.hosts[self._noticed :]:
            self.placement.give(host)
            self._hosts.give(host)
            self._given.append(host)
            self._gave.append(Given(self._server or "", host, self._source))
            self._follow_plan(host)
            # Nova may have taken another host than the expected one: Placement may have refused it.
            self.expect(host)
            self._last_given = self._server
        self._noticed = len(self._group.hosts)
        self._server = self._spec.instance_uuid

    def _follow_plan(self, host: str) -> None:
        """Removes a given host from the plan. If it is not the plan's next host, the plan is dropped and made
        again.
        """
        node = self.placement.topology.node_of.get(host)
        before = self._plan[: self._plan.index(node)] if node in self._plan else list(self._plan)
        if self.placement.ranks is not None and node in self._plan:
            before = []  # With traffic, the servers need not follow the plan's order.
        if self._holds_to_plan and before and self._weighed == self._server:
            # Hosts with more weight were passed over: Placement refused them, or another weigher vetoed them.
            self._refused.update(before)
        if node in self._plan and not before:
            self._plan.remove(node)
        else:
            self._plan, self._holds_to_plan = [], False


def open_request(
    spec: Any,
    hint: PlacementHint,
    topology: Topology,
    options: Any,
    others: servers.OtherGroups,
    measured: MeasuredReader,
    shared: SharedClaims | None = None,
) -> NovaRequest:
    """The state of a request before its first instance is placed. Raises Unanswered if it must be isolated
    and cannot be decided.
    """
    group = spec.instance_group
    context = spec._context.elevated()
    policy = POLICIES.get(hint.placement or "", options.compact_policy)
    isolates = policy == POLICIES["isolated"]
    before, ended = _claimed_before(context, shared, needed=isolates)
    known = servers.known_servers(context, group.members, needed=isolates)
    at_hand = spec.instance_uuid
    # A cell knows the server, so it is being moved; num_instances then dates from its creation.
    moves = at_hand in known
    unshelved = moves and known[at_hand].shelved
    running = [member for member in known.values() if member.host is not None and member.uuid != at_hand]
    # Of two hosts, take the one that the server is moving to.
    where = [servers.hosts_of(uuid, known.get(uuid))[-1:] for uuid in group.members if uuid != at_hand]
    hosts = [host for last in where for host in last]
    find = topology.node_of.get
    nodes = [node for host in hosts if (node := find(host)) is not None]
    crossing: list[tuple[list[int], bool, bool]] = []
    if hint.placement != "spread":
        for other in others.of(context, group.uuid, options.default_placement, needed=isolates):
            inside = [node for host in other.hosts if (node := find(host)) is not None]
            if inside:
                crossing.append((inside, other.dedicated, len(inside) < len(other.hosts)))
    # Groups must not share the hosts' own links with a group that has dedicated links.
    apart = hint.placement == "isolated" or any(dedicated for _, dedicated, _ in crossing)
    asked = 1
    if not moves and "num_instances" in spec:
        asked = max(1, spec.num_instances)
    awaiting = 1 if moves else max(asked, (hint.size or 0) - len(hosts))
    placement = GroupPlacement(
        topology,
        policy,
        stacked=most_per_host(group) > 1 or apart,
        members=nodes,
        awaiting=awaiting,
        ranks=_ranks(spec, hint, topology, running, known.get(at_hand), options, measured),
        beyond=len(hosts) - len(nodes),
        shelved=sum(member.shelved for member in known.values() if member.uuid != at_hand)
        if unshelved
        else 0,
        others=crossing,
    )
    source = known[at_hand].host if moves else None
    alike = hint.identical or options.default_identical
    identical = None
    if alike != "none":
        identical = IdenticalHosts(alike, reported(context, [*hosts, *([source] if source else [])]))
    several = awaiting > 1 and most_per_host(group) > 1
    return NovaRequest(
        placement,
        spec,
        room=servers_by_host(context, spec) if several else None,
        moves=moves,
        asked=asked,
        source=source,
        running=hosts,
        before=before,
        ended=ended,
        identical=identical,
        shared=shared,
        by_plan=options.weight_multiplier is None and nova.conf.CONF.filter_scheduler.host_subset_size == 1,
    )


def _claimed_before(
    context: Any, shared: SharedClaims | None, *, needed: bool
) -> tuple[dict[object, int], set[object]]:
    """The number of hosts that each other request had given before the databases are read, and the requests
    that will give no more.
    """
    before, planning = CONCURRENT.given(), CONCURRENT.planning()
    claims = shared.read(context, needed=needed) if shared is not None else None
    for key, (claim, age) in (claims.by_request if claims is not None else {}).items():
        before[key] = len(claim.given)
        if claim.planned:
            planning[key] = claim.server
        for server, host, source in claim.given:
            servers.IN_FLIGHT.learn(server, host, source, age)
    ended = servers.ended(context, set(planning.values()))
    return before, {key for key, server in planning.items() if server in ended}


def _ranks(
    spec: Any,
    hint: PlacementHint,
    topology: Topology,
    running: list[servers.GroupMember],
    at_hand: servers.GroupMember | None,
    options: Any,
    measured: MeasuredReader,
) -> GroupRanks | None:
    if hint.placement == "spread":
        return None
    group = sorted([*running, at_hand] if at_hand is not None else running, key=servers.GroupMember.age)
    traffic = group_traffic(spec, hint, [member.uuid for member in group], options, measured)
    if traffic is None:
        return None
    rank = {member.uuid: index for index, member in enumerate(group)}
    on_machine = [member for member in running if member.host in topology.node_of]
    at = {rank[member.uuid]: topology.node_of[member.host or ""] for member in on_machine}
    next_rank = rank[at_hand.uuid] if at_hand is not None else len(running)
    return GroupRanks(topology.machine, traffic, at, next_rank)
