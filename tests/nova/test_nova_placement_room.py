"""How many servers of a group fit on a host is what Placement counts, not what Nova's host states say."""

from __future__ import annotations

import collections
from collections.abc import Iterator

import pytest
from cloud_process import HOSTS, CloudProcess
from placements import COMPACT, ISOLATED, leaves, ours, tree, write

placement_room = pytest.importorskip(
    "topolane.nova.placement_room", reason="the extra nova-test is not installed"
)

TREE = tree([HOSTS[start : start + 4] for start in range(0, 72, 4)], leaves_in_pod=3)
LEAVES = HOSTS[:4], HOSTS[4:8]
GPU = "CUSTOM_GPU"


@pytest.fixture
def zone(cloud: CloudProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two leaves of 4 hosts, under our scheduler."""
    file = tmp_path_factory.getbasetemp() / "leaves-of-4-with-devices.conf"
    write(file, TREE)
    cloud.schedule_by(ours(machine_file=str(file)))
    made = cloud.aggregate("zone", {"availability_zone": "devices"}, [*LEAVES[0], *LEAVES[1]])
    yield "devices"
    cloud.clear()
    cloud.drop(made)


def test_a_disk_that_the_hypervisor_finds_full_counts_as_placement_counts_it(
    cloud: CloudProcess, zone: str
) -> None:
    """disk_available_least is 0, of sparse images for instance: Nova places servers there, and so must we.

    By that number an affinity group of 3 is refused, and of 6 servers that may share hosts each gets one of its own.
    """
    cloud.flavor("with-disk", 2048, disk=10)
    for host in [*LEAVES[0], *LEAVES[1]]:
        cloud.report(host, disk_available_least=0)
    try:
        together = cloud.boot(3, cloud.group("together", "affinity"), "with-disk", COMPACT, zone=zone)
        assert len(set(together.values())) == 1
        close = cloud.boot(6, cloud.group("close", "soft-affinity"), "with-disk", COMPACT, zone=zone)
        assert len(set(close.values())) <= 3 and len(leaves(TREE, close.values())) == 1
    finally:
        for host in [*LEAVES[0], *LEAVES[1]]:
            cloud.report(host)


def test_devices_count(cloud: CloudProcess, zone: str) -> None:
    """Each host has 2 GPUs and memory for 4 servers. 8 servers with a GPU each need a leaf with 4 hosts.

    By memory alone they would begin on the other leaf, of which two hosts are taken, and fail there.
    """
    for host in [*LEAVES[0], *LEAVES[1]]:
        cloud.devices(host, GPU, 2)
    cloud.flavor("gpu", 2048, {f"resources:{GPU}": "1"})
    for host in LEAVES[0][:2]:
        cloud.boot(1, zone=f"{zone}:{host}")
    servers = cloud.boot(8, cloud.group("solver", "soft-affinity"), "gpu", ISOLATED, zone=zone)
    assert collections.Counter(servers.values()) == dict.fromkeys(LEAVES[1], 2)


def provider(root: str, traits: tuple[str, ...] = (), **free: int) -> dict[str, object]:
    resources = {name: {"capacity": amount + 3, "used": 3} for name, amount in free.items()}
    return {"root_provider_uuid": root, "traits": list(traits), "resources": resources}


def fits(query: str, *providers: dict[str, object]) -> dict[str, int]:
    groups = placement_room.groups_of(query)
    found: dict[str, int] = placement_room.counted(
        groups, {str(number): one for number, one in enumerate(providers)}
    )
    return found


def test_the_scarcest_resource_limits_what_fits() -> None:
    query = "limit=1000&resources=MEMORY_MB%3A2048%2CVCPU%3A2"
    assert fits(query, provider("a", VCPU=9, MEMORY_MB=20000), provider("b", VCPU=9, MEMORY_MB=2047)) == {
        "a": 4,
        "b": 0,
    }


def test_a_pool_outside_the_host_limits_nothing() -> None:
    """Shared storage has a tree of its own."""
    query = "resources=DISK_GB%3A10%2CVCPU%3A1"
    assert fits(query, provider("a", VCPU=3), provider("storage", DISK_GB=10))["a"] == 3


def test_a_group_of_resources_must_come_from_one_provider_with_its_traits() -> None:
    """Two functions of 3 units each: one fits into the first provider, two into the second, none where the trait is missing."""
    query = "resources=VCPU%3A1&resources_f0=UNIT%3A3&required_f0=FAST"
    devices = [provider("a", ("FAST",), UNIT=5), provider("a", ("FAST",), UNIT=6), provider("a", (), UNIT=9)]
    assert fits(query, provider("a", VCPU=50), *devices) == {"a": 3}
    twice = "resources=VCPU%3A1&resources_f0=UNIT%3A3&resources_f1=UNIT%3A3"
    assert fits(twice, provider("a", VCPU=50), *devices) == {"a": 3}
