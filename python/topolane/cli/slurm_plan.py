"""`topolane slurm plan` and `topolane slurm apply`: room for a waiting job, or nodes without jobs, by requeueing running ones."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topolane import texts
from topolane._engine import InputError
from topolane.cli.common import json_option, print_json
from topolane.cli.explained import ExplainedCommand
from topolane.cli.room_common import bound, no_room_is_reported, plan_argument, steps_printed, timeout_option
from topolane.cli.slurm_status import look_options, settings_of, state_option

if TYPE_CHECKING:
    from topolane.slurm.drain_plan import DrainPlan
    from topolane.slurm.inspection import SlurmInspection
    from topolane.slurm.requeueing import ProtectedJobs, Requeued
    from topolane.slurm.room_plan import RequeuePlan


def _moment(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Seconds since 1970 of a time as people write it."""
    if text is None:
        return None
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text} is no time such as 2026-11-27T18:00") from None


@click.command(
    cls=ExplainedCommand,
    examples={
        "Make room for job 97": "--room-for 97 --out plan.json",
        "Empty six nodes before a maintenance": "--drain 'n[1-6]' --by 2026-11-27T18:00 --out plan.json",
    },
)
@click.option(
    "--room-for",
    metavar="JOBID",
    help="Make room for this waiting job, named as squeue prints it: 97, 97_3, 97_[2-6%1]; of tasks of an array, the first that waits.",
)
@click.option(
    "--drain",
    metavar="NODES",
    help="Empty these nodes before maintenance: a host list such as node[1-6].",
)
@click.option(
    "--by",
    metavar="TIME",
    callback=_moment,
    help="With --drain: when the nodes are to be empty, such as 2026-11-27T18:00 [default: now].",
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
    help="With --room-for: let jobs go too that have a higher priority than the waiting job.",
)
@click.option("--out", metavar="FILE", help="Also write the plan into this file.")
@look_options
@json_option
def plan(
    room_for: str | None,
    drain: str | None,
    by: float | None,
    untouchable: tuple[str, ...],
    any_priority: bool,
    out: str | None,
    state: Path | None,
    slurmrestd: str | None,
    token_file: str | None,
    as_json: bool,
) -> None:
    """Plan which running jobs to requeue so that a waiting job starts, or so that nodes are empty, at the least cost.

    Nothing is changed. With --room-for, the job's own policy is asked what it would do once some jobs are gone, and jobs of a higher
    priority stay. With --drain, jobs stay that end before the time of --by. A requeued job loses its work since it started. Jobs that
    Slurm may not requeue (Requeue=0) always stay. The exit code is 1 if there is no plan.
    """
    from topolane.cluster import room_files
    from topolane.slurm.inspection import inspect
    from topolane.slurm.requeueing import ProtectedJobs

    if (room_for is None) == (drain is None):
        raise InputError("give one of --room-for and --drain")
    if drain is None and by is not None:
        raise InputError("--by needs --drain")
    if drain is not None and any_priority:
        raise InputError("--any-priority needs --room-for")
    kept = ProtectedJobs.of(untouchable, any_priority)
    if out is not None:
        room_files.check(out)
    look = inspect(settings_of(state, slurmrestd, token_file))
    with no_room_is_reported():
        found, lines = (
            _room(look, room_for, kept) if room_for is not None else _drain(look, drain or "", by, kept)
        )
    if out is not None:
        room_files.write(out, found)
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    written = "" if out is None else f": `topolane slurm apply {out}` carries the plan out"
    for line in (*lines, f"Nothing is changed{written}."):
        click.echo(texts.printable(line))


@click.command(
    cls=ExplainedCommand,
    examples={
        "Carry out a plan": "plan.json",
        "Give it up": "plan.json --undo",
    },
)
@plan_argument
@timeout_option(600.0, "How long to wait until the job has started, or until the requeued jobs have left.")
@state_option
@click.option(
    "--undo",
    is_flag=True,
    help="Give up a plan that was begun: remove its reservation, requeue nothing more.",
)
@json_option
def apply(plan_file: Path, timeout: float, state: Path | None, undo: bool, as_json: bool) -> None:
    """Carry out a plan of `topolane slurm plan --out`: requeue its jobs, and start the waiting job on the nodes of the plan.

    If the plan is no longer true, nothing is changed. A reservation keeps the nodes for the waiting job until it has started, or for
    the maintenance until you delete it. Each step is first written to PLAN.journal. After a crash, run the command again: it goes
    on, and requeues no job twice. The exit code is 1 if the plan is no longer true, the job has not started, or jobs are still there.
    """
    from topolane.cluster.room_files import kind_of
    from topolane.slurm.drain_apply import DrainApplying
    from topolane.slurm.drain_plan import DrainPlan
    from topolane.slurm.inspection import InspectionSettings
    from topolane.slurm.room_apply import RequeueApplying

    is_drain = kind_of(plan_file) == DrainPlan.FORMAT
    applying: type[DrainApplying | RequeueApplying] = DrainApplying if is_drain else RequeueApplying
    with steps_printed(as_json) as tell:
        applying.apply(plan_file, InspectionSettings(state), seconds=timeout, undo=undo, tell=tell)


def _room(look: SlurmInspection, job: str, kept: ProtectedJobs) -> tuple[RequeuePlan, list[str]]:
    """A plan for a job, and what is printed."""
    from topolane.slurm import room_plan

    found = room_plan.make_plan(look, job, kept)
    return found, _room_lines(found)


def _drain(
    look: SlurmInspection, hosts: str, by: float | None, kept: ProtectedJobs
) -> tuple[DrainPlan, list[str]]:
    """A plan that empties nodes, and what is printed."""
    from topolane.slurm import drain_plan

    found = drain_plan.make_plan(look, hosts, by, kept)
    return found, _drain_lines(found)


def _drain_lines(found: DrainPlan) -> list[str]:
    from topolane.units import clean, clock, plural

    when = "now" if found.by <= found.time else f"by {clock(found.by, found.time)}"
    lines = [f"{found.nodes} ({plural(found.node_count, 'node')}) can be empty {when}."]
    lines += [_requeue_line(one, found.time) for one in found.requeued]
    for one in found.ending:
        lines.append(
            f"Job {one.job} {clean(one.name)} of {clean(one.user)}, on {one.nodes}, ends by itself by "
            f"{clock(one.end, found.time)}."
        )
    if found.requeued:
        lines.append(f"That costs {found.node_hours:,.2f} node-hours in all; no plan costs less.")
    else:
        lines.append("No job must be requeued for that.")
    return lines


def _requeue_line(one: Requeued, now: float) -> str:
    from topolane.units import clean, clock

    return (
        f"Requeue job {one.job} {clean(one.name)} of {clean(one.user)}, on {one.nodes} since "
        f"{clock(one.start, now)}: {one.node_hours:,.2f} node-hours are lost."
    )


def _room_lines(found: RequeuePlan) -> list[str]:
    from topolane.units import plural

    lines = [
        f"Job {found.job} gets {plural(found.node_count, 'node')} under {found.policy}: {found.nodes}.",
    ]
    if not found.requeued:
        lines.append("No job must be requeued for that: the nodes are free, and so are the links.")
    lines += [_requeue_line(one, found.time) for one in found.requeued]
    if found.requeued:
        lines.append(f"That costs {found.node_hours:,.2f} node-hours in all; {bound(found)}.")
    return lines
