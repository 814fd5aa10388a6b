"""Clocks that are set forward and back, by libfaketime, on a real Slurm."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from driving import driving, submit_many, tree_of
from live_cluster import Cluster
from watching import events, settle, watching

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="needs the Debian package libfaketime")


class Watch:
    """The clock of whatever is started in its environment; its monotonic one goes on."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "offset"
        self.set("+0")
        self.environment = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, offset: str) -> None:
        """Such as `+1d` or `-120`, from the true time."""
        self._file.write_text(offset)


def test_the_daemons_clock_jumps(cluster: Cluster, tmp_path: Path) -> None:
    """A day forward, then a day back: the daemon goes by Slurm's clock. Jobs complete, one with a begin
    time not before it and not a day late, and nothing is taken back."""
    watch, true = Watch(tmp_path), cluster.environment
    cluster.environment = true | watch.environment
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(driving(cluster, tmp_path))
        finally:
            cluster.environment = true
        stack.enter_context(watching(cluster, tree_of(cluster)))
        for offset in ("+1d", "-1d"):
            jobs = submit_many(cluster, 4, seed=51)
            jobs.append(cluster.submit("-N1", "--time=5", "--begin=now+5", script="true"))
            watch.set(offset)
            jobs += submit_many(cluster, 4, seed=52)
            assert set(settle(cluster, jobs).values()) == {"COMPLETED"}
            record = cluster.job(jobs[4])
            # sbatch counts from its own second, which may be the one before Slurm's.
            assert 4 <= record["start_time"] - record["submit_time"] < 30
    shown = [event["time"] - time.time() for event in events(tmp_path, "start")]
    assert min(shown) < -80000 and max(shown) > 80000, "the daemon's clock did not jump"
    assert not events(tmp_path, "escaped", "not-released", "slurm-error")
