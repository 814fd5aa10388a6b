"""Runs commands on hosts."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE = 120.0
"""Time limit of a command in seconds."""


class CommandFailed(Exception):
    """A command on a host failed. The message is its error, as a sentence."""


def command(run: Sequence[str], words: Sequence[str], given: str | None = None) -> str:
    """The output of a command on the host that the prefix `run` reaches. Raises CommandFailed.

    The prefix is a command such as `ip netns exec NAME` or `ssh HOST`. With ssh, words must not contain
    blanks.
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
