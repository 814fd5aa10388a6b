"""Reads the output of the measuring program: a heading, one line per measurement, and an end."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from topolane._engine import InputError

PATTERNS = ("pairs", "inside", "fan-out", "fan-in", "alltoall")


@dataclass(frozen=True)
class MeasurementRow:
    """One measurement: the quartiles of the seconds that the slowest process took."""

    pattern: str
    sharers: int
    """The number of simultaneous pairs, or of processes per node in an all-to-all."""
    bytes: int
    """Bytes of a message; in an all-to-all, the bytes that each process sends to each other process."""
    seconds: float
    """The median time of a message and its empty answer, or of one MPI_Alltoall."""
    low: float
    high: float
    repetitions: int


@dataclass(frozen=True)
class Measurement:
    """All rows of one run, and the host of every rank."""

    hosts: tuple[str, ...]
    rows: tuple[MeasurementRow, ...]

    @property
    def nodes(self) -> list[str]:
        """The hosts without repetition, in the order of their ranks."""
        return list(dict.fromkeys(self.hosts))

    @property
    def processes(self) -> int:
        """The number of processes per node."""
        return len(self.hosts) // len(self.nodes)

    def of(self, pattern: str) -> dict[int, list[MeasurementRow]]:
        """The rows of a pattern by number of sharers, each list in order of bytes."""
        found: dict[int, list[MeasurementRow]] = {}
        for row in sorted(self.rows, key=lambda row: (row.sharers, row.bytes)):
            if row.pattern == pattern:
                found.setdefault(row.sharers, []).append(row)
        return found

    def lines(self) -> Iterator[str]:
        """The measurement as the program prints it."""
        yield json.dumps({"calibrate": 1, "measurements": len(self.rows), "hosts": self.hosts})
        yield from (json.dumps(vars(row)) for row in self.rows)
        yield json.dumps({"end": len(self.rows)})


class Reader:
    """Reads a program's output line by line. Other lines, such as a launcher's greeting, are skipped."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.expected: int | None = None
        """The number of measurements that the heading announces."""
        self.hosts: tuple[str, ...] = ()
        self.rows: dict[tuple[str, int, int], MeasurementRow] = {}
        self._line = 0
        self._ended = False

    def take(self, line: str) -> None:
        """Reads a line. Raises InputError with the line's number if the program cannot have printed it."""
        self._line += 1
        if not line.startswith("{"):
            return
        try:
            given = json.loads(line)
            if "calibrate" in given:
                self._heading(given)
            elif "end" in given:
                self._ended = True
            else:
                self._row(given)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            shown = line.strip()[:60]
            raise self.refusal(f"is no measurement: {shown!r} ({describe(error)})") from error

    def refusal(self, what: str) -> InputError:
        return InputError(f"{self.source}: line {self._line} {what}")

    def _heading(self, given: dict[str, Any]) -> None:
        if self.expected is not None:
            raise self.refusal("starts a second run: the launcher did not join the processes into one")
        if given["calibrate"] != 1:
            raise ValueError(f"format {given['calibrate']!r} is not known")
        self.hosts = tuple(str(host) for host in given["hosts"])
        self.expected = whole(given, "measurements", 0)
        if not self.hosts:
            raise ValueError("no hosts")

    def _row(self, given: dict[str, Any]) -> None:
        if self.expected is None:
            raise ValueError("a measurement before the heading")
        if given["pattern"] not in PATTERNS:
            raise ValueError(f"pattern {given['pattern']!r} is not known")
        seconds, low, high = (positive(given, name) for name in ("seconds", "low", "high"))
        sharers, size = whole(given, "sharers", 1), whole(given, "bytes", 0)
        row = MeasurementRow(
            given["pattern"], sharers, size, seconds, low, high, whole(given, "repetitions", 1)
        )
        if (row.pattern, sharers, size) in self.rows:
            raise ValueError("measured twice")
        self.rows[row.pattern, sharers, size] = row

    def measurement(self) -> Measurement:
        """The complete measurement. Raises InputError if heading, rows or end are missing."""
        if self.expected is None:
            raise InputError(f"{self.source}: no measurements in it (no line starts with {{)")
        if not self._ended or len(self.rows) != self.expected:
            raise InputError(
                f"{self.source}: breaks off after {len(self.rows)} of {self.expected} measurements"
            )
        return Measurement(self.hosts, tuple(self.rows.values()))


def read(lines: Iterable[str], source: str) -> Measurement:
    """Reads a stored measurement. Raises InputError with file and line."""
    reader = Reader(source)
    for line in lines:
        reader.take(line)
    return reader.measurement()


def check_hosts(hosts: Iterable[str], source: str, nodes: int | None = None, processes: int = 0) -> None:
    """Raises InputError unless each node has the same number of processes, as requested."""
    counts = Counter(hosts)
    if nodes is None:
        wanted, right = "the same number on every node", len(set(counts.values())) == 1
    else:
        wanted = f"{processes} on each of {nodes} node{'s' * (nodes > 1)}"
        right = len(counts) == nodes and set(counts.values()) == {processes}
    if not right:
        shown = [f"{count} on {host}" for host, count in counts.items()]
        listed = ", ".join(shown[:4]) + (", ..." if len(shown) > 4 else "")
        raise InputError(f"{source}: processes were started {listed}; wanted {wanted}")


def positive(given: dict[str, Any], name: str) -> float:
    value = given[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{name} {value!r} is not a time")
    return float(value)


def whole(given: dict[str, Any], name: str, least: int) -> int:
    value = given[name]
    if type(value) is not int or value < least:
        raise ValueError(f"{name} {value!r} is not a whole number from {least}")
    return value


def describe(error: Exception) -> str:
    """A few words on an error in reading."""
    if isinstance(error, json.JSONDecodeError):
        return "not JSON"
    return f"no {error.args[0]}" if isinstance(error, KeyError) else str(error)
