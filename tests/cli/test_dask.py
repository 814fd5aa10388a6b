"""The same sweep over a Dask cluster, made for the occasion or already there."""

from __future__ import annotations

import json

import pytest

distributed = pytest.importorskip("distributed", reason="needs distributed: the extra dask")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def comparison(toy, log):
    return (
        *("compare", "--machine", toy, "--trace", log, "--jobs", 2, "--json"),
        *("--policies", "first-fit,isolated,random", "--scenarios", "none,v1"),
    )


def test_a_cluster_made_for_the_occasion(topolane, comparison):
    here = json.loads(topolane(*comparison))
    there = json.loads(topolane(*comparison, "--executor", "dask://", "--out", "out", "--no-report"))
    assert there == here
    assert len(list((topolane.directory / "out/runs").iterdir())) == 4


def test_a_cluster_that_is_there(topolane, comparison, write):
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        there = json.loads(topolane(*comparison, "--executor", f"dask://{address}"))
        assert there == json.loads(topolane(*comparison))
        says = 'unknown queue "nope"'
        topolane.refused(*comparison, "--queue", "nope", "--executor", f"dask://{address}", says=says)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:x"])
def test_nobody_there(topolane, comparison, address):
    topolane.refused(
        *comparison, "--executor", f"dask://{address}", says=f"no Dask scheduler answers at {address}"
    )
