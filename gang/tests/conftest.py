"""What the tests of the sites and of Slurm start: guests, libvirt daemons, a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from quiet_cores import QuietCores

sys.path[:0] = [str(Path(__file__).parents[2] / part) for part in ("sites/tests", "tests/slurm")]


@pytest.fixture
def quiet_cores() -> QuietCores:
    """For a test that compares the CPU time of processes."""
    return QuietCores()
