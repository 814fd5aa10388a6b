"""The daemon at work on a real Slurm, and what must hold whatever happens to it."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from live_cluster import Cluster, until

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

from topolane import Machine
from topolane.slurm.fabric import topology_conf

COMMAND = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "run"]


@contextlib.contextmanager
def driving(
    cluster: Cluster, directory: Path, *, dry_run: bool = False, **settings: Any
) -> Iterator[subprocess.Popen[str]]:
    """The daemon on the partition whose jobs are held."""
    lines = {"slurmrestd": f"unix:{cluster.facts['SOCKET']}", "partitions": ["pbatch"], "interval": 0.3}
    lines |= {"log": str(directory / "log.jsonl")} | settings
    if "TOKEN_FILE" in cluster.facts:
        lines = {"token-file": cluster.facts["TOKEN_FILE"]} | lines
    config = directory / "topolane.toml"
    config.write_text(tomlkit.dumps(lines))
    daemon = subprocess.Popen(
        [*COMMAND, "--config", str(config), *["--dry-run"] * dry_run],
        env=cluster.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield daemon
    finally:
        if daemon.poll() is None:
            daemon.send_signal(signal.SIGTERM)
        # Killed by a test, or ended well: not ended by itself with a complaint.
        assert daemon.wait(60) <= 0, daemon.stderr.read() if daemon.stderr else ""


def tree_of(cluster: Cluster) -> Machine:
    """The tree that Slurm says its nodes are on."""
    return Machine.parse(topology_conf(cluster.run("scontrol", "show", "topology")), "topology", "slurm")


def running(cluster: Cluster, machine: Machine) -> dict[int, list[int]]:
    """Where every running job of Slurm is."""
    jobs = cluster.rest("jobs")["jobs"]
    return {job["job_id"]: machine.nodes_named(job["nodes"]) for job in jobs if job["job_state"] == "RUNNING"}


def check_isolated(jobs: dict[int, list[int]], machine: Machine) -> None:
    """No node has two jobs, and no group is crossed by two (no link can carry two jobs' traffic)."""
    nodes = [node for held in jobs.values() for node in held]
    assert len(nodes) == len(set(nodes)), jobs
    for level in range(1, machine.depth + 1):
        for start, end, name in machine.groups(level):
            inside = {job: sum(start <= node < end for node in held) for job, held in jobs.items()}
            crossing = [job for job, count in inside.items() if 0 < count < len(jobs[job])]
            assert len(crossing) <= 1, (name, crossing, jobs)


def submit_many(cluster: Cluster, count: int, seed: int) -> list[int]:
    draw = random.Random(seed)
    return [
        cluster.submit(
            f"--nodes={draw.choice([1, 1, 2, 3, 5, 8, 14, 25])}",
            "--time=5",
            script=f"sleep {draw.randint(1, 4)}",
        )
        for _ in range(count)
    ]


def follow(cluster: Cluster, machine: Machine, jobs: list[int]) -> None:
    """Looks on until all have ended; isolation holds whenever one looks."""
    seen: set[int] = set()

    def all_ended() -> bool:
        now = running(cluster, machine)
        check_isolated(now, machine)
        seen.update(now)
        states = {job["job_id"]: job["job_state"] for job in cluster.rest("jobs")["jobs"]}
        return all(states.get(job) == "COMPLETED" for job in jobs)

    until(all_ended, "all jobs end", 300)
    assert len(seen & set(jobs)) > len(jobs) / 3, "hardly any job was seen running"
