"""Files of a plan that makes room: the plan, and next to it the journal of the steps that were begun."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from topolane import files, parsing, texts
from topolane._engine import InputError

BEGIN, DONE = "begin", "done"
"""The first step of every plan, and the last."""
TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "bool": (bool,),
}


class NoRoomError(Exception):
    """Why a command makes no room, in a sentence."""


class NoPlanError(NoRoomError):
    """Why there is no plan, in a sentence."""


class NotAppliedError(NoRoomError):
    """Why what a plan is for has not started, in a sentence."""


def named(words: Sequence[str], kinds: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Kinds and names in words of `--untouchable` such as `qos=urgent`. `kinds` has for each kind what its names look like.

    Raises InputError.
    """
    found = set()
    for word in words:
        kind, _, name = word.partition("=")
        if kind not in kinds or not name:
            *others, last = (f"{one}={form}" for one, form in kinds.items())
            raise InputError(f"--untouchable {texts.shown(word)}: it is {', '.join(others)} or {last}")
        found.add((kind, name))
    return frozenset(found)


class StoredPlan(Protocol):
    """A dataclass that is kept in a file."""

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int]
    __dataclass_fields__: ClassVar[dict[str, Any]]


def check(out: str | Path) -> None:
    """Raises InputError if a plan cannot be written there, or if the plan that is there is being carried out."""
    files.check(out)
    journal = journal_of(Path(out))
    try:
        text = texts.read_text(journal, texts.SMALL)
    except texts.NoFileError:
        return
    if not _has_ended(text):
        raise InputError(
            f"--out {out}: the plan there is being carried out ({journal.name}): finish it, or give it up with `apply --undo`"
        )


def write(out: str | Path, plan: StoredPlan) -> None:
    """Writes a plan; the journal of a plan that was there goes. Raises InputError as `check`."""
    path, journal = Path(out), journal_of(Path(out))
    content = {"format": plan.FORMAT, "version": plan.VERSION} | dataclasses.asdict(plan)
    # A call of `apply` that has read the plan that is there may not have a journal yet.
    with alone(path, "apply") if path.is_file() else contextlib.nullcontext():
        check(out)
        files.write(out, json.dumps(content, indent=2) + "\n")
        try:
            journal.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(
                f"{journal}: it is of another plan and cannot be removed: {error.strerror}"
            ) from error


def _has_ended(journal: str) -> bool:
    """Whether a journal has the last step of its plan, or none at all."""
    for line in journal.splitlines():
        with contextlib.suppress(InputError):
            step = parsing.parse_json(line, "journal")
            if isinstance(step, dict) and step.get("step") == DONE and "job" not in step:
                return True
    return "\n" not in journal


def read(path: Path, kind: type[StoredPlan], command: str) -> dict[str, Any]:
    """The fields of the plan of this kind in a file that this command wrote. Raises InputError."""
    source = str(path)
    given = parsing.parse_json(texts.read_text(path, texts.SMALL), source)
    if not isinstance(given, dict) or given.pop("format", None) != kind.FORMAT:
        raise InputError(f"{source}: it is no plan of `{command} --out`")
    if (found := given.pop("version", None)) != kind.VERSION:
        raise InputError(f"{source}: version {found!r} of plans is not known; known is {kind.VERSION}")
    return given


def kind_of(path: Path) -> object:
    """Which kind of plan is in a file; None if it is none. Raises InputError for a file that is no JSON."""
    given = parsing.parse_json(texts.read_text(path, texts.SMALL), str(path))
    return given.get("format") if isinstance(given, dict) else None


def rows_of(given: Any, name: str, kind: type[Any], source: str) -> tuple[Any, ...]:
    """The list of dataclasses in a field. Raises InputError."""
    rows = given.get(name) if isinstance(given, dict) else None
    if not isinstance(rows, list):
        raise InputError(f"{source}: {name} is no list")
    return tuple(made(kind, row, f"{source}: {name}[{at}]") for at, row in enumerate(rows))


def words_of(given: Any, name: str, source: str) -> tuple[str, ...]:
    """The list of words in a field. Raises InputError."""
    words = given.get(name) if isinstance(given, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{source}: {name} is no list of words")
    return tuple(words)


def made(kind: type[Any], given: Any, source: str) -> Any:
    """An object of a dataclass of plans from a JSON object, in which lists are tuples already. Raises InputError."""
    fields = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    if not isinstance(given, dict):
        raise InputError(f"{source}: it is no object")
    for name, wanted in fields.items():
        if name not in given:
            raise InputError(f"{source}: {name} is missing")
        known, value = TYPES.get(wanted, (tuple,)), given[name]
        if not isinstance(value, known) or (isinstance(value, bool) and bool not in known):
            raise InputError(f"{source}: {name} is {texts.shown(str(value))}, which is no {wanted}")
    if unknown := sorted(given.keys() - fields.keys()):
        raise InputError(f"{source}: {texts.shown(unknown[0])} is not known")
    return kind(**given)


def sum_of(path: Path) -> str:
    """A checksum of a plan, by which its journal knows it."""
    return hashlib.sha256(texts.read_bytes(path, texts.SMALL)).hexdigest()


def journal_of(plan: Path) -> Path:
    """The journal next to a plan."""
    return plan.with_name(plan.name + ".journal")


class RoomJournal:
    """The steps that were begun, one JSON object a line, on disk before they are taken.

    steps: those that there are, `BEGIN` and `DONE` among them; a step may be taken for several jobs.
    """

    def __init__(self, path: Path, plan_sum: str, steps: Sequence[str]) -> None:
        self.path, self.steps = path, list(_steps(path, steps))
        if self.steps and self.steps[0].get("plan") != plan_sum:
            raise InputError(f"{path}: it is of another plan: give this plan another name")
        self._sum = plan_sum

    def has(self, step: str, job: str | None = None) -> bool:
        """Whether a step was begun."""
        return any(one["step"] == step and one.get("job") == job for one in self.steps)

    def write(self, step: str, job: str | None = None, why: str = "") -> None:
        """Notes that a step begins, and why. Raises InputError if that cannot be written."""
        if self.has(step, job):
            return
        entry: dict[str, Any] = {"step": step, "time": time.time()}
        entry |= {"plan": self._sum} if step == BEGIN else {}
        entry |= {} if job is None else {"job": job}
        entry |= {"why": why} if why else {}
        target = files.open_to_append(self.path, "journal")
        try:
            line = (json.dumps(entry) + "\n").encode()
            if os.write(target, line) != len(line):
                raise InputError(f"{self.path}: cannot be written: no space is left")
            os.fsync(target)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from error
        finally:
            os.close(target)
        if step == BEGIN:
            _keep_name(self.path.parent)
        self.steps.append(entry)


def _keep_name(directory: Path) -> None:
    with contextlib.suppress(OSError):
        opened = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _steps(path: Path, known: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The steps in a file. A last line that is cut short is of a step that was not taken. Raises InputError."""
    try:
        text = texts.read_text(path, texts.SMALL)
    except texts.NoFileError:
        return
    whole, _, cut = text.rpartition("\n")
    if cut:
        # What comes next must not be added to it.
        files.write(path, whole + "\n" if whole else "", "journal")
    for number, line in enumerate(whole.split("\n") if whole else (), 1):
        step = parsing.parse_json(line, f"{path}:{number}")
        if not isinstance(step, dict) or step.get("step") not in known:
            raise InputError(f"{path}:{number}: it is no step of a plan")
        yield step


@contextlib.contextmanager
def alone(path: Path, command: str) -> Iterator[None]:
    """No other call of a command carries out the same plan meanwhile, and no new plan replaces it. Raises InputError."""
    with contextlib.ExitStack() as opened:
        try:
            file = opened.enter_context(path.open("rb"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_there = os.path.samestat(os.fstat(file.fileno()), path.stat())
        except BlockingIOError:
            raise InputError(f"{path}: another `{command}` carries it out now") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        if not is_there:
            raise InputError(f"{path}: a new plan has replaced it just now: call again")
        yield
