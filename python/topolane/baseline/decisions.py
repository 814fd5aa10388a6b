"""Compares single decisions: what the queue `slurm` starts at each recorded start, in the recorded state just before.

A whole replay is chaotic: one job that starts a second later moves many others. Each decision alone does not.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from topolane import texts
from topolane._engine import Workload, retrace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from topolane._engine import Machine
    from topolane.policy import Policy

BY = {"main": "main scheduler", "backfill": "backfill"}
"""The schedulers, and what texts call them."""
MOST = 50_000
"""Logs of more jobs are not asked about: each question copies the queue."""
SAME = ("same", "other nodes")
"""The answers that count as the same decision."""
START = tuple[int, float, list[int], str | None]
"""A recorded start: index in the workload, time, nodes, and the scheduler."""


@dataclasses.dataclass(frozen=True)
class Decisions:
    """How often one of Slurm's schedulers and the queue decide alike."""

    answers: dict[str, int]
    """The number of recorded starts by answer: same, other nodes, not eligible, limit, no nodes, behind others."""
    more: int
    """Other jobs that the queue would have started."""

    @property
    def asked(self) -> int:
        """The number of recorded starts."""
        return sum(self.answers.values())

    @property
    def same(self) -> float:
        """The part of the recorded starts that the queue decides too, in percent; 100 without any."""
        alike = sum(self.answers.get(answer, 0) for answer in SAME)
        return 100 * alike / self.asked if self.asked else 100.0


def merged(each: Iterable[Decisions]) -> Decisions:
    """The sum of several counts."""
    answers: Counter[str] = Counter()
    more = 0
    for one in each:
        answers.update(one.answers)
        more += one.more
    return Decisions(dict(answers), more)


def of_log(log: Path, machine: Machine, policy: str | Policy, config: str) -> dict[str, Decisions]:
    """The decisions in a log that `topolane workload import` wrote, by scheduler; empty if the log names no schedulers.

    config: the file with the configuration of the queue. Raises InputError and OSError.
    """
    rows = _rows(log)
    several = log.with_name(f"{_stem(log)}-runs.csv")
    if several.is_file():
        rows = [row for row in rows if not row.get("earlier_runs")] + _rows(several)
        rows.sort(key=lambda row: float(row["submit"]))
    if not any(row.get("scheduler") in BY for row in rows):
        return {}
    starts = [
        (place, float(row["start"]), machine.nodes_named(row["hosts"]), row["scheduler"] or None)
        for place, row in enumerate(rows)
        if row["start"] and row["hosts"]
    ]
    with tempfile.TemporaryDirectory() as scratch:
        runs = Path(scratch) / "runs.csv"
        with open(runs, "w", newline="") as file:
            columns = dict.fromkeys(name for row in rows for name in row if name != "earlier_runs")
            writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        workload = Workload.read(str(runs))
    return counted(workload, machine, policy, (config, Path(config).read_text()), starts)


def counted(
    workload: Workload,
    machine: Machine,
    policy: str | Policy,
    config: tuple[str, str],
    starts: Sequence[START],
) -> dict[str, Decisions]:
    """The decisions at recorded starts, by scheduler. config: the name and the text of the queue's configuration.

    A pass that continues into the next second is one pass, so a job that the same scheduler started then does
    not count as another job. Raises InputError.
    """
    of = {start[0]: start for start in starts}
    answers: dict[str, Counter[str]] = {by: Counter() for by in BY}
    more: Counter[str] = Counter()
    for time, by, found, others in retrace(workload, machine, policy, config, list(starts)):
        answers[by].update(answer for _, answer in found)
        is_same_pass = [job in of and of[job][1] <= time + 1 and of[job][3] == by for job in others]
        more[by] += is_same_pass.count(False)
    return {by: Decisions(dict(answers[by]), more[by]) for by in BY}


def _rows(log: Path) -> list[dict[str, str]]:
    return list(
        csv.DictReader(
            io.StringIO(
                texts.decoded(
                    texts.unzipped(texts.read_bytes(log, texts.LARGE), str(log), texts.LARGE), str(log)
                ),
                newline="",
            )
        )
    )


def _stem(log: Path) -> str:
    return Path(log.name.removesuffix(".gz")).stem
