"""The rules of a plan that makes room, on small clouds of any kind. A whole Nova is in test_nova_room.py."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from hypothesis import event, given, settings
from hypothesis import strategies as st
from placements import crossed
from topolane._engine import Machine
from topolane.nova.cloud import Cloud, Server, ServerGroup
from topolane.nova.hints import PlacementHint
from topolane.nova.migration_plan import MigrationPlan
from topolane.nova.room_plan import find, wanted_group
from topolane.nova.steps import order
from topolane.nova.topology import Topology

SHAPE = {"a": ("p", 3), "b": ("p", 3), "c": ("q", 3), "d": ("q", 2)}
"""Two pods of two leaves, of three hosts each but the last."""
TREE = {f"{leaf}{i}": (leaf, pod) for leaf, (pod, hosts) in SHAPE.items() for i in range(hosts)}
LEAVES = [(["site", pod, leaf], [f"{leaf}{i}" for i in range(hosts)]) for leaf, (pod, hosts) in SHAPE.items()]
TOPOLOGY = Topology.of(Machine.of("small", LEAVES))
FLAVOR = {"vcpus": 1, "ram": 8192, "disk": 0, "ephemeral": 0, "swap": 0, "extra_specs": {}}
OTHER = {**FLAVOR, "ram": 4096}


def cloud_of(
    groups: Mapping[str, tuple[Iterable[str], str | None, dict[str, object]]], topology: Topology = TOPOLOGY
) -> Cloud:
    """Groups of hosts, what they ask for, and the flavor of their servers."""
    made = [
        ServerGroup(
            name,
            name,
            "",
            1,
            [Server(f"{name}.{h}", h, h, "ACTIVE", flavor, {}, None, False) for h in hosts],
            PlacementHint(placement),
        )
        for name, (hosts, placement, flavor) in groups.items()
    ]
    return Cloud(topology, [], made, dict.fromkeys(topology.node_of, "nova"), frozenset())


def legal(hosts: Iterable[str], groups: Iterable[Iterable[str]]) -> bool:
    """Whether the hosts cross no leaf and no pod that one of the groups crosses."""
    own = crossed(TREE, list(hosts))
    return all(not own & crossed(TREE, list(group)) for group in groups)


def fits(servers: int, free: Iterable[str], groups: list[list[str]]) -> bool:
    """Whether there is a legal place, by looking at all."""
    return any(legal(chosen, groups) for chosen in itertools.combinations(sorted(free), servers))


@st.composite
def clouds(draw: st.DrawFn) -> tuple[Cloud, set[str]]:
    """Groups of two to four servers wherever they may be, and the hosts with room for a further server."""
    hosts = draw(st.permutations(sorted(TREE)))
    groups = {}
    at = 0
    for number, size in enumerate(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))):
        if at + size > len(hosts):
            break
        placement = draw(st.sampled_from(["isolated", "isolated", "compact", "spread", None]))
        flavor = OTHER if draw(st.integers(0, 5)) == 0 else FLAVOR
        groups[f"g{number}"] = (hosts[at : at + size], placement, flavor)
        at += size
    unusable = draw(st.integers(0, 2))
    return cloud_of(groups), set(hosts[at:][unusable:])


@settings(max_examples=1500, deadline=None)
@given(made=clouds(), servers=st.integers(2, 5), most=st.integers(1, 3), sharing=st.booleans())
def test_every_step_of_a_plan_is_allowed_and_the_group_fits_in_the_end(
    made: tuple[Cloud, set[str]], servers: int, most: int, sharing: bool
) -> None:
    """Refused is what has no legal place, as looking at all places says, and after the plan it has one.

    Each migration goes to an empty host that has room, and brings its group onto no links that an isolated group
    crosses, nor an isolated group onto those of any other group, that were not shared before, or is forced where that may be.
    Only groups that ask for compact or isolated, of like servers and smaller than the new one are moved, and no more than may be.
    """
    cloud, free = made
    slots = [int(host in free) for host in TREE]
    room = find(cloud, wanted_group(FLAVOR, None), servers, slots, most_groups=most, sharing=sharing)
    where = {group.id: {s.id: s.host or "" for s in group.servers} for group in cloud.groups}

    def running(but: str = "") -> list[list[str]]:
        return [list(hosts.values()) for name, hosts in where.items() if name != but]

    assert (room.refusal is None) == fits(servers, free, running())
    event(f"refused {room.refusal is not None}, planned {room.plan is not None}")
    if room.refusal is None or room.plan is None:
        assert room.refusal is not None or (room.plan is not None and room.plan.migrations == [])
        return
    event(f"{sum(move.forced for move in room.plan.migrations)} forced")
    event(f"{len(room.plan.start)} groups, {len(room.plan.migrations)} migrations")
    assert 1 <= len(room.plan.start) <= most and room.plan.in_order
    for move in room.plan.migrations:
        group = cloud.group(move.group)
        assert group.hint.placement in ("compact", "isolated") and len(group.servers) < servers
        assert all(server.flavor == FLAVOR for server in group.servers)
        assert where[group.id][move.server] == move.source and move.target in free
        before = crossed(TREE, list(where[group.id].values()))
        where[group.id][move.server] = move.target
        free = (free - {move.target}) | {move.source}
        new = crossed(TREE, list(where[group.id].values())) - before
        for other in cloud.groups:
            if move.forced:
                assert sharing
            elif other is not group and "isolated" in (group.hint.placement, other.hint.placement):
                assert not new & crossed(TREE, list(where[other.id].values()))
    assert fits(servers, free, running())
    assert len(room.hosts) == servers and set(room.hosts) <= free and legal(room.hosts, running())


def test_the_fewest_servers_move() -> None:
    """Of two on two leaves one joins the other, which stays though the policy would take other hosts of its leaf."""
    full = (["c0", "c1", "c2"], "isolated", OTHER)
    rest = (["d0", "d1"], "isolated", OTHER)
    cloud = cloud_of({"scattered": (["a2", "b2"], "isolated", FLAVOR), "full": full, "rest": rest})
    free = [int(host in ("a0", "a1", "b0", "b1")) for host in TREE]
    wanted = wanted_group(FLAVOR, None)
    room = find(cloud, wanted, 3, free, most_groups=3)
    assert room.plan is not None
    ((source, target),) = [(move.source, move.target) for move in room.plan.migrations]
    assert {source, target[0]} in ({"a2", "b"}, {"b2", "a"})
    assert room.hosts == [f"{source[0]}{i}" for i in range(3)]
    assert find(cloud, wanted, 2, free, most_groups=3).plan == MigrationPlan([], {}), "two of a leaf are free"
    assert find(cloud, wanted, 3, free, most_groups=3, most=1).plan == room.plan
    assert find(cloud, wanted, 3, free, most_groups=3, only={"rest"}).plan is None
    large = cloud_of({"scattered": (["a1", "a2", "b2"], "isolated", FLAVOR), "full": full, "rest": rest})
    free[TOPOLOGY.node_of["a1"]] = 0
    assert find(large, wanted, 3, free, most_groups=3).plan is None, "as large as the new one"


def test_a_group_larger_than_a_site_gets_room_too() -> None:
    """Five of eight hosts on two sites. A pair on both leaves of one site leaves but the other site's four to them."""
    leaves = [([site, site + leaf], [f"{site}{leaf}{i}" for i in range(2)]) for site in "st" for leaf in "ab"]
    topology = Topology.of(Machine.of("two sites", leaves))
    cloud = cloud_of({"pair": (["sa0", "sb0"], "isolated", FLAVOR)}, topology)
    free = [int(host not in ("sa0", "sb0")) for host in topology.node_of]
    room = find(cloud, wanted_group(FLAVOR, None), 5, free, most_groups=3)
    assert room.refusal is not None and room.plan is not None
    assert len(room.hosts) == 5


def test_hosts_are_left_before_they_are_taken_and_a_ring_has_no_order() -> None:
    """Two groups in a row go one after the other; two that change places, with no host free, do not go at all."""
    cloud = cloud_of({"one": (["a0"], "compact", FLAVOR), "two": (["b0"], "compact", FLAVOR)})
    where = {"one": {"one.a0": "a0"}, "two": {"two.b0": "b0"}}
    steps = order(cloud, where, {"one": ["b0"], "two": ["c0"]})
    assert steps is not None
    assert [(step.source, step.target) for step in steps] == [("b0", "c0"), ("a0", "b0")]
    assert order(cloud, where, {"one": ["b0"], "two": ["a0"]}) is None
    assert where == {"one": {"one.a0": "a0"}, "two": {"two.b0": "b0"}}, "nothing was changed"


def test_who_must_pass_links_of_others_has_no_order() -> None:
    """Two servers would go together into a leaf that an isolated group crosses: the first alone crosses it too."""
    cloud = cloud_of({"owner": (["a0", "b0"], "isolated", OTHER), "pair": (["c0", "c1"], "isolated", FLAVOR)})
    where = {group.id: {s.id: s.host or "" for s in group.servers} for group in cloud.groups}
    assert order(cloud, where, {"pair": ["b1", "b2"]}) is None
    assert order(cloud, where, {"pair": ["d0", "d1"]}) is not None
    forced = order(cloud, where, {"pair": ["b1", "b2"]}, sharing=True)
    assert forced is not None and [step.forced for step in forced] == [True, False]
