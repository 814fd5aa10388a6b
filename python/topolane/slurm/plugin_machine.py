"""The machine that the topology plugin of slurmctld works on: one file, or two that describe the same nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topolane._engine import InputError, Machine


def read_machine(paths: Sequence[Path]) -> tuple[Machine, list[str]]:
    """The machine, and what was assumed of it, in sentences.

    paths: a machine file, or two: the one with the cables (a TOML machine or output of ibnetdiscover), then the one with the names
    of all nodes (topology.conf). Raises InputError if a file cannot be read, or if the two contradict each other.
    """
    if len(paths) > 2:
        raise InputError(f"--machine {paths[2]}: one machine file or two, not {len(paths)}")
    machines = [_read(path) for path in paths]
    if len(machines) == 1:
        return machines[0], []
    try:
        return machines[0].joined(machines[1])
    except InputError as error:
        raise InputError(f"{paths[1]}: {error}") from error


def _read(path: Path) -> Machine:
    try:
        return Machine.parse(path.read_text(), str(path))
    except OSError as error:
        raise InputError(f"--machine {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--machine {path}: not UTF-8") from error
