"""The checks of `run.py kubernetes/soak` find pods that break their rules."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Checks for 64 nodes of 8 GPUs, 8 in a rack, 4 racks in a block."""
    for part in ("benches/kubernetes", "tests/kubernetes"):
        monkeypatch.syspath_prepend(str(ROOT / part))
    soak_checks = ROOT / "tests" / "live" / "kubernetes" / "soak_checks.py"
    spec = importlib.util.spec_from_file_location("soak_checks_of_groups", soak_checks)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    from cluster import Shape

    return module.Checks(Shape(64, 8, 4, {"nvidia.com/gpu": "8"}), 5)


def tell(
    checks: Any, group: str, nodes: list[int], gpus: int = 8, first: int | None = None, **note: Any
) -> None:
    """The pods of a group, or the first of them, get their nodes."""
    names = [f"n{node:05}" for node in nodes]
    for rank, node in enumerate(names[:first]):
        placement = {"nodes": names, "rank": rank, "link_use": "isolated", **note}
        checks.noted("ADDED", {
            "metadata": {
                "uid": f"{group}-{rank}", "labels": {"scheduling.x-k8s.io/pod-group": group},
                "annotations": {"topolane.io/placement": json.dumps(placement)},
            },
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}]},
            "status": {},
        })  # fmt: skip


def test_groups_next_to_each_other_are_right(checks: Any) -> None:
    tell(checks, "a", [0, 1, 8])
    tell(checks, "b", [2, 3])
    tell(checks, "c", [16, 24], link_use="shared", links=[1], machine="m")
    tell(checks, "d", [17, 25], link_use="shared", links=[2], machine="m")
    assert checks.wrong == [] and checks.placements == 4 and checks.pods == 9


def test_a_node_over_its_room(checks: Any) -> None:
    tell(checks, "a", [0], gpus=4)
    tell(checks, "b", [0], gpus=6)
    assert checks.wrong == ["node 0 has 10 of 8 GPUs taken"]


def test_a_link_twice(checks: Any) -> None:
    tell(checks, "a", [0, 8])
    tell(checks, "b", [1, 16])
    tell(checks, "c", [32, 40], link_use="shared", links=[7], machine="m")
    tell(checks, "d", [48, 56], link_use="shared", links=[7], machine="m")
    assert checks.wrong == ["b and a both have rack 0", "d and c both have 7"]


def test_a_group_in_parts(checks: Any) -> None:
    tell(checks, "a", [0, 1], first=1)
    assert checks.in_parts(0, 0) == ["a"] and checks.in_parts(60, 0) == []


def test_a_group_that_was_in_parts_for_longer_than_its_timeout_is_named(checks: Any) -> None:
    checks.timeout = 0
    tell(checks, "a", [0, 1], first=1)
    assert checks.late == []
    tell(checks, "a", [0, 1])
    (late,) = checks.late
    assert (late.group, late.size) == ("a", 2) and late.ended - late.begun == checks.longest_in_parts > 0


def test_a_pod_on_another_node_than_its_placement(checks: Any) -> None:
    tell(checks, "a", [0, 1], rank=0)
    assert checks.wrong == ["a: the pod of rank 0 is on n00001, not on n00000"]
