"""`topolane compare`: policies x queues x scenarios on one workload."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from topolane import _engine, failures
from topolane._engine import InputError
from topolane.cli import common, over_seeds, settings, tables, values
from topolane.cli.explained import ExplainedCommand
from topolane.sources import Shape
from topolane.sweep import Task, compare, figures, over, shares_bought_back, tasks_for
from topolane.sweep.seeds import tasks_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane._engine import Machine
    from topolane.baseline import Baseline
    from topolane.failures import Failure
    from topolane.run import Run
    from topolane.sweep.kept import Shard
    from topolane.verdict import Verdict

MOST_RUNS = 20
"""The most runs that fit in a report."""


@click.command(
    "compare",
    cls=ExplainedCommand,
    examples={
        "Compare three policies on a synthetic month": "--workload cab-aug --policies first-fit,slurm-tree,isolated",
        "Replay your own log on your own machine, with a report": "--trace log.txt --machine topology.conf --out out",
    },
    common="machine workload trace policies queue scenarios network seeds out json",
)
@common.machine_options
@settings.workload_options
@settings.compare_options
@settings.network_options
@click.option(
    "--policies",
    type=values.POLICIES,
    default="first-fit,slurm-tree,isolated",
    show_default=True,
    help="Policies, separated by commas.",
)
@click.option(
    "--queue",
    "--queues",
    "queues",
    type=values.QUEUES,
    default="easy",
    show_default=True,
    help=f"Queue disciplines, separated by commas: {', '.join(name for name, _ in _engine.queues())}.",
)
@click.option(
    "--scenarios",
    type=values.SCENARIOS,
    help="Speed-ups of isolated jobs, separated by commas: none, 5, 10, 20, v1, v2 [default: none,10; with --network: none].",
)
@click.option(
    "--loads",
    callback=over_seeds.loads,
    help="Run everything at each of these loads of the machine, separated by commas. --load sets a single load.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Run everything under N seeds, from --seed on, and give means with confidence intervals.",
)
@click.option("--out", help="Directory to write the report, its figures and the tables into.")
@click.option(
    "--report/--no-report", default=True, show_default=True, help="Write report.html and its figures."
)
@common.png_option
@common.at_option
@click.option("--parquet", is_flag=True, help="Also write the tables as Parquet.")
@click.option(
    "--jobs", "workers", type=click.IntRange(1), help="Number of processes to run in [default: one per core]."
)
@click.option(
    "--executor", help="Run on Dask instead: dask://HOST:PORT, or dask:// to start a local Dask cluster."
)
@common.resume_option
@common.shard_option
@click.option(
    "--baseline",
    "wants_baseline",
    is_flag=True,
    help="Compare a replay under the first queue and policy with the recorded starts: prints a table, and adds baseline.csv and a section to the report.",
)
@common.json_option
def command(
    workload: str | None,
    trace: str | None,
    policies: str,
    queues: str,
    scenarios: str | None,
    loads: list[float] | None,
    seeds: int | None,
    out: str | None,
    report: bool,
    png: bool,
    at: float | None,
    parquet: bool,
    workers: int | None,
    executor: str | None,
    resume: str | None,
    shard: Shard | None,
    wants_baseline: bool,
    as_json: bool,
    **others: Any,
) -> None:
    """Run every policy with every queue and scenario on one workload, and compare them."""
    common.check_outputs(out, at, png=png, parquet=parquet)
    base = settings.task_of(common.source_of(workload, trace, default="cab-aug"), others)
    if scenarios is None:
        scenarios = "none" if base.network else "none,10"
    rules = common.names(policies), common.names(queues), common.names(scenarios)
    if not all(rules):
        raise click.UsageError("there is nothing to run: name at least one policy, queue and scenario")
    if shard is not None and (resume is None or (loads is None and seeds is None)):
        raise click.UsageError("--shard is for many runs: it needs --resume, and --seeds or --loads")
    if loads is not None or seeds is not None:
        of_a_run = {"--at": at is not None, "--png": png, "--parquet": parquet, "--baseline": wants_baseline}
        _check_many(base, loads, of_a_run)
        over_seeds.show(
            tasks_of(base, range(base.seed, base.seed + (seeds or 1)), loads or [base.shape.load], *rules),
            out=out,
            report=report,
            executor=executor,
            workers=workers,
            resume=resume,
            shard=shard,
            as_json=as_json,
        )
        return
    tasks = tasks_for(base, *rules)
    if out is not None and report and len(tasks) > MOST_RUNS:
        raise InputError(
            f"a report shows at most {MOST_RUNS} runs, not {len(tasks)}: compare fewer, or give --no-report"
        )
    with common.outputs(out) as directory:
        common.tell_notes(base.notes())
        today = _today(base, common.names(policies), common.names(queues), wanted=wants_baseline)
        every = tasks if today is None or today in tasks else [*tasks, today]
        drawn = _drawn(today, common.names(policies))
        unlike = [task for task in drawn if task not in every]
        with (
            common.keeping(resume) as kept,
            common.counting_bar("simulating", len(every) + len(unlike)) as done,
        ):
            how: Any = {"executor": executor, "workers": workers, "done": done, "kept": kept}
            runs = compare(every, **how)
            reruns = iter(over(figures, unlike, **how))
            moved = [runs[every.index(task)] if task in every else next(reruns) for task in drawn]
        found = None
        if today is not None:
            found = _baseline(runs[every.index(today)], moved, today, with_details=wants_baseline)
        runs = runs[: len(tasks)]
        if found is not None:
            for run in runs:
                run.summary["baseline"] = found.head
        judged = _verdict(runs, today if wants_baseline else None, found)
        whole = found if wants_baseline else None
        sentence = "" if found is None else found.sentence
        if directory is not None:
            from topolane.writing import write_all

            write_all(
                directory,
                runs,
                base,
                at=at,
                parquet=parquet,
                report=report,
                png=png,
                sentence=sentence,
                baseline=whole,
                verdict=judged,
            )
    if as_json:
        facts = [run.facts for run in runs]
        common.print_json({"baseline": whole.facts, "runs": facts} if whole else facts)
        return
    if judged:
        tables.print_verdict(judged)
    # With a network the first run is the reference without one, which has less to tell.
    telling = next((run for run in runs if run.network), runs[0])
    for note in tables.notes(runs, base, trace, telling):
        click.echo(note)
    if sentence:
        click.echo(sentence)
    if whole:
        tables.print_baseline(whole)
    tables.print_runs(runs)
    tables.print_room(runs)
    tables.print_networks(runs)
    tables.print_patterns(runs)
    for line in bought_back(runs):
        click.echo(line)
    if out:
        click.echo(f"report: {out}/report.html" if report else f"written: {out}")


def _check_many(base: Task, loads: list[float] | None, of_a_run: dict[str, bool]) -> None:
    """Raises InputError for options that make no sense with --loads and --seeds."""
    if loads is not None and base.shape.load is not None:
        raise InputError("--load and --loads both name a load: give one of them")
    for option, given in of_a_run.items():
        if given:
            raise InputError(f"{option} is for single runs: it cannot be given with --loads or --seeds")


def _today(base: Task, policies: Sequence[str], queues: Sequence[str], *, wanted: bool) -> Task | None:
    """Today's rules, if the workload is a log that records starts. A pipe can be read only once, so it does not count.

    Raises InputError if there are none and a baseline is wanted.
    """
    is_log = Path(base.workload).is_file()
    if not (is_log or wanted):
        return None
    import numpy as np

    from topolane import baseline

    today = baseline.task_of(base, policies, queues)
    if today is None:
        if wanted:
            raise InputError("--baseline needs a queue other than recorded")
        return None
    if is_log and not bool(np.isnan(today.jobs().columns()["start"]).all()):
        return today
    if wanted:
        raise InputError(f"--baseline: {base.workload} records no starts")
    return None


def _drawn(today: Task | None, policies: Sequence[str]) -> list[Task]:
    """The runs that tell how far differences between policies move with what the records do not tell."""
    if today is None:
        return []
    from topolane.baseline import draws

    return draws.tasks(today, policies)


def _baseline(run: Run, moved: Sequence[Run], task: Task, *, with_details: bool) -> Baseline | None:
    """The run of today's rules next to the records, perhaps with partitions and reasons. moved: the runs of `_drawn`."""
    from topolane import baseline
    from topolane.baseline import decisions, details, draws, flavours

    fabric, jobs = task.fabric(), task.jobs()
    known = details.of(jobs) if with_details else None
    down = _down(task.workload, fabric) if with_details and not task.failures else []
    found = baseline.measured(run, jobs, fabric, known, down)
    if found is None:
        return None
    waits = [each.summary["mean_wait"] for each in moved]
    found = dataclasses.replace(found, least=max(found.least, draws.least_difference(waits)))
    config = task.config_of_queue()
    log = Path(task.workload)
    if not with_details or task.queue != "slurm" or not isinstance(config, str) or not log.is_file():
        return found
    flavour = flavours.of(Path(config), log, jobs)
    # Only in the records themselves is the state that Slurm was in.
    is_as_recorded = (
        task.shape == Shape() and not (task.nodes or task.failures) and len(jobs) <= decisions.MOST
    )
    asked = decisions.of_log(log, fabric, task.policy, config) if is_as_recorded else {}
    return dataclasses.replace(found, decisions=asked, flavour=flavour)


def _verdict(runs: Sequence[Run], today: Task | None, found: Baseline | None) -> Verdict | None:
    """The verdict on the runs, which each of them carries. today: the rules to compare with; by default those of the first run."""
    from topolane import verdict

    reference = None if today is None else (str(today.policy), today.queue)
    judged = verdict.of(runs, reference, 0.0 if found is None else found.least)
    if judged is not None:
        for number, run in enumerate(runs):
            run.summary["verdict"] = judged.facts(number)
    return judged


def _down(log: str, fabric: Machine) -> list[Failure]:
    """Nodes that were down, as `topolane workload import` writes them next to a log."""
    file = Path(log).with_name(f"{Path(log).stem}-failures.csv")
    return failures.read(file, fabric, others=True) if file.is_file() else []


def bought_back(runs: Sequence[Run]) -> list[str]:
    """What isolation costs in waiting and what the others' contention takes of that, in words."""
    lines = []
    for row in shares_bought_back(runs):
        extra, saved, whole = (row[name] / common.HOUR for name in ("extra_wait", "saved_wait", "saved"))
        share = "" if row["share"] is None else f" ({row['share']:.0%} of it)"
        lines.append(
            f"{row['policy']} against {row['reference']} under {row['queue']}: without contention it waits "
            f"{extra:,.2f} h longer; contention adds {saved:,.2f} h{share} to the other's wait; "
            f"wait and run together are {abs(whole):,.2f} h {'shorter' if whole >= 0 else 'longer'} isolated."
        )
    return lines
