"""The cluster of Slurm and the cloud of Nova whose jobs and servers are moved: those of the core's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[2] / "tests" / host) for host in ("slurm", "nova")]

from shared_cloud import cloud, running
from shared_cluster import cluster, mended, pytest_runtest_makereport, slurm

__all__ = ["cloud", "cluster", "mended", "pytest_runtest_makereport", "running", "slurm"]
