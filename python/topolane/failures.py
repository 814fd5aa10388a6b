"""Temporary failures of nodes, from a file or at a rate."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from topolane import reading, texts
from topolane._engine import InputError

if TYPE_CHECKING:
    from topolane._engine import Machine, Workload

COLUMNS = ("node", "from", "until")
RATE = re.compile(r"\s*([0-9.eE+-]+)\s*,\s*([0-9.eE+-]+)\s*")
HOUR = 3600.0


@dataclasses.dataclass(frozen=True)
class Failure:
    """A node's failure. Times are in seconds, as in `jobs.csv`."""

    node: int
    start: float
    end: float = math.inf
    """When the node is back; by default never."""


def failures_of(
    text: str | None, workload: Workload, machine: Machine, seed: int
) -> tuple[list[Failure], int]:
    """The failures that an option asks for, and the number of failures in its file that are skipped.

    text: None for the workload's own rate, if it has one; `none`; `RATE,HOURS`, that is failures per node and
    day and mean hours until the node is back; or a CSV file with the columns node, from and until (in
    seconds; until may be empty). Raises InputError, naming option or file, line and value.
    """
    if text == "none":
        return [], 0
    if text is None:
        rate = workload.failure_rate
        return ([] if rate is None else _drawn(workload, machine, rate, seed)), 0
    if found := RATE.fullmatch(text):
        try:
            rate = (float(found[1]), float(found[2]) * HOUR)
        except ValueError:
            rate = (math.nan, math.nan)
        try:
            return _drawn(workload, machine, rate, seed), 0
        except InputError as error:
            raise InputError(f"--failures {texts.shown(text)}: {error}") from error
    return read_and_count(text, machine)


def is_file(text: str) -> bool:
    """Whether an option names a file of failures."""
    return text != "none" and not RATE.fullmatch(text)


def _drawn(workload: Workload, machine: Machine, rate: tuple[float, float], seed: int) -> list[Failure]:
    return [Failure(*drawn) for drawn in workload.draw_failures(machine, *rate, seed)]


def read(file: str | Path, machine: Machine, *, others: bool = False) -> list[Failure]:
    """The failures in a CSV file. Raises InputError, naming file, line and value.

    If the machine is a part of a larger one, failures of the other nodes are skipped. others: the file may
    name nodes that the machine does not have; their failures are skipped too.
    """
    return read_and_count(file, machine, others=others)[0]


def read_and_count(file: str | Path, machine: Machine, *, others: bool = False) -> tuple[list[Failure], int]:
    """The failures in a CSV file as `read` returns them, and the number that it skips."""
    found = []
    skipped = 0
    for line, row in reading.csv_rows(file, COLUMNS):
        where = f"{file}:{line}"
        node = machine.node_named(row["node"])
        if node is None and not others and not machine.leaves_out(row["node"]):
            raise InputError(f"{where}: {machine.name} has no node {texts.shown(row['node'])}")
        start, end = reading.interval(row, where)
        if node is None:
            skipped += 1
        else:
            found.append(Failure(node, start, end))
    if not found and not skipped and not others:
        raise InputError(f"{file}: no failure stands in it")
    return found, skipped
