"""A machine small enough to work out by hand, and jobs for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import topolane

MACHINE = """
name = "toy"
[[site]]
name = "core"
children = [4, 2, 2]
parents = [1, 2, 2]
"""


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> topolane.Machine:
    """16 nodes: 2 pods of 2 leaves of 4."""
    path: Path = tmp_path_factory.mktemp("machine") / "toy.toml"
    path.write_text(MACHINE)
    return topolane.machine(path)


@pytest.fixture(scope="session")
def jobs(toy) -> topolane.Workload:
    """60 jobs for it, all submitted at once."""
    return topolane.workload("exp-2", toy.nodes, seed=4, shape=topolane.Shape(limit=60))
