"""`topolane slurm plan`: which running jobs to requeue so that a waiting job starts."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane import files, texts
from topolane.cli.common import json_option, print_json
from topolane.cli.slurm_status import look_options, settings_of

if TYPE_CHECKING:
    from topolane.slurm.room_plan import RoomPlan


@click.command()
@click.option(
    "--room-for",
    metavar="JOBID",
    required=True,
    help="The waiting job: 12, or 12_3 for a task of an array.",
)
@click.option(
    "--untouchable",
    multiple=True,
    metavar="KIND=NAME",
    help="Jobs that must stay: partition=NAME, qos=NAME or account=NAME; as often as wanted.",
)
@click.option(
    "--any-priority",
    is_flag=True,
    help="Let jobs go too that have a higher priority than the waiting job.",
)
@click.option("--out", metavar="FILE", help="Also write the plan into this file.")
@look_options
@json_option
def plan(
    room_for: str,
    untouchable: tuple[str, ...],
    any_priority: bool,
    out: str | None,
    state: Path | None,
    slurmrestd: str | None,
    token_file: str | None,
    as_json: bool,
) -> None:
    """Plan which running jobs to requeue so that a waiting job starts, at the least cost.

    Nothing is changed. The job's own policy is asked what it would do once some jobs are gone. A requeued job loses its work
    since it started. Jobs stay that Slurm may not requeue (Requeue=0) or that have a higher priority. The exit code is 1 if there
    is no plan.
    """
    from topolane.slurm import room_plan
    from topolane.slurm.inspection import inspect

    kept = room_plan.Untouchable.of(untouchable, any_priority)
    if out is not None:
        files.check(out)
    look = inspect(settings_of(state, slurmrestd, token_file))
    try:
        found = room_plan.make_plan(look, room_for, kept)
    except room_plan.NoPlanError as none:
        click.echo(texts.printable(texts.sentence(f"{none}.")), err=True)
        sys.exit(1)
    if out is not None:
        files.write(out, room_plan.text_of(found))
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    for line in _lines(found, out):
        click.echo(texts.printable(line))


def _lines(found: RoomPlan, out: str | None) -> list[str]:
    from topolane.units import clean, clock, plural

    lines = [
        f"Job {found.job} gets {plural(found.node_count, 'node')} under {found.policy}: {found.nodes}.",
    ]
    if not found.requeued:
        lines.append("No job must be requeued for that: the nodes are free, and so are the links.")
    for one in found.requeued:
        lines.append(
            f"Requeue job {one.job} {clean(one.name)} of {clean(one.user)}, on {one.nodes} since "
            f"{clock(one.start, found.time)}: {one.node_hours:,.2f} node-hours are lost."
        )
    if found.requeued:
        lines.append(f"That costs {found.node_hours:,.2f} node-hours in all; {_bound(found)}.")
    written = "" if out is None else f"; the plan is in {out}"
    lines.append(f"Nothing is changed{written}.")
    return lines


def _bound(found: RoomPlan) -> str:
    if found.node_hours <= found.least_node_hours * (1 + 1e-9) + 1e-6:
        return "no plan costs less"
    return f"no plan costs less than {found.least_node_hours:,.2f}"
