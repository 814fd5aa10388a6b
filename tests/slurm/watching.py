"""What must hold while and after something goes wrong: nobody twice on a node, no link shared, no job lost."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from driving import check_isolated
from live_cluster import Cluster, until
from topolane import Machine

ENDED = {"COMPLETED", "CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT"}


@contextlib.contextmanager
def watching(cluster: Cluster, machine: Machine) -> Iterator[None]:
    """Looks on from beginning to end, by squeue, which needs no slurmrestd: at every look no node has two
    jobs and no link two jobs' traffic."""
    wrong: list[AssertionError] = []
    over = threading.Event()
    looks = 0

    def look() -> None:
        nonlocal looks
        while not over.wait(0.15) and not wrong:
            with contextlib.suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    ["squeue", "-h", "-t", "R,S", "-o", "%i %N"],
                    env=cluster.environment,
                    capture_output=True,
                    text=True,
                    timeout=20,
                )
                if done.returncode:
                    continue  # slurmctld is not there
                lines = [line.split() for line in done.stdout.splitlines()]
                looks += 1
                try:
                    check_isolated({job: machine.nodes_named(nodes) for job, nodes in lines}, machine)
                except AssertionError as error:
                    wrong.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if wrong:
        raise wrong[0]
    assert looks > 3, "hardly ever looked"


def states(cluster: Cluster, jobs: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The records of these jobs."""
    known = {job["job_id"]: job for job in cluster.rest("jobs")["jobs"]}
    return {job: known[job] for job in jobs}


def settled(job: dict[str, Any]) -> bool:
    """Whether it has ended, or waits and its user is told why."""
    comment = job["comment"]
    told = comment.startswith("topolane: ") and not comment.startswith(("topolane: on", "topolane: to be"))
    told = told or job["state_description"].endswith("requeued held")
    return job["job_state"] in ENDED or (job["job_state"] == "PENDING" and job["priority"] == 0 and told)


def settle(
    cluster: Cluster, jobs: Sequence[int], what: str = "every job ends", seconds: float = 300
) -> dict[int, str]:
    """Waits until every job has ended or waits with a reason; the states in which they are then."""

    def open_ones() -> list[str]:
        return [
            f"{job}: {record['job_state']} {record['state_reason']} {record['comment']!r}"
            for job, record in states(cluster, jobs).items()
            if not settled(record)
        ]

    try:
        until(lambda: not open_ones(), what, seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}: {open_ones()}") from error
    return {job: record["job_state"] for job, record in states(cluster, jobs).items()}


def events(directory: Path, *kinds: str) -> list[dict[str, Any]]:
    """What the daemon logged, of these kinds. A line that is being written is not there yet."""
    log = directory / "log.jsonl"
    text = log.read_text() if log.exists() else ""
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if line["event"] in kinds]


def logged(directory: Path, holds: Callable[[list[dict[str, Any]]], bool], *kinds: str) -> None:
    """Waits for something in the daemon's log."""
    until(lambda: holds(events(directory, *kinds)), f"{' or '.join(kinds)} in the log")
