"""Reads configuration files in TOML or CSV. Every error names the file, the line, the key and the value."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from topolane import parsing, texts
from topolane._engine import InputError
from topolane.parsing import shown

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_MISSING: Any = object()
MOST_CORES = 1 << 20
"""The most cores of a host or a guest; the engine counts them in 32 bits."""


def size(value: object) -> int | None:
    """The number of bytes: from a whole number, or from text such as "16 GiB"; None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 < value < 1 << 63 else None
    if not isinstance(value, str):
        return None
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([KMGT]?i?B|)", value)
    if match is None or match[2] not in _UNITS:
        return None
    return size(round(float(match[1]) * _UNITS[match[2]]))


def is_name(value: object) -> bool:
    """Whether the value may name a host or a guest. Drivers use names in files and in arguments of commands."""
    if not isinstance(value, str) or not 0 < len(value) < 256 or not value.isprintable():
        return False
    return "/" not in value and value[0] not in ".-"


def _said(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def read(path: str | Path) -> FileTable:
    """The top-level table of a TOML file. Raises InputError if the file is not TOML."""
    text = texts.read_text(path, texts.SMALL)
    return FileTable(parsing.parse_toml(text, str(path)), str(path), text.splitlines(), "", 0)


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A CSV file of these columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def interval(row: Mapping[str, str], where: str, start: float | None = None) -> tuple[float, float]:
    """The times in the columns from and until. An empty until has no limit; an empty from is `start`, if that is given.
    Raises InputError.
    """
    begin, end = _seconds(row, "from", where, start), _seconds(row, "until", where, math.inf)
    if end <= begin:
        raise InputError(f"{where}: it must end after it begins, not from {row['from']} until {row['until']}")
    return begin, end


def _seconds(row: Mapping[str, str], column: str, where: str, default: float | None) -> float:
    text = row[column]
    if not text and default is not None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        empty = "" if default is None else " or empty"
        raise InputError(f"{where}: {column} must be a number of seconds{empty}, not {texts.shown(text)}")
    return seconds


def csv_rows(
    path: str | Path, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with their line numbers, as dictionaries with the names in the first line as
    keys.

    The file must have all `columns`, in any order, and may have the `optional` ones. Raises InputError for
    any other file.
    """
    known = [*columns, *optional]
    content = io.StringIO(texts.read_text(path, texts.SMALL), newline="")
    try:
        reader = csv.reader(content, strict=True)
        header = [name.strip() for name in next(reader, [])]
        for name in header:
            if name not in known or header.count(name) > 1:
                why = "stands twice" if name in known else f"is not known; there are {', '.join(known)}"
                raise InputError(f"{path}:1: column {texts.shown(name)} {why}")
        for name in columns:
            if name not in header:
                raise InputError(f"{path}:1: the header names no column {name}")
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{path}:{reader.line_num}: {len(cells)} cells, where the header names {len(header)} "
                    "(a value with a comma stands in quotes)"
                )
            yield reader.line_num, dict(zip(header, map(str.strip, cells)))
    except csv.Error as error:
        raise InputError(f"{path}: not CSV: {error}") from error


class FileTable:
    """A table of the file. Its methods remove the values that they return; `done` refuses keys that remain."""

    def __init__(self, values: dict[str, Any], path: str, lines: list[str], header: str, place: int) -> None:
        self._values, self._path, self._lines = dict(values), path, lines
        self._header, self._place = header, place
        """The table's header and its index, from 0, among the tables with that header."""
        self._known: dict[str, None] = {}

    def refuse(self, key: str | None, why: str) -> InputError:
        """The error that says what is wrong with the value of a key, or with the table."""
        return InputError(f"{self._path}:{self._line(key)}: {key + ' ' if key else ''}{why}")

    def peek(self, key: str) -> Any:
        """The value of a key as it is in the file; None if there is none. The value stays in the table."""
        self._known[key] = None
        return self._values.get(key)

    def value(self, key: str) -> Any:
        """The value of a key as it is in the file, for callers with their own check."""
        return self._take(key, _MISSING)

    def word(self, key: str, default: str = _MISSING) -> str:
        """A text that is not empty."""
        value = self._take(key, default)
        if value is not default and (not isinstance(value, str) or not value or not value.isprintable()):
            raise self.refuse(key, f"must be a word, not {shown(value)}")
        return str(value)

    def name(self, key: str) -> str:
        """The name of a host or a guest; see `is_name`."""
        value = self.word(key)
        if not is_name(value):
            raise self.refuse(
                key, f"{shown(value)} is no name: it has a slash, begins with . or -, or is too long"
            )
        return value

    def plain(self, key: str) -> str:
        """A name in which neither a shell nor QEMU's options see a special meaning."""
        value = self.word(key)
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
            raise self.refuse(
                key, f"{shown(value)} is no name of up to 64 letters, digits, dots, dashes and underscores"
            )
        return value

    def words(self, key: str, default: tuple[str, ...] = _MISSING) -> tuple[str, ...]:
        """A list of texts; a single text counts as a list."""
        value = self._take(key, default)
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple) or not all(isinstance(one, str) and one for one in listed):
            raise self.refuse(key, f"must be a list of words, not {shown(value)}")
        return tuple(listed)

    def texts(self, key: str) -> dict[str, str]:
        """A table of texts by name, such as an environment; empty if it is missing."""
        value = self._take(key, {})
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise self.refuse(key, f"must be a table of texts, not {shown(value)}")
        return dict(value)

    def number(self, key: str, least: float, most: float, default: float = _MISSING) -> float:
        """A number within bounds."""
        value = self._take(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise self.refuse(
                key, f"must be a number from {_said(least)} to {_said(most)}, not {shown(value)}"
            )
        return float(value)

    def whole(self, key: str, least: int, most: int, default: int = _MISSING) -> int:
        """A whole number within bounds."""
        value = self.number(key, least, most, default)
        if value != int(value):
            raise self.refuse(key, f"must be a whole number, not {shown(value)}")
        return int(value)

    def size(self, key: str, default: int = _MISSING) -> int:
        """A number of bytes; see `size`."""
        value = self._take(key, default)
        bytes_ = size(value)
        if value is not default and bytes_ is None:
            raise self.refuse(key, f'must be a number of bytes or text such as "16 GiB", not {shown(value)}')
        return default if bytes_ is None else bytes_

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.refuse(key, f"must be true or false, not {shown(value)}")
        return value

    def table(self, key: str) -> FileTable:
        """A table inside this one; empty if it is missing."""
        value = self._take(key, {})
        if not isinstance(value, dict):
            raise self.refuse(key, f"must be a table [{self._under(key)}], not {shown(value)}")
        return FileTable(value, self._path, self._lines, self._under(key), 0)

    def tables(self, key: str, before: int = 0) -> list[FileTable]:
        """The tables `[[key]]` inside this one. before: how many tables with the same header come earlier in
        the file.
        """
        value = self._take(key, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.refuse(key, f"must be tables [[{self._under(key)}]], not {shown(value)}")
        header = self._under(key)
        return [
            FileTable(one, self._path, self._lines, header, before + place) for place, one in enumerate(value)
        ]

    def done(self) -> None:
        """Raises InputError if unknown keys remain in the table."""
        for key in self._values:
            raise self.refuse(key, f"is not known here; there are {', '.join(self._known)}")

    def _take(self, key: str, default: Any) -> Any:
        self._known[key] = None
        if key in self._values:
            return self._values.pop(key)
        if default is _MISSING:
            raise self.refuse(None, f"{key} is missing")
        return default

    def _under(self, key: str) -> str:
        return f"{self._header}.{key}" if self._header else key

    def _line(self, key: str | None) -> int:
        headers = [
            (number, re.sub(r"\s", "", match[1]))
            for number, line in enumerate(self._lines, 1)
            if (match := re.match(r"\s*\[\[?([^]]+)\]", line))
        ]
        mine = [number for number, header in headers if header == self._header]
        first = mine[self._place] if self._place < len(mine) else 1
        last = min((number for number, _ in headers if number > first), default=len(self._lines) + 1)
        if not self._header and headers:
            last = headers[0][0]
        for number in range(first, last):
            if key and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", self._lines[number - 1]):
                return number
        for number, header in headers:
            if key and header == self._under(key) and number >= first:
                return number
        return first
