"""What slurmrestd does not tell or do: the tree, the configuration, a change of one task of an array."""

from __future__ import annotations

import re
import subprocess

from topolane._engine import InputError
from topolane.slurm.tokens import SlurmError


def shown(what: str) -> str:
    """What `scontrol show WHAT` prints; it waits for slurmctld no longer than Slurm's MessageTimeout.

    Raises InputError where it cannot be had.
    """
    try:
        done = subprocess.run(["scontrol", "show", what], capture_output=True, text=True)
    except OSError as error:
        raise InputError(f"scontrol show {what} cannot be run: {error.strerror}") from error
    if done.returncode or not done.stdout.strip():
        said = " ".join(done.stderr.split()) or "nothing"
        raise InputError(f"scontrol show {what} says {said}")
    return done.stdout


def configuration() -> dict[str, str]:
    """Slurm's configuration: names and values as they are printed."""
    return dict(re.findall(r"^(\S+) *= ?(.*?) *$", shown("config"), re.MULTILINE))


def update(job: str, change: str) -> None:
    """`scontrol update` of a job, or of a task such as 7_1. Raises SlurmError."""
    try:
        command = ["scontrol", "update", f"JobId={job}", change]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"scontrol update cannot be run: {error}") from error
    if done.returncode:
        raise SlurmError(f"scontrol update of job {job} says {' '.join(done.stderr.split())}")
