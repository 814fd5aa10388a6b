"""Temporary outages of links, from a file."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

from topolane import reading
from topolane._engine import InputError, Machine

COLUMNS = ("name", "from", "until")
MOST = 1 << 22
"""The most cables of all outages together, which is the most that a machine may have."""


@dataclasses.dataclass(frozen=True)
class Outage:
    """Cables that fail together. Times are in seconds, as in `jobs.csv`."""

    cables: tuple[int, ...]
    start: float = -math.inf
    """When they fail; by default before the first job comes."""
    end: float = math.inf
    """When they work again; by default never."""


def read(file: str | Path, machine: Machine) -> list[Outage]:
    """The outages in a CSV file with the columns name, from and until.

    name: a link as `topolane links` names it (`leaf0->pod0-s1`, with `#1` for one of parallel cables), the id
    of a cable, or a switch or node, of which all cables fail. from, until: seconds, or empty for no limit.
    Raises InputError, naming file, line and value.
    """
    found = []
    failed = 0
    for line, row in reading.csv_rows(file, COLUMNS):
        where = f"{file}:{line}"
        try:
            (cables,) = machine.cables_named([row["name"]])
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        failed += len(cables)
        if failed > MOST:
            raise InputError(f"{where}: the outages so far are of more than {MOST} cables")
        start, end = reading.interval(row, where, -math.inf)
        found.append(Outage(tuple(cables), start, end))
    if not found:
        raise InputError(f"{file}: no outage stands in it")
    return found
