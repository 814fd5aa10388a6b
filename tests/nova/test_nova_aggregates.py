"""The tree that host aggregates tell."""

from __future__ import annotations

from topolane.nova.topology import Aggregate, from_aggregates


def leaf(name: str, hosts: list[str], **more: str) -> Aggregate:
    return Aggregate(name, hosts, {f"topolane:{key}": value for key, value in {"leaf": name, **more}.items()})


def test_leaves_pods_and_sites_make_hops() -> None:
    """0 in a leaf, 2 in a pod, 4 in a site; a pod may stand in an aggregate of its own."""
    pod = Aggregate("p1", ["a", "b", "c"], {"topolane:pod": "p1"})
    topology, problems = from_aggregates(
        [leaf("l1", ["a", "b"]), leaf("l2", ["c"]), pod, leaf("l3", ["d"], pod="p2")]
    )
    assert topology is not None and problems == []
    node = topology.node_of
    hops = {b: topology.machine.hops(node["a"], node[b]) for b in "bcd"}
    assert hops == {"b": 0, "c": 2, "d": 4}


def test_a_leaf_of_the_same_name_in_another_pod_is_another() -> None:
    topology, problems = from_aggregates(
        [leaf("1", ["a"], pod="p1"), Aggregate("x", ["b"], {"topolane:leaf": "1", "topolane:pod": "p2"})]
    )
    assert topology is not None and problems == []
    assert topology.machine.hops(topology.node_of["a"], topology.node_of["b"]) == 4


def test_what_is_wrong_is_said_once_for_all_hosts_alike() -> None:
    """Five hosts in a pod and no leaf are one sentence; those in two leaves, another; neither is on the topology."""
    lost = [f"h{number}" for number in range(5)]
    topology, problems = from_aggregates(
        [
            leaf("l1", ["a", "b"]),
            leaf("l2", ["b", "c"]),
            Aggregate("p", lost, {"topolane:pod": "p"}),
            Aggregate("e", ["z"], {"topolane:leaf": ""}),
        ]
    )
    assert topology is not None and sorted(topology.node_of) == ["a", "c"]
    assert sorted(problems) == [
        "host b is in two places, leaf l1 (aggregate l1) and l2 (aggregate l2): not in the topology",
        "host z is in an aggregate whose topolane:leaf is empty: not in the topology",
        "hosts h0, h1, h2, h3 and 1 more are in a pod but in no leaf: not in the topology",
    ]


def test_a_leaf_that_names_its_pod_in_part_is_in_it() -> None:
    pod = Aggregate("p1", ["a"], {"topolane:pod": "p1"})
    topology, (problem,) = from_aggregates([leaf("l1", ["a", "b"]), pod, leaf("l2", ["c"], pod="p1")])
    assert topology is not None
    assert topology.machine.hops(topology.node_of["a"], topology.node_of["b"]) == 0
    assert problem == "leaf l1 is in pod p1 but b does not say so: taken as there"


def test_no_metadata_is_no_topology() -> None:
    assert from_aggregates([Aggregate("zone", ["a"], {"availability_zone": "east"})]) == (None, [])
