"""What other weighers want, and what the group needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cloud_process import HOSTS, CloudProcess
from placements import COMPACT, leaves, ours, tree, write
from topolane.nova.group_placement import by_cost

TREE = tree([HOSTS[:4], HOSTS[4:8]], leaves_in_pod=1)
FIRST, SECOND = "leaf0", "leaf1"


@pytest.fixture
def loaded(cloud: CloudProcess, tmp_path: Path) -> Iterator[CloudProcess]:
    """Two leaves of four hosts on the topology; three hosts of the first have a VM each."""
    write(tmp_path / "topology.conf", TREE)
    cloud.schedule_by(ours(machine_file=str(tmp_path / "topology.conf")))
    for host in HOSTS[:3]:
        cloud.boot(1, flavor="quarter", host=host)
    yield cloud
    cloud.schedule_by(
        {"filter_scheduler": {"ram_weight_multiplier": 1.0}, "topolane": {"weight_multiplier": None}}
    )


def placed(cloud: CloudProcess, file: Path) -> set[str]:
    """The leaves of a group of four where Nova wants free memory above all."""
    cloud.schedule_by(ours({"ram_weight_multiplier": 1000.0}, machine_file=str(file)))
    group = cloud.boot(4, cloud.group("new"), flavor="quarter", hints=COMPACT)
    return leaves(TREE, group.values())


def test_no_other_weigher_outvotes_ours(loaded: CloudProcess, tmp_path: Path) -> None:
    """Both leaves have room for four, and the first has the lower index: three of its hosts have least memory of
    all, and a multiplier of 1000 on memory does not matter."""
    assert placed(loaded, tmp_path / "topology.conf") == {FIRST}


def second_server(cloud: CloudProcess, file: Path, memory: float, ours_: float) -> set[str]:
    """The leaf of a group's second server, whose first is on the first leaf, with these multipliers. All hosts there
    have less free memory than those of the second leaf."""
    cloud.schedule_by(
        ours({"ram_weight_multiplier": memory}, machine_file=str(file), weight_multiplier=ours_)
    )
    group = cloud.group("pair")
    first = cloud.boot(1, group, flavor="quarter", hints=COMPACT, host=HOSTS[3])
    second = cloud.boot(1, group, flavor="quarter", hints=COMPACT)
    cloud.delete([*first, *second])
    return leaves(TREE, [host for host in second.values() if host in TREE])


def test_a_multiplier_balances_the_group_against_memory(loaded: CloudProcess, tmp_path: Path) -> None:
    """Both weights are scaled to 0..1, so the larger multiplier decides: the group's, then memory's when that is
    raised above it, and not when it is raised less."""
    file = tmp_path / "topology.conf"
    assert second_server(loaded, file, memory=1.0, ours_=20.0) == {FIRST}
    assert second_server(loaded, file, memory=10.0, ours_=20.0) == {FIRST}
    assert second_server(loaded, file, memory=400.0, ours_=20.0) != {FIRST}
    assert second_server(loaded, file, memory=400.0, ours_=8000.0) == {FIRST}


def test_an_aggregate_overrides_the_multiplier_for_its_hosts(loaded: CloudProcess, tmp_path: Path) -> None:
    """By the options memory decides. An aggregate of the hosts on the topology says otherwise."""
    file = tmp_path / "topology.conf"
    meant = loaded.aggregate("balance", {"topolane_weight_multiplier": "8000"}, list(TREE))
    try:
        assert second_server(loaded, file, memory=400.0, ours_=20.0) == {FIRST}
    finally:
        loaded.drop(meant)
    assert second_server(loaded, file, memory=400.0, ours_=20.0) != {FIRST}


def test_the_weight_is_the_cost_and_not_the_index() -> None:
    """By cost: the best host weighs most, in proportion, and the part that distinguishes equal hosts by index is gone. A host
    that must not be used (node 3), or that is not on the machine (-1), weighs less than any."""
    costs = np.array([0.25, 4.5, 0.75, np.inf, 16.0])
    nodes = np.array([0, 1, 2, 3, 4, -1])
    weights = by_cost(costs, nodes).tolist()
    assert weights[:3] == [0.0, -4.0, 0.0] and weights[4] == -16.0
    assert weights[3] == weights[5] < -16.0
    scale = [(one - min(weights)) / (max(weights) - min(weights)) for one in weights]
    assert scale[0] == 1.0 and scale[5] == 0.0 and 0.05 < scale[4] < 0.1
