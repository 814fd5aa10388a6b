"""Carries out a plan that empties nodes of Slurm (drain_plan.py), by scontrol, with a journal next to the plan.

1. A reservation for maintenance keeps the nodes from the time of the plan on. Until then only jobs start there that end before.
2. The running jobs are requeued that would not end before.
3. They have left the nodes. The reservation stays until the operator deletes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from topolane.cluster.clients.scontrol import scontrol
from topolane.cluster.room_files import BEGIN, DONE, Journal, NotAppliedError
from topolane.slurm import drain_plan
from topolane.slurm.drain_plan import DrainPlan, is_over_by, jobs_on
from topolane.slurm.inspection import Inspection, Settings, names_in
from topolane.slurm.records import Job, Reservation
from topolane.slurm.requeueing import REQUEUE, Applying, snapshot_of
from topolane.units import clock

RESERVE = "reserve"


def reservation_of(plan: DrainPlan) -> str:
    """The name of the plan's reservation: that of its first node."""
    return f"topolane_drain_{names_in(plan.nodes)[0]}"


class DrainApplying(Applying[DrainPlan]):
    """Carries out a plan that empties nodes. It waits for the requeued jobs to leave."""

    STEPS = (BEGIN, RESERVE, REQUEUE, DONE)
    read = staticmethod(drain_plan.read)

    def __init__(
        self,
        plan: DrainPlan,
        journal: Journal,
        settings: Settings,
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(plan, journal, settings, seconds, tell)
        self.name, self.nodes = reservation_of(plan), set(names_in(plan.nodes))

    def check(self) -> None:
        """Raises NotAppliedError, with what has changed, if the plan is no longer true."""
        look = self.look()
        changed = [
            f"job {job.number} runs on {job.nodes} and does not end before {clock(self.plan.by, look.time)}"
            for job in self._unplanned(look)
        ]
        changed += [
            f"job {job.number} may not be requeued any more"
            for job in self._in_the_way(look)
            if not job.requeueable and self._is_planned(job)
        ]
        kept = snapshot_of(look).reservations.get(self.name)
        if kept is not None and not self._serves(kept, look.time):
            changed.append(f"there is another reservation {self.name} already")
        if changed:
            raise NotAppliedError(
                f"the plan is no longer true: {'; '.join(changed)}. Nothing is changed: make a new plan"
            )

    def carry_out(self) -> None:
        """All steps, up to `DONE`."""
        self._reserve()
        for each in self.plan.requeued:
            self.requeue(each)
        self._wait_until_gone()
        self.journal.write(DONE)
        left = jobs_on(self.look(), self.nodes)
        self.tell(
            f"{self.plan.nodes}: "
            + ("no job runs there." if not left else f"what runs there ends in time: {_named(left)}.")
        )
        self.tell(f"After the maintenance: scontrol delete ReservationName={self.name}")

    def _reserve(self) -> None:
        look = self.look()
        if self.name in snapshot_of(look).reservations:
            return
        self.journal.write(RESERVE)
        is_later = self.plan.by > look.time
        begins = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self.plan.by)) if is_later else "now"
        scontrol(
            "create",
            "reservation",
            f"ReservationName={self.name}",
            "Users=root",
            f"Nodes={self.plan.nodes}",
            f"StartTime={begins}",
            "Duration=UNLIMITED",
            "Flags=MAINT,IGNORE_JOBS",
        )
        since = f"from {clock(self.plan.by, look.time)} on" if is_later else "from now on"
        self.tell(f"The reservation {self.name} keeps {self.plan.nodes} for maintenance {since}.")

    def _wait_until_gone(self) -> None:
        requeued = {each.job for each in self.plan.requeued}
        while True:
            look = self.look()
            if others := self._unplanned(look):
                raise NotAppliedError(
                    f"{_named(others)} started after the plan was made and would not end in time: "
                    f"the reservation {self.name} stays; make a new plan"
                )
            there = [
                job
                for job in jobs_on(look, self.nodes)
                if job.number in requeued and (job.state == "COMPLETING" or self._is_planned(job))
            ]
            if not there:
                return
            if self.is_late():
                raise NotAppliedError(
                    f"{self.plan.nodes} still has {_named(there)}: "
                    f"the reservation {self.name} stays; run `apply` again to go on"
                )

    def _in_the_way(self, look: Inspection) -> list[Job]:
        """The jobs on the nodes that do not end in time."""
        by = max(self.plan.by, look.time)
        return [job for job in jobs_on(look, self.nodes) if not is_over_by(job, look.time, by)]

    def _unplanned(self, look: Inspection) -> list[Job]:
        """Those of them that the plan does not name."""
        return [job for job in self._in_the_way(look) if not self._is_planned(job)]

    def _is_planned(self, job: Job) -> bool:
        return any(each.job == job.number and each.is_run_of(job) for each in self.plan.requeued)

    def _serves(self, kept: Reservation, now: float) -> bool:
        """Whether a reservation keeps the nodes as the plan wants it, for instance one of an earlier plan."""
        return set(names_in(kept.nodes)) >= self.nodes and kept.start <= max(self.plan.by, now) < kept.end


def _named(jobs: list[Job]) -> str:
    return ("job " if len(jobs) == 1 else "jobs ") + ", ".join(job.number for job in jobs)
