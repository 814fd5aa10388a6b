"""Writes files completely or not at all, without following links that could lead elsewhere."""

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
"""Flag to open a folder only as a base for names in it, even if it may not be listed."""
_OF_A_PROCESS = re.compile(r"/proc/[^/]+(/task/[0-9]+)?/fd")


_SPARE = 8
"""Descriptors kept in reserve, to remove a draft when writing fails because no descriptors are left."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors that only a written file can cause. The system does not name the file; while a draft is written, it
is a file of the draft.
"""

FORMULA = tuple("=+-@\t\r")
"""Characters at the start of a cell that a spreadsheet takes for a formula."""


def write(path: str | Path, content: str | bytes, option: str = "--out", mode: int | None = None) -> None:
    """Writes the file that `option` names, completely or not at all. Raises InputError if that fails.

    An existing file is replaced; a file of this user keeps its mode. mode: permissions to set, independent of
    the old ones and of the umask. A device or a pipe is written to. A symbolic link is not followed, except
    to a device, a pipe or an open file of a process (/dev/stdout), and then only if this user or root made
    it.
    """
    target = Path(path)
    try:
        data = content.encode() if isinstance(content, str) else content
        found = _found(target, option)
        if found is not None and stat.S_ISLNK(found.st_mode) and target.is_file():
            # If standard output is a file, other output printed to it must not mix with this one.
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
        # For example a lone surrogate in the text or a zero byte in the name.
        raise InputError(
            f"{option} {texts.shown(str(path), texts.PATH)}: cannot be written: {error}"
        ) from error


def write_together(contents: Mapping[Path, str], option: str = "--out") -> None:
    """Writes several files; none is changed before all are on the disk as drafts. Raises InputError if that
    fails.

    Existing files are replaced and keep their mode, as with `write`, but they must be regular files.
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
    """A descriptor that appends to a file, which is created if missing. Symbolic links are treated as by
    `write`.
    """
    target = Path(path)
    try:
        found = _found(target, option)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY
        follow = found is not None and stat.S_ISLNK(found.st_mode)
        return os.open(target, flags if follow else flags | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be written: {error.strerror}") from error


def _found(target: Path, option: str) -> os.stat_result | None:
    """The status of a path itself, not of a link's target; None if nothing is there. Raises InputError for a
    link that must not be followed.
    """
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
    """The mode to keep; None for another user's file, because everybody may be allowed to write to it."""
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
    """Writes to a device, pipe or process file, which cannot be replaced."""
    flags = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOCTTY
    with open(os.open(target, flags if follow else flags | os.O_NOFOLLOW), "wb") as file:
        file.write(data)


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    with _draft(target, data, mode) as place:
        place()


@contextlib.contextmanager
def _draft(target: Path, data: bytes, mode: int | None) -> Iterator[Callable[[], None]]:
    """Writes a draft with a secret name into the target's folder, and yields a function that moves it into
    place. The folder is opened once, so a later link cannot redirect the draft.
    """
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
    """A folder to write into. In the end its files are moved into `out`; on an error it is removed.

    own: patterns of files that an earlier run may have left in `out`. Those that are not written again are
    removed. A pattern with a slash at the end stands for folders, which are removed if they are empty. All
    other files in `out` stay. No symbolic link is followed, neither `out` nor one in it. Raises InputError,
    before any work, if `out` cannot be written.
    """
    target = Path(out)
    # The nearest existing folder: from there, files are moved to `out` without being copied.
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
            stack.callback(spare.close)  # called before the draft is removed
        except OSError as error:
            raise InputError(f"{option} {out}: cannot be written: {error.strerror}") from error
        try:
            yield draft
        except OSError as error:
            if error.filename is None and error.errno in FULL:
                raise InputError(f"{option} {out}: cannot be written: {error.strerror}") from error
            raise
        spare.close()
        # A separate handler: errors from here on come after the work, not from the check of `out`.
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
            """A descriptor of the folder at a path below `folder`; the folder is created if missing."""
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

        # Create all folders before the first file is moved, so that a link stops this before anything
        # changes.
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
                        with contextlib.suppress(OSError):  # not empty, or not a folder
                            os.rmdir(old, dir_fd=place)
                    elif path not in kept:
                        with contextlib.suppress(IsADirectoryError):
                            os.unlink(old, dir_fd=place)


def _matching(
    stack: contextlib.ExitStack, folder: int, parts: tuple[str, ...], at: PurePath
) -> Iterator[tuple[int, str, PurePath]]:
    """The entries below a folder that match a pattern: descriptor of their folder, name and path."""
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
    """Makes sure that the descriptor is closed with the stack. Returns it."""
    stack.callback(os.close, descriptor)
    return descriptor


def _link(option: str, out: str | Path, inside: str) -> InputError:
    where = f"{inside} in it" if inside else "it"
    return InputError(
        f"{option} {out}: cannot be written: {where} is a symbolic link, which is not followed; name the folder "
        "itself"
    )
