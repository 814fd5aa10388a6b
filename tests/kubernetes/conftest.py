"""A control plane for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from control_plane import BLOCK, CHASSIS, LABELS, NODES, RACK, SMALL, ControlPlane, control_plane
from waiting import until


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("kubernetes")) as plane:
        for node in range(NODES):
            labels = {"topo/block": f"b{node // BLOCK}", "topo/rack": f"r{node // RACK}"}
            plane.add_node(f"n{node:02}", labels | {"topo/chassis": f"c{node // CHASSIS}"})
        until(plane.are_nodes_ready, "all nodes are ready")
        plane.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
        yield plane


@pytest.fixture
def empty(plane: ControlPlane) -> ControlPlane:
    """The same with no pods."""
    for job in plane.get("/apis/batch/v1/namespaces/default/jobs")["items"]:
        plane.delete(f"/apis/batch/v1/namespaces/default/jobs/{job['metadata']['name']}")
    for pod in plane.pods():
        plane.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
    until(lambda: not plane.pods(), "no pod is left")
    return plane


@pytest.fixture
def in_chassis(empty: ControlPlane) -> Iterator[ControlPlane]:
    """Blocks of four chassis in place of two racks: so small groups cross some, and can be in each other's way."""
    empty.kill("topolane-scheduler")
    empty.start_scheduler(topologyLabels=SMALL, groupTimeoutSeconds=5)
    yield empty
    empty.kill("topolane-scheduler")
    empty.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
