"""The results of a case: figures with their targets, and the CPU time and memory of a child process on one
core.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import signal
import statistics
import subprocess
import tempfile
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LAST_LINES = 5
HEADINGS = ["figure", "what", "target", "median", "least..most (runs)", "verdict"]
"""The headings of a table of figures."""


class BenchError(Exception):
    """A figure could not be measured; the message says why."""


class TooLongError(BenchError):
    """A process was ended because it exceeded its limit of CPU time."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """The resources that a process used, including its children."""

    cpu: float
    """User plus system time, in seconds."""
    memory: float
    """Peak memory, in bytes."""
    output: str
    """The text that it printed."""


def cost(command: Sequence[str | Path], *, directory: Path | None = None, most: int | None = None) -> Cost:
    """Runs a command on one core and waits for it.

    Raises BenchError if it fails, and TooLongError if it takes more than `most` seconds of CPU time.
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=directory,
            preexec_fn=prepared(most),
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if child.returncode == -signal.SIGXCPU:
            raise TooLongError(f"{' '.join(map(str, command))}: stopped after {most} s of CPU time")
        if child.returncode:
            last = "\n".join(errors.read().splitlines()[-LAST_LINES:])
            raise BenchError(f"{' '.join(map(str, command))}: exit {child.returncode}\n{last}")
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, output.read())


def prepared(most: int | None) -> Callable[[], None]:
    """A function for a child to call. It pins the child to one core, if possible, and ends it after `most`
    CPU seconds.
    """
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else None

    def prepare() -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})
        if most is not None:
            _, hard = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(resource.RLIMIT_CPU, (most, hard))

    return prepare


@dataclasses.dataclass(frozen=True)
class Row:
    """One figure: what was measured, the values of all runs, and the target."""

    figure: str
    what: str
    unit: str
    values: tuple[float, ...]
    limit: float | None = None
    more_is_better: bool = False
    note: str = ""

    @property
    def median(self) -> float:
        """The value that is judged."""
        return statistics.median(self.values)

    @property
    def verdict(self) -> str:
        """Whether the median meets the target; a dash without a target."""
        if not self.values:
            return "not measured"
        if self.limit is None:
            return "-"
        met = self.median >= self.limit if self.more_is_better else self.median < self.limit
        return "met" if met else "MISSED"

    def cells(self) -> list[str]:
        """The row as text: figure, what, target, median, least..most, verdict."""
        target = "-" if self.limit is None else f"{'>=' if self.more_is_better else '<'} {number(self.limit)}"
        measured, spread = self.note, "-"
        if self.values:
            measured = f"{number(self.median)} {self.unit}"
            spread = f"{number(min(self.values))}..{number(max(self.values))} ({len(self.values)})"
        return [self.figure, self.what, target, measured, spread, self.verdict]

    def facts(self) -> dict[str, object]:
        """The row in the form of the JSON file."""
        facts = dataclasses.asdict(self)
        return facts | {"median": self.median if self.values else None, "verdict": self.verdict}


@dataclasses.dataclass(frozen=True)
class Result:
    """The results of a case. `run.py` prints, judges and writes them."""

    rows: Sequence[Row] = ()
    facts: Any = None
    """What the file of --json holds in addition to the rows; without rows, the whole content."""
    failed: bool = False
    """Whether a target was missed or a rule broken that the rows do not show."""
    notes: Sequence[str] = ()
    """Lines to print below the table."""


Options = types.SimpleNamespace
"""The options of a case: `case`, `quick`, `trace`, `json`, and its own options with their names in
`registry.py`.
"""


def asked(options: Options) -> dict[str, str]:
    """The options in the form of the JSON file."""
    return {key: str(value) for key, value in vars(options).items() if value is not None}


def number(value: float) -> str:
    """A number with three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(rows: list[list[str]]) -> str:
    """A Markdown table with aligned columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
