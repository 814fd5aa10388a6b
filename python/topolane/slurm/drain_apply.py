"""Carries out a plan that empties nodes of Slurm (drain_plan.py), by scontrol, with a journal next to the plan.

1. A reservation for maintenance keeps the nodes from the time of the plan on. Until then only jobs start there that end before.
2. The running jobs are requeued that would not end before.
3. They have left the nodes. The reservation stays until the operator deletes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property

from topolane.cluster.clients.scontrol import scontrol
from topolane.cluster.room_files import BEGIN, DONE, NotAppliedError
from topolane.slurm import drain_plan
from topolane.slurm.drain_plan import DrainPlan, is_over_by, jobs_on
from topolane.slurm.inspection import SlurmInspection, names_in
from topolane.slurm.records import Reservation, SlurmJob
from topolane.slurm.requeueing import REQUEUE, SlurmApplying, snapshot_of
from topolane.units import clock

RESERVE, FREE = "reserve", "free"


class DrainApplying(SlurmApplying[DrainPlan, list[SlurmJob]]):
    """Carries out a plan that empties nodes. It waits for the requeued jobs to leave."""

    STEPS = (BEGIN, RESERVE, REQUEUE, FREE, DONE)
    read = staticmethod(drain_plan.read)

    @cached_property
    def nodes(self) -> list[str]:
        """The nodes that are to be empty."""
        return names_in(self.plan.nodes)

    @property
    def name(self) -> str:
        """Of the reservation: that of the first node."""
        return f"topolane_drain_{self.nodes[0]}"

    def changed(self, look: SlurmInspection) -> Iterator[str]:
        """What is no longer as the plan says."""
        for job in self._unplanned(look):
            yield f"job {job.number} runs on {job.nodes} and does not end before {clock(self.plan.by, look.time)}"
        for job in self._in_the_way(look):
            if not job.requeueable and self._is_planned(job):
                yield f"job {job.number} may not be requeued any more"
        kept = snapshot_of(look).reservations.get(self.name)
        if kept is not None and not self._serves(kept, look.time):
            yield f"there is another reservation {self.name} already"

    def found(self, look: SlurmInspection) -> list[SlurmJob]:
        """The jobs that must leave the nodes."""
        requeued = {each.job for each in self.plan.requeued}
        return self._unplanned(look) + [
            job
            for job in jobs_on(look, self.nodes)
            if job.number in requeued and (job.state == "COMPLETING" or self._is_planned(job))
        ]

    def waits(self, look: SlurmInspection, found: list[SlurmJob]) -> bool:
        """Whether the nodes are to be reserved yet, or some have jobs."""
        return bool(found) or not self._is_reserved(look)

    def hold(self, look: SlurmInspection, found: list[SlurmJob]) -> None:
        """Reserves the nodes for the maintenance."""
        if self._is_reserved(look):
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

    def disturb(self, look: SlurmInspection, found: list[SlurmJob]) -> bool:
        """Requeues the jobs of the plan."""
        if others := self._unplanned(look):
            raise NotAppliedError(
                f"{_named(others)} started after the plan was made and would not end in time: "
                f"the reservation {self.name} stays; make a new plan"
            )
        return self.requeue(look, self.plan.requeued)

    def too_late(self, look: SlurmInspection, found: list[SlurmJob]) -> str:
        """The reservation stays."""
        raise NotAppliedError(
            f"{self.plan.nodes} still has {_named(found)}: "
            f"the reservation {self.name} stays; run `apply` again to go on"
        )

    def give_up(self) -> None:
        """Removes the reservation, unless it was there before."""
        if self.journal.has(RESERVE) and self._is_reserved(self.look()):
            self.journal.write(FREE)
            scontrol("delete", f"ReservationName={self.name}")
            self.tell(f"The reservation {self.name} is removed.")

    def outcome(self, found: list[SlurmJob] | None) -> Iterator[str]:
        """What is left on the nodes. The reservation stays until the operator deletes it."""
        left = jobs_on(self.look(), self.nodes)
        what = f"what runs there ends in time: {_named(left)}" if left else "no job runs there"
        yield f"{self.plan.nodes}: {what}."
        yield f"After the maintenance: scontrol delete ReservationName={self.name}"

    def _is_reserved(self, look: SlurmInspection) -> bool:
        return self.name in snapshot_of(look).reservations

    def _in_the_way(self, look: SlurmInspection) -> list[SlurmJob]:
        """The jobs on the nodes that do not end in time."""
        by = max(self.plan.by, look.time)
        return [job for job in jobs_on(look, self.nodes) if not is_over_by(job, look.time, by)]

    def _unplanned(self, look: SlurmInspection) -> list[SlurmJob]:
        """The jobs in the way that the plan does not name."""
        return [job for job in self._in_the_way(look) if not self._is_planned(job)]

    def _is_planned(self, job: SlurmJob) -> bool:
        return any(each.job == job.number and each.is_run_of(job) for each in self.plan.requeued)

    def _serves(self, kept: Reservation, now: float) -> bool:
        """Whether a reservation keeps the nodes as the plan wants it, for instance one of an earlier plan."""
        return (
            set(names_in(kept.nodes)) >= set(self.nodes) and kept.start <= max(self.plan.by, now) < kept.end
        )


def _named(jobs: list[SlurmJob]) -> str:
    return ("job " if len(jobs) == 1 else "jobs ") + ", ".join(job.number for job in jobs)
