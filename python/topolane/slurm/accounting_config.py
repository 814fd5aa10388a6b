"""The configuration of the queue `slurm`, from the output of Slurm's configuration and accounting commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from topolane import files, texts
from topolane._engine import InputError
from topolane.slurm import (
    accounting,
    accounting_drains,
    accounting_preemption,
    accounting_reservations,
)
from topolane.slurm.accounting_jobs import HIGHEST_ID, AccountedJobs, NeverStarted
from topolane.slurm.inspection import names_in
from topolane.units import plural

WEIGHTS = {
    "weight_age": "PriorityWeightAge",
    "weight_fair_share": "PriorityWeightFairShare",
    "weight_job_size": "PriorityWeightJobSize",
    "weight_partition": "PriorityWeightPartition",
    "weight_qos": "PriorityWeightQOS",
}
TIMES = {
    "max_age": "PriorityMaxAge",
    "half_life": "PriorityDecayHalfLife",
    "period": "PriorityCalcPeriod",
}
SCHEDULERS = {
    "interval": "sched_interval",
    "submission_delay": "batch_sched_delay",
    "depth": "default_queue_depth",
    "backfill_interval": "bf_interval",
    "backfill_resolution": "bf_resolution",
    "backfill_depth": "bf_max_job_test",
    "backfill_depth_user": "bf_max_job_user",
    "backfill_depth_partition": "bf_max_job_part",
}
"""Keys of the file for both schedulers, and the words of SchedulerParameters that set them."""
QOS_LIMITS = {
    "jobs": "GrpJobs",
    "nodes": "GrpTRES",
    "jobs_per_user": "MaxJobsPU",
    "nodes_per_user": "MaxTRESPU",
    "jobs_per_account": "MaxJobsPA",
    "nodes_per_account": "MaxTRESPA",
    "nodes_per_job": "MaxTRES",
}
ASSOCIATION_LIMITS = {
    "jobs": "GrpJobs",
    "nodes": "GrpTRES",
    "jobs_per_user": "MaxJobs",
    "nodes_per_job": "MaxTRES",
}
"""Keys of the file and their columns in sacctmgr. Of limits on resources, only those on nodes are used."""
MAINTENANCE = "MAINT"
"""The state of nodes in a reservation with the flag MAINT: only jobs of the reservation run there."""
RESERVATIONS = ("Name", "NodeName", "TimeStart", "TimeEnd")
"""The columns of `reservations.txt` that are used."""
HARMLESS = frozenset(
    {
        *("bf_continue", "bf_yield_interval", "bf_yield_sleep", "kill_invalid_depend", "max_array_tasks"),
        *("enable_user_top", "nohold_on_prolog_fail", "requeue_setup_env_fail", "build_queue_timeout"),
        *("salloc_wait_nodes", "sbatch_wait_nodes", "max_script_size", "max_submit_line_size"),
        *("bf_max_job_array_resv",),
        *("youngest_first", "preempt_youngest_first", "reorder_count", "preempt_reorder_count"),
    }
)
"""Words of SchedulerParameters that change no decision of the queue, or that are handled elsewhere."""
OFF = {"sched_interval": ("-1", "0"), "bf_interval": ("-1", "0"), "bf_resolution": ("0",)}
"""Values that switch a scheduler off, or that Slurm rejects."""
TASKS_OF_ARRAY, MOST_TASKS_OF_ARRAY = 20, 1000
"""Default and maximum of bf_max_job_array_resv."""
FOREVER = (1 << 32) - 1
"""The number of seconds that stands for UNLIMITED in Slurm."""
ENFORCED = {"limits", "safe"}
"""Words of AccountingStorageEnforce; if one is present, limits are enforced."""
RELATIVE = "Relative"
"""The flag of a QOS whose limits on resources are percentages of the cluster."""


def of(there: dict[str, Path | None], jobs: AccountedJobs, zero: int, notes: list[str]) -> dict[str, Any]:
    """The configuration in the form of its JSON file. there: the files of the import; zero: second 0 of the
    workload, in seconds since 1970.
    """
    config: dict[str, Any] = {"epoch": zero}
    has_limits = True
    if path := there["config.txt"]:
        settings = accounting.config(path)
        _settings(settings, path, config, notes)
        has_limits = enforces_limits(settings)
    if path := there["partitions.txt"]:
        _partitions(path, config, notes)
    if path := there["qos.txt"]:
        by_qos = config.get("preemption", {}).get("by") == "qos"
        config["qos"] = list(_qos(path, by_qos, notes))
    if path := there["assoc.txt"]:
        config["associations"] = list(_associations(path, jobs.cluster))
    if not has_limits:
        for row in (*config.get("qos", ()), *config.get("associations", ())):
            row["limits"] = {}
    config["licenses"] = _licenses(there, jobs)
    end = max((run.start + run.run for run in jobs.runs), default=zero)
    has_reservations = there["reservations.txt"] is not None
    if path := there["reservations.txt"]:
        present = there["reservations-now.txt"]
        now = accounting_reservations.keeping(present) if present else []
        config["reservations"] = list(_reservations(path, now, jobs.cluster, zero, end))
    if path := there["events.txt"]:
        outages = [
            {**times, "ends_jobs": row.get("State", "").startswith("DOWN")}
            for _, row, times in _withheld(path, accounting.events(path, jobs.cluster), zero, end)
            if times["nodes"] and not (has_reservations and row["State"].startswith(MAINTENANCE))
        ]
        config["out_of_service"] = accounting_drains.begun(outages, jobs.runs, zero)
    return config


def text_of(config: dict[str, Any]) -> str:
    """The text of the file, with a line for each partition, QOS, association and so on."""
    lines = []
    for key, value in config.items():
        if isinstance(value, list) and value:
            rows = ",\n".join(f"  {json.dumps(row)}" for row in value)
            lines.append(f" {json.dumps(key)}: [\n{rows}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _settings(settings: dict[str, str], path: Path, config: dict[str, Any], notes: list[str]) -> None:
    """Adds weights, times and the parameters of both schedulers to the configuration."""
    boot = settings.get("BOOT_TIME", "")
    if boot.isdecimal() and len(boot) < 12:
        config["begin"] = int(boot) - config["epoch"]
    elif boot:
        notes.append(
            f"BOOT_TIME {texts.shown(boot)} is a time of unknown zone: nice values and the start of slurmctld are not known"
        )
    priority: dict[str, Any] = {}
    if settings.get("PriorityType") == "priority/multifactor":
        for key, name in WEIGHTS.items():
            priority[key] = _number(settings.get(name, "0"), name, path)
        for key, name in TIMES.items():
            if name in settings:
                seconds = accounting_preemption.seconds(settings[name], name, path)
                priority[key] = FOREVER if seconds is None else seconds
        priority["favor_small"] = settings.get("PriorityFavorSmall", "").lower() in ("yes", "1")
        config["priority"] = priority
    config["schedulers"] = _schedulers(settings, path, notes)
    if preemption := accounting_preemption.of(settings, path, notes):
        config["preemption"] = preemption


def enforces_limits(settings: dict[str, str]) -> bool:
    """Whether limits of QOS and associations are enforced; true if the settings do not say."""
    enforced = settings.get("AccountingStorageEnforce")
    return enforced is None or bool(ENFORCED.intersection(enforced.split(",")))


def _schedulers(settings: dict[str, str], path: Path, notes: list[str]) -> dict[str, Any]:
    """The value of the key `schedulers`. Parameters that the queue does not know keep their defaults and are
    named in a note.
    """
    listed = settings.get("SchedulerParameters", "").replace("(null)", "").split(",")
    words = dict(word.strip().partition("=")[::2] for word in listed if word)
    known = {*SCHEDULERS.values(), "bf_window", "bf_licenses", *HARMLESS}
    if unknown := {word for word in words if word not in known or words[word] in OFF.get(word, ())}:
        texted = [f"{word}={words[word]}" if words[word] else word for word in words if word in unknown]
        notes.append(
            f"SchedulerParameters has {', '.join(map(texts.shown, texted))}, which the queue slurm does not know"
        )
    found: dict[str, Any] = {
        key: _number(words[name], name, path)
        for key, name in SCHEDULERS.items()
        if words.get(name) and name not in unknown
    }
    if words.get("bf_window"):
        found["backfill_window"] = 60 * _number(words["bf_window"], "bf_window", path)
    if valid := re.search(r"cred_expire=(\d{1,9})", settings.get("AuthInfo", "")):
        found["requeue_after"] = int(valid[1]) + 1
    if wait := re.match(r"\d{1,9}", settings.get("KillWait", "")):
        minutes = re.match(r"\d{1,9}", settings.get("OverTimeLimit", ""))
        found["over_time"] = int(wait[0]) + 60 * int(minutes[0] if minutes else 0)
    if "bf_licenses" in words:
        found["backfill_licenses"] = True
    return found


def _partitions(path: Path, config: dict[str, Any], notes: list[str]) -> None:
    found: list[dict[str, Any]] = []
    nodes, processors = 0, 0
    by_tier = config.get("preemption", {}).get("by") == "partition"
    for number, line in accounting.lines(path):
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "PartitionName" not in values:
            continue
        found.append(
            {
                "name": values["PartitionName"],
                "nodes": _nodes(values.get("Nodes", ""), "Nodes", path, number),
                "tier": _number(values.get("PriorityTier", "1"), "PriorityTier", path, number),
                "factor": _number(values.get("PriorityJobFactor", "1"), "PriorityJobFactor", path, number),
            }
        )
        if by_tier:
            name = f"partition {values['PartitionName']}"
            found[-1]["preempt_mode"] = accounting_preemption.mode(values.get("PreemptMode", ""), name, notes)
            found[-1]["grace"] = _number(values.get("GraceTime", "0"), "GraceTime", path, number)
        total = _number(values.get("TotalNodes", "0"), "TotalNodes", path, number)
        if total > nodes:
            nodes = total
            processors = _number(values.get("TotalCPUs", "0"), "TotalCPUs", path, number)
    config["processors_per_node"] = round(processors / nodes) if nodes else 0
    config["partitions"] = [row for row in found if row["nodes"] not in ("", "(null)")]


def known_licenses(there: dict[str, Path | None]) -> dict[str, int]:
    """The cluster's licences by name. Raises InputError."""
    if path := there["licenses.txt"]:
        return accounting.licenses(path)
    if path := there["config.txt"]:
        text = accounting.config(path).get("Licenses", "(null)")
        try:
            return accounting.licenses_of(text.replace("(null)", ""))
        except ValueError as error:
            raise InputError(f"{path}: {error}") from error
    return {}


def _licenses(there: dict[str, Path | None], jobs: AccountedJobs) -> dict[str, int]:
    """The cluster's licences. If a run asked for more, the number is raised, because Slurm accepted that run."""
    found = known_licenses(there)
    for text in {run.licenses for run in jobs.runs}:
        for name, count in accounting.licenses_of(text).items():
            if name in found:
                found[name] = max(found[name], count)
    return found


def _limits(
    row: dict[str, str], columns: dict[str, str], path: Path, number: int, are_parts: bool = False
) -> dict[str, int]:
    """The limits in a row. are_parts: limits on resources are percentages, which the queue does not support,
    so they are ignored.
    """
    limits = {}
    for key, column in columns.items():
        value = "" if are_parts and "TRES" in column else row.get(column, "")
        if "TRES" in column:
            value = next((item[5:] for item in value.split(",") if item.startswith("node=")), "")
        if value:
            limits[key] = _number(value, column, path, number)
    return limits


def _qos(path: Path, by_qos: bool, notes: list[str]) -> Iterable[dict[str, Any]]:
    for number, row in accounting.table(path, ("Name",), None):
        yield {
            "name": row["Name"],
            "priority": _number(row.get("Priority") or "0", "Priority", path, number),
            "usage_factor": _factor(row.get("UsageFactor") or "1", path, number),
            "limits": _limits(row, QOS_LIMITS, path, number, RELATIVE in row.get("Flags", "").split(",")),
            **(_preempting(row, path, notes) if by_qos else {}),
        }


def _preempting(row: dict[str, str], path: Path, notes: list[str]) -> dict[str, Any]:
    """The QOS that a QOS preempts, and how its own jobs are preempted."""
    name, exempt, grace = f"QOS {row['Name']}", "PreemptExemptTime", "GraceTime"
    return {
        "preempts": [other for other in row.get("Preempt", "").split(",") if other],
        "preempt_mode": accounting_preemption.mode(row.get("PreemptMode", ""), name, notes),
        "preempt_exempt": accounting_preemption.seconds(row.get(exempt, ""), exempt, path),
        "grace": accounting_preemption.seconds(row.get(grace, ""), grace, path) or 0,
    }


def _associations(path: Path, cluster: str | None) -> Iterable[dict[str, Any]]:
    rows: dict[tuple[str, str], tuple[int, dict[str, str]]] = {}
    for number, row in accounting.table(path, ("Account", "User"), cluster):
        who = (row["Account"], row["User"])
        # An association for a partition counts only if the user has no other association.
        if who not in rows or not row.get("Partition"):
            rows[who] = number, row
    for number, row in rows.values():
        shares = row.get("Share", "1")
        yield {
            "account": row["Account"],
            "user": row["User"],
            "parent": "" if row["User"] else row.get("ParentName", row.get("Par Name", "")),
            "shares": None if shares in ("parent", "") else _number(shares, "Share", path, number),
            "limits": {} if row.get("Partition") else _limits(row, ASSOCIATION_LIMITS, path, number),
        }


def _reservations(
    path: Path, now: list[accounting_reservations.Keeping], cluster: str | None, zero: int, last: int
) -> Iterable[dict[str, Any]]:
    """Reservations that keep nodes or licences. now: licences that present reservations keep, according to
    scontrol.
    """
    for number, row, times in _withheld(path, accounting.table(path, RESERVATIONS, cluster), zero, last):
        licenses = accounting_reservations.licenses(path, number, row, now)
        if times["nodes"] or licenses:
            yield {"name": row["Name"], **({"licenses": licenses} if licenses else {}), **times}


def _withheld(
    path: Path, rows: list[tuple[int, dict[str, str]]], zero: int, last: int
) -> Iterable[tuple[int, dict[str, str], dict[str, Any]]]:
    """The reservations or node outages that overlap the workload's time, as line number, row, and nodes with
    times.
    """
    for number, row in rows:
        start, end = accounting.withheld(path, number, row)
        if start is None or start >= last or (end is not None and end <= max(zero, start)):
            continue
        yield (
            number,
            row,
            {
                "nodes": _nodes(row["NodeName"], "NodeName", path, number),
                "from": start - zero,
                "until": None if end is None else end - zero,
            },
        )


def never_started(
    jobs: AccountedJobs,
    nice: dict[tuple[int, int], int],
    zero: int,
    settings: dict[str, str],
    notes: list[str],
) -> list[dict[str, Any]]:
    """The jobs that waited and never started. nice: nice values by job number and submission.

    Of an array, only the tasks for which backfill reserves nodes are listed.
    """
    most = _tasks_of_array(settings)
    found, waited, kept, arrays, cut = [], 0, 0, 0, 0
    for job in jobs.never_started:
        if job.until <= zero:
            continue
        one = _never_started(job, nice.get((job.job, job.submit), 0), zero)
        count = 1
        if job.tasks:
            # The main scheduler considers the first task in any case.
            count = max(1, min(job.tasks.number, job.tasks.at_once or most, most))
            waited, kept, arrays = waited + job.tasks.number, kept + count, arrays + 1
            cut += job.tasks.is_cut
        found += [one | {"id": job.job + task * HIGHEST_ID} for task in range(count)]
    if arrays:
        notes.append(
            f"{plural(waited, 'task')} of {plural(arrays, 'array')} waited and never started: the queue slurm has {kept:,} of them, "
            f"for each array those that may run at once, up to {most} (bf_max_job_array_resv)"
        )
    if cut:
        notes.append(
            f"{plural(cut, 'array')} of which sacct printed only the first waiting tasks: the others are not counted "
            "(SLURM_BITSTR_LEN=0 prints all)"
        )
    return found


def _tasks_of_array(settings: dict[str, str]) -> int:
    """The number of an array's tasks for which backfill reserves nodes, with Slurm's rules for the parameter."""
    found = re.search(r"bf_max_job_array_resv=(\d{1,9})", settings.get("SchedulerParameters", ""))
    most = int(found[1]) if found else TASKS_OF_ARRAY
    return most if most <= MOST_TASKS_OF_ARRAY else TASKS_OF_ARRAY


def _never_started(job: NeverStarted, nice: int, zero: int) -> dict[str, Any]:
    return {
        "id": job.job,
        "submit": job.eligible - zero,
        "until": job.until - zero,
        "nodes": job.nodes,
        "walltime": job.walltime,
        "partition": job.partition,
        "user": job.user,
        "account": job.account,
        "qos": job.qos,
        "nice": nice,
        "processors": job.processors,
        "licenses": accounting.licenses_of(job.licenses),
        "queued": None if job.queued is None else seconds_after(job.queued, zero),
    }


def seconds_after(time: float, zero: int) -> float | int:
    """A time of the records in seconds of the workload, as an int if it is a whole number."""
    after = round(time - zero, 6)
    return int(after) if after.is_integer() else after


def _nodes(text: str, what: str, path: Path, number: int) -> str:
    if text.startswith(files.FORMULA) or ("[" in text and not names_in(text)):
        raise InputError(f"{path}:{number}: {what} {texts.shown(text)} is not a list of nodes")
    return text


def _factor(text: str, path: Path, number: int) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII):
        raise InputError(f"{path}:{number}: UsageFactor {texts.shown(text)} is not a number like 1.5")
    return float(text)


def _number(text: str, what: str, path: Path, number: int = 0) -> int:
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or int(text) > FOREVER:
        where = f"{path}:{number}" if number else str(path)
        raise InputError(f"{where}: {what} {texts.shown(text)} is not a whole number below {FOREVER + 1:,}")
    return int(text)
