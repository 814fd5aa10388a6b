"""Asks the engine about a snapshot: which job starts when, why a job waits, what would make room. It changes
nothing in the live system.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from topolane._engine import Machine, NoRoom, Refusal, policies
from topolane.cluster import hypothetical
from topolane.cluster.hypothetical import Cost, Hypothetical
from topolane.cluster.links import Links, in_the_way, jobs_named
from topolane.cluster.view import Reserved, Running, View, Waiting
from topolane.policy import resolve
from topolane.serve.forecast import DEPTH, NEVER, Copy, length_of
from topolane.serve.source import ranges
from topolane.units import duration, plural

HORIZON = 24 * 3600.0
"""Seconds that a forecast looks ahead."""
ASKED_HORIZON = 30 * 24 * 3600.0
"""Seconds that a forecast for one job in question looks ahead."""
BUDGET = 2.0
"""Seconds of computing after which a forecast stops."""
REASONS = 200
"""The number of waiting jobs, from the head of the queue, for which the list shows reasons."""
LISTED = 12
"""The most jobs that a sentence names."""
ROOM_QUESTIONS = 2000
"""The most questions to the policy when making room for a job."""
KNOWN = frozenset(name for name, _ in policies())

SHORT = {
    "not-now": "too few nodes free",
    "never": "never fits",
    "would-share-links": "would share links",
    "cannot-isolate": "never has links of its own",
    "lacks": "asks for what the machine lacks",
}
"""Short descriptions of kinds of refusals."""
BEHIND = "behind others"
KEPT_OFF = "nodes are reserved"


@dataclasses.dataclass(frozen=True)
class ForecastQuestion:
    """A job that might be submitted. `walltime` is in seconds."""

    nodes: int
    walltime: float
    policy: str
    gpus: int | None = None
    """GPUs on each node; None for whole nodes."""
    eligible: tuple[int, ...] | None = None
    """The nodes that the job may use; None for all."""
    reservation: str = ""
    """The reservation in which the job would run; empty for none."""

    def job(self, machine: Machine, id: int, now: float) -> Waiting:
        """The question as a waiting job that was submitted now."""
        return Waiting(
            *(id, "", "", "", self.nodes, now, self.walltime),
            share=self.share(machine),
            eligible=self.eligible,
            reservations=(self.reservation,) if self.reservation else (),
        )

    def share(self, machine: Machine) -> dict[str, int] | None:
        """The share of each node that the job takes: its GPUs, and the same fraction of the cores and memory
        of the node with most GPUs. None for whole nodes.
        """
        if self.gpus is None:
            return None
        best = max(map(machine.resources_of, range(machine.nodes)), key=lambda has: has.get("gpu", 0))
        part = self.gpus / max(best.get("gpu", 0), 1)
        found = {name: int(amount * part) for name, amount in best.items() if name in ("cores", "memory")}
        return {name: amount for name, amount in found.items() if amount} | {"gpu": self.gpus}


def outlook(machine: Machine, snapshot: View, policy: str, queue: str) -> dict[str, Any]:
    """The forecast, the reasons of the first jobs in the queue and the free slots, in the form that the page
    reads.
    """
    present = Copy(machine, snapshot, policy, queue)
    reasons = {
        job.id: short_reason(present, job)
        for job in [job for job in snapshot.waiting if not job.why][:REASONS]
        if not job.held
    }
    found = present.run(snapshot.time + HORIZON, BUDGET)
    asked = Hypothetical.of(machine, snapshot, resolve(policy))
    now = [one.nodes for one in snapshot.reserved if one.start <= snapshot.time < one.end]
    asked.serve(asked.out.union(*now) - snapshot.busy)
    room = asked.room()
    return {
        "time": snapshot.time,
        "until": found.until,
        "whole": found.whole,
        "left_out": max(present.beyond_depth, 0),
        "lost": present.lost,
        "starts": [[one.id, ranges(one.nodes), one.start, _finite(one.end)] for one in found.starts],
        "reasons": reasons,
        "room": {name: room[name] for name in ("unit", "levels", "fits", "free", "total", "idle_nodes")},
    }


def _finite(end: float) -> float | None:
    return end if end < NEVER else None


def short_reason(present: Copy, job: Waiting) -> str:
    """Why a job waits, in a few words."""
    refusal = present.refused.get(job.id)
    if refusal is None:
        try:
            refusal = present.scheduler.explain(job.id)
        except KeyError:
            return KEPT_OFF if present.kept_off(job) else ""
    return BEHIND if refusal is None else SHORT.get(refusal.name, refusal.name)


def why(machine: Machine, snapshot: View, policy: str, queue: str, job: Waiting) -> list[str]:
    """The engine's sentences on why a job of a snapshot waits."""
    if job.held:
        return [f"{job.why[:1].upper()}{job.why[1:]}."] if job.why else ["It is held."]
    names = snapshot.names
    present = Copy(machine, snapshot, policy, queue)
    place = next(index for index, one in enumerate(snapshot.waiting) if one.id == job.id)
    refusal = present.refused.get(job.id)
    waits = job.id in present.scheduler.waiting
    if refusal is None and waits:
        refusal = present.scheduler.explain(job.id)
    said = _refused(refusal, job.nodes, names) if refusal is not None else []
    said += _reserved(present, snapshot, job)
    if refusal is None or refusal.name not in ("never", "lacks", "cannot-isolate"):
        said += _in_the_queue(present, snapshot, job, place, refusal is None and waits)
    return said


def met(machine: Machine, snapshot: View, job: Running) -> list[str]:
    """Whom a running job may meet on links, in a sentence that names at most `LISTED` of them."""
    if machine.home(list(job.nodes))[0] < 2:
        return ["It uses no link between switches."]
    others = Links(machine, snapshot).met(job)
    if not others:
        return ["No other job may use the links that it may use."]
    more = [plural(len(others) - LISTED, "other")] if len(others) > LISTED else []
    return [f"It may meet {jobs_named([*others[:LISTED], *more])} on links."]


def _refused(refusal: Refusal, nodes: int, names: dict[int, str]) -> list[str]:
    text = refusal.why
    return [f"{text[:1].upper()}{text[1:]}.", *in_the_way(refusal, nodes, names)]


def _reserved(present: Copy, snapshot: View, job: Waiting) -> list[str]:
    """Sentences on how reservations restrict a job now."""
    said = []
    for own in (one for one in snapshot.reserved if one.name in job.reservations):
        if own.start > snapshot.time:
            said.append(f"Its reservation {own.name} begins in {duration(own.start - snapshot.time)}.")
        if length_of(job) > own.end - max(own.start, snapshot.time):
            said.append(f"It cannot end within its reservation {own.name}.")
    return said + [_kept_off(one, snapshot.time) for one in present.kept_off(job)]


def _kept_off(one: Reserved, now: float) -> str:
    nodes = plural(len(one.nodes), "node")
    if one.start <= now:
        return f"{nodes} are reserved: {one.name} ends in {duration(one.end - now)}."
    return f"On {nodes} it would not end before the reservation {one.name} begins in {duration(one.start - now)}."


def _in_the_queue(present: Copy, snapshot: View, job: Waiting, place: int, fits: bool) -> list[str]:
    said = []
    if fits and place >= DEPTH:
        return [f"{plural(place, 'job')} wait before it: the forecast looks at the first {DEPTH:,} only."]
    if fits and place:
        said.append(
            f"There is room for it now, but {plural(place, 'job')} {'is' if place == 1 else 'are'} before it in the queue."
        )
    elif place:
        said.append(f"{plural(place, 'job')} {'is' if place == 1 else 'are'} before it in the queue.")
    else:
        said.append("It is the first in the queue.")
    found = present.run(snapshot.time + HORIZON, BUDGET, wanted=job.id)
    start = next((one for one in found.starts if one.id == job.id), None)
    if start is None:
        said.append(f"It does not start within {duration(found.until - snapshot.time)} of the forecast.")
    elif start.start <= snapshot.time:
        said.append("It starts when the queue is next looked at.")
    else:
        said.append(
            f"If every job uses its whole walltime and none comes before it, it starts in {duration(start.start - snapshot.time)}."
        )
    return said


def ask(machine: Machine, snapshot: View, queue: str, question: ForecastQuestion) -> dict[str, Any]:
    """When and where a job would start if it was submitted now, why it would not start now, and what would
    make room.

    The engine answers on a copy of the snapshot, with the job at the end of the queue. Raises InputError for
    an unknown policy.
    """
    names = snapshot.names
    id = 1 + max(names, default=0)
    present = Copy(machine, snapshot, question.policy, queue)
    job = question.job(machine, id, snapshot.time)
    refusal = present.submit(job, len(snapshot.waiting) + 1)
    answer: dict[str, Any] = {"start": None, "nodes": [], "hosts": "", "why": [], "room": None, "whole": True}
    if refusal is not None:
        return answer | {"never": True, "why": _refused(refusal, question.nodes, names)}
    waits = id in present.scheduler.waiting
    refusal = present.scheduler.explain(id) if waits else None
    reserved, usable = _reserved(present, snapshot, job), present.usable(job)
    found = present.run(snapshot.time + ASKED_HORIZON, BUDGET, wanted=id)
    start = next((one for one in found.starts if one.id == id), None)
    answer |= {"never": False, "whole": found.whole, "until": found.until}
    if start is not None:
        answer |= {"start": start.start, "nodes": ranges(start.nodes), "hosts": machine.hostlist(start.nodes)}
    if start is None or start.start > snapshot.time:
        answer["why"] = [
            *(_refused(refusal, question.nodes, names) if refusal is not None else []),
            *reserved,
        ]
        if refusal is None and waits:
            before = plural(len(snapshot.waiting), "job")
            answer["why"].append(f"There is room for it now, but {before} would be before it in the queue.")
        if usable:
            answer["room"] = _room(machine, snapshot, question, id, names, usable[0])
    if present.beyond_depth > 0:
        answer["why"].append(
            f"{plural(present.beyond_depth, 'waiting job')} at the end of the queue are not considered."
        )
    return answer


def _room(
    machine: Machine,
    snapshot: View,
    question: ForecastQuestion,
    id: int,
    names: dict[int, str],
    usable: Sequence[int] | None,
) -> dict[str, Any]:
    """The cheapest jobs to requeue so that the policy places the job now on usable nodes: a sentence and the
    jobs.

    The planner frees only whole nodes, even for a job that takes a part of its nodes.
    """
    costs = {
        job.id: Cost((snapshot.time - job.start) * len(job.nodes) if job.requeueable else None)
        for job in snapshot.running
        if job.share is None
    }
    asked = Hypothetical.of(machine, snapshot, resolve(question.policy))
    found = asked.make_room(
        hypothetical.Question(id, question.nodes, eligible=usable), costs, questions=ROOM_QUESTIONS
    )
    if isinstance(found, NoRoom):
        return {"sentence": f"{found.reason[:1].upper()}{found.reason[1:].rstrip('.')}.", "jobs": []}
    gone = found.requeued
    if not gone:
        return {"sentence": "There is room already: only the order of the queue is in the way.", "jobs": []}
    named = [names[job] for job in gone[:LISTED]]
    more = f" and {len(gone) - LISTED} more" if len(gone) > LISTED else ""
    return {
        "sentence": f"It would start now without {jobs_named(named)}{more}, which have used "
        f"{found.cost / 3600:,.1f} node-hours; no choice costs less than {found.least / 3600:,.1f}.",
        "jobs": gone,
    }
