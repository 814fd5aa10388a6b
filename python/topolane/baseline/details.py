"""Details of jobs that a log has but the engine does not read: the partition, and what kept a job waiting."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from topolane.units import clean

ID = ("id", "job_id", "JobIDRaw")
PARTITION = ("partition", "Partition")
SUBMITTED = ("submitted", "Submit")
ELIGIBLE = ("submit", "submission_time", "Eligible")
RESERVATION = ("reservation", "Reservation")
REASON = ("reason", "Reason")
SWF_PARTITION = 15
"""Index of the partition in an SWF record, counted from 0."""
LIMITS = ("QOS", "Assoc", "JobArrayTaskLimit")
"""Prefixes of Slurm's reasons that name a limit."""
HOLDS = ("JobHeld", "Dependency", "BeginTime")


@dataclasses.dataclass(frozen=True)
class Details:
    """A job's details in a log. Missing details are empty or False."""

    partition: str = ""
    is_held: bool = False
    """Whether the job became eligible only after its submission."""
    is_reserved: bool = False
    is_limited: bool = False
    """Whether a limit of its QOS, its association or its array kept the job waiting."""


UNKNOWN = Details()


def read(source: str | Path) -> dict[int, Details]:
    """The details of jobs by id, from a log in SWF, in CSV or as sacct prints it; empty for other files.

    The engine has read the log before and refused what cannot be read.
    """
    with _opened(source) as file:
        lines = (line for line in file if line.strip())
        first = next(lines, "")
        if (
            first.startswith(";")
            or first.split()[:1]
            and first.split()[0].isdigit()
            and len(first.split()) >= 18
        ):
            return _swf(first, lines)
        delimiter = "|" if "|" in first else ","
        return _table(first, lines, delimiter)


def _opened(source: str | Path) -> TextIO:
    with open(source, "rb") as file:
        is_zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(source, "rt", errors="replace") if is_zipped else open(source, errors="replace")


def _swf(first: str, lines: Iterable[str]) -> dict[int, Details]:
    found: dict[int, Details] = {}
    names: dict[str, str] = {}
    known: dict[str, Details] = {}
    for line in (first, *lines):
        if line.lstrip().startswith(";"):
            label, _, value = line.lstrip("; \t").partition(":")
            words = value.split()
            if label.strip() == "Partition" and len(words) > 1:
                names[words[0]] = clean(words[1])
            continue
        fields = line.split()
        number = fields[SWF_PARTITION]
        if number not in known:
            known[number] = Details("" if number.startswith("-") else names.get(number, number))
        found[int(float(fields[0]))] = known[number]
    return found


def _table(first: str, lines: Iterable[str], delimiter: str) -> dict[int, Details]:
    def cells(rows: Iterable[str]) -> Iterator[list[str]]:
        if delimiter == "|":
            return csv.reader(rows, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        return csv.reader(rows)

    header = next(cells([first.lstrip("\ufeff")]))
    columns = (ID, PARTITION, SUBMITTED, ELIGIBLE, RESERVATION, REASON)
    places = [_place(header, names) for names in columns]
    found: dict[int, Details] = {}
    for row in cells(lines):
        if len(row) != len(header):
            continue
        id, partition, submitted, eligible, reservation, reason = (
            "" if place is None else row[place].strip() for place in places
        )
        if id.isascii() and id.isdigit():
            found[int(id)] = Details(
                sys.intern(clean(partition)),
                _is_held(submitted, eligible) or reason.startswith(HOLDS),
                reservation not in ("", "0"),
                reason.startswith(LIMITS),
            )
    return found


def _place(header: list[str], names: tuple[str, ...]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _is_held(submitted: str, eligible: str) -> bool:
    """Whether a job became eligible after its submission. Both are seconds, or both are times like
    2026-11-21T19:12:48, whose text order is their time order.
    """
    if not submitted or not eligible:
        return False
    try:
        return float(eligible) > float(submitted)
    except ValueError:
        return eligible[:2].isdigit() and eligible > submitted
