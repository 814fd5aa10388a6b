"""Keeps the answers of a sweep in a folder, so that an interrupted sweep can continue.

`runs.jsonl` gets one whole line per answer as soon as it is there; a shard has a file of its own, so that all shards may
run at once, on several machines. `tables/` has the tables of runs, each written before its line. A key stands for everything that affects an answer: the settings, the content of the
files, the build.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import inspect
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topolane import files, texts
from topolane._engine import InputError, Table
from topolane.run import Run
from topolane.sweep import imported, task_files
from topolane.sweep.build import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPTION = "--resume"
LINES = "runs.jsonl"
SHARDS = "runs-*-of-*.jsonl"
TABLES = "tables"


class Kept:
    """The answers in a folder: JSON values or runs."""

    def __init__(self, file: Path, descriptor: int, lines: dict[str, dict[str, Any]]) -> None:
        self._file, self._descriptor, self._lines = file, descriptor, lines
        self._folder = file.parent
        self._digests: dict[str, str] = {}
        self.used: set[str] = set()
        """Keys of the answers that this sweep asked for."""

    def __len__(self) -> int:
        return len(self._lines)

    def key(self, function: Callable[..., Any], task: Any) -> str:
        """The key of the function's answer to a task. Raises InputError if the task holds something other
        than plain values.
        """
        names = [*task_files.named(task), inspect.getfile(function)]
        module = task_files.module_of(task.policy) if isinstance(task.policy, str) else None
        try:
            described = json.dumps(
                {
                    "build": build(),
                    "function": f"{function.__module__}:{function.__qualname__}",
                    "task": dataclasses.asdict(task),
                    "files": {name: self._digest(name) for name in names},
                    "policy": None if module is None else imported.content(module),
                },
                sort_keys=True,
            )
        except TypeError as error:
            raise InputError(
                f"{OPTION}: runs of objects cannot be kept, only runs of names and files"
            ) from error
        return hashlib.sha256(described.encode()).hexdigest()

    def answer(self, key: str) -> Any:
        """The answer with this key; None if there is none. Raises InputError for a damaged table."""
        line = self._lines.get(key)
        if line is None:
            return None
        self.used.add(key)
        if "run" not in line:
            return line["answer"]
        tables = {name: self._table(key, name, digest) for name, digest in line["tables"].items()}
        return Run(**line["run"], tables=tables)

    def add(self, key: str, task: Any, answer: Any) -> None:
        """Stores an answer; it is on the disk when this returns."""
        line: dict[str, Any] = {"key": key, "what": _what(task)}
        if isinstance(answer, Run):
            line["tables"] = {name: self._write(key, name, table) for name, table in answer.tables.items()}
            fields = dataclasses.fields(answer)
            line["run"] = {
                field.name: getattr(answer, field.name) for field in fields if field.name != "tables"
            }
        else:
            line["answer"] = answer
        text = json.dumps(line | {"check": _check(line)}) + "\n"
        if os.write(self._descriptor, text.encode()) < len(text):
            raise InputError(f"{self._file}: cannot be written: is the disk full?")
        os.fsync(self._descriptor)
        self._lines[key] = line
        self.used.add(key)

    def _digest(self, name: str) -> str:
        if name not in self._digests:
            content = texts.read_bytes(name, texts.LARGE)
            self._digests[name] = hashlib.sha256(content).hexdigest()
        return self._digests[name]

    def _path(self, key: str, name: str) -> Path:
        return self._folder / TABLES / f"{key}-{name}"

    def _write(self, key: str, name: str, table: Table) -> str:
        content: bytes = table.__reduce__()[1][0]
        self._path(key, name).parent.mkdir(exist_ok=True)
        files.write(self._path(key, name), content, OPTION)
        return hashlib.sha256(content).hexdigest()

    def _table(self, key: str, name: str, digest: str) -> Table:
        path = self._path(key, name)
        content = bytes(texts.read_bytes(path, texts.LARGE))
        if hashlib.sha256(content).hexdigest() != digest:
            raise InputError(f"{path}: damaged: not what was written: remove {self._folder} to begin again")
        return Table._read(content)


@dataclasses.dataclass(frozen=True)
class Shard:
    """Every `count`-th task of a sweep, from task `number - 1` on: its part in a job array."""

    number: int
    """From 1 to `count`."""
    count: int

    @property
    def file(self) -> str:
        """The name of its file in the folder."""
        return f"runs-{self.number}-of-{self.count}.jsonl"


@contextlib.contextmanager
def opened(folder: str, shard: Shard | None = None) -> Iterator[Kept]:
    """Opens the answers in a folder, which is created if missing. New ones go to the file of the shard.

    Raises InputError if another command adds to the same file, or if the folder is damaged or has other content. A partial
    last line is cut off: a command ended while it wrote. A new folder is removed again if nothing was kept in
    it.
    """
    place = Path(folder)
    own = place / (LINES if shard is None else shard.file)
    new = not os.path.lexists(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
        is_ours = (place / LINES).exists() or any(place.glob(SHARDS))
        if not new and not is_ours and any(place.iterdir()):
            raise InputError(
                f"{OPTION} {folder}: a folder with other files: name a new folder, or one that this option has made"
            )
    except FileExistsError as error:
        raise InputError(f"{OPTION} {folder}: not a folder") from error
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{OPTION} {folder}: {error}") from error
    descriptor = files.open_to_append(own, OPTION)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{OPTION} {folder}: another command uses it") from error
        lines: dict[str, dict[str, Any]] = {}
        for other in {place / LINES, *place.glob(SHARDS)} - {own}:
            if other.exists():
                lines |= _read(other)
        yield Kept(own, descriptor, lines | _read(own, descriptor))
    finally:
        if new and not os.fstat(descriptor).st_size:
            own.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                place.rmdir()
        os.close(descriptor)


def _read(path: Path, descriptor: int | None = None) -> dict[str, dict[str, Any]]:
    """The lines of the file, by key. A partial last line is skipped, and cut off the file if it is open."""
    text = texts.read_text(path, texts.LARGE)
    whole, _, torn = text.rpartition("\n")
    lines = {}
    for number, row in enumerate(whole.split("\n") if whole else [], start=1):
        try:
            line = json.loads(row)
            check = line.pop("check")
            if check != _check(line):
                raise ValueError("not what was written")
            lines[line["key"]] = line
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{path}:{number}: damaged: remove the line to do its run again ({type(error).__name__})"
            ) from error
    if torn and descriptor is not None:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - len(torn.encode()))
    return lines


def _check(line: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()


def _what(task: Any) -> dict[str, Any]:
    """A short description of a task, for people who read the file."""
    what = {name: getattr(task, name, None) for name in ("policy", "queue", "scenario", "seed")}
    return what | {"load": task.shape.load, "network": task.network is not None}
