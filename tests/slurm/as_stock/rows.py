"""Each scenario gives the same on stock Slurm and under the topology plugin (`make slurm-stock`; not part of `make test`).

AS_STOCK_POLICIES: the policies to compare with stock, with commas (isolated,slurm-tree).
AS_STOCK_ENGINE: libtopolane.so, by default compiled here. The tests are skipped if the headers of the Slurm that runs
cannot be had.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import with_plugin
from live_cluster import Missing
from scenarios import SCENARIOS
from table import Pair, pair

POLICIES = os.environ.get("AS_STOCK_POLICIES", "isolated,slurm-tree").split(",")


@pytest.fixture(scope="module", params=POLICIES)
def clusters(request: pytest.FixtureRequest) -> Iterator[Pair]:
    engine = os.environ.get("AS_STOCK_ENGINE")
    with tempfile.TemporaryDirectory(prefix="stock-", dir="/tmp") as folder:
        try:
            lines, files = with_plugin.settings(request.param, Path(engine) if engine else None, Path(folder))
        except Missing as missing:
            pytest.skip(str(missing))
        with pair(Path(folder), lines, files) as both:
            yield both


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_row_is_as_on_stock(clusters: Pair, name: str) -> None:
    """States, exit codes, messages, counts, reasons, order and rows of accounting are equal."""
    row = clusters.row(name)
    assert not row.missing, f"the scenario fails on stock Slurm: {row.missing}"
    assert not row.differences, "\n".join(row.differences)
