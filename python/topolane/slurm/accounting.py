"""The output of Slurm's accounting and configuration commands in one directory: the commands, and readers of
all files but the jobs.
"""

from __future__ import annotations

import calendar
import dataclasses
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from topolane import texts
from topolane._engine import InputError

FIELDS = (
    *(
        "JobIDRaw",
        "JobID",
        "Cluster",
        "Submit",
        "Eligible",
        "Start",
        "End",
        "ElapsedRaw",
        "Suspended",
        "State",
    ),
    *(
        "TimelimitRaw",
        "NNodes",
        "NCPUS",
        "ReqTRES",
        "AllocTRES",
        "Partition",
        "QOS",
        "Account",
        "User",
        "Priority",
    ),
    *("Reservation", "Constraints", "Flags", "Reason", "Planned", "Restarts", "NodeList", "Licenses"),
)
"""Fields of sacct that the printed command requests."""

JOBS = "jobs.txt"
SINCE = "now-30days"
"""The default first day of the records, in sacct's notation."""
EVENTS = ("NodeName", "TimeStart", "TimeEnd", "State")
"""The columns of `events.txt` that are used."""
POWER_SAVING = re.compile(r"(?:IDLE|MIX|ALLOC|COMP)\w*[~#!%]|POW\w*|CLOUD", re.ASCII)
"""States of nodes that are switched off to save power, such as idle cloud nodes. Slurm starts them for a job.
"""
LONGEST_LINE = 1 << 20
"""The most characters of a line: enough for a list of a hundred thousand nodes."""
UNKNOWN = frozenset({"", "Unknown", "None", "N/A", "0"})
"""Texts that Slurm prints for an unknown time."""


@dataclasses.dataclass(frozen=True)
class Dump:
    """A file of the directory, the command that writes it, and what stays unknown without it."""

    file: str
    command: str
    lost: str


DUMPS = (
    Dump(
        JOBS,
        "sacct --allusers --allocations --duplicates --parsable2 --delimiter=';' --starttime={since} --endtime=now "
        f"--format={','.join(FIELDS)}",
        "",
    ),
    Dump(
        "partitions.txt",
        "scontrol -o show partition",
        "which partitions give whole nodes; all jobs take whole nodes unless --shared is given",
    ),
    Dump("config.txt", "scontrol show config", "whether the cluster allocates whole nodes, and its name"),
    Dump("qos.txt", "sacctmgr --parsable2 show qos", "which jobs have a QOS that was deleted or renamed"),
    Dump(
        "assoc.txt",
        "sacctmgr --parsable2 show assoc format=Cluster,Account,User,Partition,ParentName,Share,"
        "GrpJobs,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpWall,MaxJobs,MaxTRES",
        "which jobs are of accounts that are gone",
    ),
    Dump(
        "events.txt",
        "sacctmgr --parsable2 show event start={since} format=Cluster,NodeName,Start,End,State",
        "when nodes were down",
    ),
    Dump(
        "reservations.txt",
        "sacctmgr --parsable2 show reservation start={since} format=Cluster,Name,Start,End,NodeNames,TRES,Flags",
        "how many reservations kept nodes from jobs",
    ),
    Dump(
        "reservations-now.txt",
        "scontrol -o show reservation",
        "which licences reservations keep, unless AccountingStorageTRES names these licences",
    ),
    Dump(
        "licenses.txt",
        "scontrol -o show licenses",
        "how many licences there are, apart from those that config.txt names",
    ),
)


def commands(since: str = SINCE) -> str:
    """The commands that fill the directory, as lines of a shell script.

    since: the first day, in sacct's notation. Times are printed as seconds since 1970, so that no hour is
    missing or doubled when clocks change. Lists of array tasks are printed in full.
    """
    if not re.fullmatch(r"[A-Za-z0-9:+/.-]+", since):
        raise InputError(f"--since {texts.shown(since)}: not a time like 2026-10-01 or now-30days")
    lines = [
        "# Run these on a machine of the cluster, as a user who may see all jobs.",
        "mkdir topolane-import && cd topolane-import",
        "export SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0",
        *(f"{dump.command.format(since=since)} > {dump.file}" for dump in DUMPS),
        "# Then, where Topolane is: topolane workload import topolane-import --out log.csv",
    ]
    return "\n".join(lines) + "\n"


def time(text: str) -> int | None:
    """A time as seconds since 1970, from `1795722827` or from `2026-11-21T19:12:48` taken as UTC; None if
    Slurm does not know it.

    Raises ValueError for any other text.
    """
    if text in UNKNOWN:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return int(text)
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text, re.ASCII):
        raise ValueError(text)
    return calendar.timegm(datetime.fromisoformat(text).timetuple())


def is_civil(text: str) -> bool:
    """Whether a time has a form like `2026-11-21T19:12:48`, which does not name its time zone."""
    return "T" in text


def times(path: Path, number: int, row: dict[str, str]) -> tuple[int | None, int | None]:
    """TimeStart and TimeEnd of a row. Raises InputError for an invalid time."""
    try:
        start, end = (time(row[name]) for name in ("TimeStart", "TimeEnd"))
    except ValueError as error:
        raise InputError(f"{path}:{number}: {texts.shown(str(error))} is not a time") from error
    return start, end


def withheld(path: Path, number: int, row: dict[str, str]) -> tuple[int | None, int | None]:
    """The start and end of an outage or reservation.

    A node that went down and came back within one second has ended its jobs, so it counts as down for a
    second. Raises InputError for an invalid time.
    """
    start, end = times(path, number, row)
    if start is not None and start == end and row.get("State", "").startswith("DOWN"):
        end = start + 1
    return start, end


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file, gzipped or not, in printable form. Raises InputError if it cannot be read
    as text.
    """
    try:
        with open(path, "rb") as file:
            zipped = file.peek(2).startswith(b"\x1f\x8b")
            with gzip.open(file) if zipped else file as stream:
                number = 0
                while line := stream.readline(LONGEST_LINE + 1):
                    number += 1
                    if len(line) > LONGEST_LINE:
                        raise InputError(f"{path}:{number}: a line of more than {LONGEST_LINE} bytes")
                    text = line.decode().rstrip("\r\n")
                    yield number, _printable(text.removeprefix("\ufeff") if number == 1 else text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}:{number}: not UTF-8 text") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) and error.strerror else error}"
        ) from error


def _printable(line: str) -> str:
    """The line without terminal control characters, because users choose names of jobs and accounts. Tabs
    stay: they may separate fields.
    """
    if line.isprintable():
        return line
    return "\t".join(map(texts.printable, line.split("\t")))


def _some_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file. Raises InputError if there are none, because then its command failed."""
    number = 0
    for number, line in lines(path):
        yield number, line
    if not number:
        raise InputError(f"{path}: the file is empty")


def found(directory: str | os.PathLike[str], file: str) -> Path | None:
    """The path of a file of the directory, plain or with .gz; None if it is missing."""
    for name in (file, f"{file}.gz"):
        path = Path(directory, name)
        if path.is_file():
            return path
    return None


def table(path: Path, columns: Iterable[str], cluster: str | None) -> list[tuple[int, dict[str, str]]]:
    """The rows that `sacctmgr --parsable2` printed, with line numbers, without rows of other clusters.

    Raises InputError for a file without these columns, and for a row with more or fewer fields than the first
    line.
    """
    rows: list[tuple[int, dict[str, str]]] = []
    header: list[str] = []
    for number, line in lines(path):
        cells = line.split("|")
        if not header:
            header = cells
            for column in columns:
                if column not in header:
                    raise InputError(
                        f"{path}:{number}: no column {column} in {texts.shown(line)}, "
                        "where the header line of sacctmgr --parsable2 is expected"
                    )
        elif line and cells != header:
            if len(cells) != len(header):
                raise InputError(
                    f"{path}:{number}: {len(cells)} fields, where the header has {len(header)}: {texts.shown(line)}"
                )
            row = dict(zip(header, cells))
            if cluster is None or row.get("Cluster", cluster) == cluster:
                rows.append((number, row))
    if not header:
        raise InputError(f"{path}: the file is empty")
    return rows


def partitions(path: Path) -> dict[str, bool]:
    """By partition: whether jobs get whole nodes. Raises InputError if the file is not from `scontrol -o show
    partition`.
    """
    found: dict[str, bool] = {}
    for number, line in _some_lines(path):
        if not line or line == "No partitions in the system":
            continue
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "PartitionName" not in values:
            raise InputError(f"{path}:{number}: no PartitionName in {texts.shown(line)}")
        # Slurm 26.11 prints Exclusive instead.
        found[values["PartitionName"]] = values.get("OverSubscribe") == "EXCLUSIVE" or (
            values.get("Exclusive") in ("NODE", "TOPO")
        )
    return found


def events(path: Path, cluster: str | None) -> list[tuple[int, dict[str, str]]]:
    """The rows of `events.txt` with line numbers, without nodes that only saved power. Raises InputError."""
    rows = table(path, EVENTS, cluster)
    return [(number, row) for number, row in rows if not POWER_SAVING.fullmatch(row["State"])]


def licenses(path: Path) -> dict[str, int]:
    """The number of licences by name. Raises InputError if the file is not from `scontrol -o show licenses`."""
    found: dict[str, int] = {}
    for number, line in _some_lines(path):
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if not line or line.startswith("No licenses"):
            continue
        if "LicenseName" not in values or not re.fullmatch(r"\d{1,15}", values.get("Total", ""), re.ASCII):
            raise InputError(f"{path}:{number}: no LicenseName with a Total in {texts.shown(line)}")
        found[values["LicenseName"]] = int(values["Total"])
    return found


def licenses_of(text: str) -> dict[str, int]:
    """The number of licences by name in a text like `matlab:2,fluent`, the form of slurm.conf and sacct.
    Raises ValueError for any other text.
    """
    found: dict[str, int] = {}
    for item in filter(None, text.split(",")):
        parts = re.fullmatch(r"([^\s:|=*]{1,200})(?:[:=*](\d{1,15}))?", item, re.ASCII)
        if parts is None:
            raise ValueError(f"Licenses {texts.shown(text)} is not like matlab:2,fluent")
        found[parts[1]] = found.get(parts[1], 0) + int(parts[2] or 1)
    return found


def licenses_of_tres(tres: str) -> dict[str, int]:
    """The number of licences by name in a text like `cpu=16,license/matlab=2`. Raises ValueError for an
    unreadable one.
    """
    named = [item.removeprefix("license/") for item in tres.split(",") if item.startswith("license/")]
    return licenses_of(",".join(named))


def config(path: Path) -> dict[str, str]:
    """The settings in the output of `scontrol show config`. Raises InputError for any other file, including
    slurm.conf.
    """
    values: dict[str, str] = {}
    for number, line in lines(path):
        key, equals, value = line.partition("=")
        if key.strip().lower() in ("nodename", "partitionname") or line.lower().startswith("include "):
            raise InputError(
                f"{path}:{number}: {texts.shown(line)} is a line of slurm.conf, where the output of scontrol show config is wanted"
            )
        if equals:
            values.setdefault(key.strip(), value.strip())
    if "SelectType" not in values:
        raise InputError(f"{path}: no SelectType, which scontrol show config prints")
    return values
