"""Carries out a plan that makes room for a job of Slurm (room_plan.py), by scontrol, with a journal next to the plan.

1. A reservation holds the nodes of the plan for the user of the job.
2. The job is moved into that reservation. From here on it can start nowhere else.
3. The running jobs are requeued.
4. The job starts, and the reservation is removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from topolane.cluster.clients.scontrol import scontrol
from topolane.cluster.room_files import BEGIN, DONE, NotAppliedError
from topolane.slurm import room_plan
from topolane.slurm.inspection import SlurmInspection
from topolane.slurm.records import Reservation, SlurmJob
from topolane.slurm.requeueing import REQUEUE, SlurmApplying, snapshot_of, task
from topolane.slurm.room_plan import RequeuePlan
from topolane.units import plural

RESERVE, JOIN, LEAVE, FREE = "reserve", "join", "leave", "free"
SPARE_MINUTES = 60
"""Minutes that the reservation is longer than the job's walltime: the job must end in it, and starts later than it begins."""
IDLE_MINUTES = 10
"""Slurm removes the reservation by itself once no job has used it for so long."""
LAST_SECONDS = 2
"""The reservation ends so soon once it is not needed any more. Slurm forgets it within a minute."""


class RequeueApplying(SlurmApplying[RequeuePlan, SlurmJob]):
    """Carries out a plan that makes room. It waits for jobs to go, and for the waiting job to start."""

    STEPS = (BEGIN, RESERVE, JOIN, REQUEUE, LEAVE, FREE, DONE)
    read = staticmethod(room_plan.read)

    @property
    def name(self) -> str:
        """Of the reservation."""
        return f"topolane_room_{self.plan.job}"

    def changed(self, look: SlurmInspection) -> Iterator[str]:
        """What is no longer as the plan says."""
        plan, job = self.plan, self.found(look)
        if job is None or not job.waits:
            yield f"job {plan.job} does not wait any more" + (f": it is {job.state}" if job else "")
        for each in plan.requeued:
            one = task(look, each.job)
            if not each.is_run_of(one):
                yield f"job {each.job} does not run on {each.nodes} any more"
            elif one is not None and not one.requeueable:
                yield f"job {each.job} may not be requeued any more"
        if self._reservation(look) is not None:
            yield f"there is a reservation {self.name} already"

    def lost(self, look: SlurmInspection) -> str | None:
        """Why the policy has no place on the nodes of the plan."""
        job = self.found(look)
        return None if job is None else room_plan.still_places(look, self.plan, job)

    def found(self, look: SlurmInspection) -> SlurmJob | None:
        """The job that the plan is for. One with the same number that was submitted at another time is another one."""
        job = task(look, self.plan.job)
        return job if job is not None and job.submit == self.plan.submit else None

    def waits(self, look: SlurmInspection, found: SlurmJob) -> bool:
        """Whether the job has yet to start."""
        return found.waits

    def hold(self, look: SlurmInspection, found: SlurmJob) -> None:
        """Reserves the nodes, and lets the job into the reservation."""
        plan = self.plan
        if self._reservation(look) is None:
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
        if found.reservation != self.name:
            self.journal.write(JOIN)
            scontrol("update", f"JobId={plan.job}", f"ReservationName={self.name}")

    def disturb(self, look: SlurmInspection, found: SlurmJob) -> bool:
        """Requeues the jobs of the plan."""
        return self.requeue(look, self.plan.requeued)

    def too_late(self, look: SlurmInspection, found: SlurmJob) -> str:
        """The reservation stays."""
        there = [each.job for each in self.plan.requeued if each.is_run_of(task(look, each.job))]
        why = (
            f"{plural(len(there), 'job')} must go first: {', '.join(there)}"
            if there
            else f"Slurm says {found.reason or 'nothing'}"
        )
        raise NotAppliedError(
            f"job {self.plan.job} has not started yet ({why}): the reservation {self.name} stays; run `apply` again to go on"
        )

    def give_up(self) -> None:
        """Removes the reservation, if this plan made it. A job that waits in it waits on without it."""
        if not self.journal.has(RESERVE):
            return
        job = self.found(self.look())
        if job is not None and job.waits and job.reservation == self.name:
            self.journal.write(LEAVE)
            scontrol("update", f"JobId={self.plan.job}", "ReservationName=")
        self.free()

    def free(self) -> None:
        """Removes the reservation. The job goes on."""
        look = self.look()
        kept = self._reservation(look)
        if kept is None or kept.end <= look.time + LAST_SECONDS:
            return
        self.journal.write(FREE)
        # Slurm deletes no reservation that a job uses, and ends such a job with its reservation unless that has the flag FLEX.
        scontrol(
            "update", f"ReservationName={self.name}", "Flags+=FLEX", f"EndTime=now+{LAST_SECONDS}seconds"
        )
        self.tell(f"The reservation {self.name} ends.")

    def outcome(self, found: SlurmJob | None) -> Iterator[str]:
        """Where the job runs."""
        if found is None or not found.holds_nodes:
            raise NotAppliedError(
                f"job {self.plan.job} does not wait any more and does not run: its reservation ends"
            )
        yield f"Job {found.number} runs on {found.nodes}."

    def _reservation(self, look: SlurmInspection) -> Reservation | None:
        return snapshot_of(look).reservations.get(self.name)


def _minutes(plan: RequeuePlan) -> str:
    return (
        "UNLIMITED" if plan.walltime is None else str(int(plan.walltime / 60) + SPARE_MINUTES + IDLE_MINUTES)
    )
