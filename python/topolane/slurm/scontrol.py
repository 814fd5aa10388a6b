"""What slurmrestd does not tell: the tree and the configuration, from `scontrol show`."""

from __future__ import annotations

import re
import subprocess

from topolane._engine import InputError


def shown(what: str) -> str:
    """What `scontrol show WHAT` prints. Raises InputError where it cannot be had."""
    try:
        done = subprocess.run(["scontrol", "show", what], capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise InputError(f"scontrol show {what} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"scontrol show {what} does not end: is slurmctld up?") from error
    if done.returncode or not done.stdout.strip():
        said = " ".join(done.stderr.split()) or "nothing"
        raise InputError(f"scontrol show {what} says {said}")
    return done.stdout


def configuration() -> dict[str, str]:
    """Slurm's configuration: names and values as they are printed."""
    return dict(re.findall(r"^(\S+) *= ?(.*?) *$", shown("config"), re.MULTILINE))
