"""Running a command on a host."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE = 120.0
"""Seconds a command may take."""


class CommandFailed(Exception):
    """A command on a host failed: what it said, in a sentence."""


def command(run: Sequence[str], words: Sequence[str], given: str | None = None) -> str:
    """What a command prints, on the host that the prefix `run` leads to. Raises CommandFailed.

    The prefix is that of a command for one machine, such as `ip netns exec NAME` or `ssh HOST`: words with a blank
    do not survive the latter.
    """
    try:
        done = subprocess.run(
            [*run, *words],
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandFailed(f"{words[0]}: {error}") from error
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise CommandFailed(f"{' '.join(words[:6])}: {said}")
    return done.stdout
