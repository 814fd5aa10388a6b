"""`topolane racks`: which segment size and how many spare nodes, on one workload."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from topolane.cli import common, settings, tables
from topolane.cli.explained import ExplainedCommand
from topolane.sweep import Task, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane.run import Run

MOST_RUNS = 100
NONE = "none"


def _numbers(context: click.Context, parameter: click.Parameter, text: str) -> list[int | None]:
    """A list of counts; `none` stands for no segments."""
    found: list[int | None] = []
    for part in (part.strip() for part in text.split(",")):
        is_none = part == NONE and parameter.name == "segments"
        if not is_none and not (part.isascii() and part.isdigit() and len(part) < 10):
            raise click.BadParameter(f"{text}: whole numbers, separated by commas")
        number = None if is_none else int(part)
        if number == 0 and parameter.name == "segments":
            raise click.BadParameter(f"{text}: a segment has at least 1 node; 'none' stands for no segments")
        if number not in found:
            found.append(number)
    return found


@click.command(
    "racks",
    cls=ExplainedCommand,
    examples={
        "Which segment size suits a GPU cluster": "--machine nvl72-5000 --limit 500 --policy segments",
        "With and without a spare node": "--machine racks.toml --trace jobs.csv --spares 0,1",
    },
    common="machine workload trace policy segments spares failures load jobs json",
)
@common.machine_options
@settings.workload_options
@settings.racks_options
@settings.network_options
@click.option(
    "--segments",
    default="1,2,4,8,16",
    show_default=True,
    callback=_numbers,
    help="Nodes of each part of a job that must lie in one domain, separated by commas; none: as the workload says.",
)
@click.option(
    "--spares",
    "spare_nodes",
    default="0",
    show_default=True,
    callback=_numbers,
    help="Idle nodes kept back in each domain, separated by commas.",
)
@click.option(
    "--jobs", "workers", type=click.IntRange(1), help="Number of processes to run in [default: one per core]."
)
@common.json_option
def command(
    workload: str | None,
    trace: str | None,
    segments: list[int | None],
    spare_nodes: list[int],
    workers: int | None,
    as_json: bool,
    **others: Any,
) -> None:
    """Run one workload with several sizes of segments and numbers of spare nodes, and compare what each costs."""
    base = settings.task_of(common.source_of(workload, trace, default="gpu-month"), others)
    tasks = [
        dataclasses.replace(base, segment=segment, spares=spares)
        for spares in spare_nodes
        for segment in segments
    ]
    if len(tasks) > MOST_RUNS:
        raise click.UsageError(
            f"{len(tasks)} runs are more than {MOST_RUNS}: name fewer segments or spare nodes"
        )
    common.tell_notes(base.notes())
    with common.counting_bar("simulating", len(tasks)) as done:
        runs = compare(tasks, workers=workers, done=done)
    rows = [row_of(task, run) for task, run in zip(tasks, runs)]
    if as_json:
        common.print_json(rows)
        return
    for note in [*common.machine_note(trace), *tables.workload_notes(runs[0]), *tables.limit_notes(runs)]:
        click.echo(note)
    common.print_table(COLUMNS, [cells(row) for row in rows])


COLUMNS = (
    "segment",
    "spares",
    "utilisation",
    "mean wait\n(h)",
    "weighted\nwait (h)",
    "p95 wait\n(h)",
    "jobs in\none rack",
    "largest job\ncould start",
    "jobs\ninterrupted",
    "went on with\na spare node",
    "node hours\nlost",
    "node hours\nspare",
    "jobs that\nnever start",
)


def row_of(task: Task, run: Run) -> dict[str, Any]:
    """What one choice costs. `in_use` is of the time in which jobs were submitted."""
    summary = run.summary
    failed = summary.get("failures") or {}
    return {
        "segment": task.segment,
        "spares": task.spares,
        "in_use": in_use(run),
        "mean_wait": summary["mean_wait"],
        "mean_wait_by_work": summary["mean_wait_by_work"],
        "p95_wait": summary["p95_wait"],
        "in_one_rack": in_one_rack(run),
        "largest_could_start": summary.get("room", {}).get("largest", {}).get("share_of_time"),
        "interruptions": failed.get("interruptions", 0),
        "absorbed": failed.get("absorbed", 0),
        "node_seconds_lost": failed.get("node_seconds_lost", 0.0),
        "node_seconds_spare": failed.get("node_seconds_spare", 0.0),
        "never_start": never_start(summary["left_out"]),
    }


def in_use(run: Run) -> float:
    """The share of the machine in use, in the mean from the first submission to the last."""
    last = run.jobs["submission_time"].max() or 0.0
    minutes = run.utilization.filter(run.utilization["time"] <= last)
    return float(minutes["utilization"].mean() or 0.0)  # type: ignore[arg-type]


def in_one_rack(run: Run) -> float | None:
    """Of the jobs of several nodes that fit one domain or one leaf, the share that lies in one; None without such a job."""
    import polars

    jobs = run.jobs.filter(polars.col("requested_number_of_resources") > 1, polars.col("least_aph") == 0)
    return jobs.select((polars.col("aph") == 0).mean()).item()  # type: ignore[no-any-return]


def never_start(reasons: dict[str, int]) -> int:
    """Jobs of the workload that found no place: refused for good, or still waiting when all others have ended."""
    return sum(
        jobs
        for reason, jobs in reasons.items()
        if reason.startswith(("refused by the policy", "still waiting"))
    )


def cells(row: dict[str, Any]) -> Sequence[str]:
    """A row in the columns of `COLUMNS`."""
    largest, whole = row["largest_could_start"], row["in_one_rack"]
    return [
        NONE if row["segment"] is None else f"{row['segment']:,}",
        f"{row['spares']:,}",
        f"{row['in_use']:.2%}",
        *(common.hours(row[name]) for name in ("mean_wait", "mean_wait_by_work", "p95_wait")),
        "-" if whole is None else f"{whole:.1%}",
        "-" if largest is None else f"{largest:.1%}",
        f"{row['interruptions']:,}",
        f"{row['absorbed']:,}",
        *(f"{row[name] / common.HOUR:,.0f}" for name in ("node_seconds_lost", "node_seconds_spare")),
        f"{row['never_start']:,}",
    ]
