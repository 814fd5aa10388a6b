"""Files of an agent that other processes read: the processes that it holds, and the cores that it uses."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topolane import files, locks
from topolane._engine import InputError

from topolane_gang import control_groups, watchdog
from topolane_gang.control_groups import OwnGroup

if TYPE_CHECKING:
    from topolane_gang.xen import Taken

PROGRAM = "topolane-gang"


def directory() -> Path:
    """The folder for the files of this user's agents, see `locks.directory`. Raises InputError."""
    return locks.directory(PROGRAM)


class AgentRecord:
    """The file that lists the processes of an agent, for its watchdog and for the next agent."""

    def __init__(self, mark: str, known: dict[str, Any]) -> None:
        """known: the constant part, see `watchdog.thaw`."""
        self.path = directory() / f"agent-{mark}.json"
        self._allowed: dict[OwnGroup, dict[int, list[int]]] = {}
        self._known = known | {"mark": mark, "agent": os.getpid(), "began": watchdog.started(os.getpid())}
        self.write([], [], [])

    def write(self, processes: Sequence[int], groups: Sequence[OwnGroup], domains: Sequence[Taken]) -> None:
        """Writes the processes, the groups of the jobs' own, and the domains of Xen that the agent holds now."""
        listed = [(one, began) for one in processes if (began := watchdog.started(one)) is not None]
        for group in groups:
            # What they may use is noted before the agent keeps them to its cores.
            self._allowed.setdefault(group, control_groups.allowed(group))
        held = {
            "processes": listed,
            "held": [str(group.directory) for group in groups],
            "made": [str(group.directory) for group in groups if group.made],
            "allowed": {thread: cores for group in groups for thread, cores in self._allowed[group].items()},
            "domains": [each.record() for each in domains],
        }
        files.write(self.path, json.dumps(self._known | held), "record", mode=0o600)

    def remove(self) -> None:
        """Removes the file: the agent holds no process any more."""
        self.path.unlink(missing_ok=True)


def release_abandoned() -> int:
    """Resumes the processes that dead agents left stopped, and removes their groups. Returns the number of
    such agents.
    """
    found = 0
    for path in directory().glob("agent-*.json"):
        state = watchdog.read(path)
        agent = state.get("agent")
        if isinstance(agent, int) and watchdog.started(agent) == state.get("began"):
            continue
        found += 1
        watchdog.thaw(state)
        watchdog.unpin(state)
        watchdog.put_back(state)
        control_groups.remove([OwnGroup(Path(made), made=True) for made in state.get("made", [])])
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
    """Locks cores against other agents of this user and agents of root, until the process ends.

    An agent of root ignores the locks of other users, and agents of two users do not exclude each other: with
    a lock that all users respect, any user could keep the others out (`topolane.locks`).
    """

    def __init__(self, cores: tuple[int, ...], of: str = "core") -> None:
        """of: whose cores, as dom0's are not those of Xen. Raises InputError if another agent has one of them."""
        super().__init__(PROGRAM)
        for core in cores:
            try:
                self.take(f"{of}-{core}")
            except locks.TakenError as error:
                self.close()
                named = "" if error.process is None else f" (process {error.process})"
                raise InputError(f"core {core}: another agent{named} has it already") from error
            except BaseException:  # an interrupt must not leave cores locked
                self.close()
                raise
