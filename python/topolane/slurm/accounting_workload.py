"""Makes a workload from a cluster's Slurm records: runs of jobs as CSV, nodes that were down, and notes on
irregularities.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from topolane._engine import InputError
from topolane.reading import csv_text
from topolane.slurm import (
    accounting,
    accounting_config,
    accounting_faults,
    accounting_jobs,
    accounting_nice,
    accounting_order,
    accounting_requeues,
    accounting_reservations,
    accounting_unmodelled,
)
from topolane.slurm.accounting_jobs import AccountedJobs, AccountedRun
from topolane.units import plural

RUN_ID = accounting_jobs.HIGHEST_ID
"""Run r of a job, counted from 0, has the id `job + r * RUN_ID`."""
OWNERS = (
    *("partition", "user", "account", "qos", "reservation", "requested_processors", "nice", "licenses"),
    *("requeue", "queued"),
)
"""Columns that only the queue slurm reads."""
UNREAD = ("job", "submitted", "state", "priority", "reason", "earlier_runs", "scheduler")
"""Columns that no queue reads; the CSV reader ignores them."""
WITH_OWNERS = ("associations", "never_started")
"""Lists of the configuration of the queue slurm that name users and accounts."""
ROOT = "root"
"""The account above all others."""


@dataclasses.dataclass
class ImportedWorkload:
    """A workload in CSV with its related files."""

    jobs: int
    csv: str
    failures: str | None
    """Nodes that were down, in the format of `--failures`; None if no file records them."""
    queue: str
    """The configuration of the queue slurm, in the format of `--queue-config`."""
    zero: int
    """Second 0 of the CSV, in seconds since 1970."""
    notes: list[str]
    """A line for each thing that was skipped, changed or is not known."""
    runs: str | None = None
    """All runs of the jobs in `csv` that have earlier runs, each as a job; None if there are none."""


def read(
    directory: str | os.PathLike[str],
    *,
    cluster: str | None = None,
    partition: str | None = None,
    shared: bool | None = None,
    anonymize: bool = False,
    join: bool = True,
) -> ImportedWorkload:
    """The workload in a directory that `accounting.commands` filled.

    shared: whether jobs take cores, memory and generic resources of nodes; None to follow partitions and
    configuration, or whole nodes without these. anonymize: replace users and accounts by numbers. join: join
    runs that the queue slurm itself ends and restarts into one job; otherwise each run is a job.
    Raises InputError if the jobs are missing, or if a file is not the output of its command.
    """
    if not Path(directory).is_dir():
        raise InputError(f"{directory}: there is no such directory")
    there = {dump.file: accounting.found(directory, dump.file) for dump in accounting.DUMPS}
    path = there[accounting.JOBS]
    if path is None:
        raise InputError(
            f"{directory}: no {accounting.JOBS}; `topolane workload import --commands` prints how to write it"
        )
    jobs = accounting_jobs.read(path, cluster, partition)
    notes = [
        *_skipped(jobs),
        *(f"{plural(count, 'run')} {what}" for what, count in sorted(jobs.notes.items())),
        *jobs.without,
    ]
    if jobs.missing:
        notes.append(f"no columns {', '.join(jobs.missing)}: the queue slurm goes without what they say")
    if jobs.running_nodes:
        notes.append(
            f"{plural(jobs.running_nodes, 'node')} of jobs that still ran: free in a replay from the start of these jobs on"
        )
    if not jobs.runs:
        raise InputError(f"{path}: no job that ran and ended ({'; '.join(notes)})")
    notes += [
        f"no {dump.file}: not known is {dump.lost}" for dump in accounting.DUMPS if there[dump.file] is None
    ]
    zero = min(run.eligible for run in jobs.runs)
    whole = _whole(there, jobs, shared, notes)
    notes += map(str, accounting_faults.of(there, jobs))
    failures = _failures(there["events.txt"], jobs, zero, notes)
    config = accounting_config.of(there, jobs, zero, notes)
    notes += _reservations(config)
    accounting_reservations.note_jobs(jobs, config, zero, notes)
    notes += accounting_unmodelled.of(there, jobs, config)
    settings = accounting.config(path) if (path := there["config.txt"]) else {}
    accounting_order.note(jobs, settings)
    requeues = settings.get("JobRequeue") != "0"
    downs = accounting_requeues.Downs.read(there["events.txt"], jobs.cluster)
    single = list(jobs.runs)
    if join:
        accounting_requeues.join(jobs, downs, "preemption" in config, requeues, notes)
    notes += _kinds(jobs)
    nice = accounting_nice.of(jobs, config, zero)
    if nice:
        notes.append(f"{plural(len(nice), 'job')} with a nice value, by the recorded priorities")
    config["never_started"] = accounting_config.never_started(jobs, nice, zero, settings, notes)
    names = _Numbers(jobs.runs, config) if anonymize else None
    if names is not None:
        names.rename(config)
        notes.append("users and accounts are numbers; names of nodes are as they were")
    text = _csv(jobs.runs, nice, zero, whole, names)
    several = {run.job for run in jobs.runs if run.earlier}
    several_runs = [run for run in single if run.job in several]
    runs = _csv(several_runs, nice, zero, whole, names) if several_runs else None
    config_text = accounting_config.text_of(config)
    return ImportedWorkload(len(jobs.runs), text, failures, config_text, zero, notes, runs)


def _skipped(jobs: AccountedJobs) -> list[str]:
    return [f"skipped: {count:,} {what}" for what, count in sorted(jobs.skipped.items())]


def _kinds(jobs: AccountedJobs) -> list[str]:
    """Notes on how runs that belong together are treated."""
    notes = []
    # All parts of a resized job count as one run.
    runs = Counter(run.job for run in jobs.runs if run.state != accounting_jobs.RESIZING)
    arrays, parts = Counter[str](), Counter[str]()
    for run in jobs.runs:
        if "_" in run.shown:
            arrays[run.shown.partition("_")[0]] += 1
        elif "+" in run.shown:
            parts[run.shown.partition("+")[0]] += 1
    if arrays:
        notes.append(
            f"{plural(arrays.total(), 'task')} of {plural(len(arrays), 'array')}: each task is a job"
        )
    if parts:
        notes.append(
            f"{plural(parts.total(), 'component')} of {plural(len(parts), 'heterogeneous job')}: each component is a job, which may start alone"
        )
    again = sum(count - 1 for count in runs.values())
    if again:
        notes.append(f"{plural(again, 'further run')} of requeued jobs: each is a job")
    reserved = sum(run.reservation != "" for run in jobs.runs)
    if reserved:
        notes.append(f"{plural(reserved, 'run')} in a reservation, which only the queue slurm knows")
    return notes


def _whole(
    there: dict[str, Path | None], jobs: AccountedJobs, shared: bool | None, notes: list[str]
) -> set[str] | bool:
    """The partitions whose jobs take whole nodes; or True or False for all jobs."""
    path = there["config.txt"]
    settings = accounting.config(path) if path else {}
    path = there["partitions.txt"]
    partitions = accounting.partitions(path) if path else None
    if shared is not None:
        whole: set[str] | bool = not shared
    elif partitions is None or settings.get("SelectType") == "select/linear":
        whole = True
    else:
        whole = {name for name, is_whole in partitions.items() if is_whole}
    if whole is not True:
        taken = sum(run.share is not None and not _is_whole(run, whole) for run in jobs.runs)
        unknown = sum(run.share is None for run in jobs.runs)
        if taken:
            notes.append(
                f"{plural(taken, 'run')} on parts of nodes: the machine must count cores (--whole: whole nodes)"
            )
        if unknown:
            notes.append(f"{plural(unknown, 'run')} without a number of processors: each takes whole nodes")
    return whole


def _is_whole(run: AccountedRun, whole: set[str] | bool) -> bool:
    return run.share is None or (whole if isinstance(whole, bool) else run.partition in whole)


def _failures(path: Path | None, jobs: AccountedJobs, zero: int, notes: list[str]) -> str | None:
    """Nodes that were down during the workload, as CSV."""
    if path is None:
        return None
    last = max(run.start + run.run for run in jobs.runs)
    rows, drained, saving = [], 0, 0
    for number, row in accounting.table(path, accounting.EVENTS, jobs.cluster):
        start, end = accounting.withheld(path, number, row)
        if (
            not row["NodeName"]
            or start is None
            or start >= last
            or (end is not None and end <= max(zero, start))
        ):
            continue  # for the whole cluster, at another time, or without a time
        if accounting.POWER_SAVING.fullmatch(row["State"]):
            saving += 1
        elif not row["State"].startswith("DOWN"):
            drained += 1
        else:
            rows.append((row["NodeName"], start - zero, "" if end is None else end - zero))
    if saving:
        notes.append(
            f"{plural(saving, 'time')} that a node was switched off to save power: it counts as free, and starts at once"
        )
    if drained:
        notes.append(
            f"{plural(drained, 'time')} that a node was drained or in maintenance: jobs on it run on, and only the queue slurm starts no others there"
        )
    if not rows:
        return None
    notes.append(f"{plural(len(rows), 'time')} that a node was down: in the file for --failures")
    rows.sort(key=lambda row: (row[1], row[0]))
    return csv_text(("node", "from", "until"), rows)


def _reservations(config: dict[str, Any]) -> list[str]:
    count = len(config.get("reservations", ()))
    if not count:
        return []
    return [
        f"{plural(count, 'reservation')} kept nodes or licences from other jobs: all queues but slurm give these to every job"
    ]


class _Numbers:
    """Numbers that replace users and accounts, in the order in which the file names them."""

    def __init__(self, runs: list[AccountedRun], config: dict[str, Any]) -> None:
        self._users: dict[str, str] = {}
        self._accounts: dict[str, str] = {}
        pairs = [(run.user, run.account) for run in runs]
        pairs += [(row["user"], row["account"]) for key in WITH_OWNERS for row in config.get(key, [])]
        for user, account in pairs:
            if user:
                self._users.setdefault(user, str(len(self._users) + 1))
            if account and account != ROOT:
                self._accounts.setdefault(account, str(len(self._accounts) + 1))
        self._accounts[ROOT] = ROOT

    def rename(self, config: dict[str, Any]) -> None:
        """Replaces the names in a configuration of the queue slurm."""
        for key in WITH_OWNERS:
            for row in config.get(key, []):
                row["user"], row["account"] = self.user(row["user"]), self.account(row["account"])
                for name in ("parent", "partition", "qos"):
                    if name in row:
                        row[name] = self.account(row[name]) if name == "parent" else self.other(row[name])
        for key in ("partitions", "qos", "reservations"):
            for row in config.get(key, []):
                row["name"] = self.other(row["name"])
                if "preempts" in row:
                    row["preempts"] = [self.other(name) for name in row["preempts"]]

    def user(self, name: str) -> str:
        return self._users.get(name, "")

    def account(self, name: str) -> str:
        return self._accounts.get(name, "")

    def other(self, name: str) -> str:
        """The name of a partition or a QOS, with words that are an account or a user replaced by numbers."""
        if name in self._accounts or name in self._users:
            return self._number(name)
        return "".join(self._number(word) for word in re.split(r"([-_.:@+])", name))

    def _number(self, word: str) -> str:
        return self._accounts.get(word) or self._users.get(word) or word


def _csv(
    runs: list[AccountedRun],
    nice: dict[tuple[int, int], int],
    zero: int,
    whole: set[str] | bool,
    names: _Numbers | None,
) -> str:
    """The runs in the format of the CSV reader, ordered by the time when they became eligible."""
    order = sorted(
        range(len(runs)), key=lambda place: (runs[place].job, runs[place].start, runs[place].submit)
    )
    ids = [0] * len(runs)
    job, number = -1, 0
    for place in order:
        number = number + 1 if runs[place].job == job else 0
        job = runs[place].job
        ids[place] = job + number * RUN_ID
    shares = {run.share for run in runs if not _is_whole(run, whole)}
    resources = sorted({name for share in shares if share for name, _ in share.resources})
    part = ["cores", "memory", *(f"resource:{name}" for name in resources)] if shares else []
    rows = []
    for place in sorted(range(len(runs)), key=lambda place: (runs[place].eligible, place)):
        run = runs[place]
        taken: list[object] = [""] * len(part)
        if run.share is not None and not _is_whole(run, whole):
            counts = dict(run.share.resources)
            taken = [run.share.cores, run.share.memory, *(counts.get(name, 0) for name in resources)]
        user, account, qos, partition, reservation = (
            run.user,
            run.account,
            run.qos,
            run.partition,
            run.reservation,
        )
        if names is not None:
            user, account = names.user(user), names.account(account)
            qos, partition, reservation = (names.other(name) for name in (qos, partition, reservation))
        rows.append(
            (
                *(
                    ids[place],
                    run.eligible - zero,
                    run.run,
                    "" if run.walltime is None else run.walltime,
                    run.nodes,
                ),
                *(*taken, run.start - zero, run.hosts),
                *(partition, user, account, qos, reservation),
                "" if run.processors is None else run.processors,
                nice.get((run.job, run.submit), ""),
                run.licenses,
                "no" if run.no_requeue else "",
                "" if run.queued is None else accounting_config.seconds_after(run.queued, zero),
                *(run.shown, run.submit - zero, run.state, run.priority, run.reason),
                " ".join(f"{ended.start - zero}:{ended.run}:{ended.nodes}" for ended in run.earlier),
                run.scheduler,
            )
        )
    return csv_text(
        ("id", "submit", "run", "walltime", "nodes", *part, "start", "hosts", *OWNERS, *UNREAD), rows
    )
