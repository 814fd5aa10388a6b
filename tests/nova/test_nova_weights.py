"""What other weighers want, and what the group needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cloud_process import HOSTS, CloudProcess
from placements import COMPACT, leaves, ours, tree, write

TREE = tree([HOSTS[:4], HOSTS[4:8]], leaves_in_pod=1)
FIRST, SECOND = "leaf0", "leaf1"


@pytest.fixture
def loaded(cloud: CloudProcess, tmp_path: Path) -> Iterator[CloudProcess]:
    """Two leaves of four hosts on the topology; three hosts of the first have a VM each."""
    write(tmp_path / "topology.conf", TREE)
    cloud.schedule_by(ours(machine_file=str(tmp_path / "topology.conf")))
    there = cloud.boot(3, cloud.group("there"), flavor="quarter", hints=COMPACT)
    assert leaves(TREE, there.values()) == {FIRST}
    yield cloud
    cloud.schedule_by(
        {"filter_scheduler": {"ram_weight_multiplier": 1.0}, "topolane": {"weight_multiplier": None}}
    )


def placed(cloud: CloudProcess, file: Path, **options: object) -> set[str]:
    """The leaves of a group of four where Nova wants free memory above all."""
    cloud.schedule_by(ours({"ram_weight_multiplier": 1000.0}, machine_file=str(file), **options))
    group = cloud.boot(4, cloud.group("new"), flavor="quarter", hints=COMPACT)
    return leaves(TREE, group.values())


def test_no_other_weigher_outvotes_ours(loaded: CloudProcess, tmp_path: Path) -> None:
    """Both leaves have room for four, and the first has the lower index: three of its hosts have least memory of
    all, and a multiplier of 1000 on memory does not matter."""
    assert placed(loaded, tmp_path / "topology.conf") == {FIRST}


def test_a_multiplier_that_is_too_low_is_used_and_the_one_needed_is_named(
    loaded: CloudProcess, tmp_path: Path
) -> None:
    """With 1, memory decides: not all are on the first leaf. 1000 for memory, 1 for each other weigher and 1 to be
    above them is what the warning asks for, or more."""
    assert placed(loaded, tmp_path / "topology.conf", weight_multiplier=1.0) != {FIRST}
    (warning,) = loaded.log("weight_multiplier = 1.0 can be outweighed")[-1:]
    assert float(warning.rpartition(":")[2].split()[0]) > 1001.0
