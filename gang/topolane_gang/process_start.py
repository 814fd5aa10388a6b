"""Starts a job's first process so that none of its children is missed, after checks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from topolane._engine import InputError

from topolane_gang import watchdog


def checked_cores(cores: Sequence[int] | None) -> tuple[int, ...]:
    """These CPU numbers [default: all that may be used]. Raises InputError for a CPU that may not be used."""
    ours = os.sched_getaffinity(0)
    wanted = tuple(sorted(ours if cores is None else cores))
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError(f"cores: {list(wanted)} are not different cores, at least one")
    for core in wanted:
        if core not in ours:
            raise InputError(f"cores: {core} is not a core that this process may use")
    return wanted


def program(
    name: str, command: Sequence[str], directory: str | Path | None, environment: Mapping[str, str]
) -> str:
    """The file to run, found before anything is created for the job."""
    if not command:
        raise InputError(f"job {name}: no command")
    if directory is not None and not Path(directory).is_dir():
        raise InputError(f"job {name}: {directory}: no such directory")
    where = os.path.join(directory or "", command[0]) if "/" in command[0] else command[0]
    found = shutil.which(where, path=environment.get("PATH", os.defpath))
    if found is None:
        raise InputError(f"job {name}: {command[0]}: no such command")
    return os.path.abspath(found)


def start_gated(
    command: list[str],
    directory: str | Path | None,
    environment: Mapping[str, str],
    output: IO[Any] | int | None,
    errors: IO[Any] | int | None,
) -> tuple[subprocess.Popen[bytes], int]:
    """Starts a process that waits until the gate is closed, and then becomes the command with the same
    process number.

    Until then the process can be moved into its control group, so that none of its children is missed.
    """
    behind, gate = os.pipe()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", 'read _; exec "$@" </dev/null', "sh", *command],
            cwd=directory,
            env=dict(environment),
            stdin=behind,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
    except BaseException as error:  # an interrupt must not leave the pipe open
        os.close(gate)
        if isinstance(error, OSError):
            raise InputError(f"{command[0]}: cannot be started: {error.strerror}") from error
        raise
    finally:
        os.close(behind)
    return process, gate


def ancestors(process: int) -> set[int]:
    """The ancestors of a process."""
    found: set[int] = set()
    while (fields := watchdog.stat(process)) and (process := int(fields[1])) > 0:
        found.add(process)
    return found
