"""Fixtures of a cluster of 72 nodes that tests share: 12 leaves of 6, 4 pods of 3 leaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from live_cluster import Cluster, running, script

FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skips where no cluster can be had, with the names of the packages that are missing."""
    done = script("check")
    if done.returncode:
        pytest.skip(done.stderr.strip().removeprefix("cluster.sh: "))


@pytest.fixture(scope="session")
def cluster(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    partitions = "pbatch pdebug:node[1-6]"
    directory = tmp_path_factory.mktemp("slurm")
    with running(72, directory, "--partitions", partitions) as up:
        yield up


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(autouse=True)
def mended(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test that failed, the shared cluster is as it was at first, so that no other test fails for it."""
    yield
    shared = request.node.funcargs.get("cluster")
    if request.node.stash.get(FAILED, False) and isinstance(shared, Cluster):
        shared.mend()
