"""Where the tree comes from: aggregates that change and contradict each other, a machine file, nothing at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cloud_process import HOSTS, CloudProcess
from placements import COMPACT, STOCK, leaves, ours, tree, write

NOTHING = {"topolane:leaf": None, "topolane:pod": None}


@pytest.fixture
def bare(cloud: CloudProcess) -> Iterator[CloudProcess]:
    """The aggregates say nothing of leaves; the scheduler reads them."""
    cloud.schedule_by(ours(default_placement="compact"))
    for number in cloud.aggregates():
        cloud.describe(number, NOTHING)
    yield cloud
    for index, number in enumerate(cloud.aggregates()):
        cloud.describe(number, {"topolane:leaf": f"leaf{index + 1}", "topolane:pod": f"pod{index // 2 + 1}"})


def test_without_a_topology_groups_go_where_stock_nova_puts_them(bare: CloudProcess) -> None:
    """And one line says why, however many groups come."""
    before = len(bare.log("No aggregate has topolane:leaf"))
    ours_twice = []
    for name in "ab":
        servers = bare.boot(3, bare.group(name))
        ours_twice.append(list(servers.values()))
        bare.delete(list(servers))
    assert len(bare.log("No aggregate has topolane:leaf")) == before + 1
    bare.schedule_by(STOCK)
    assert ours_twice == [list(bare.boot(3, bare.group("c")).values())] * 2


def test_aggregates_may_change_while_the_scheduler_runs(bare: CloudProcess) -> None:
    """Two leaves of 3 hosts; then one of them is another 3, and a group of 3 fits only there."""
    far, near = HOSTS[70:71] + HOSTS[30:32], HOSTS[3:4] + HOSTS[50:51] + HOSTS[20:21]
    left = bare.aggregate("left", {"topolane:leaf": "left"}, far)
    right = bare.aggregate("right", {"topolane:leaf": "right"}, HOSTS[9:11])
    try:
        first = bare.boot(3, bare.group("first"))
        assert set(first.values()) == set(far)
        for host in HOSTS[9:11]:
            bare.include(right, host, False)
        for host in near:
            bare.include(right, host)
        assert set(bare.boot(3, bare.group("second")).values()) == set(near)
    finally:
        bare.drop(left)
        bare.drop(right)


def test_a_host_in_two_leaves_is_in_none_and_the_log_names_it(bare: CloudProcess) -> None:
    """The rest of both leaves is used as before."""
    one = bare.aggregate("one", {"topolane:leaf": "A"}, HOSTS[10:13])
    two = bare.aggregate("two", {"topolane:leaf": "B"}, HOSTS[12:15])
    try:
        servers = bare.boot(2, bare.group("pair"))
        assert set(servers.values()) in (set(HOSTS[10:12]), set(HOSTS[13:15]))
        (line,) = bare.log(f"host {HOSTS[12]} is in two places")
        assert "leaf A (aggregate one) and B (aggregate two)" in line
    finally:
        bare.drop(one)
        bare.drop(two)


def test_a_machine_file_is_read_again_when_it_changes(cloud: CloudProcess, tmp_path: Path) -> None:
    """Leaves of neighbours; then of every 18th host; then a file that is none, which changes nothing."""
    file = tmp_path / "topology.conf"
    neighbours = tree([HOSTS[start : start + 4] for start in range(0, 72, 4)], 3)
    strided = tree([HOSTS[start::18] for start in range(18)], 3)
    write(file, neighbours)
    cloud.schedule_by(ours(machine_file=str(file)))
    for made in (neighbours, strided):
        write(file, made)
        servers = cloud.boot(4, cloud.group("four"), hints=COMPACT)
        assert len(leaves(made, servers.values())) == 1
        cloud.delete(list(servers))
    file.write_text("SwitchName=leaf0 Nodes=node[01-\n")
    servers = cloud.boot(4, cloud.group("four"), hints=COMPACT)
    assert len(leaves(strided, servers.values())) == 1
    assert [line for line in cloud.log("The machine file cannot be used") if str(file) in line]
