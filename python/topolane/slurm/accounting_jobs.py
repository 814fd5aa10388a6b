"""The jobs in the output of `sacct`. Each row becomes a run or is counted under the reason why it does not."""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from topolane import files, texts
from topolane._engine import InputError
from topolane.slurm import accounting

NEEDED = ("JobIDRaw", "Submit", "Start", "End", "State", "NNodes")
FURTHER = {
    "Eligible": "waits begin at submission",
    "TimelimitRaw": "jobs have no walltime",
    "Partition": "partitions are not known",
    "NodeList": "no job names its nodes",
    "Cluster": "two clusters in one file are not noticed",
    "Restarts": "runs that are missing are not noticed",
}
"""Columns that may be missing, and what is lost without each."""
OF_QUEUE = (
    *("QOS", "Account", "User", "Priority", "ReqTRES", "Reservation", "Licenses", "Constraints", "Reason"),
    "Suspended",
)
"""Further columns that may be missing; only the queue `slurm` and notes about it need them."""
RUNNING = frozenset({"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "STAGE_OUT"})
"""States of jobs that have not ended."""
RAN = frozenset({"COMPLETED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED"})
"""States of runs that had started."""
MINUTE = 60
AGAIN = frozenset({"REQUEUED", "NODE_FAIL", "PREEMPTED"})
"""States of runs after which Slurm may queue the job again."""
OTHER_LIMITS = re.compile(
    r"JobArrayTaskLimit|(?:QOS|Assoc)\w*(?:Cpu|CPU|Mem|Gres|GRES|Billing|BB|Energy|Minutes|Wall)", re.ASCII
)
"""Reasons of jobs that wait for a limit that the queue `slurm` does not support."""
TASKS = re.compile(r"\d+_\[([^]%]*)(?:%(\d+))?\]", re.ASCII)
"""The number in a row for several tasks of an array: `12_[3-7,9%2]` has 6 tasks, of which at most 2 run at
once.
"""
CUT = "..."
"""The end of a list of tasks that exceeds SLURM_BITSTR_LEN."""
SOME_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
"""An item in a list of tasks: `3`, `3-7` or `3-11:2`."""
HOUR = 3600
DAY = 24 * HOUR
DECADE = 3652 * DAY
MOST_JOBS = 10_000_000
HIGHEST_ID = 10_000_000_000
MOST_NODES = 1 << 31
MEMORY = {"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


class Share(NamedTuple):
    """The share of each node that a run took: the total divided by its nodes, rounded up."""

    cores: int
    memory: int
    """Bytes; 0 if Slurm does not account for memory."""
    resources: tuple[tuple[str, int], ...] = ()
    """Generic resources by name, such as `gpu` or `gpu:h100`."""


class EarlierRun(NamedTuple):
    """An earlier run of a job that ran again. Times are in seconds since 1970."""

    start: int
    run: int
    nodes: int


class AccountedRun(NamedTuple):
    """One run of a job. Times are in seconds since 1970."""

    job: int
    """Slurm's number of the job, equal for all of its runs."""
    shown: str
    """The number that users see: `12`, `12_3` or `12+1`."""
    submit: int
    eligible: int
    """When holds, dependencies and begin times allowed the start; not before `submit`."""
    start: int
    run: int
    walltime: int | None
    nodes: int
    share: Share | None
    """None if the row has no number of processors."""
    hosts: str
    state: str
    partition: str
    qos: str
    account: str
    user: str
    priority: str
    reason: str
    """Slurm's last reason why it waited."""
    reservation: str
    processors: int | None
    """The processors that it requested."""
    licenses: str
    """The licences that it requested, such as `matlab:2,fluent:1`."""
    no_requeue: bool = False
    """Whether Slurm does not start the job again after it ends this run."""
    earlier: tuple[EarlierRun, ...] = ()
    """Earlier runs of the job that were merged into this one."""
    queued: float | None = None
    """When the job got its position among jobs of equal priority; see `accounting_order`."""
    scheduler: str = ""
    """The scheduler that started it: `main` or `backfill`; empty if another part of Slurm did, or if it is unknown."""


class Tasks(NamedTuple):
    """Tasks of an array that share a row because none of them has started."""

    number: int
    at_once: int | None
    """The number of tasks that may run at once; None without a limit."""
    is_cut: bool
    """Whether sacct printed only a part of the tasks."""


class NeverStarted(NamedTuple):
    """A job that was eligible for a time and left the queue without a start. Times are in seconds since 1970."""

    job: int
    submit: int
    eligible: int
    until: int
    nodes: int
    walltime: int
    partition: str
    qos: str
    account: str
    user: str
    processors: int | None
    priority: str
    licenses: str
    tasks: Tasks | None = None
    """The array's tasks that the row stands for; None for a single job."""
    queued: float | None = None
    """When the job got its position among jobs of equal priority; see `accounting_order`."""


SCHEDULERS = {"SchedMain": "main", "SchedBackfill": "backfill"}
"""Flags of sacct, and names for the schedulers that they stand for."""
RESIZING = "RESIZING"
"""The state of a run that ended because its job was resized. The job continues in a row that begins then."""
RESIZED = "ended because the job was resized: the rest of the job is a job of its own, submitted then"
HELD = "had to wait for a hold, a dependency or a begin time first: the wait begins at Eligible"
LICENSED = "asked for licences, which only the queue slurm counts"
ONE_OF_LICENSES = "asked for one of several licences: no queue counts them"
PREEMPTED = "ended by preemption: a run takes as long as recorded"
NODE_FAILED = "ended because a node failed: a run takes as long as recorded"
SUSPENDED = "spent some time suspended: a run takes as long as recorded, and keeps its nodes"
NO_FAULTS = frozenset(
    {
        "steps of jobs",
        "never started",
        "still running",
        "in another partition",
        "of another cluster",
        HELD,
        LICENSED,
        ONE_OF_LICENSES,
        PREEMPTED,
        NODE_FAILED,
        SUSPENDED,
        RESIZED,
    }
)
"""Counted reasons that are not faults."""


@dataclasses.dataclass
class AccountedJobs:
    """The runs of a file in its order, and counts of what was skipped, changed or is missing."""

    runs: list[AccountedRun] = dataclasses.field(default_factory=list)
    never_started: list[NeverStarted] = dataclasses.field(default_factory=list)
    rows: int = 0
    skipped: Counter[str] = dataclasses.field(default_factory=Counter)
    notes: Counter[str] = dataclasses.field(default_factory=Counter)
    missing: list[str] = dataclasses.field(default_factory=list)
    """The columns of `OF_QUEUE` that are missing."""
    constraints: Counter[str] = dataclasses.field(default_factory=Counter)
    """The number of runs for each requested constraint on node features."""
    running_nodes: int = 0
    """The number of nodes of runs that were skipped because they had not ended."""
    is_civil: bool = False
    """Whether times have no time zone."""
    without: list[str] = dataclasses.field(default_factory=list)
    """Sentences about missing columns."""
    cluster: str | None = None


def clusters(path: Path) -> Counter[str]:
    """The number of rows of each cluster in a file of `sacct`; empty if it does not name clusters or cannot
    be read that way.
    """
    found: Counter[str] = Counter()
    header: list[str] = []
    delimiter = "|"
    for _, line in accounting.lines(path):
        if not header:
            delimiter = _delimiter(line)
            header = line.split(delimiter)
            if "Cluster" not in header:
                break
        cells = line.split(delimiter)
        if len(cells) == len(header) and cells != header:
            found[cells[header.index("Cluster")]] += 1
    return found


def is_printed_by_sacct(path: Path) -> bool:
    """Whether a file begins with the header of `sacct --parsable2` and has the columns that an import needs."""
    try:
        _, line = next(accounting.lines(path), (0, ""))
    except InputError:
        return False
    return set(NEEDED) <= set(line.split(_delimiter(line)))


def _delimiter(header: str) -> str:
    return next((sign for sign in ";|\t" if sign in header), "|")


def read(path: Path, cluster: str | None = None, partition: str | None = None) -> AccountedJobs:
    """The runs in a file of `sacct`, of one cluster and optionally of one partition.

    Raises InputError, with file, line and value, for a file that is not sacct's output: a column is missing,
    a row has more or fewer fields than the header, or a value cannot be read. It is also raised for a file of
    several clusters unless one is named.
    """
    reader = _Reader(path, partition)
    clusters: Counter[str] = Counter()
    header = ""
    columns: dict[str, int] = {}
    for number, line in accounting.lines(path):
        if not header:
            header = line
            reader.delimiter = _delimiter(line)
            columns = {name: place for place, name in enumerate(line.split(reader.delimiter))}
            for name in NEEDED:
                if name not in columns:
                    raise InputError(
                        f"{path}:1: no column {name}, where the header line of sacct --parsable2 is expected"
                    )
            if "Partition" not in columns and partition is not None:
                raise InputError(f"{path}:1: no column Partition, to choose one")
            reader.begin(columns)
            continue
        # Exports that were appended to each other repeat the header.
        if not line or line == header:
            continue
        cells = line.split(reader.delimiter)
        if len(cells) != len(columns):
            raise InputError(
                f"{path}:{number}: {len(cells)} fields, where the header has {len(columns)}: {texts.shown(line)}"
            )
        reader.jobs.rows += 1
        if "Cluster" in columns:
            name = sys.intern(cells[columns["Cluster"]])
            clusters[name] += 1
            if cluster is not None and name != cluster:
                reader.jobs.skipped["of another cluster"] += 1
                continue
        try:
            reader.row(cells)
        except ValueError as error:
            raise InputError(f"{path}:{number}: {error}") from error
    if not header:
        raise InputError(f"{path}: the file is empty")
    if not reader.jobs.rows:
        raise InputError(f"{path}: a header line and no rows")
    if cluster is None and len(clusters) > 1:
        counts = ", ".join(f"{name} {count:,}" for name, count in sorted(clusters.items()))
        raise InputError(f"{path}: rows of {len(clusters)} clusters ({counts}): choose one with --cluster")
    if cluster is not None and clusters and cluster not in clusters:
        raise InputError(
            f"{path}: no row is of cluster {texts.shown(cluster)}; there are {', '.join(sorted(clusters))}"
        )
    if reader.jobs.skipped["in another partition"] == reader.jobs.rows:
        there = ", ".join(sorted(filter(None, reader.other_partitions)))
        raise InputError(f"{path}: no row is of partition {texts.shown(partition or '')}; there are {there}")
    jobs = reader.ended()
    jobs.cluster = cluster if cluster is not None else next(iter(clusters), None)
    return jobs


class _Reader:
    """Turns rows into runs. Call `ended` at the end for the steps that need all rows."""

    def __init__(self, path: Path, partition: str | None) -> None:
        self.path, self.partition = path, partition
        self.delimiter = ""
        self.jobs = AccountedJobs()
        self.other_partitions: set[str] = set()
        self._newest = 0
        self._unended: list[tuple[str, int, int | None, int]] = []
        """State, start, walltime and nodes of each run without an end."""
        self._waiting: list[NeverStarted] = []
        """Jobs that had not started when the records were written."""
        self._restarts: dict[int, int] = {}
        """The number of restarts of each job that Slurm restarted. The first row of such a job may say 0."""
        self._has_seconds = False
        self._steps: set[str] = set()
        self._rows: Counter[int] = Counter()
        """The number of rows of each job."""

    def begin(self, columns: dict[str, int]) -> None:
        self.jobs.without = [
            f"no column {name}: {lost}" for name, lost in FURTHER.items() if name not in columns
        ]
        self.jobs.missing = [name for name in OF_QUEUE if name not in columns]
        self._columns = columns

    def row(self, cells: list[str]) -> None:
        """Stores the run in a row, or counts why the row is no run. Raises ValueError with a sentence about
        what is wrong.
        """
        skipped, notes = self.jobs.skipped, self.jobs.notes
        at = defaultdict(str, zip(self._columns, map(str.strip, cells))).__getitem__
        text = at("JobIDRaw")
        # The last condition is for lists of tasks, which end in dots if they are cut off.
        if "." in text or "." in at("JobID").partition("[")[0]:
            skipped["steps of jobs"] += 1
            self._steps.add(text.partition(".")[0].partition("+")[0])
            return
        job = _count("JobIDRaw", text, HIGHEST_ID)
        restarts = at("Restarts")
        if restarts not in ("", "0"):
            count = _count("Restarts", restarts, 1 << 31)
            self._restarts[job] = max(self._restarts.get(job, 0), count)
        self._rows[job] += 1
        if self.partition is not None and at("Partition") != self.partition:
            skipped["in another partition"] += 1
            self.other_partitions.add(sys.intern(at("Partition")))
            return
        submit, eligible, start, end = (
            _time(name, at(name)) for name in ("Submit", "Eligible", "Start", "End")
        )
        self._newest = max(self._newest, submit or 0, start or 0, end or 0)
        # The state may be followed by a user, as in "CANCELLED by 1001".
        state = sys.intern(at("State").partition(" ")[0].rstrip("+"))
        if accounting.is_civil(at("Submit")):
            self.jobs.is_civil = True
        elif submit is not None:
            self._has_seconds = True
        hosts = at("NodeList")
        if start is None or hosts == "None assigned" or (at("NNodes") == "0" and start == end):
            if start is None and end is not None and state in RAN:
                skipped["without a start, though the state says that there was one"] += 1
                return
            tasks = _tasks(at("JobID"))
            skipped["never started"] += tasks.number if tasks else 1
            self._never_started(job, submit, eligible, end, state, tasks, at)
            return
        walltime = _walltime(at("TimelimitRaw"))
        if submit is None:
            skipped["without a time of submission: a purge has cut them off"] += 1
            return
        if end is None:
            self._unended.append((state, start, walltime, _count("NNodes", at("NNodes"), MOST_NODES)))
            return
        if end < start:
            skipped["ended before the start: the clock jumped"] += 1
            return
        if at("NNodes") == "0":
            skipped["ran on 0 nodes"] += 1
            return
        nodes = _count("NNodes", at("NNodes"), MOST_NODES)
        run = end - start
        elapsed = at("ElapsedRaw")
        suspended = _length("Suspended", at("Suspended"))
        if suspended:
            notes[SUSPENDED] += 1
            # Slurm extends the time limit by the time of a suspension.
            walltime = None if walltime is None else walltime + suspended
        if elapsed:
            held = _count("ElapsedRaw", elapsed, 1 << 40)
            if abs(run - held - suspended) > 1:
                notes["whose End - Start is not the run time: the clock jumped; ElapsedRaw is used"] += 1
                run = held
        if walltime is not None and run > walltime + MINUTE:
            notes["longer than the walltime by over a minute: a replay ends it at the walltime"] += 1
        if start < submit:
            notes["started before submission: the clock jumped; submission is moved to the start"] += 1
            submit = start
        if eligible is None or eligible < submit:
            eligible = submit
        elif eligible > start:
            # When Slurm requeues a run, it writes the eligible time of the next run into its row.
            if state not in AGAIN:
                notes["started before Eligible: the wait begins at submission"] += 1
            eligible = submit
        if eligible > submit:
            notes[HELD] += 1
        licenses = _licenses(at("Licenses"), at("ReqTRES"))
        if licenses:
            notes[LICENSED] += 1
        elif "|" in at("Licenses"):
            notes[ONE_OF_LICENSES] += 1
        if state == "PREEMPTED":
            notes[PREEMPTED] += 1
        elif state == "NODE_FAIL":
            notes[NODE_FAILED] += 1
        elif state == RESIZING:
            notes[RESIZED] += 1
        if at("Constraints"):
            self.jobs.constraints[at("Constraints")] += 1
        if len(self.jobs.runs) >= MOST_JOBS:
            raise ValueError(f"more than {MOST_JOBS} runs: give a part of the time")
        if hosts.count("[") != hosts.count("]"):
            raise ValueError(f"NodeList {texts.shown(hosts)} is not a list of nodes")
        partition, qos, account, user, priority, reason, reservation = (
            sys.intern(at(name))
            for name in ("Partition", "QOS", "Account", "User", "Priority", "Reason", "Reservation")
        )
        if priority:
            _count("Priority", priority, 1 << 32)
        shown = at("JobID") or text
        for cell in (shown, hosts, state, partition, qos, account, user, reason, reservation, licenses):
            if cell.startswith(files.FORMULA):
                raise ValueError(f"{texts.shown(cell)}: a spreadsheet would take it for a formula")
        self.jobs.runs.append(
            AccountedRun(
                job=job,
                shown=shown,
                submit=submit,
                eligible=eligible,
                start=start,
                run=run,
                walltime=walltime,
                nodes=nodes,
                share=_share(at("AllocTRES") or at("ReqTRES"), at("ReqTRES"), at("NCPUS"), nodes),
                hosts=sys.intern(hosts) if nodes == 1 else hosts,
                state=state,
                partition=partition,
                qos=qos,
                account=account,
                user=user,
                priority=priority,
                reason=reason,
                reservation=reservation,
                processors=_requested(at("ReqTRES")),
                licenses=licenses,
                scheduler=next(
                    (SCHEDULERS[flag] for flag in at("Flags").split(",") if flag in SCHEDULERS), ""
                ),
            )
        )

    def _never_started(
        self,
        job: int,
        submit: int | None,
        eligible: int | None,
        end: int | None,
        state: str,
        tasks: Tasks | None,
        at: Callable[[str], str],
    ) -> None:
        """Stores a job that was in the queue for a known time or still is. Missing values in its row are no
        error.
        """
        limit, nodes = at("TimelimitRaw"), at("NNodes")
        is_known = limit.isdecimal() and nodes.isdecimal() and int(nodes) > 0
        is_waiting = end is None and state == "PENDING" and at("Priority") != "0"
        is_waiting = is_waiting and not OTHER_LIMITS.match(at("Reason"))
        if not is_known or eligible is None or not (is_waiting or (end is not None and end > eligible)):
            return
        partition, qos, account, user = (
            sys.intern(at(name)) for name in ("Partition", "QOS", "Account", "User")
        )
        (self._waiting if end is None else self.jobs.never_started).append(
            NeverStarted(
                job,
                eligible if submit is None else submit,
                eligible,
                eligible if end is None else end,
                int(nodes),
                60 * int(limit),
                partition,
                qos,
                account,
                user,
                _requested(at("ReqTRES")),
                sys.intern(at("Priority")),
                _licenses(at("Licenses"), at("ReqTRES")),
                tasks,
            )
        )

    def ended(self) -> AccountedJobs:
        jobs = self.jobs
        jobs.never_started += [
            job._replace(until=self._newest) for job in self._waiting if job.eligible < self._newest
        ]
        if jobs.is_civil and self._has_seconds:
            jobs.without.append(
                "times of some rows are civil times, and of others seconds since 1970: "
                "civil times are taken as UTC, so jobs may be hours off"
            )
        elif jobs.is_civil:
            jobs.without.append(
                "times are civil times, taken as UTC: an hour is missing or doubled when clocks change"
            )
        for state, start, walltime, nodes in self._unended:
            if state not in RUNNING:
                jobs.skipped["without an end, though the state says that there was one"] += 1
            elif walltime is not None and start + walltime < self._newest - HOUR:
                jobs.skipped["without an end, and past the time limit: see sacctmgr show runawayjobs"] += 1
            else:
                jobs.skipped["still running"] += 1
                jobs.running_nodes += nodes
        missing = sum(max(0, restarts + 1 - self._rows[job]) for job, restarts in self._restarts.items())
        if missing:
            jobs.notes[
                "missing, of jobs that ran several times: purged, too early, or sacct without --duplicates"
            ] = missing
        orphans = self._steps.difference(map(str, self._rows)) if self._steps else ()
        if orphans:
            jobs.notes["missing, of which only steps are there: a purge has cut them off"] = len(orphans)
        _without_copies(jobs)
        _without_jumps(jobs)
        if early := _waited_before(jobs):
            jobs.notes[
                "waited from over a day before the first run here ended: if earlier runs are missing, a replay starts such a run too early"
            ] = early
        return jobs


def _without_copies(jobs: AccountedJobs) -> None:
    """Removes the earlier of two rows for the same run, which overlapping exports have."""
    last = {(run.job, run.submit, run.start): place for place, run in enumerate(jobs.runs)}
    if len(last) < len(jobs.runs):
        jobs.skipped["a second row of the same run"] = len(jobs.runs) - len(last)
        jobs.runs = [jobs.runs[place] for place in sorted(last.values())]


def _without_jumps(jobs: AccountedJobs) -> None:
    """Removes runs of another decade, because a workload must not last longer than a replay may."""
    times = [(run.submit, run.start, run.start + run.run) for run in jobs.runs]
    if not times or max(end for *_, end in times) - min(submit for submit, *_ in times) <= DECADE:
        return
    middle = sorted(start for _, start, _ in times)[len(times) // 2]
    runs = [
        run
        for run, (submit, _, end) in zip(jobs.runs, times)
        if middle - DECADE <= submit and end <= middle + DECADE
    ]
    if len(runs) < len(times):
        jobs.skipped["over ten years before or after the other runs: the clock jumped"] = len(times) - len(
            runs
        )
        jobs.runs = runs


def _waited_before(jobs: AccountedJobs) -> int:
    """The number of runs that waited while earlier jobs may be missing: sacct skips jobs that ended before
    the first day.
    """
    first = min((run.start + run.run for run in jobs.runs), default=0)
    return sum(run.eligible < first - DAY and run.start > run.eligible + HOUR for run in jobs.runs)


def _count(what: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) >= most:
        raise ValueError(f"{what} {texts.shown(text)} is not a whole number below {most:,}")
    return int(text)


def _tasks(shown: str) -> Tasks | None:
    """The tasks that a row stands for; None if it is for a single job."""
    parts = TASKS.fullmatch(shown)
    if parts is None:
        return None
    items = parts[1].split(",")
    is_cut = items[-1].endswith(CUT)
    count = 0
    # If the list is cut off, its last number may lack digits.
    for item in items[:-1] if is_cut else items:
        some = SOME_TASKS.fullmatch(item)
        if some is None:
            raise ValueError(f"JobID {texts.shown(shown)} has no list of tasks like 3-7,9")
        first = int(some[1])
        count += len(range(first, int(some[2] or first) + 1, int(some[3] or 1) or 1))
    return Tasks(max(count, 1), int(parts[2]) if parts[2] and int(parts[2]) else None, is_cut)


def _time(what: str, text: str) -> int | None:
    try:
        return accounting.time(text)
    except ValueError:
        raise ValueError(
            f"{what} {texts.shown(text)} is neither seconds since 1970 nor a time like 2026-11-21T19:12:48"
        ) from None


def _walltime(text: str) -> int | None:
    """A number of minutes in seconds; None if the job has no limit of its own."""
    if text.lower() in ("", "unlimited", "partition_limit", "invalid", "0"):
        return None
    return 60 * _count("TimelimitRaw", text, 1 << 32)


@functools.lru_cache(maxsize=1 << 10)
def _length(what: str, text: str) -> int:
    """The seconds in a text `[days-][hours:]minutes:seconds`; 0 for an empty text."""
    if not text:
        return 0
    parts = re.fullmatch(r"(?:(\d{1,6})-)?(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})(?:\.\d+)?", text, re.ASCII)
    if parts is None:
        raise ValueError(f"{what} {texts.shown(text)} is not a time like 1-02:03:04")
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@functools.lru_cache(maxsize=1 << 16)
def _requested(tres: str) -> int | None:
    """The processors in a text like `cpu=16,mem=64G,node=2`; None if it names none. Raises ValueError."""
    found = re.search(r"(?:^|,)cpu=([^,]*)", tres)
    return (_count("cpu", found[1], MOST_NODES) or None) if found else None


@functools.lru_cache(maxsize=1 << 16)
def _licenses(licenses: str, tres: str) -> str:
    """Licences in the form `matlab:2,fluent:1`, from the licences column or from TRES like
    `cpu=16,license/matlab=2`. Empty for a request with alternatives (`a|b`).
    """
    if "|" in licenses:
        return ""
    found = accounting.licenses_of(licenses) or accounting.licenses_of_tres(tres)
    return ",".join(f"{name}:{count}" for name, count in found.items() if count)


@functools.lru_cache(maxsize=1 << 16)
def _share(tres: str, asked: str, processors: str, nodes: int) -> Share | None:
    """The share of each node that a run took, from the totals of all nodes, such as
    `cpu=16,gres/gpu=8,mem=64G,node=2`.

    A type of a resource counts only if the job asked for it, or if nothing says what it asked for: any type would have
    done otherwise.
    """
    cores, memory = 0, 0
    resources = {}
    names = {item.partition("=")[0] for item in asked.split(",")}
    for item in filter(None, tres.split(",")):
        name, _, text = item.partition("=")
        if name == "cpu":
            cores = _count("cpu", text, 1 << 40)
        elif name == "mem":
            memory = _memory(text)
        elif name.startswith("gres/") and not (name not in names and name.partition(":")[0] in names):
            resources[name.removeprefix("gres/")] = -(-_count(name, text, 1 << 40) // nodes)
    if not cores and processors:
        cores = _count("NCPUS", processors, 1 << 40)
    if not cores:
        return None
    return Share(-(-cores // nodes), -(-memory // nodes), tuple(sorted(resources.items())))


def _memory(text: str) -> int:
    """The bytes in a text like `62.50G`. A number without a unit is in MiB."""
    parts = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)", text, re.ASCII)
    if parts is None:
        raise ValueError(f"mem {texts.shown(text)} is not an amount of memory like 4G")
    return round(float(parts[1]) * MEMORY[parts[2]])
