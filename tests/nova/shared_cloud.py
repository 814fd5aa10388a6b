"""One cloud of 72 hosts that tests share: 4 leaves of 18, 2 pods of 2 leaves, described by host aggregates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cloud_process import HOSTS, LEAVES, CloudProcess, missing


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudProcess]:
    """The cloud, which starts once."""
    if absent := missing():
        pytest.skip(f"a cloud needs the extra nova-test: {', '.join(absent)} cannot be imported")
    cloud = CloudProcess(HOSTS, tmp_path_factory.mktemp("nova") / "log")
    for index, hosts in enumerate(LEAVES):
        place = {"topolane:leaf": f"leaf{index + 1}", "topolane:pod": f"pod{index // 2 + 1}"}
        cloud.aggregate(f"leaf{index + 1}", place, hosts)
    yield cloud
    cloud.close()


@pytest.fixture
def cloud(running: CloudProcess) -> Iterator[CloudProcess]:
    """The cloud without servers."""
    yield running
    running.clear()
