"""`topolane compare --seeds N --loads A,B`: many runs of every rule, shown as means with confidence intervals."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from typing import TYPE_CHECKING, Any

import click

from topolane._engine import InputError
from topolane.cli import common
from topolane.reading import csv_text
from topolane.sweep import Task, figures, over, seeds
from topolane.sweep.seeds import text
from topolane.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from topolane.run import Run
    from topolane.sweep.kept import Shard


def loads(_: click.Context, __: click.Parameter, text: str | None) -> list[float] | None:
    """Loads of the machine, separated by commas, without repetitions."""
    if text is None:
        return None
    found = []
    for part in (part.strip() for part in text.split(",")):
        try:
            load = float(part)
        except ValueError:
            load = math.nan
        if not 0 < load < math.inf:
            raise click.BadParameter(f"{part!r} is not a load above 0")
        if load not in found:
            found.append(load)
    return found


def show(
    tasks: Sequence[Task],
    *,
    out: str | None,
    report: bool,
    executor: str | None,
    workers: int | None,
    resume: str | None,
    shard: Shard | None = None,
    as_json: bool,
) -> None:
    """Does all runs, and prints and writes their means. Those of a shard are only kept."""
    of_log = os.path.isfile(tasks[0].workload)
    if shard is not None:
        if out is not None:
            raise InputError("--out is for all runs: it cannot be given with --shard")
        tasks = tasks[shard.number - 1 :: shard.count]
        with common.keeping(resume, shard) as kept, common.counting_bar("simulating", len(tasks)) as done:
            over(figures, tasks, executor=executor, workers=workers, done=done, kept=kept)
        if as_json:
            common.print_json({"shard": dataclasses.asdict(shard), "runs": len(tasks), "folder": resume})
        else:
            click.echo(f"shard {shard.number} of {shard.count}: {plural(len(tasks), 'run')} in {resume}")
        return
    with common.outputs(out) as directory:
        common.tell_notes([*tasks[0].notes(), *tasks[0].log_notes()])
        with common.keeping(resume) as kept, common.counting_bar("simulating", len(tasks)) as done:
            runs = over(figures, tasks, executor=executor, workers=workers, done=done, kept=kept)
        rows = seeds.rows(tasks, runs)
        notes = seeds.sentences(rows, of_log=of_log)
        what = f"{runs[0].workload} on {runs[0].machine}"
        facts = {
            "workload": runs[0].workload,
            "machine": runs[0].machine,
            "runs": len(runs),
            "confidence": seeds.CONFIDENCE,
            "notes": notes,
            "rows": [dataclasses.asdict(row) for row in rows],
        }
        if directory is not None:
            (directory / "summary.json").write_text(json.dumps(facts, indent=2) + "\n")
            _write_runs(directory / "runs.csv", tasks, runs)
            if report:
                from topolane.report.over_seeds import write

                write(directory, what, len(runs), rows, notes)
    if as_json:
        common.print_json(facts)
        return
    click.echo(f"{what}: {plural(len(runs), 'run')}")
    for note in notes:
        click.echo(note)
    common.print_table(COLUMNS, [cells(row) for row in rows])
    if out:
        click.echo(f"report: {out}/report.html" if report else f"written: {out}")


COLUMNS = (
    "policy, queue",
    "load",
    "mean wait\n(h)",
    "difference\n(h)",
    "weighted\nwait (h)",
    "p95 wait\n(h)",
    "utilisation\nwhile jobs wait (%)",
    "makespan\n(h)",
    "APH",
    "jobs that\nshare links",
)


def cells(row: seeds.SeedsRow) -> list[str]:
    """A row in the columns of `COLUMNS`."""
    figures = row.figures
    return [
        row.label,
        "-" if row.load is None else f"{row.load:g}",
        text(figures["mean_wait"], ",.2f", common.HOUR),
        "-" if row.difference is None else text(row.difference["mean_wait"], "+,.2f", common.HOUR),
        *(text(figures[name], ",.2f", common.HOUR) for name in ("mean_wait_by_work", "p95_wait")),
        text(figures["utilization_while_waiting"], ".1f", 0.01),
        text(figures["makespan"], ",.1f", common.HOUR),
        text(figures["mean_aph"], ".3f"),
        text(figures["jobs_sharing_links"], ",.0f"),
    ]


def _write_runs(path: Path, tasks: Sequence[Task], runs: Sequence[Run]) -> None:
    """A row for every run."""
    rows: list[list[Any]] = [
        [task.shape.load, task.seed, run.policy, run.queue, run.scenario, run.network]
        + [seeds.figure(run.summary, name) for name in seeds.FIGURES]
        for task, run in zip(tasks, runs)
    ]
    columns = ("load", "seed", "policy", "queue", "scenario", "network", *seeds.FIGURES)
    path.write_text(csv_text(columns, rows))
