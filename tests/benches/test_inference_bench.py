"""Synthetic logs with a known truth: replays with inference come close to it (benches/inference.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from topolane import InputError, Shape

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))

import inference

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"


@pytest.fixture(scope="module")
def truths(tmp_path_factory: pytest.TempPathFactory) -> list[inference.Truth]:
    directory = tmp_path_factory.mktemp("logs")
    return [inference.synthetic(inference.FIRST_SEED + log, 8000, directory) for log in range(3)]


def test_holds_and_capacity_that_a_log_does_not_name_are_found(truths: list[inference.Truth]) -> None:
    """Mean wait within 5 %, rank correlation at least .9, and the change from first-fit to isolated within 10 % in each log."""
    found = {row.what: row for row in inference.compared(truths, inference.JUDGED)}
    assert max(found["mean wait is off by"].values) < inference.MEAN
    assert min(found["rank correlation of waits"].values) >= inference.RANK
    assert max(found["change is off by, mean of seeds of each log"].values) < inference.CHANGE


def test_without_inference_the_same_logs_are_far_off(truths: list[inference.Truth]) -> None:
    found = {row.what: row for row in inference.compared(truths, "as it is")}
    assert min(found["mean wait is off by"].values) > 5 * inference.MEAN
    assert max(found["rank correlation of waits"].values) < inference.RANK
    assert found["the same, worst log"].median > inference.CHANGE


def test_a_log_without_recorded_starts_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("id,submit,run,nodes\n1,0,10,1\n")
    with pytest.raises(InputError, match=r"plain\.csv: no job records a start"):
        inference.of_log(str(tmp_path / "plain.csv"), inference.MACHINES[0], Shape())


@pytest.mark.parametrize(
    ("log", "machine", "limit"),
    [("KTH-SP2-1996.swf.gz", "fat-tree(radix=8)", 5000), ("theta-2023.swf.gz", "fat-tree(radix=26)", None)],
)
def test_public_logs_are_met_with_inference(log: str, machine: str, limit: int | None) -> None:
    """Mean wait within 5 % and rank correlation at least .9; without inference both are missed."""
    if not (TRACES / log).is_file():
        pytest.skip(f"needs {log} of the Parallel Workloads Archive or its like, next to the clone")
    rows = inference.of_log(str(TRACES / log), machine, Shape(cores_per_node=1, limit=limit))
    mean, rank = (row for row in rows if row.figure == inference.JUDGED)
    assert (mean.verdict, rank.verdict) == ("met", "met")
    mean, rank = (row for row in rows if row.figure == "as it is")
    assert mean.median > inference.MEAN
    assert rank.median < inference.RANK
