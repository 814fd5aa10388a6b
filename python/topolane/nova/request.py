"""From a request spec of Nova to a placing: the glue between its objects and ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from oslo_log import log as logging

from topolane._engine import InputError
from topolane.nova import members as who
from topolane.nova.capacity import most_per_host
from topolane.nova.hosts import Hosts
from topolane.nova.placing import POLICIES, Answer, Placing, tiers
from topolane.nova.topology import Topology
from topolane.nova.traffic import Ranks, profile
from topolane.nova.underway import UNDERWAY
from topolane.nova.wishes import Wish

LOG = logging.getLogger(__name__)


class Asked(NamedTuple):
    """What is answered to a list of hosts."""

    answer: Answer
    nodes: NDArray[np.int64]
    """The node of every host of the list, -1 where it is not on the machine."""
    slots: NDArray[np.int64]
    """How many more of the group every host can take."""


class Request:
    """What is remembered of a request from instance to instance."""

    def __init__(
        self,
        placing: Placing,
        spec: Any,
        *,
        moves: bool,
        source: str | None = None,
        running: Sequence[str] = (),
        before: dict[object, int] | None = None,
    ) -> None:
        """`source`: the host of a server that moves; `running`: those of its group's other members; `before`: how
        many hosts other requests had given when the databases were asked."""
        self.placing = placing
        self.isolates = placing.policy == POLICIES["isolated"]
        self.moves = moves
        self.is_new = True
        self._spec = spec
        self._group = spec.instance_group
        self._source = source
        self._running = list(running)
        self._given: list[str] = []
        self._before = before or {}
        self._server: str | None = None
        self._last_given: str | None = None
        # Hosts in the group's list that have been taken notice of: Nova appends what it gives.
        self._noticed = len(self._group.hosts)
        self._hosts = Hosts(placing.topology, spec, moves=moves)
        self._answer: tuple[object, Answer] | None = None

    def ask(self, hosts: list[Any]) -> Asked:
        """What every node costs for the instance at hand, if it is to go to one of `hosts`."""
        with UNDERWAY.lock:
            self._take_notice()
            self.placing.meet(self._group.uuid, UNDERWAY.others(self, self._before))
            asked = self._ask(hosts)
            self._announce(hosts, asked)
        return asked

    def _ask(self, hosts: list[Any]) -> Asked:
        nodes, slots = self._hosts.look(hosts)
        free = np.zeros(self.placing.topology.machine.nodes, dtype=np.uint32)
        on_machine = nodes >= 0
        np.add.at(free, nodes[on_machine], slots[on_machine].astype(np.uint32))
        question = (self._server, free.tobytes(), self.placing.others_underway)
        if self._answer is None or self._answer[0] != question:
            self._answer = (question, self.placing.costs(free))
        return Asked(self._answer[1], nodes, slots)

    def _announce(self, hosts: list[Any], asked: Asked) -> None:
        """Lets other requests know where the group is, the server at hand on the host that costs least."""
        costs = asked.answer.costs
        likely = []
        if costs is not None and len(hosts) and not self.for_alternates:
            own = np.where((asked.nodes >= 0) & (asked.slots > 0), costs[asked.nodes], np.inf)
            if np.isfinite(own.min()):
                likely = [hosts[int(own.argmin())].host]
        given = [*self._given, *likely]
        UNDERWAY.note(self, self._group.uuid, [*self._running, *given], given, self.isolates)

    def weights(self, costs: NDArray[np.float64], nodes: NDArray[np.int64]) -> list[float]:
        """The weights of hosts on `nodes`: in tiers, or the listing's own numbers."""
        if self.placing.policy == "bunch":
            listed = np.where(nodes >= 0, -costs[nodes], 0.0)
            weights: list[float] = np.where(np.isfinite(listed), listed, 0.0).tolist()
        else:
            weights = tiers(costs, nodes).tolist()
        return weights

    @property
    def for_alternates(self) -> bool:
        """Whether all have a host: Nova asks once more for the last one, to have second choices."""
        return self._server is not None and self._server == self._last_given

    def expect(self, host: str) -> None:
        """The instance at hand will most likely be given the host: the databases know it in a while."""
        if self._server is not None and not self.for_alternates:
            who.IN_FLIGHT.note(self._server, host, self._source)

    def _take_notice(self) -> None:
        for host in self._group.hosts[self._noticed :]:
            self.placing.give(host)
            self._hosts.give(host)
            self._given.append(host)
            # Not always the one that was expected: Placement may have refused that.
            self.expect(host)
            self._last_given = self._server
        self._noticed = len(self._group.hosts)
        self._server = self._spec.instance_uuid


def open_request(spec: Any, wish: Wish, topology: Topology, options: Any, others: who.Others) -> Request:
    """The request as it stands when its first instance is to be placed."""
    group = spec.instance_group
    context = spec._context.elevated()
    before = UNDERWAY.given()
    known = who.known(context, group.members)
    at_hand = spec.instance_uuid
    # What a cell knows is being moved; num_instances then tells of the time when it was created.
    moves = at_hand in known
    running = [member for member in known.values() if member.host is not None and member.uuid != at_hand]
    # Of two hosts the one that a server is on its way to.
    where = [who.whereabouts(uuid, known.get(uuid))[-1:] for uuid in group.members if uuid != at_hand]
    hosts = [host for last in where for host in last]
    find = topology.node_of.get
    nodes = [node for host in hosts if (node := find(host)) is not None]
    policy = POLICIES.get(wish.placement or "", options.compact_policy)
    crossing: list[tuple[list[int], bool, bool]] = []
    if wish.placement != "spread":
        for other in others.of(context, group.uuid, options.default_placement):
            inside = [node for host in other.hosts if (node := find(host)) is not None]
            if inside:
                crossing.append((inside, other.owned, len(inside) < len(other.hosts)))
    # The links of hosts matter where groups must not meet on them.
    apart = wish.placement == "isolated" or any(owned for _, owned, _ in crossing)
    awaiting = 1
    if not moves:
        asked = spec.num_instances if "num_instances" in spec else 1
        awaiting = max(1, asked, (wish.size or 0) - len(hosts))
    placing = Placing(
        topology,
        policy,
        stacked=most_per_host(group) > 1 or apart,
        members=nodes,
        awaiting=awaiting,
        ranks=_ranks(wish, topology, running, known.get(at_hand), options),
        beyond=len(hosts) - len(nodes),
        others=crossing,
    )
    return Request(
        placing,
        spec,
        moves=moves,
        source=known[at_hand].host if moves else None,
        running=hosts,
        before=before,
    )


def _ranks(
    wish: Wish, topology: Topology, running: list[who.Member], at_hand: who.Member | None, options: Any
) -> Ranks | None:
    if wish.traffic is None:
        return None
    try:
        traffic, problem = profile(options.traffic_directory, wish.traffic), ""
    except InputError as error:
        traffic, problem = None, str(error)
    if traffic is None:
        LOG.warning("A group is placed as if all its servers talked alike: %s", problem)
        return None
    group = [*running, at_hand] if at_hand is not None else running
    rank = {member.uuid: index for index, member in enumerate(sorted(group, key=who.Member.age))}
    on_machine = [member for member in running if member.host in topology.node_of]
    at = {rank[member.uuid]: topology.node_of[member.host or ""] for member in on_machine}
    next_rank = rank[at_hand.uuid] if at_hand is not None else len(running)
    return Ranks(topology.machine, traffic, at, next_rank)
