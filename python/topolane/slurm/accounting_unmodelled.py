"""Lists features in Slurm's records that the queue `slurm` does not model, one line for each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from topolane import texts
from topolane.slurm import accounting, accounting_config
from topolane.slurm.accounting_jobs import OTHER_LIMITS, AccountedJobs
from topolane.slurm.inspection import names_in
from topolane.units import plural

SETTINGS = {
    "SchedulerType": ("sched/backfill",),
    "PriorityFlags": (),
    "PriorityWeightAssoc": ("0",),
    "PriorityWeightTRES": (),
    "PriorityUsageResetPeriod": ("NONE",),
    "PrioritySiteFactorPlugin": (),
}
"""Settings that change decisions, with their values that do not."""
OF_PRIORITIES = "Priority"
"""The prefix of settings that matter only with priority/multifactor."""
UNSET = ("", "(null)", "N/A", "NONE", "UNLIMITED")
PARTITIONS = {
    "QoS": (),
    "ExclusiveUser": ("NO",),
    "Exclusive": ("NO", "NODE"),
    "MaxCPUsPerNode": (),
    "OverSubscribe": ("NO", "EXCLUSIVE", "YES:1", "FORCE:1"),
    "State": ("UP",),
    "TRESBillingWeights": (),
}
"""Keys of partitions that change decisions, with their values that do not."""
GROUP_LIMITS = ("GrpTRES", "GrpTRESMins", "GrpTRESRunMins", "GrpWall")
QOS_LIMITS = (*GROUP_LIMITS, "MaxTRESPU", "MaxTRESPA", "MaxTRESRunMinsPU", "MaxTRESRunMinsPA")
"""Columns of limits that keep jobs waiting. Limits for single jobs are missing, because a job that ran was
within them.
"""
NODES = ("GrpTRES", "MaxTRESPU", "MaxTRESPA")
"""Columns in which the queue supports limits on nodes."""
QOS_FLAGS = ("NoReserve", "NoDecay", "OverPartQOS", "EnforceUsageThreshold", accounting_config.RELATIVE)
"""Flags that change when jobs start."""
RESERVATION_FLAGS = ("FLEX", "TIME_FLOAT", "MAGNETIC", "FORCE_START")
"""Flags that change which jobs run on the nodes, or when."""
MOST_NAMES = 5
"""The most names in a line."""


def of(there: dict[str, Path | None], jobs: AccountedJobs, config: dict[str, Any]) -> list[str]:
    """The lines. there: the files of the import. config: the part that the queue models. Raises InputError."""
    notes: list[str] = []
    settings = accounting.config(path) if (path := there["config.txt"]) else {}
    notes += _settings(settings)
    has_limits = accounting_config.enforces_limits(settings)
    if not has_limits:
        enforced = texts.shown(settings["AccountingStorageEnforce"])
        notes.append(f"AccountingStorageEnforce is {enforced}: no limit of a QOS or an association holds")
    if path := there["partitions.txt"]:
        notes += _partitions(path)
    if path := there["qos.txt"]:
        rows = [row for _, row in accounting.table(path, ("Name",), None)]
        notes += _limits(rows, QOS_LIMITS if has_limits else (), "QOS")
        notes += _flags(rows, QOS_FLAGS, "QOS")
    if path := there["assoc.txt"]:
        rows = [row for _, row in accounting.table(path, ("Account", "User"), jobs.cluster)]
        notes += _limits(rows, GROUP_LIMITS if has_limits else (), "association")
        notes += _associations(path, rows)
    if path := there["reservations.txt"]:
        names = {row["name"] for row in config["reservations"]}
        rows = [row for _, row in accounting.table(path, ("Name",), jobs.cluster) if row["Name"] in names]
        notes += _flags(rows, RESERVATION_FLAGS, "reservation")
        notes += _parts(rows, config)
    return [*notes, *_runs(jobs)]


def _settings(settings: dict[str, str]) -> Iterable[str]:
    is_multifactor = settings.get("PriorityType") == "priority/multifactor"
    for name, harmless in SETTINGS.items():
        value = settings.get(name, "")
        if name.startswith(OF_PRIORITIES) and not is_multifactor:
            continue
        if value not in UNSET and value not in harmless:
            yield f"{name} is {texts.shown(value)}, which the queue slurm does not know"


def _partitions(path: Path) -> Iterable[str]:
    found: dict[str, list[str]] = {}
    for _, line in accounting.lines(path):
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        for key, harmless in PARTITIONS.items():
            value = values.get(key, "")
            if "PartitionName" in values and value not in UNSET and value not in harmless:
                found.setdefault(key, []).append(f"{values['PartitionName']} {value}")
    for key, rows in found.items():
        yield f"{plural(len(rows), 'partition')} with {key}, which the queue slurm does not know: {_listed(rows)}"


def _limits(rows: list[dict[str, str]], columns: Iterable[str], whose: str) -> Iterable[str]:
    """A line on QOS or associations with limits on anything but nodes and jobs. whose: the name of such an
    object.
    """
    found: set[str] = set()
    count = 0
    for row in rows:
        limits = set()
        for column in columns:
            items = [item.partition("=")[0] for item in row.get(column, "").split(",") if item]
            if not column.startswith(("GrpTRES", "MaxTRES")):
                items = [""] if items else []
            limits |= {f"{column} {item}".strip() for item in items if item != "node" or column not in NODES}
        count += bool(limits)
        found |= limits
    if count:
        yield f"{_counted(count, whose)} with limits that the queue slurm does not know: {_listed(sorted(found))}"


def _flags(rows: list[dict[str, str]], known: Iterable[str], whose: str) -> Iterable[str]:
    found = [set(known).intersection(row.get("Flags", "").split(",")) for row in rows]
    if any(found):
        names = _listed(sorted(set().union(*found)))
        yield f"{_counted(sum(map(bool, found)), whose)} with flags that the queue slurm does not know: {names}"


def _associations(path: Path, rows: list[dict[str, str]]) -> Iterable[str]:
    of_partitions = sum(row.get("Partition", "") != "" for row in rows)
    if of_partitions:
        yield (
            f"{plural(of_partitions, 'association')} of a user in one partition: "
            "the queue slurm has only the limits of users for all partitions"
        )
    if rows and not {"ParentName", "Par Name"}.intersection(rows[0]):
        yield (
            f"{path.name} has no column ParentName: all accounts are taken to be below the root, "
            "so fair share and limits of accounts above others are not as in Slurm"
        )


def _parts(rows: list[dict[str, str]], config: dict[str, Any]) -> Iterable[str]:
    """A line on reservations that keep fewer processors than their nodes have."""
    processors = config.get("processors_per_node", 0)
    parts = 0
    for row in rows:
        kept = re.search(r"(?:^|,)cpu=(\d{1,12})(?:,|$)", row.get("TRES", ""))
        parts += kept is not None and int(kept[1]) < processors * len(names_in(row["NodeName"]))
    if parts:
        yield f"{plural(parts, 'reservation')} of fewer processors than the nodes have: the queue slurm keeps whole nodes"


def _runs(jobs: AccountedJobs) -> Iterable[str]:
    constrained = sum(jobs.constraints.values())
    if constrained:
        names = _listed([f"{name} {count:,}" for name, count in jobs.constraints.most_common()])
        yield f"{plural(constrained, 'run')} asked for features of nodes (--constraint), which no queue knows: {names}"
    reasons = Counter(run.reason for run in jobs.runs if OTHER_LIMITS.match(run.reason))
    if reasons:
        names = _listed([f"{name} {count:,}" for name, count in reasons.most_common()])
        yield f"{plural(reasons.total(), 'run')} waited last for a limit that the queue slurm does not know: {names}"


def _counted(count: int, whose: str) -> str:
    return f"{count:,} QOS" if whose == "QOS" else plural(count, whose)


def _listed(names: list[str]) -> str:
    """The first names and the number of the others."""
    rest = len(names) - MOST_NAMES
    return ", ".join(map(texts.shown, names[:MOST_NAMES])) + (f" and {rest:,} more" if rest > 0 else "")
