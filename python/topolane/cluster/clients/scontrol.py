"""Slurm's own command, for what its REST interface does not tell."""

from __future__ import annotations

import re
import subprocess

from topolane._engine import InputError


def scontrol(*words: str) -> str:
    """What scontrol prints. It waits for slurmctld no longer than Slurm's MessageTimeout.

    Raises InputError if scontrol fails or is not installed.
    """
    called = f"scontrol {' '.join(words)[:60]}"
    try:
        done = subprocess.run(["scontrol", *words], capture_output=True, text=True)
    except OSError as error:
        raise InputError(f"{called} cannot be run: {error.strerror}") from error
    if done.returncode:
        raise InputError(f"{called} says {' '.join(done.stderr.split()) or 'nothing'}")
    return done.stdout


def configuration() -> dict[str, str]:
    """Slurm's configuration: names and values as they are printed."""
    return dict(re.findall(r"^(\S+) *= ?(.*?) *$", scontrol("show", "config"), re.MULTILINE))
