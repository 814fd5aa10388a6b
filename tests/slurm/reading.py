"""Programs that read a Slurm of another Debian suite by Slurm's own commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from live_cluster import Cluster
from waiting import DEADLINE

TOPOLANE = [sys.executable, "-c", "from topolane.cli import main; main()"]


def with_commands(cluster: Cluster, directory: Path) -> dict[str, str]:
    """An environment in which `scontrol` and `sdiag` are those of the cluster, from outside of its mounts too."""
    for name in ("scontrol", "sdiag"):
        entered = directory / name
        path = cluster.environment["PATH"]
        entered.write_text(
            f'#!/bin/sh\nPATH={path} exec {" ".join(cluster.inside.prefix)} {name} "$@"\n'
            if cluster.inside.prefix
            else f'#!/bin/sh\nPATH={path} exec {name} "$@"\n'
        )
        entered.chmod(0o755)
    return cluster.environment | {"PATH": f"{directory}:{os.environ['PATH']}"}


def topolane(environment: dict[str, str], *words: object) -> subprocess.CompletedProcess[str]:
    """What a command of Topolane prints."""
    return subprocess.run(
        [*TOPOLANE, *map(str, words)], env=environment, capture_output=True, text=True, timeout=DEADLINE
    )
