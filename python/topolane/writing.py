"""Writes the files of a comparison or of a run."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from topolane.baseline import Baseline
    from topolane.run import Run
    from topolane.sweep import Task
    from topolane.verdict import Verdict


TABLES = ("jobs", "utilization", "links", "job-links", "head-waits", "moves", "failures")
"""The tables of a run. The last five are written only if the run has them."""


def run_name(run: Run) -> str:
    """A name that distinguishes a run from the others of its comparison."""
    name = f"{run.policy}-{run.queue}-{run.scenario}"
    return f"{name}-{run.network}" if run.network else name


def write_all(
    directory: Path,
    runs: Sequence[Run],
    task: Task,
    *,
    at: float | None = None,
    parquet: bool = False,
    report: bool = True,
    png: bool = False,
    sentence: str = "",
    baseline: Baseline | None = None,
    verdict: Verdict | None = None,
) -> None:
    """Writes the tables of every run, `summary.json` and the report into an empty directory.

    The tables of a single run are in the directory itself, those of several in `runs/LABEL`.
    at: hours after the first submission at which the machine is drawn; by default the busiest minute.
    png: also write the figures of the report as PNG. sentence: the first line of the report.
    baseline: the comparison of replay and records, for `baseline.csv` and a section of the report. verdict: begins the report.
    """
    for run in runs:
        place = directory
        if len(runs) > 1:
            place = directory / "runs" / re.sub(r"[^\w.-]+", "-", run_name(run))
            place.mkdir(parents=True)
        for name, table in run.tables.items():
            (place / f"{name}.csv").write_bytes(table.csv())
            if parquet:
                import polars

                polars.DataFrame(table).write_parquet(place / f"{name}.parquet")
    facts = [run.facts for run in runs]
    (directory / "summary.json").write_text(json.dumps(facts if len(runs) > 1 else facts[0], indent=2) + "\n")
    if baseline is not None:
        baseline.jobs.write_csv(directory / "baseline.csv")
    if report:
        from topolane.report import MachinePicture, write_report

        moment = None
        if at is not None:
            first: Any = runs[0].jobs["submission_time"].min()
            moment = (first or 0.0) + 3600.0 * at
        same: Any = runs  # a report accepts any object with the attributes of its own runs
        write_report(
            directory,
            same,
            MachinePicture.of(task.fabric()),
            at=moment,
            png=png,
            sentence=sentence,
            baseline=baseline,
            verdict=verdict,
        )
