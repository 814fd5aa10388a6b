"""What operators do with running groups: moves, shelving, rebuilds, hosts that fail, zones, aggregates.

The network is two pods of two leaves of two hosts. The other hosts of the cloud are on no leaf, so that an isolated
group can use eight hosts only.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest
from cloud_process import HOSTS, CloudProcess, Refused
from placements import COMPACT, ISOLATED, crossed, leaves, ours, pods, tree, write

TREE = tree([HOSTS[start : start + 2] for start in range(0, 8, 2)], leaves_in_pod=2)
A, B, C, D = (HOSTS[start : start + 2] for start in range(0, 8, 2))
"""The hosts of each leaf: A and B are a pod, C and D are the other one."""


@pytest.fixture(autouse=True)
def scheduler(cloud: CloudProcess, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "two-pods.conf"
    write(file, TREE)
    cloud.schedule_by(ours(machine_file=str(file)))


def isolated(cloud: CloudProcess, name: str, hosts: Collection[str]) -> list[str]:
    """Servers of an isolated group on these hosts. If one is refused, none is left."""
    group = cloud.group(name)
    servers: list[str] = []
    try:
        for host in hosts:
            servers += cloud.boot(1, group, hints=ISOLATED, host=host)
    except Refused:
        cloud.delete(servers)
        raise
    return servers


def is_refused(cloud: CloudProcess, name: str, hosts: Collection[str]) -> bool:
    """Whether an isolated group may not have these hosts."""
    try:
        cloud.delete(isolated(cloud, name, hosts))
    except Refused:
        return True
    return False


def test_a_server_that_is_resized_keeps_the_links_of_both_hosts_until_it_is_confirmed(
    cloud: CloudProcess,
) -> None:
    """It leaves leaf B for leaf A. It may come back, so no other group gets the links of B before that is settled."""
    cloud.flavor("half", 4096)
    first, second = isolated(cloud, "resized", [A[0], B[0]])
    assert cloud.act(second, "resize", {"flavorRef": "half"}) == ("VERIFY_RESIZE", A[1])
    assert is_refused(cloud, "too early", [B[1], C[0]])
    cloud.act(second, "confirmResize")
    assert cloud.hosts([first, second]) == {first: A[0], second: A[1]}
    assert not is_refused(cloud, "later", [B[1], C[0]])


def test_a_cold_migration_that_is_reverted_shares_no_link(cloud: CloudProcess) -> None:
    """Nova asks no filter when a server comes back."""
    servers = isolated(cloud, "reverted", [A[0], B[0]])
    assert cloud.act(servers[1], "migrate") == ("VERIFY_RESIZE", A[1])
    assert is_refused(cloud, "other", [B[1], C[0]])
    assert cloud.act(servers[1], "revertResize") == ("ACTIVE", B[0])
    assert is_refused(cloud, "other again", [B[1], C[0]])


def test_a_cold_migration_to_a_named_host_goes_where_the_links_are_its_own(cloud: CloudProcess) -> None:
    """The host of an operator is asked of the filter too: a host behind another group's links is refused."""
    servers = isolated(cloud, "moved", [A[0], A[1]])
    isolated(cloud, "other", [B[0], C[0]])
    assert cloud.act(servers[0], "migrate", {"host": B[1]}) == ("ACTIVE", A[0])
    assert cloud.act(servers[0], "migrate") == ("ACTIVE", A[0]), "no host is left that shares no link"


def test_a_live_migration_holds_the_links_of_both_hosts_for_a_new_scheduler_too(
    cloud: CloudProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The scheduler that chose the target has ended meanwhile."""
    servers = isolated(cloud, "moving", [A[0], B[0]])
    assert cloud.begin_migration(servers[1]) == A[1]
    try:
        file = tmp_path_factory.getbasetemp() / "two-pods.conf"
        cloud.schedule_by(ours(machine_file=str(file), topology_lifetime=0.1))
        assert is_refused(cloud, "too early", [B[1], C[0]])
    finally:
        assert cloud.end_migration(servers[1]) == A[1]
    assert not is_refused(cloud, "later", [B[1], C[0]])


def test_an_evacuated_server_gets_links_of_its_own_and_never_the_host_that_is_down(
    cloud: CloudProcess,
) -> None:
    """Without a host of its leaf there is none, and Nova leaves the server where it is. Once there is one, it goes there."""
    servers = isolated(cloud, "saved", [A[0], A[1]])
    isolated(cloud, "other", [B[0], C[0]])
    cloud.break_down(A[1])
    try:
        assert cloud.act(servers[1], "evacuate", {}) == ("ERROR", A[1])
        cloud.delete([servers[0]])
        assert cloud.act(servers[1], "evacuate", {})[1] == A[0]
    finally:
        cloud.recover(A[1])


def test_an_evacuated_server_holds_its_links_before_nova_says_where_it_is(cloud: CloudProcess) -> None:
    """Nova ends the server's task first, while its host is still the one that is down."""
    servers = isolated(cloud, "saved", B)
    cloud.break_down(B[1])
    try:
        target = cloud.begin_evacuation(servers[1])
        try:
            assert cloud.hosts([servers[1]]) == {servers[1]: B[1]}
            [other] = set(A) - {target}
            assert is_refused(cloud, "too early", [other, C[0]])
        finally:
            cloud.end_evacuation(servers[1])
        assert cloud.hosts([servers[1]]) == {servers[1]: target}
    finally:
        cloud.recover(B[1])


def test_links_of_shelved_servers_are_free_and_a_server_comes_back_to_links_of_its_own(
    cloud: CloudProcess,
) -> None:
    """While another group has taken them, it is refused and stays shelved."""
    servers = isolated(cloud, "shelved", [A[0], B[0]])
    assert is_refused(cloud, "too early", [B[1], C[0]])
    assert cloud.act(servers[1], "shelve") == ("SHELVED_OFFLOADED", None)
    blocker = isolated(cloud, "blocker", [A[1]])
    others = isolated(cloud, "other", [B[1], C[0]])
    assert cloud.act(servers[1], "unshelve") == ("SHELVED_OFFLOADED", None)
    cloud.delete([*others, *blocker])
    assert cloud.act(servers[1], "unshelve") == ("ACTIVE", A[1])


def test_a_group_that_was_shelved_whole_comes_back_together(cloud: CloudProcess) -> None:
    """The last free host of a leaf lures the first server; the others would not fit there."""
    group = cloud.group("night")
    servers = list(cloud.boot(4, group, hints=ISOLATED))
    for server in servers:
        assert cloud.act(server, "shelve") == ("SHELVED_OFFLOADED", None)
    cloud.boot(1, host=A[0])
    hosts = [cloud.act(server, "unshelve")[1] for server in servers]
    assert len(pods(TREE, [host for host in hosts if host])) == 1


def test_a_rebuilt_server_stays_on_its_host(cloud: CloudProcess) -> None:
    """With another image Nova asks the filters, and may choose no other host."""
    servers = isolated(cloud, "rebuilt", [A[0], B[0]])
    assert cloud.act(servers[0], "rebuild", {"imageRef": cloud.image(1)}) == ("ACTIVE", A[0])
    assert is_refused(cloud, "other", [B[1], C[0]])


def test_servers_of_a_deleted_group_are_left_to_nova(cloud: CloudProcess) -> None:
    """They run on, hold no links, and move wherever Nova wants."""
    group = cloud.group("deleted")
    servers = list(cloud.boot(2, group, hints=ISOLATED))
    where = cloud.hosts(servers)
    cloud.dissolve(group)
    assert cloud.hosts(servers) == where
    before = len(cloud.log("without a server group"))
    assert cloud.migrate(servers[0]) not in where.values()
    assert len(cloud.log("without a server group")) > before


def test_a_group_of_a_zone_stays_in_it(cloud: CloudProcess) -> None:
    """The zone is half of each pod, and five servers do not fit."""
    zone = cloud.aggregate("zone", {"availability_zone": "east"}, [*A, *C])
    try:
        group = cloud.group("zoned")
        servers = cloud.boot(2, group, hints=COMPACT, zone="east")
        assert len(leaves(TREE, servers.values())) == 1
        assert set(servers.values()) <= {*A, *C}
        grown = cloud.boot(1, group, hints=COMPACT, zone="east")
        assert set(grown.values()) <= {*A, *C}
        moved = cloud.migrate(next(iter(grown)))
        assert moved in {*A, *C} and moved not in grown.values()
        with pytest.raises(Refused, match="No valid host"):
            cloud.boot(5, cloud.group("too many"), hints=COMPACT, zone="east")
    finally:
        cloud.clear()
        cloud.drop(zone)


def test_no_server_comes_to_hosts_that_are_disabled_or_down(cloud: CloudProcess) -> None:
    """Links of servers that run on such hosts stay theirs."""
    first, second = isolated(cloud, "running", [A[0], B[0]])
    cloud.disable(A[1])
    try:
        assert cloud.act(second, "migrate")[1] != A[1]
        cloud.act(second, "confirmResize")
        assert is_refused(cloud, "on a disabled host", [A[1]])
    finally:
        cloud.disable(A[1], False)
    cloud.delete([first, second])
    isolated(cloud, "on a broken host", [A[0], B[0]])
    cloud.break_down(B[0])
    try:
        assert is_refused(cloud, "other", [B[1], C[0]])
    finally:
        cloud.recover(B[0])


def test_of_a_request_that_does_not_fit_nothing_is_left(cloud: CloudProcess) -> None:
    """Nine isolated servers find eight hosts: none is placed, and the next eight get all of them."""
    with pytest.raises(Refused, match="No valid host"):
        cloud.boot(9, cloud.group("too many"), hints=ISOLATED)
    servers = cloud.boot(8, cloud.group("all"), hints=ISOLATED)
    assert set(servers.values()) == set(TREE)
    assert crossed(TREE, servers.values())
