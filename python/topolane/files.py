"""Files written whole, and without being led elsewhere."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from topolane import texts
from topolane._engine import InputError

_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC
_REACH = getattr(os, "O_PATH", os.O_RDONLY)
"""Opens a folder to name what is in it, also one that may not be listed."""
_OF_A_PROCESS = re.compile(r"/proc/[^/]+(/task/[0-9]+)?/fd")


_SPARE = 8
"""Descriptors that are kept to remove a draft with, if writing it fails because there are no more."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What only a file that is written can fail with. The system does not say which file it is; while a draft is written, it is in the draft."""

FORMULA = tuple("=+-@\t\r")
"""What a cell begins with that a spreadsheet takes for a formula."""


def write(path: str | Path, content: str | bytes, option: str = "--out", mode: int | None = None) -> None:
    """Writes the file that `option` names, whole or not at all. Raises InputError where that cannot be done.

    What is there is replaced; a file of this user keeps its mode. mode: permissions whatever they were and whatever
    the umask is. A device or a pipe is written to. A symbolic link is not followed, except to a device, a pipe or an
    open file of a process (/dev/stdout), and then only where this user or root made it.
    """
    target = Path(path)
    try:
        data = content.encode() if isinstance(content, str) else content
        found = _found(target, option)
        if found is not None and stat.S_ISLNK(found.st_mode) and target.is_file():
            # Standard output in a file: what is printed there besides must not be mixed with this.
            target = Path(os.path.realpath(target))
            found = _found(target, option)
        if found is None or stat.S_ISREG(found.st_mode):
            _replace(target, data, _mode(found) if mode is None else mode)
        else:
            _pour(target, data, follow=stat.S_ISLNK(found.st_mode))
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be written: {error.strerror}") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        # A lone surrogate in the text, a zero byte in the name.
        raise InputError(
            f"{option} {texts.shown(str(path), texts.PATH)}: cannot be written: {error}"
        ) from error


def write_together(contents: Mapping[Path, str], option: str = "--out") -> None:
    """Writes several files, none before all of them are on the disk as drafts. Raises InputError where that cannot be done.

    What is there is replaced and keeps its mode, as by `write`; but it must be a regular file.
    """
    with contextlib.ExitStack() as stack:
        placers = []
        for target, content in contents.items():
            try:
                found = _found(target, option)
                if found is not None and not stat.S_ISREG(found.st_mode):
                    raise InputError(f"{option} {target}: cannot be written: it is not a regular file")
                placers.append(stack.enter_context(_draft(target, content.encode(), _mode(found))))
            except OSError as error:
                raise InputError(f"{option} {target}: cannot be written: {error.strerror}") from error
        for place in placers:
            place()


def check(path: str | Path, option: str = "--out") -> None:
    """Raises InputError if `write` could not write there. Call it before long work whose result would be
    lost.
    """
    target = Path(path)
    try:
        found = _found(target, option)
        if target.is_dir():
            raise InputError(f"{option} {path}: cannot be written: it is a directory")
        if found is None or stat.S_ISREG(found.st_mode):
            with tempfile.TemporaryFile(dir=target.parent):
                pass
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be written: {error.strerror}") from error


def open_to_append(path: str | Path, option: str) -> int:
    """A descriptor that appends to a file, made where there is none; for symbolic links see `write`."""
    target = Path(path)
    try:
        found = _found(target, option)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY
        follow = found is not None and stat.S_ISLNK(found.st_mode)
        return os.open(target, flags if follow else flags | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be written: {error.strerror}") from error


def _found(target: Path, option: str) -> os.stat_result | None:
    """What is there, not what a link leads to. Raises InputError for a link that must not be followed."""
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode) and not _leads_to_stream(target, found):
        raise InputError(
            f"{option} {target}: cannot be written: it is a symbolic link, which is not followed; name the file "
            "that it leads to"
        )
    return found


def _mode(found: os.stat_result | None) -> int | None:
    """The mode to keep. Another user's file may be one that everybody can write to."""
    return None if found is None or found.st_uid != os.geteuid() else stat.S_IMODE(found.st_mode) & 0o777


def _leads_to_stream(link: Path, found: os.stat_result) -> bool:
    if found.st_uid not in (0, os.geteuid()):
        return False
    folder = os.path.realpath(link.parent)
    if folder == "/dev" or _OF_A_PROCESS.fullmatch(folder):
        return True
    try:
        kind = os.stat(link).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISCHR(kind) or stat.S_ISBLK(kind)


def _pour(target: Path, data: bytes, *, follow: bool) -> None:
    """Writes to what nothing may replace."""
    flags = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOCTTY
    with open(os.open(target, flags if follow else flags | os.O_NOFOLLOW), "wb") as file:
        file.write(data)


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    with _draft(target, data, mode) as place:
        place()


@contextlib.contextmanager
def _draft(target: Path, data: bytes, mode: int | None) -> Iterator[Callable[[], None]]:
    """A draft that only this process knows, in the folder as it was when it was opened. What is given puts it in its place."""
    folder = os.open(target.parent, _FOLDER | _REACH)
    draft = f".topolane-{secrets.token_hex(8)}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o666 if mode is None else mode & 0o600, dir_fd=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
            yield lambda: os.replace(draft, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def drafted(out: str | Path, own: Sequence[str] = (), option: str = "--out") -> Iterator[Path]:
    """A folder to write into; its files are moved into `out` in the end, and it is removed on an error.

    own: patterns of files that an earlier run left in `out`: those that are not written again are removed, and with a
    slash at the end, folders that are empty. All other files in `out` stay. No symbolic link is followed, neither
    `out` nor one in it. Raises InputError, before the folder is given, where `out` cannot be written.
    """
    target = Path(out)
    # The nearest folder there is: files move from there to `out` without being copied.
    base = next(place for place in (target, *target.parents) if os.path.lexists(place))
    with contextlib.ExitStack() as stack:
        try:
            if base == target and target.is_symlink():
                raise _link(option, out, "")
            reach = _FOLDER | _REACH | (os.O_NOFOLLOW if base == target else 0)
            folder = _closed(stack, os.open(base, reach))
            spare = stack.enter_context(contextlib.ExitStack())
            for _ in range(_SPARE):
                _closed(spare, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            draft = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".topolane-", dir=base)))
            stack.callback(spare.close)  # before the draft is removed
        except OSError as error:
            raise InputError(f"{option} {out}: cannot be written: {error.strerror}") from error
        try:
            yield draft
        except OSError as error:
            if error.filename is None and error.errno in FULL:
                raise InputError(f"{option} {out}: cannot be written: {error.strerror}") from error
            raise
        spare.close()
        # Of its own: what fails from here on must not be taken for a fault of `out` before any work.
        try:
            _put(draft, folder, target.relative_to(base), own, option, out)
        except OSError as error:
            raise InputError(f"{option} {out}: cannot be written: {error.strerror}") from error


def _put(draft: Path, folder: int, rest: PurePath, own: Sequence[str], option: str, out: str | Path) -> None:
    new = sorted(file.relative_to(draft) for file in draft.rglob("*") if file.is_file())
    with contextlib.ExitStack() as stack:
        inside: dict[PurePath, int] = {}
        made: list[tuple[str, int]] = []

        def reached(path: PurePath) -> int:
            """The folder at a path below `folder`, made where it is missing."""
            if not path.parts:
                return folder
            if path not in inside:
                above = reached(path.parent)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path.name, dir_fd=above)
                    made.append((path.name, above))
                if stat.S_ISLNK(os.lstat(path.name, dir_fd=above).st_mode):
                    raise _link(option, out, str(path.relative_to(rest)) if rest in path.parents else "")
                inside[path] = _closed(
                    stack, os.open(path.name, _FOLDER | _REACH | os.O_NOFOLLOW, dir_fd=above)
                )
            return inside[path]

        # All folders before the first file, so that a link leaves everything as it is.
        try:
            places = {name: reached(rest / name.parent) for name in new}
        except (OSError, InputError):
            for own_name, above in reversed(made):
                with contextlib.suppress(OSError):
                    os.rmdir(own_name, dir_fd=above)
            raise
        for name in new:
            os.replace(draft / name, name.name, dst_dir_fd=places[name])
        top = reached(rest)
        kept = set(new)
        for pattern in own:
            with contextlib.ExitStack() as listed:
                for place, old, path in list(_matching(listed, top, PurePath(pattern).parts, PurePath())):
                    if pattern.endswith("/"):
                        with contextlib.suppress(OSError):  # not empty, or no folder
                            os.rmdir(old, dir_fd=place)
                    elif path not in kept:
                        with contextlib.suppress(IsADirectoryError):
                            os.unlink(old, dir_fd=place)


def _matching(
    stack: contextlib.ExitStack, folder: int, parts: tuple[str, ...], at: PurePath
) -> Iterator[tuple[int, str, PurePath]]:
    """What stands below a folder under names that match, each with the folder that it is in."""
    try:
        listed = _closed(stack, os.open(".", _FOLDER | os.O_RDONLY, dir_fd=folder))
    except PermissionError:
        return
    for name in sorted(fnmatch.filter(os.listdir(listed), parts[0])):
        if len(parts) == 1:
            yield listed, name, at / name
            continue
        try:
            inner = _closed(stack, os.open(name, _FOLDER | _REACH | os.O_NOFOLLOW, dir_fd=listed))
        except OSError:
            continue  # a file or a symbolic link
        yield from _matching(stack, inner, parts[1:], at / name)


def _closed(stack: contextlib.ExitStack, descriptor: int) -> int:
    """A descriptor that is closed with the stack."""
    stack.callback(os.close, descriptor)
    return descriptor


def _link(option: str, out: str | Path, inside: str) -> InputError:
    where = f"{inside} in it" if inside else "it"
    return InputError(
        f"{option} {out}: cannot be written: {where} is a symbolic link, which is not followed; name the folder "
        "itself"
    )
