"""Carries out a plan that makes room for a job of Slurm (room_plan.py), by scontrol, with a journal next to the plan.

1. A reservation holds the nodes of the plan for the user of the job.
2. The job is moved into that reservation. From here on it can start nowhere else.
3. The running jobs are requeued.
4. The job starts, and the reservation is removed.
"""

from __future__ import annotations

from collections.abc import Callable

from topolane.cluster.clients.scontrol import scontrol
from topolane.cluster.room_files import BEGIN, DONE, Journal, NotAppliedError
from topolane.slurm import room_plan
from topolane.slurm.inspection import Inspection, Settings
from topolane.slurm.records import Job
from topolane.slurm.requeueing import REQUEUE, Applying, task
from topolane.slurm.room_plan import RoomPlan
from topolane.units import plural

RESERVE, JOIN, FREE = "reserve", "join", "free"
SPARE_MINUTES = 60
"""Minutes that the reservation is longer than the job's walltime: the job must end in it, and starts later than it begins."""
IDLE_MINUTES = 10
"""Slurm removes the reservation by itself once no job has used it for so long."""
LAST_SECONDS = 2
"""The reservation ends so soon once it is not needed any more. Slurm forgets it within a minute."""


def reservation_of(plan: RoomPlan) -> str:
    """The name of the plan's reservation."""
    return f"topolane_room_{plan.job}"


class RoomApplying(Applying[RoomPlan]):
    """Carries out a plan that makes room. It waits for jobs to go, and for the waiting job to start."""

    STEPS = (BEGIN, RESERVE, JOIN, REQUEUE, FREE, DONE)
    read = staticmethod(room_plan.read)

    def __init__(
        self,
        plan: RoomPlan,
        journal: Journal,
        settings: Settings,
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(plan, journal, settings, seconds, tell)
        self.name = reservation_of(plan)

    def carry_out(self) -> None:
        """All steps, up to `DONE`."""
        job = self._job()
        if job is not None and job.waits:
            self._reserve()
            self._join(job)
            for each in self.plan.requeued:
                self.requeue(each)
            job = self._wait_for_start()
        self._free()
        self.journal.write(DONE)
        if job is None or not job.holds_nodes:
            raise NotAppliedError(
                f"job {self.plan.job} does not wait any more and does not run: its reservation ends"
            )
        self.tell(f"Job {job.number} runs on {job.nodes}.")

    def check(self) -> None:
        """Raises NotAppliedError, with what has changed, if the plan is no longer true."""
        look, plan = self.look(), self.plan
        job = _found(look, plan)
        changed = []
        if job is None or not job.waits:
            changed.append(f"job {plan.job} does not wait any more" + (f": it is {job.state}" if job else ""))
        for each in plan.requeued:
            one = task(look, each.job)
            if not each.is_run_of(one):
                changed.append(f"job {each.job} does not run on {each.nodes} any more")
            elif one is not None and not one.requeueable:
                changed.append(f"job {each.job} may not be requeued any more")
        if look.snapshot is not None and self.name in look.snapshot.reservations:
            changed.append(f"there is a reservation {self.name} already")
        if not changed and job is not None:
            lost = room_plan.still_places(look, plan, job)
            changed += [] if lost is None else [lost]
        if changed:
            raise NotAppliedError(
                f"the plan is no longer true: {'; '.join(changed)}. Nothing is changed: make a new plan"
            )

    def _job(self) -> Job | None:
        """The job that the plan is for, as Slurm knows it."""
        return _found(self.look(), self.plan)

    def _reserve(self) -> None:
        look, plan = self.look(), self.plan
        if look.snapshot is not None and self.name in look.snapshot.reservations:
            return
        self.journal.write(RESERVE)
        scontrol(
            "create",
            "reservation",
            f"ReservationName={self.name}",
            f"Users={plan.user}",
            f"Nodes={plan.nodes}",
            "StartTime=now",
            f"Duration={_minutes(plan)}",
            f"Flags=IGNORE_JOBS,PURGE_COMP={IDLE_MINUTES}",
        )
        self.tell(f"The reservation {self.name} keeps {plan.nodes} for {plan.user}.")

    def _join(self, job: Job) -> None:
        if job.reservation == self.name:
            return
        self.journal.write(JOIN)
        scontrol("update", f"JobId={self.plan.job}", f"ReservationName={self.name}")

    def _wait_for_start(self) -> Job | None:
        while True:
            look = self.look()
            job = _found(look, self.plan)
            if job is None or not job.waits:
                return job
            if self.is_late():
                there = [each.job for each in self.plan.requeued if each.is_run_of(task(look, each.job))]
                why = (
                    f"{plural(len(there), 'job')} must go first: {', '.join(there)}"
                    if there
                    else f"Slurm says {job.reason or 'nothing'}"
                )
                raise NotAppliedError(
                    f"job {self.plan.job} has not started yet ({why}): the reservation {self.name} stays; run `apply` again to go on"
                )

    def _free(self) -> None:
        """Removes the reservation. The job goes on."""
        look = self.look()
        kept = None if look.snapshot is None else look.snapshot.reservations.get(self.name)
        if kept is None or kept.end <= look.time + LAST_SECONDS:
            return
        self.journal.write(FREE)
        # Slurm deletes no reservation that a job uses, and ends such a job with its reservation unless that has the flag FLEX.
        scontrol(
            "update", f"ReservationName={self.name}", "Flags+=FLEX", f"EndTime=now+{LAST_SECONDS}seconds"
        )
        self.tell(f"The reservation {self.name} ends.")


def _minutes(plan: RoomPlan) -> str:
    return (
        "UNLIMITED" if plan.walltime is None else str(int(plan.walltime / 60) + SPARE_MINUTES + IDLE_MINUTES)
    )


def _found(look: Inspection, plan: RoomPlan) -> Job | None:
    """The job that the plan is for. One with the same number that was submitted at another time is another one."""
    job = task(look, plan.job)
    return job if job is not None and job.submit == plan.submit else None
