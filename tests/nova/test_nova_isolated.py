"""Isolated groups: no leaf and no pod is crossed by two groups."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from cloud_process import HOSTS, CloudProcess, Refused
from placements import COMPACT, ISOLATED, crossed, leaves, ours, tree, write

SMALL = tree([HOSTS[start : start + 4] for start in range(0, 12, 4)], leaves_in_pod=2)
TREE = tree([HOSTS[start : start + 2] for start in range(0, 72, 2)], leaves_in_pod=6)


@pytest.fixture
def scheduler(cloud: CloudProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.getbasetemp() / "isolated.conf"
    write(file, TREE)
    cloud.schedule_by(ours(machine_file=str(file)))
    return file


def test_no_two_groups_cross_a_leaf_or_a_pod(cloud: CloudProcess, scheduler: Path) -> None:
    """Groups larger than a leaf, while servers without a group and a compact group lie around."""
    cloud.boot(2)
    groups = []
    for number, (count, hints) in enumerate([(3, COMPACT), (3, ISOLATED), (2, ISOLATED), (3, ISOLATED)]):
        groups.append(set(cloud.boot(count, cloud.group(f"group{number}"), hints=hints).values()))
    assert all(len(crossed(TREE, groups[number])) == 2 for number in (0, 1, 3))
    for one, other in itertools.combinations(groups, 2):
        assert not crossed(TREE, one) & crossed(TREE, other)


def test_what_would_cross_owned_links_is_refused(cloud: CloudProcess, scheduler: Path) -> None:
    """Of a machine of three leaves an isolated group of 5 owns the links of two, 3 hosts of which are free.

    Two VMs find room inside one of the leaves. Five more do not fit anywhere else, though 5 hosts are free on the
    machine and 60 beside it; the log says so. When the first group is deleted, its links are free at once.
    """
    write(scheduler, SMALL)
    first = cloud.boot(5, cloud.group("first"), hints=ISOLATED)
    assert len(crossed(SMALL, list(first.values()))) == 2
    inside = cloud.boot(2, cloud.group("inside"), hints=ISOLATED)
    assert len(leaves(SMALL, inside.values())) == 1
    before = len(cloud.log("finds no links of its own"))
    with pytest.raises(Refused, match="No valid host"):
        cloud.boot(5, cloud.group("second"), hints=ISOLATED)
    assert len(cloud.log("finds no links of its own")) > before
    cloud.delete(list(first))
    again = cloud.boot(5, cloud.group("third"), hints=ISOLATED)
    assert not crossed(SMALL, list(again.values())) & crossed(SMALL, list(inside.values()))
