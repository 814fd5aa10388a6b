"""What is wrong at the start is said in one sentence with exit code 2, and no job is touched."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from driving import COMMAND, driving
from live_cluster import Cluster, running, until


def refusal(cluster: Cluster, directory: Path, settings: Any = None, *, token: bool = True) -> str:
    """What the daemon says, which must be one line, and end it with exit code 2."""
    config = directory / "topolane.toml"
    lines = {"slurmrestd": f"unix:{cluster.facts['SOCKET']}", "partitions": ["pbatch"]}
    if token and "TOKEN_FILE" in cluster.facts:
        lines |= {"token-file": cluster.facts["TOKEN_FILE"]}
    lines |= settings or {}
    config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items()))
    done = subprocess.run(
        [*COMMAND, "--config", str(config)],
        env=cluster.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1, (done.returncode, done.stderr)
    return done.stderr


def test_a_wrong_configuration(cluster: Cluster, tmp_path: Path) -> None:
    """A partition or a node that Slurm does not have, or a node that is not on the tree; nobody at the
    socket; wrong keys and values."""
    short = tmp_path / "topology.conf"
    text = (cluster.directory / "topology.conf").read_text()
    short.write_text(text.replace("node[67-72]", "node[67-71]"))
    job = cluster.submit("--nodes=1", "--time=5")
    for settings, said in (
        ({"partitions": ["nix"]}, "Slurm has no partition nix"),
        ({"topology": "cab"}, "node cab1 is in the topology and not in Slurm (1296 nodes are)"),
        ({"topology": str(short)}, "node node72 is in Slurm and not in the topology (1 nodes are)"),
        ({"topology": "/nowhere/none.toml"}, "/nowhere/none.toml"),
        ({"slurmrestd": "unix:/nowhere"}, "does not answer"),
        ({"slurmrestd": "ftp://x"}, "slurmrestd is at unix:PATH or http"),
        ({"interval": 0}, "interval must be a number from 0.05"),
        ({"polcy": "isolated"}, "polcy is not known here; there are partitions"),
        ({"policy": "islated"}, "unknown policy 'islated'"),
        ({"queue": "lifo"}, "unknown queue"),
        ({"log": str(tmp_path)}, "Is a directory"),
        ({"cores-per-node": 0}, "cores-per-node must be a number from 1"),
    ):
        assert said in refusal(cluster, tmp_path, settings), settings
    assert cluster.job(job)["comment"] == "" and cluster.job(job)["priority"] == 0
    cluster.run("scancel", job)


def test_a_second_daemon_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """Nobody else starts the jobs of a partition that a daemon drives, or writes its log; a shadow with a
    log of its own may look on. When the first has ended, the next may come."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    log = first / "log.jsonl"
    with driving(cluster, first):
        until(lambda: log.exists() and '"started"' in log.read_text(), "the daemon runs")
        assert "another daemon on this host starts the jobs of partition pbatch" in refusal(cluster, second)
        assert "another daemon writes it" in refusal(cluster, second, {"log": str(log)})
        with driving(cluster, second, dry_run=True):
            shadows = second / "log.jsonl"
            until(lambda: shadows.exists() and '"started"' in shadows.read_text(), "the shadow looks on")
    with driving(cluster, first):
        until(lambda: log.read_text().count('"started"') == 2, "the next one runs")


def test_who_is_refused_writes_no_log(cluster: Cluster, tmp_path: Path) -> None:
    """A log begins with a scheduler, of which a daemon that never ran has none."""
    log = tmp_path / "log.jsonl"
    assert "by-priority needs" in refusal(cluster, tmp_path, {"by-priority": True, "log": str(log)})
    assert log.read_text() == ""


def test_a_slurm_that_cannot_be_driven(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No submission plugin that could hold the jobs, or one that holds others; no version of the interface
    that is known."""
    directory, tmp_path = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("config")
    with running(2, directory, "--rest", "v0.0.38") as plain:
        assert "JobSubmitPlugins=(null) has no lua" in refusal(plain, tmp_path)
    directory = tmp_path_factory.mktemp("old")
    with running(2, directory, "--rest", "v0.0.36", "--hold", "lua") as old:
        assert "offers v0.0.36; known are v0.0.38" in refusal(old, tmp_path)
    partitions = ("--partitions", "pbatch other", "--hold", "lua:other")
    directory = tmp_path_factory.mktemp("other")
    with running(2, directory, *partitions) as other:
        said = "does not hold the jobs of partition pbatch on submission: `topolane slurm install`"
        assert said in refusal(other, tmp_path)
