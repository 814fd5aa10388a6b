"""Compares single decisions of the twin: the answers of the queue `slurm` just before every recorded start,
in the recorded state.
"""

from __future__ import annotations

from pathlib import Path

from measure import Row
from topolane import Machine
from topolane.baseline import decisions
from topolane.baseline.decisions import Decisions
from topolane.slurm import accounting_workload

ANSWERS = ("same", "other nodes", "not eligible", "limit", "no nodes", "behind others")


def imported(records: Path, log: Path) -> None:
    """Writes the log of the records, with every run as a job, and its configuration. Raises InputError."""
    found = accounting_workload.read(records, join=False)
    log.write_text(found.csv)
    log.with_name(f"{log.stem}-slurm.json").write_text(found.queue)


def counts(log: Path, machine: Machine, policy: str) -> dict[str, Decisions]:
    """The decisions in an imported log, by scheduler. Raises InputError and OSError."""
    return decisions.of_log(log, machine, policy, str(log.with_name(f"{log.stem}-slurm.json")))


def rows(found: dict[str, Decisions]) -> list[Row]:
    """The counts as rows of a table."""
    made = []
    for by, counted in found.items():
        figure = f"single decisions, {by}"
        made.append(Row(figure, f"decided too, of {counted.asked:,} starts", "%", (counted.same,)))
        made += [
            Row(figure, f"answer: {answer}", "", (counted.answers.get(answer, 0),)) for answer in ANSWERS
        ]
        made.append(Row(figure, "other jobs that it would start", "", (counted.more,)))
    return made
