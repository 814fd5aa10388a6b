"""Two thousand jobs at once, on a real Slurm."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import driving, tree_of
from live_cluster import Cluster, until
from watching import events, settle, states, watching

ENOUGH = 300


@contextlib.contextmanager
def leaving_none(cluster: Cluster) -> Iterator[None]:
    """Whatever happens, no job is left to the tests that follow."""
    try:
        yield
    finally:
        cluster.run("scancel", "--user=root")


def test_two_thousand_jobs_at_once(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They come faster than they start; three hundred complete, isolated from each other all the while,
    then the others are cancelled, and none is left. What a decision took is printed."""
    draw, jobs = random.Random(6), []
    asked = {
        "time_limit": 5,
        "standard_output": "/dev/null",
        "standard_error": "/dev/null",
        "current_working_directory": "/",
        "environment": {"PATH": "/usr/bin:/bin"},
    }
    with leaving_none(cluster), watching(cluster, tree_of(cluster)), driving(cluster, tmp_path):
        for _ in range(2000):
            job = asked | {"nodes": str(draw.choice([1, 1, 2, 3, 4]))}
            with contextlib.suppress(ConnectionResetError):  # slurmrestd drops a connection now and then
                submitted = cluster.rest("job/submit", {"script": "#!/bin/sh\ntrue\n", "job": job})
                jobs.append(submitted["job_id"])
        assert len(jobs) > 1900

        def ended() -> list[str]:
            known = [record["job_state"] for record in states(cluster, jobs).values()]
            return [state for state in known if state == "COMPLETED"]

        until(lambda: len(ended()) >= ENOUGH, f"{ENOUGH} jobs complete", 120)
        cluster.run("scancel", "--state=PENDING", "--user=root")
        assert set(settle(cluster, jobs).values()) == {"COMPLETED", "CANCELLED"}
    starts = events(tmp_path, "start")
    assert len({start["job"] for start in starts}) == len(starts) >= ENOUGH
    assert not events(tmp_path, "escaped", "slurm-error", "unfit")
    each = sorted(start["seconds"] for start in starts)
    with capsys.disabled():
        print(
            f"\ndeciding took {1e3 * each[len(each) // 2]:.2f} ms a job in the median, {1e3 * each[-1]:.2f} at most"
        )
