"""A cloud of two cells whose hosts hang on the same leaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cloud_process import HOSTS, CloudProcess, Refused, missing
from placements import COMPACT, ISOLATED, crossed, leaves, ours, pods, tree, write

FIRST, SECOND = HOSTS[:4], HOSTS[4:8]
"""The hosts of each cell."""
TREE = tree([list(pair) for pair in zip(FIRST, SECOND)], leaves_in_pod=2)


@pytest.fixture(scope="module")
def two_cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudProcess]:
    """The cloud, which starts once."""
    if absent := missing():
        pytest.skip(f"a cloud needs the extra nova-test: {', '.join(absent)} cannot be imported")
    folder = tmp_path_factory.mktemp("cells")
    write(folder / "machine.conf", TREE)
    cloud = CloudProcess([*FIRST, *SECOND], folder / "log", cells=2)
    cloud.schedule_by(ours(machine_file=str(folder / "machine.conf")))
    yield cloud
    cloud.close()


@pytest.fixture
def cells(two_cells: CloudProcess) -> Iterator[CloudProcess]:
    """The cloud without servers."""
    yield two_cells
    two_cells.clear()


def test_a_compact_group_lies_on_leaves_and_not_in_cells(cells: CloudProcess) -> None:
    """Four servers of two leaves of a pod are in both cells;"""
    servers = cells.boot(4, cells.group("compact"), hints=COMPACT)
    assert len(pods(TREE, servers.values())) == 1
    assert set(servers.values()) & set(FIRST) and set(servers.values()) & set(SECOND)


def test_links_of_servers_in_another_cell_are_kept(cells: CloudProcess) -> None:
    """The group crosses the second leaf with a server of the second cell; the host next to it is of the first."""
    group = cells.group("owner")
    for host in (FIRST[0], SECOND[1]):
        cells.boot(1, group, hints=ISOLATED, host=host)
    other = cells.group("other")
    cells.boot(1, other, hints=ISOLATED, host=FIRST[1])
    with pytest.raises(Refused, match="No valid host"):
        cells.boot(1, other, hints=ISOLATED, host=FIRST[2])


def test_a_live_migration_stays_in_its_cell(cells: CloudProcess) -> None:
    """The leaf of the group has a free host in the other cell only, so the server goes to the next leaf of its pod."""
    group = cells.group("moved")
    servers = [next(iter(cells.boot(1, group, hints=COMPACT, host=host))) for host in (FIRST[0], FIRST[1])]
    moved = cells.migrate(servers[0])
    assert moved in FIRST and moved != FIRST[0]
    assert len(leaves(TREE, [moved, FIRST[1]])) == 2
    assert crossed(TREE, [moved, FIRST[1]])
