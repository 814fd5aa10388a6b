"""`topolane slurm plan` and `topolane slurm apply`: room for a waiting job by requeueing running ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane import files, texts
from topolane.cli.common import json_option, print_json
from topolane.cli.room_common import no_room_is_told, tell
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
    from topolane.slurm.requeueing import Untouchable

    kept = Untouchable.of(untouchable, any_priority)
    if out is not None:
        files.check(out)
    look = inspect(settings_of(state, slurmrestd, token_file))
    with no_room_is_told():
        found = room_plan.make_plan(look, room_for, kept)
    if out is not None:
        files.write(out, room_plan.text_of(found))
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    for line in _lines(found, out):
        click.echo(texts.printable(line))


@click.command()
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--timeout",
    type=click.FloatRange(1, 86400),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until the job has started.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory of the plugin's state [default: slurmctld's StateSaveLocation].",
)
def apply(plan_file: Path, timeout: float, state: Path | None) -> None:
    """Carry out a plan of `topolane slurm plan --out`: requeue its jobs, and start the waiting job on the nodes of the plan.

    If the plan is no longer true, nothing is changed. A reservation keeps the nodes for the waiting job until it has started.
    Each step is first written to PLAN.journal. After a crash, run the command again: it goes on, and requeues no job twice. The
    exit code is 1 if the plan is no longer true or the job has not started.
    """
    from topolane.slurm import room_apply
    from topolane.slurm.inspection import Settings

    with no_room_is_told():
        room_apply.apply(plan_file, Settings(state), seconds=timeout, tell=tell)


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
    written = "" if out is None else f": `topolane slurm apply {out}` carries the plan out"
    lines.append(f"Nothing is changed{written}.")
    return lines


def _bound(found: RoomPlan) -> str:
    if found.node_hours <= found.least_node_hours * (1 + 1e-9) + 1e-6:
        return "no plan costs less"
    return f"no plan costs less than {found.least_node_hours:,.2f}"
