"""What an agent leaves where others find it: who it holds, which cores it has."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from pathlib import Path
from typing import Any

from topolane._engine import InputError
from topolane.gang import watchdog


def directory() -> Path:
    """Where agents of this user keep their files, only theirs. Raises InputError where that is somebody else's."""
    user = os.geteuid()
    base = Path("/run") if user == 0 else Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")
    place = base / (f"topolane-gang-{user}" if base == Path("/tmp") else "topolane-gang")
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        if place.lstat().st_uid != user or not place.is_dir() or place.is_symlink():
            raise InputError(f"{place}: is not a directory of this user")
    except OSError as error:
        raise InputError(f"{place}: {error.strerror}") from error
    return place


class Record:
    """The file that says whom an agent holds, for its watchdog and for the next agent."""

    def __init__(self, mark: str, known: dict[str, Any]) -> None:
        """`known`: what does not change, see `watchdog.thaw`."""
        self.path = directory() / f"agent-{mark}.json"
        self._known = known | {"mark": mark, "agent": os.getpid(), "began": watchdog.started(os.getpid())}
        self.write([])

    def write(self, processes: list[int]) -> None:
        """Whom it holds now."""
        held = [(one, began) for one in processes if (began := watchdog.started(one)) is not None]
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(self._known | {"processes": held}))
        draft.replace(self.path)

    def remove(self) -> None:
        """Nobody is held any more."""
        self.path.unlink(missing_ok=True)


def tidy() -> int:
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
    for group in watchdog.jobs_of(own):
        for thread in ("tasks", "cgroup.procs"):
            for member in watchdog.members(group / thread):
                watchdog.write(own.parent / thread, str(member))
        with contextlib.suppress(OSError):
            group.rmdir()
    with contextlib.suppress(OSError):
        own.rmdir()


class Cores:
    """Cores that no other agent of this machine may have, whoever's it is. Let go when the process ends."""

    def __init__(self, cores: tuple[int, ...]) -> None:
        """Raises InputError where another agent has one of them."""
        self._held: list[socket.socket] = []
        for core in cores:
            # A name in the abstract space is the whole machine's, and nothing of it is left behind.
            lock = socket.socket(socket.AF_UNIX)
            address = f"\0topolane-gang-core-{core}"
            try:
                lock.bind(address)
                lock.listen()
            except OSError as error:
                lock.close()
                self.close()
                raise InputError(f"core {core}: another agent{_holder(address)} has it already") from error
            self._held.append(lock)

    def close(self) -> None:
        """Others may have them."""
        for lock in self._held:
            lock.close()
        self._held = []


def _holder(address: str) -> str:
    """Which process listens there."""
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.settimeout(1)
            asking.connect(address)
            told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return ""
    return f" (process {struct.unpack('3i', told)[0]})"
