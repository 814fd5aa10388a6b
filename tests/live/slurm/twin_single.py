"""Compares single decisions of the twin: the answers of the queue `slurm` just before every recorded start,
in the recorded state.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

from measure import Row
from topolane import InputError, Machine, Workload
from topolane._engine import retrace
from topolane.slurm import accounting, accounting_workload
from topolane.slurm.accounting_workload import RUN_ID

SCHEDULERS = {"SchedMain": "main", "SchedBackfill": "backfill"}
"""Flags of sacct, and the engine's names for the schedulers that they stand for."""
ANSWERS = ("same", "other nodes", "not eligible", "limit", "no nodes", "behind others")
START = tuple[int, float, list[int], str | None]


def imported(records: Path, log: Path) -> None:
    """Writes the log of the records, with every run as a job, and its configuration. Raises InputError."""
    found = accounting_workload.read(records, join=False)
    log.write_text(found.csv)
    log.with_name(f"{log.stem}-slurm.json").write_text(found.queue)


def counts(log: Path, records: Path, machine: Machine, policy: str) -> dict[str, Counter[str]]:
    """By scheduler: how often each answer was given, and how many other jobs would have started (`more`).

    A pass that continues into the next second is one pass, so a job that the same scheduler started then does
    not count as another job. Raises InputError, OSError and ValueError.
    """
    config = log.with_name(f"{log.stem}-slurm.json")
    text = config.read_text()
    starts = _starts(log, records, machine, int(json.loads(text)["epoch"]))
    asked = retrace(Workload.read(str(log)), machine, policy, (str(config), text), starts)
    found = {by: Counter({answer: 0 for answer in (*ANSWERS, "more")}) for by in SCHEDULERS.values()}
    for time, by, answers, more in asked:
        found[by].update(answer for _, answer in answers)
        is_same_pass = [starts[job][1] <= time + 1 and starts[job][3] == by for job in more]
        found[by]["more"] += is_same_pass.count(False)
    return found


def rows(found: dict[str, Counter[str]]) -> list[Row]:
    """The counts as rows of a table."""
    made = []
    for by, answers in found.items():
        asked = sum(answers[answer] for answer in ANSWERS)
        alike = answers["same"] + answers["other nodes"]
        figure = f"single decisions, {by}"
        part = 100 * alike / max(asked, 1)
        made.append(Row(figure, f"decided too, of {asked:,} starts", "%", (part,)))
        made += [Row(figure, f"answer: {answer}", "", (answers[answer],)) for answer in ANSWERS]
        made.append(Row(figure, "other jobs that it would start", "", (answers["more"],)))
    return made


def _starts(log: Path, records: Path, machine: Machine, zero: int) -> list[START]:
    """The recorded starts of an imported log, with the scheduler of each."""
    flags = _flags(records)
    found: list[START] = []
    with open(log, newline="") as file:
        for place, row in enumerate(csv.DictReader(file)):
            start = int(row["start"])
            words = flags.get((int(row["id"]) % RUN_ID, start + zero), "").split(",")
            by = next((name for flag, name in SCHEDULERS.items() if flag in words), None)
            found.append((place, float(start), machine.nodes_named(row["hosts"]), by))
    return found


def _flags(records: Path) -> dict[tuple[int, int], str]:
    """The flags of each run, by job number and second of the start."""
    path = accounting.found(records, accounting.JOBS)
    if path is None:
        raise InputError(f"{records}: no {accounting.JOBS}")
    lines = accounting.lines(path)
    header = next(lines)[1].split(";")
    if missing := {"JobIDRaw", "Start", "Flags"} - set(header):
        raise InputError(f"{path}:1: no column {min(missing)}")
    found = {}
    for _, line in lines:
        row = dict(zip(header, line.split(";")))
        if row["Start"].isdecimal():
            found[int(row["JobIDRaw"]), int(row["Start"])] = row["Flags"]
    return found
