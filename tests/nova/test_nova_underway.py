"""Requests that a scheduler works on at the same time, instance by instance in any order."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from topolane._engine import Machine
from topolane.nova.concurrent_requests import ConcurrentRequests
from topolane.nova.group_placement import GroupPlacement
from topolane.nova.topology import Topology

LEAVES = [
    (["site", f"pod{leaf // 2}", f"leaf{leaf}"], [f"h{leaf}.{i}" for i in range(3)]) for leaf in range(6)
]
TOPOLOGY = Topology.of(Machine.of("toy", LEAVES))


class Group:
    """One VM to a host; asks for one host after another as Nova's scheduler does."""

    def __init__(self, name: str, policy: str, wanted: int, concurrent: ConcurrentRequests) -> None:
        self.name, self.left, self.concurrent = name, wanted, concurrent
        self.hosts: list[str] = []
        self.dedicated = policy == "isolated-hop-bytes"
        self.placement = GroupPlacement(TOPOLOGY, policy, True, [], wanted)
        self.before = concurrent.given()

    def step(self, free: set[str]) -> None:
        """Takes the host of least cost; gives up where there is none."""
        self.placement.update_concurrent(self.name, self.concurrent.others(self, self.before))
        slots = np.zeros(TOPOLOGY.machine.nodes, dtype=np.uint32)
        slots[[TOPOLOGY.node_of[host] for host in free]] = 1
        costs = self.placement.costs(slots).costs
        if costs is None:
            self.left = 0
            return
        host = TOPOLOGY.machine.node_name(int(costs.argmin()))
        free.remove(host)
        self.hosts.append(host)
        self.left -= 1
        self.placement.give(host)
        self.concurrent.note(self, self.name, self.hosts, self.hosts, self.dedicated)


def crossed(hosts: list[str]) -> set[str]:
    """Leaves and pods with some of the hosts, but not all."""
    found = set()
    for level in (1, 2):
        for start, end, name in TOPOLOGY.machine.groups(level):
            inside = sum(start <= TOPOLOGY.node_of[host] < end for host in hosts)
            if 0 < inside < len(hosts):
                found.add(name)
    return found


@settings(max_examples=150, deadline=None)
@given(
    kinds=st.lists(
        st.tuples(st.sampled_from(["isolated-hop-bytes", "hop-bytes-exact"]), st.integers(2, 6)),
        min_size=2,
        max_size=4,
    ),
    order=st.lists(st.integers(0, 3), max_size=30),
)
def test_isolated_groups_cross_nothing_in_common_in_any_order(
    kinds: list[tuple[str, int]], order: list[int]
) -> None:
    """All have been opened before any has a host: none knows of the others but by what they give meanwhile."""
    concurrent = ConcurrentRequests()
    groups = [
        Group(f"g{number}", policy, wanted, concurrent) for number, (policy, wanted) in enumerate(kinds)
    ]
    free = set(TOPOLOGY.node_of)
    for turn in [*order, *[number for number in range(4) for _ in range(6)]]:
        if turn < len(groups) and groups[turn].left:
            groups[turn].step(free)
    for one in groups:
        for other in groups:
            if one is not other and one.dedicated:
                assert not crossed(one.hosts) & crossed(other.hosts)


def test_two_requests_for_one_group_are_one_group() -> None:
    """The second is drawn to the leaf where the first has begun, though a better fit is elsewhere."""
    concurrent = ConcurrentRequests()
    first, second = (Group("same", "hop-bytes-exact", wanted, concurrent) for wanted in (1, 1))
    free = set(TOPOLOGY.node_of) - {"h3.0", "h3.1"}
    first.step({"h0.0"})
    second.step(free - {"h0.0"})
    assert second.hosts[0].startswith("h0.")


def test_what_was_given_before_is_not_counted_twice() -> None:
    """The databases know it by then."""
    concurrent = ConcurrentRequests()
    earlier = Group("same", "hop-bytes-exact", 1, concurrent)
    earlier.step({"h0.0"})
    later = Group("same", "hop-bytes-exact", 1, concurrent)
    assert concurrent.others(later, later.before) == []
