"""Where a policy would place a group of pods now, given the groups that really hold nodes.

The engine is asked as topolane-scheduler asks it: with the slots of each node, and the groups as users of links.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from topolane._engine import Decision, LinkUse, Machine, Refusal, State
from topolane.kubernetes.fit import fits, held, may_use
from topolane.kubernetes.objects import Node, Pod
from topolane.live.shadows import NoPlace, Placement, no_place
from topolane.policy import Policy, resolve


@dataclasses.dataclass(frozen=True)
class Slots:
    """How many pods of a group each node of the machine takes, by its number."""

    free: tuple[int, ...]
    """Now."""
    room: tuple[int, ...]
    """If nothing ran there."""


def slots(machine: Machine, nodes: Mapping[str, Node], pods: Sequence[Pod], pod: Pod, most: int) -> Slots:
    """The slots for up to `most` pods like one. pods: all of the cluster."""
    taken = held(pods)
    free, room = [0] * machine.nodes, [0] * machine.nodes
    for number in range(machine.nodes):
        node = nodes.get(machine.node_name(number))
        if node is None or not may_use(pod, node):
            continue
        room[number] = fits(pod.asks, node.has, {}, most)
        free[number] = fits(pod.asks, node.has, taken.get(node.name, {}), most) if node.takes_pods else 0
    return Slots(tuple(free), tuple(room))


@dataclasses.dataclass(frozen=True)
class Holder:
    """A group on its nodes, once per pod."""

    nodes: tuple[int, ...]
    links: tuple[int, ...] = ()
    share: float = 1.0
    is_isolated: bool = False


class Hypothetical:
    """A policy, and the groups that hold nodes. Raises InputError for a policy that there is not.

    min_bandwidth: the least share of full bandwidth that groups accept on links of their own; None for all of it.
    """

    def __init__(self, machine: Machine, policy: str | Policy, min_bandwidth: float | None = None) -> None:
        self.machine = machine
        self._policy = resolve(policy) if isinstance(policy, str) else policy
        self._min_bandwidth = min_bandwidth
        self.holders: dict[int, Holder] = {}

    def ask(self, group: int, pods: int, there: Slots, within: str | None = None) -> Placement | NoPlace:
        """Where the policy would place a group that does not hold nodes. Nothing is changed."""
        answer = self.decide(group, pods, there, within)
        if isinstance(answer, Refusal):
            return no_place(answer)
        return self.placed(group, answer.nodes, answer.links, answer.bandwidth_share)

    def decide(self, group: int, pods: int, there: Slots, within: str | None = None) -> Decision | Refusal:
        """The engine's own answer."""
        state = State(self.machine)
        for number, holder in self.holders.items():
            if number != group and holder.nodes:
                state.overlay(
                    list(holder.nodes),
                    holder.is_isolated,
                    links=list(holder.links),
                    bandwidth_share=holder.share,
                    id=number,
                )
        return state.place(
            self._policy,
            pods,
            id=group,
            share=(1, 0),
            stacked=True,
            slots=list(there.free),
            room=list(there.room),
            within=within,
            min_bandwidth=self._min_bandwidth,
        )

    def placed(
        self, group: int, nodes: Sequence[int], links: Sequence[int] = (), share: float = 1.0
    ) -> Placement:
        """A group on these nodes, next to the others that hold nodes."""
        rows = [
            (number, sorted(set(one.nodes)), list(one.links))
            for number, one in self.holders.items()
            if number != group
        ]
        distinct = sorted(set(nodes))
        use = LinkUse(self.machine, [*rows, (group, distinct, list(links))])
        others = {other for _, met in use.meetings(group) for other in met}
        return Placement(tuple(nodes), self.machine.quality(list(nodes))[0], len(others), tuple(links), share)
