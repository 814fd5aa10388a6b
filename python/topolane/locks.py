"""Locks that no other user can take: files that only their user can open, in a folder that only their user
can write to.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path

from topolane import files, texts
from topolane._engine import InputError

RUN = Path("/run")


class TakenError(Exception):
    """Another process holds the lock."""

    def __init__(self, process: int | None) -> None:
        super().__init__(process)
        self.process = process
        """The id of that process; None if it is not known."""


def directory(program: str) -> Path:
    """The folder for files of this user's processes that run a program. Only this user can write to it.

    Root has /run/PROGRAM, which others can read. Other users have the first of these that they own:
    XDG_RUNTIME_DIR, /run/user/UID, ~/.local/state (with the host's name, as several hosts may share it),
    /tmp. Raises InputError if the folder belongs to another user or others can write to it.
    """
    user = os.geteuid()
    place = RUN / program if user == 0 else _of_user(program, user)
    mode = 0o755 if user == 0 else 0o700
    try:
        place.mkdir(mode=mode, parents=user != 0, exist_ok=True)
        found = place.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or found.st_mode & 0o022:
            raise InputError(
                f"{place}: is not a folder that only this user can write to"
                + ("" if user == 0 else ": name one with XDG_RUNTIME_DIR")
            )
        if user == 0 and stat.S_IMODE(found.st_mode) != mode:
            place.chmod(mode)
    except OSError as error:
        raise InputError(f"{place}: {error.strerror}") from error
    return place


def _of_user(program: str, user: int) -> Path:
    for base in _runtime(user):
        if _is_of(base, user):
            return base / program
    home = Path(os.path.expanduser("~"))
    if home.is_absolute() and _is_of(home, user):
        return home / ".local" / "state" / f"{program}-{socket.gethostname()}"
    return Path("/tmp") / f"{program}-{user}"


def _runtime(user: int) -> Iterator[Path]:
    if given := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(given)
    yield RUN / "user" / str(user)


def _is_of(folder: Path, user: int) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == user and os.access(folder, os.W_OK | os.X_OK)


class Locks:
    """Named locks of a program. They last until closed, until this object is freed, or until the process ends
    in any way.

    They exclude processes of the same user. A process of another user is also refused a lock that root holds,
    but it cannot exclude root. Two users who are not root cannot exclude each other: a lock that could would
    also let one user block the other.
    """

    def __init__(self, program: str) -> None:
        self._program, self._folder = program, directory(program)
        self._held: dict[str, int] = {}
        _ALL.add(self)

    def take(self, name: str) -> None:
        """Takes the lock with this name. Raises TakenError if another process holds it, InputError if files
        cannot be locked.
        """
        if os.geteuid() != 0 and (process := _holder(RUN / self._program, name, 0)) is not None:
            raise TakenError(process)
        path = self._folder / f"{name}.lock"
        try:
            lock = _locked(path)
            if lock is None:
                raise TakenError(_holder(self._folder, name, os.geteuid()))
        except OSError as error:
            raise InputError(f"{path}: cannot be locked: {error.strerror}") from error
        self._held[name] = lock
        holder = f"{os.getpid()} {_began(os.getpid())}\n"
        files.write(self._folder / f"{name}.holder", holder, "lock", mode=0o644)

    def close(self) -> None:
        """Releases all locks."""
        for name, lock in self._held.items():
            (self._folder / f"{name}.holder").unlink(missing_ok=True)
            os.close(lock)
        self._held = {}

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # it may be half made, or the interpreter may be ending
            self.close()

    def forget(self) -> None:
        """Closes a forked child's copies of the locks, which would keep them after the parent's end."""
        for lock in self._held.values():
            os.close(lock)
        self._held = {}


_ALL: weakref.WeakSet[Locks] = weakref.WeakSet()


def _forget_all() -> None:
    for one in list(_ALL):
        one.forget()


os.register_at_fork(after_in_child=_forget_all)


def _locked(path: Path) -> int | None:
    """A descriptor of the locked file; None if another process has locked it."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(path, flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # If the file was removed meanwhile, the lock on it excludes no process.
            if path.exists() and os.path.samestat(os.fstat(lock), path.lstat()):
                return lock
        except BlockingIOError:
            os.close(lock)
            return None
        except BaseException:  # an interrupt must not leave the file locked
            os.close(lock)
            raise
        os.close(lock)


def _holder(folder: Path, name: str, user: int) -> int | None:
    """The process that a holder file names, if that user wrote the file and the process still runs; otherwise
    None.
    """
    path = folder / f"{name}.holder"
    try:
        if folder.lstat().st_uid != user or path.lstat().st_uid != user:
            return None
        process, began = map(int, texts.read_text(path, 64).split())
    except (OSError, ValueError):
        return None
    return process if _began(process) == began else None


def _began(process: int) -> int | None:
    """When a process began, in clock ticks since boot; None if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if not fields or fields[0] in "ZX" else int(fields[19])
