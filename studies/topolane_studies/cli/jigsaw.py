"""`topolane paper jigsaw`: links of their own for all jobs, and what that costs a full machine."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import click
from topolane.cli import common, values
from topolane.cli.explained import ExplainedCommand

from topolane_studies.cli.judged import print_rows, rows_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_studies.jigsaw import JigsawLoad, JigsawResults


@click.command(
    "jigsaw",
    cls=ExplainedCommand,
    examples={
        "The study with two seeds": "--quick",
        "One load of it": "--only cab-sep --quick",
    },
)
@click.option("--trace", help="Also a log, at three loads; by default as LLNL's Atlas, as nodes of 8 on cab.")
@click.option(
    "--machine", type=values.MACHINE, default="cab", show_default=True, help="The machine of the log."
)
@click.option(
    "--cores-per-node", type=click.IntRange(1), help="Processors of the log in a node [default: 8]."
)
@click.option("--gpus-per-node", type=click.IntRange(1), help="GPUs in a node, for a log that counts GPUs.")
@click.option(
    "--first", type=click.IntRange(1), default=8_000, show_default=True, help="The first jobs of the log."
)
@click.option("--whole", is_flag=True, help="All jobs of the log.")
@click.option("--only", metavar="LOADS", help="These loads, by comma: cab-sep, exp-16, 'trace 1.0', ...")
@click.option("--seeds", type=click.IntRange(1), help="Runs of each [default: 8; 2 with --quick].")
@click.option("--quick", is_flag=True, help="Two seeds.")
@click.option(
    "--contention",
    type=click.IntRange(0),
    metavar="SEEDS",
    help="Runs of each under contention, which take most of the time [default: as --seeds].",
)
@click.option("--no-break-even", is_flag=True, help="Leave the search for break-even speed-ups out.")
@click.option("--jobs", "workers", type=click.IntRange(1), help="Processes to use [default: all cores].")
@click.option(
    "--executor", help="dask://HOST:PORT, or dask:// for a Dask cluster made here, instead of processes."
)
@common.resume_option
@common.json_option
def command(
    trace: str | None,
    machine: str,
    cores_per_node: int | None,
    gpus_per_node: int | None,
    first: int,
    whole: bool,
    only: str | None,
    seeds: int | None,
    quick: bool,
    contention: int | None,
    no_break_even: bool,
    workers: int | None,
    executor: str | None,
    resume: str | None,
    as_json: bool,
) -> None:
    """Links of their own for all jobs: utilisation, waits, break-even speed-ups (Jigsaw, HPDC'21)."""
    from topolane_studies import jigsaw, jigsaw_targets

    log = None
    if trace is not None:
        cores = cores_per_node or (None if gpus_per_node else jigsaw.TRACE_CORES)
        log = jigsaw.Trace(trace, machine, None if whole else first, cores, gpus_per_node)
    chosen = jigsaw.loads(log, only)
    for load in (load for load in chosen if load.kind == "trace"):
        load.task(1).jobs()  # an unreadable file ends the command before hours of work
    drawn = range(1, seeds + 1) if seeds else jigsaw.seeds_of(quick)
    if not as_json:
        click.echo(f"ratios to first-fit's, mean and 95 % confidence interval over {len(drawn)} seeds")
    parts = []
    with common.keeping(resume) as kept:
        for load in chosen:
            with common.counting_bar(
                f"simulating {load.name}", jigsaw.planned_runs([load], drawn, contention)
            ) as done:
                parts.append(
                    jigsaw.study(
                        [load],
                        drawn,
                        contention=contention,
                        break_even=not no_break_even,
                        executor=executor,
                        workers=workers,
                        done=done,
                        kept=kept,
                    )
                )
            if not as_json:
                print_load(parts[-1], load)
    results = jigsaw.joined(parts)
    targets = jigsaw_targets.targets(results)
    rows = jigsaw.rows(results)
    if as_json:
        common.print_json(
            {
                "runs": [facts for load in chosen for facts in runs_json(results, load)],
                "rows": rows_json(rows),
                "targets": [dataclasses.asdict(target) for target in targets],
            }
        )
        return
    print_rows(rows)
    common.print_table(
        ("our own targets", "target", "ours (worst load)", "verdict", "why"),
        [[target.what, target.target, target.ours, target.verdict, target.why] for target in targets],
        text_columns=("why",),
    )


RATIOS = ("utilization_while_waiting", "mean_wait", "mean_wait_by_work", "makespan", "mean_turnaround")
COUPLED = ("mean_wait", "makespan")


def runs_json(results: JigsawResults, load: JigsawLoad) -> list[dict[str, object]]:
    """A load under every rule. Waits are in seconds. Ratios are mean, low and high, None where nothing was run. The break-even is None where it is beyond the search or
    was not sought."""
    from topolane_studies.jigsaw import interval, mean_of

    rows: list[dict[str, object]] = []
    for rule in results.rules:
        own = results.alone[load.name, rule.label]
        even = results.break_even.get((load.name, rule.label), math.inf)
        rows.append(
            {
                "load": load.name,
                "rule": rule.label,
                "utilization_while_waiting": mean_of(own, "utilization_while_waiting"),
                "mean_wait": mean_of(own, "mean_wait"),
                "mean_wait_by_work": mean_of(own, "mean_wait_by_work"),
                "ratios": {key: interval(results.ratios(load.name, rule.label, key)) for key in RATIOS},
                "mean_bandwidth_share": mean_of(own, "mean_bandwidth_share"),
                "moves_per_job": mean_of(own, "moves_per_job"),
                "break_even": even if math.isfinite(even) else None,
                "coupled": {
                    key: interval(found) if found else None
                    for key in COUPLED
                    for found in [results.ratios(load.name, rule.label, key, coupled=True)]
                },
            }
        )
    return rows


def print_load(results: JigsawResults, load: JigsawLoad) -> None:
    """The table of a load."""
    from topolane_studies.jigsaw import FIRST_FIT, interval, mean_of
    from topolane_studies.jigsaw_break_even import MOST, measure_of

    def break_even(rule: str) -> str:
        even = results.break_even.get((load.name, rule))
        if even is None:
            return "-"
        return f"{even:.2f}" if math.isfinite(even) else f"over {MOST:g}"

    def ratio(rule: str, key: str, coupled: bool = False) -> str:
        found = results.ratios(load.name, rule, key, coupled=coupled)
        return around(interval(found)) if found else "-"

    lines = []
    for rule in results.rules:
        lines.append(
            [
                rule.label,
                *(ratio(rule.label, key) for key in RATIOS),
                break_even(rule.label),
                f"{mean_of(results.alone[load.name, rule.label], 'mean_bandwidth_share'):.3f}",
                *(ratio(rule.label, key, coupled=True) for key in COUPLED),
            ]
        )
    first = results.alone[load.name, FIRST_FIT.label]
    used, waited = mean_of(first, "utilization_while_waiting"), mean_of(first, "mean_wait")
    by = "mean wait" if measure_of(load) == "mean_wait" else "makespan"
    sought = f"; break-even by {by}" if results.break_even else ""
    click.echo(
        f"{load.name} on {load.machine}: first-fit uses {used:.3f} while jobs wait, mean wait {common.hours(waited)} h"
        f"{sought}"
    )
    common.print_table(
        (
            "rule",
            "use while waiting",
            "mean wait",
            "wait by work",
            "makespan",
            "turnaround",
            "break-even (%)",
            "bandwidth share",
            "wait, contention",
            "makespan, contention",
        ),
        lines,
    )


def around(found: Sequence[float]) -> str:
    """A mean and how far its confidence interval reaches."""
    mean, _, high = found
    return f"{mean:.3f} ±{high - mean:.3f}"
