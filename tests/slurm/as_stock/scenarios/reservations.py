"""Reservations of an administrator."""

from __future__ import annotations

from observed import Observed

from .registry import scenario


@scenario
def maintenance(slurm: Observed) -> None:
    """Reservation for maintenance, now and later"""
    create = ("scontrol", "create", "reservation")
    slurm.ask(
        *create,
        "ReservationName=now",
        "StartTime=now",
        "Duration=60",
        "Users=root",
        "Flags=maint,ignore_jobs",
        "Nodes=node[1-12]",
    )
    slurm.runs("small", "-N2", "--time=5")
    slurm.waits("wide", "ReqNodeNotAvail", "-N5", "--time=5")
    slurm.ask("scontrol", "delete", "ReservationName=now")
    slurm.reaches("wide", "RUNNING")
    slurm.ends("wide", "small")
    slurm.ask(
        *create,
        "ReservationName=later",
        "StartTime=now+30minutes",
        "Duration=60",
        "Users=root",
        "Flags=maint",
        "Nodes=ALL",
    )
    slurm.runs("short", "-N2", "--time=5")
    slurm.waits("long", "ReqNodeNotAvail", "-N2", "--time=120")


@scenario
def reserved_for_users(slurm: Observed) -> None:
    """Reservation of some nodes for a user"""
    slurm.ask(
        *("scontrol", "create", "reservation", "ReservationName=course", "StartTime=now", "Duration=60"),
        *("Users=daemon", "NodeCnt=4"),
    )
    shown = slurm.ask("scontrol", "-o", "show", "reservation", name="nothing")
    slurm.seen.pop()
    slurm.see(
        "size",
        [word for word in shown.split() if word.startswith(("NodeCnt=", "CoreCnt=", "State=", "Flags="))],
    )
    slurm.runs("guest", "-N4", "--reservation=course", user="daemon")
    slurm.waits("more", "Resources", "-N1", "--exclusive", "--reservation=course", user="daemon")
    slurm.submit("stranger", "-N1", "--reservation=course", user="games")
    slurm.runs("outside", "-N12", user="games")
    slurm.see("inside", [host for host in slurm.hosts("guest") if host in slurm.hosts("outside")])


@scenario
def reserved_cores(slurm: Observed) -> None:
    """Reservation of cores"""
    slurm.ask(
        *("scontrol", "create", "reservation", "ReservationName=cores", "StartTime=now", "Duration=60"),
        *("Users=daemon", "CoreCnt=8", "NodeCnt=1"),
    )
    slurm.runs("guest", "-n8", "--reservation=cores", user="daemon")
    slurm.submit("many", "-n9", "--reservation=cores", user="daemon")
