"""Latencies that a collective in two levels pays between sites, on a simulated network where nothing else costs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from topolane_studies.sites_collectives import CollectiveCase, build, measure

LATENCY = 0.1
"""Seconds; all else is far below."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("smpirun") is None:
        pytest.skip("needs smpirun: package libsimgrid-dev")
    return build(tmp_path_factory.mktemp("collectives"))


@pytest.mark.parametrize("placement", ["blocks", "cyclic"])
def test_one_way_across_is_all_that_is_paid(programs: Path, placement: str) -> None:
    """Between three sites every call waits for one way across and for no second one, wherever its ranks are; flat
    some wait for more.
    """
    case = CollectiveCase(3, LATENCY, placement=placement, ranks=12)
    calls = ("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")
    small = measure(programs, case, calls, most=1024)
    assert {row.collective for row in small} == set(calls)
    for row in small:
        assert LATENCY < row.two_level < 1.1 * LATENCY, row
    assert max(row.flat for row in small) > 1.9 * LATENCY
