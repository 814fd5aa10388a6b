"""What an agent leaves where others find it: who it holds, which cores it has."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from topolane import files, locks
from topolane._engine import InputError
from topolane.gang import watchdog

PROGRAM = "topolane-gang"


def directory() -> Path:
    """Where agents of this user keep their files, see `locks.directory`. Raises InputError."""
    return locks.directory(PROGRAM)


class AgentRecord:
    """The file that says whom an agent holds, for its watchdog and for the next agent."""

    def __init__(self, mark: str, known: dict[str, Any]) -> None:
        """`known`: what does not change, see `watchdog.thaw`."""
        self.path = directory() / f"agent-{mark}.json"
        self._known = known | {"mark": mark, "agent": os.getpid(), "began": watchdog.started(os.getpid())}
        self.write([])

    def write(self, processes: list[int]) -> None:
        """Whom it holds now."""
        held = [(one, began) for one in processes if (began := watchdog.started(one)) is not None]
        files.write(self.path, json.dumps(self._known | {"processes": held}), "record", mode=0o600)

    def remove(self) -> None:
        """Nobody is held any more."""
        self.path.unlink(missing_ok=True)


def release_abandoned() -> int:
    """Lets run what agents that are no more left stopped, and removes their groups: how many such agents."""
    found = 0
    for path in directory().glob("agent-*.json"):
        state = watchdog.read(path)
        agent = state.get("agent")
        if isinstance(agent, int) and watchdog.started(agent) == state.get("began"):
            continue
        found += 1
        watchdog.thaw(state)
        groups = [Path(own) for own in state.get("groups", [])]
        for own in groups:
            _remove(own)
        # Processes that are just ending are counted a little longer: then the next agent tries again.
        if not any(own.exists() for own in groups):
            path.unlink(missing_ok=True)
    return found


def _remove(own: Path) -> None:
    for group in watchdog.job_groups(own):
        for thread in ("tasks", "cgroup.procs"):
            for member in watchdog.members(group / thread):
                watchdog.write(own.parent / thread, str(member))
        with contextlib.suppress(OSError):
            group.rmdir()
    with contextlib.suppress(OSError):
        own.rmdir()


class CoreLocks(locks.Locks):
    """Cores that no other agent of this user has, and none of root's. Let go when the process ends.

    An agent of root cannot be kept from a core by another user's agent, and two users' agents cannot exclude each
    other: a lock that excludes other users is one that any user can take to keep them out (`topolane.locks`).
    """

    def __init__(self, cores: tuple[int, ...]) -> None:
        """Raises InputError where another agent has one of them."""
        super().__init__(PROGRAM)
        for core in cores:
            try:
                self.take(f"core-{core}")
            except locks.TakenError as error:
                self.close()
                named = "" if error.process is None else f" (process {error.process})"
                raise InputError(f"core {core}: another agent{named} has it already") from error
            except BaseException:
                self.close()
                raise
