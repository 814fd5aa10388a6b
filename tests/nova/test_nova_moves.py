"""Leaves of 4 hosts, 3 to a pod, from a machine file: moves, hosts shared by VMs, requests at once."""

from __future__ import annotations

import pytest
from cloud_process import HOSTS, CloudProcess
from placements import COMPACT, SPREAD, leaves, ours, pods, tree, write

TREE = tree([HOSTS[start : start + 4] for start in range(0, 72, 4)], leaves_in_pod=3)


@pytest.fixture(autouse=True)
def scheduler(cloud: CloudProcess, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "leaves-of-4.conf"
    write(file, TREE)
    cloud.schedule_by(ours(machine_file=str(file)))


def lure(cloud: CloudProcess, free: int, leaf: int = 17) -> None:
    """Servers without a group leave `free` hosts of a leaf free: the best fit for one that is alone."""
    for host in HOSTS[4 * leaf : 4 * leaf + 4 - free]:
        cloud.boot(1, host=host)


def test_a_server_that_migrates_stays_on_its_group_s_leaf(cloud: CloudProcess) -> None:
    """One host of the leaf is left. A scheduler that believes `num_instances`, 3 still, would look for 3 hosts."""
    servers = cloud.boot(3, cloud.group("moved"), hints=COMPACT)
    moved, source = next(iter(servers.items()))
    target = cloud.migrate(moved)
    assert target not in servers.values()
    assert leaves(TREE, [target]) == leaves(TREE, [source])


def test_a_server_that_is_evacuated_stays_on_its_group_s_leaf(cloud: CloudProcess) -> None:
    servers = cloud.boot(3, cloud.group("saved"), hints=COMPACT)
    saved, broken = next(iter(servers.items()))
    cloud.break_down(broken)
    try:
        target = cloud.evacuate(saved)
    finally:
        cloud.recover(broken)
    assert target not in servers.values()
    assert leaves(TREE, [target]) == leaves(TREE, [broken])


def test_a_server_far_from_its_group_migrates_to_it(cloud: CloudProcess) -> None:
    """The leaf was full when it was asked for: once there is room, a migration brings it there."""
    group = cloud.group("scattered")
    near = cloud.boot(2, group, hints=COMPACT)
    blockers = cloud.boot(2, group, hints=COMPACT)
    assert leaves(TREE, blockers.values()) == leaves(TREE, near.values())
    away, host = cloud.boot(1, group, hints=COMPACT).popitem()
    assert leaves(TREE, [host]) != leaves(TREE, near.values())
    cloud.delete(list(blockers))
    lure(cloud, free=1)
    assert leaves(TREE, [cloud.migrate(away)]) == leaves(TREE, near.values())


def test_beyond_a_full_leaf_a_group_stays_in_its_pod(cloud: CloudProcess) -> None:
    """All its members are on hosts that are full and no longer in the scheduler's list."""
    group = cloud.group("full")
    full = cloud.boot(4, group, hints=COMPACT)
    assert len(leaves(TREE, full.values())) == 1
    lure(cloud, free=1)
    beyond = cloud.boot(1, group, hints=COMPACT)
    assert pods(TREE, beyond.values()) == pods(TREE, full.values())


def test_several_of_a_group_may_share_a_host(cloud: CloudProcess) -> None:
    """6 VMs of a quarter of a host each fit on the two free hosts of a leaf, and there best of all."""
    lure(cloud, free=2)
    servers = cloud.boot(6, cloud.group("shared", "soft-anti-affinity"), "quarter", hints=COMPACT)
    assert set(servers.values()) == set(HOSTS[70:72])


def test_anti_affinity_keeps_one_vm_to_a_host(cloud: CloudProcess) -> None:
    """The same 6 VMs: two leaves of a pod, and the first of them filled."""
    servers = cloud.boot(6, cloud.group("apart"), "quarter", hints=COMPACT)
    assert len(set(servers.values())) == 6
    assert len(leaves(TREE, servers.values())) == 2
    assert len(pods(TREE, servers.values())) == 1
    on_first = [host for host in servers.values() if TREE[host] == TREE[next(iter(servers.values()))]]
    assert len(on_first) in (2, 4)


def test_two_requests_at_once_end_on_hosts_of_their_own_in_one_pod_each(cloud: CloudProcess) -> None:
    """The second is asked for before the first has a host, and both may think of the same leaf.

    Where Placement refuses the second a host, Nova takes the next of its list without weighing again: that may
    be the last host of the leaf, so that the second group then lies on two leaves of a pod.
    """
    requests = [cloud.ask(3, cloud.group(name), hints=COMPACT) for name in ("one", "two")]
    groups = [set(cloud.placed(request, 3).values()) for request in requests]
    assert len(groups[0] | groups[1]) == 6
    assert min(len(leaves(TREE, group)) for group in groups) == 1
    assert [len(pods(TREE, group)) for group in groups] == [1, 1]
    assert max(len(leaves(TREE, group)) for group in groups) <= 2


def test_anti_affinity_allows_the_number_of_the_group_s_rule(cloud: CloudProcess) -> None:
    """Two to a host: of hosts with room for four, three of one leaf take six."""
    group = cloud.group("pairs", "anti-affinity", {"max_server_per_host": 2})
    servers = cloud.boot(6, group, "quarter", hints=COMPACT)
    assert len(set(servers.values())) == 3
    assert len(leaves(TREE, servers.values())) == 1


def test_a_server_may_be_resized_where_it_is(
    cloud: CloudProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its leaf has no other host, and Nova may keep it: it does not stand in its own way."""
    file = tmp_path_factory.getbasetemp() / "leaves-of-4.conf"
    cloud.schedule_by(ours(machine_file=str(file)) | {"DEFAULT": {"allow_resize_to_same_host": True}})
    cloud.flavor("half", 4096)
    servers = cloud.boot(4, cloud.group("growing"), "quarter", hints=COMPACT)
    server, host = next(iter(servers.items()))
    assert cloud.resize(server, "half") == host


def test_one_group_asked_for_twice_at_once_is_one_group(cloud: CloudProcess) -> None:
    """The last host of a leaf lures whoever is alone, in two pods: the second goes to the pod of the first.

    Both are asked for before one has a host, and Nova may look at either first.
    """
    for leaf in (0, 17):
        lure(cloud, free=1, leaf=leaf)
    group = cloud.group("one")
    requests = [cloud.ask(1, group, hints=COMPACT) for _ in range(2)]
    hosts = [host for request in requests for host in cloud.placed(request, 1).values()]
    assert len(set(hosts)) == 2
    assert len(pods(TREE, hosts)) == 1


def test_a_spread_group_has_no_two_vms_in_a_pod(cloud: CloudProcess) -> None:
    """6 VMs, 6 pods."""
    servers = cloud.boot(6, cloud.group("spread"), hints=SPREAD)
    assert len(pods(TREE, servers.values())) == 6
