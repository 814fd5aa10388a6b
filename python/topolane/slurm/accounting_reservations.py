"""The licences that reservations keep, and the jobs in them, from Slurm's records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from topolane import texts
from topolane._engine import InputError
from topolane.slurm import accounting
from topolane.slurm.accounting_jobs import AccountedJobs, AccountedRun
from topolane.slurm.inspection import names_in
from topolane.units import plural


class Keeping(NamedTuple):
    """A reservation that keeps licences. Times are in seconds since 1970."""

    name: str
    start: int
    end: int | None
    licenses: dict[str, int]


def keeping(path: Path) -> list[Keeping]:
    """The reservations that keep licences. Raises InputError if the file is not from `scontrol -o show
    reservation`.
    """
    found = []
    for number, line in accounting.lines(path):
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if not line or line.startswith("No reservations"):
            continue
        for name in ("ReservationName", "StartTime", "EndTime"):
            if name not in values:
                raise InputError(f"{path}:{number}: no {name} in {texts.shown(line)}")
        start, end = accounting.times(
            path, number, {"TimeStart": values["StartTime"], "TimeEnd": values["EndTime"]}
        )
        licenses = _licenses(path, number, accounting.licenses_of, values.get("Licenses", ""))
        if licenses and start is not None:
            found.append(Keeping(values["ReservationName"], start, end, licenses))
    return found


def _licenses(
    path: Path, number: int, licenses_of: Callable[[str], dict[str, int]], text: str
) -> dict[str, int]:
    try:
        return licenses_of(text.replace("(null)", ""))
    except ValueError as error:
        raise InputError(f"{path}:{number}: {error}") from error


def licenses(path: Path, number: int, row: dict[str, str], now: list[Keeping]) -> dict[str, int]:
    """The licences that a reservation in accounting keeps. now: present reservations, used if its row has no
    licences.
    """
    accounted = _licenses(path, number, accounting.licenses_of_tres, row.get("TRES", ""))
    return accounted or _licenses_now(row["Name"], *accounting.times(path, number, row), now)


def _licenses_now(name: str, start: int | None, end: int | None, now: list[Keeping]) -> dict[str, int]:
    """The licences of a present reservation with this name that overlaps the period; none if there is none."""
    for one in now:
        is_there = (end is None or one.start < end) and (one.end is None or start is None or start < one.end)
        if one.name == name and is_there:
            return one.licenses
    return {}


def note_jobs(jobs: AccountedJobs, config: dict[str, Any], zero: int, notes: list[str]) -> None:
    """Names the reservation of each run that started on its nodes while it was active: no other job may start there.

    Accounting names none if the job was submitted before the reservation began. config: the configuration of the queue
    slurm.
    """
    kept = [
        (row, frozenset(names_in(row["nodes"]))) for row in config.get("reservations", ()) if row["nodes"]
    ]

    def of(run: AccountedRun) -> str:
        start = run.start - zero
        for row, nodes in kept:
            is_active = row["from"] <= start and (row["until"] is None or start < row["until"])
            if is_active and nodes.issuperset(names_in(run.hosts)):
                return str(row["name"])
        return ""

    count = 0
    for place, run in enumerate(jobs.runs if kept else ()):
        if not run.reservation and run.hosts and (name := of(run)):
            jobs.runs[place] = run._replace(reservation=name)
            count += 1
    if count:
        notes.append(
            f"{plural(count, 'run')} on the nodes of a reservation, which accounting does not name: in it"
        )
