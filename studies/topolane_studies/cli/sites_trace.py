"""`topolane paper sites --trace`: a log's submissions on several sites, by policy."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from topolane.cli import common

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_studies.sites_trace import TraceOutcome

JOBS, SEEDS = 300, 3
QUICK_JOBS = 60


@dataclasses.dataclass(frozen=True)
class TraceOptions:
    """The options of the command."""

    trace: str
    counts: tuple[int, ...]
    limit: int
    seeds: int
    cores_per_node: int | None
    workers: int | None


def command(asked: TraceOptions, as_json: bool) -> None:
    """Plays the log under every policy and prints a table or JSON."""
    from topolane_studies import sites_smpi, sites_trace

    log = sites_trace.read(asked.trace, asked.limit, asked.cores_per_node)
    try:
        found = played(asked)
    except sites_smpi.Missing as missing:
        found, why = [], str(missing)
    else:
        why = ""
    if as_json:
        common.print_json(
            {
                "trace": asked.trace,
                "jobs": len(log),
                "rule": sites_trace.RULE,
                "not_measured": why or None,
                "outcomes": [dataclasses.asdict(each) for each in found],
            }
        )
        return
    hours = log[-1].at / 3600
    click.echo(
        f"{asked.trace}: {len(log)} jobs submitted in {hours:,.1f} hours, means over {asked.seeds} seeds; throughput and "
        "work until the last submission, run / run on one site weighted by work"
    )
    if why:
        click.echo(f"not measured: {why}")
    else:
        print_outcomes(asked.counts, found)
    for line in sites_trace.RULE:
        click.echo(f"assumed: {line}")


def played(asked: TraceOptions) -> list[TraceOutcome]:
    """The outcomes of all scenarios. Raises Missing without SimGrid."""
    from topolane_studies import sites_loss, sites_smpi, sites_trace

    seeds = range(1, asked.seeds + 1)
    log = sites_trace.read(asked.trace, asked.limit, asked.cores_per_node)
    wanted = sites_trace.jobs(log, seeds)
    with tempfile.TemporaryDirectory(prefix="topolane-sites-") as name:
        programs = sites_smpi.build(Path(name))
        total = sites_loss.total(sites_trace.runs(programs, wanted))
        with common.counting_bar("simulating", total) as done:
            times = sites_trace.simulated(programs, wanted, workers=asked.workers, done=done)
    planned = sites_trace.scenarios(log, asked.counts, seeds, times)
    with common.counting_bar("playing the log", len(planned)) as done:
        return sites_trace.study(planned, workers=asked.workers, done=done)


def print_outcomes(counts: Sequence[int], found: Sequence[TraceOutcome]) -> None:
    """A line for every number of sites and policy."""
    from topolane_studies import sites_trace

    lines: list[list[Any]] = []
    for count in counts:
        for policy in dict.fromkeys(each.policy for each in found):
            mean = sites_trace.mean(found, count, policy)
            lines.append(
                [
                    str(count),
                    f"{mean['hosts']:.0f}",
                    policy,
                    f"{mean['throughput']:.2f}",
                    f"{100 * mean['work']:.1f}",
                    "-" if math.isnan(mean["stretch"]) else f"{mean['stretch']:.3f}",
                    "-" if math.isnan(mean["hours"]) else f"{mean['hours']:.2f}",
                    f"{mean['moves']:,.0f}",
                    f"{mean['refused']:.0f}",
                ]
            )
    columns = ("sites", "hosts", "decided by", "programs/h", "work (%)", "run / alone", "wait + run (h)")
    common.print_table((*columns, "guests moved", "never placed"), lines, text_columns=("decided by",))
