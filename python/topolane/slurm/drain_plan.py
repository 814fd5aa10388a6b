"""A plan that empties nodes of Slurm before maintenance: which running jobs to requeue, and which end by themselves before.

All jobs on the nodes must be gone, so there is no choice between sets of jobs, and no plan costs less. Nothing here changes Slurm. The
plugin is not needed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from topolane import texts
from topolane._engine import InputError
from topolane.cluster import room_files
from topolane.cluster.room_files import NoPlanError
from topolane.slurm.candidates import HostLists
from topolane.slurm.inspection import SlurmInspection, names_in
from topolane.slurm.records import SlurmJob
from topolane.slurm.requeueing import ProtectedJobs, Requeued, check_numbers, snapshot_of
from topolane.units import clock

LISTED = 5
"""Jobs that a sentence lists."""


@dataclasses.dataclass(frozen=True)
class TimelyEnd:
    """A running job that ends by itself in time."""

    job: str
    """Its number, as Slurm prints it."""
    name: str
    user: str
    nodes: str
    """Hostlist."""
    end: float
    """When it ends at the latest, seconds since 1970."""


@dataclasses.dataclass(frozen=True)
class DrainPlan:
    """A plan that empties nodes. Times in seconds since 1970, costs in node-hours."""

    FORMAT: ClassVar = "topolane-drain-plan"
    VERSION: ClassVar = 1

    nodes: str
    """Hostlist of the nodes that are to be empty."""
    node_count: int
    by: float
    """When they are to be empty."""
    requeued: tuple[Requeued, ...]
    ending: tuple[TimelyEnd, ...]
    node_hours: float
    """What the plan costs. No plan costs less."""
    time: float
    """When it was made, by Slurm's clock."""


def make_plan(
    look: SlurmInspection, hosts: str, by: float | None = None, untouchable: ProtectedJobs | None = None
) -> DrainPlan:
    """The plan that empties the nodes of a hostlist by a time, or at once.

    Raises NoPlanError if a job must stay there, InputError for nodes that Slurm does not have and a time that is over.
    """
    snapshot = snapshot_of(look)
    lists = HostLists(snapshot.nodes)
    nodes = lists.read(hosts)
    if not nodes:
        unknown = sorted(set(names_in(hosts)) - set(snapshot.nodes))
        why = f"Slurm has no node {unknown[0]}" if unknown else "it is no list of nodes"
        raise InputError(f"--drain {texts.shown(hosts)}: {why}")
    if by is not None and by < look.time:
        raise InputError(f"--by: the time is over; it is {clock(look.time, by)} now")
    by = look.time if by is None else by
    stay, gone, ending = [], [], []
    for job in jobs_on(look, nodes):
        reason = (untouchable or ProtectedJobs()).why(job)
        if is_over_by(job, look.time, by):
            end = look.time if job.latest_end is None else job.latest_end
            ending.append(TimelyEnd(job.number, job.name, job.user, job.nodes, end))
        elif reason is None:
            gone.append(Requeued.of(job, len(lists.read(job.nodes) or ()), look.time))
        else:
            stay.append((job, reason))
    text = lists.text(nodes)
    if stay:
        raise NoPlanError(
            f"there is no plan that empties {text} by {clock(by, look.time)}: {_stay(stay, look)}"
        )
    return DrainPlan(
        nodes=text,
        node_count=len(nodes),
        by=by,
        requeued=tuple(gone),
        ending=tuple(ending),
        node_hours=round(sum(each.node_hours for each in gone), 6),
        time=look.time,
    )


def jobs_on(look: SlurmInspection, nodes: Collection[str]) -> list[SlurmJob]:
    """The jobs that hold some of these nodes."""
    snapshot = snapshot_of(look)
    lists = HostLists(snapshot.nodes)
    held = (job for _, job in sorted(snapshot.jobs.items()) if job.holds_nodes)
    return [job for job in held if not (lists.read(job.nodes) or set()).isdisjoint(nodes)]


def is_over_by(job: SlurmJob, now: float, by: float) -> bool:
    """Whether a job that holds nodes ends by itself by a time. Not one that is suspended, or that runs in spite of its limit."""
    if job.state == "COMPLETING":
        return True
    return job.state != "SUSPENDED" and job.latest_end is not None and now < job.latest_end <= by


def _stay(stay: list[tuple[SlurmJob, str]], look: SlurmInspection) -> str:
    """Which jobs must stay, and until when."""
    listed = ", ".join(f"job {job.number} {reason}" for job, reason in stay[:LISTED])
    more = f" and {len(stay) - LISTED} more" if len(stay) > LISTED else ""
    ends = [job.latest_end for job, _ in stay if job.latest_end is not None and job.state != "SUSPENDED"]
    last = f"; they end by {clock(max(ends), look.time)} (--by)" if len(ends) == len(stay) else ""
    return f"{listed}{more} must stay{last}"


def read(path: Path) -> DrainPlan:
    """The plan in a file. Raises InputError."""
    source = str(path)
    given = room_files.read(path, DrainPlan, "topolane slurm plan")
    given["requeued"] = room_files.rows_of(given, "requeued", Requeued, source)
    given["ending"] = room_files.rows_of(given, "ending", TimelyEnd, source)
    plan: DrainPlan = room_files.made(DrainPlan, given, source)
    check_numbers((*(each.job for each in plan.requeued), *(each.job for each in plan.ending)), source)
    if not names_in(plan.nodes):
        raise InputError(f"{source}: nodes is {texts.shown(plan.nodes)}, which is no list of nodes")
    return plan
