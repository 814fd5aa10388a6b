"""Why a job does not run yet, in plain sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from topolane._engine import InputError, Refusal
from topolane.live.allocation import Allocation
from topolane.live.job_request import JobRequest
from topolane.live.links import LISTED, Links, in_the_way, jobs_named
from topolane.slurm.forecast import Forecast, forecast
from topolane.slurm.mirror import Start
from topolane.slurm.preview import Preview, job_named
from topolane.slurm.records import Job
from topolane.slurm.usage import closed_nodes, holding
from topolane.slurm.wait_reasons import WaitReason, clock, wait_reasons
from topolane.units import duration, plural

HELP = {
    "held by its user": "Its user may release it: scontrol release {job}.",
    "held by an administrator": "An administrator may release it: scontrol release {job}.",
    "held, and not by the submission hook": "It is placed after the user who holds it has released it.",
}
CHANGE = "It stays held until it is changed (scontrol update jobid={job} ...) or cancelled."


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The state of a job, and the reasons for it. Times in seconds since 1970."""

    job: str
    state: str
    kind: str | None
    """For a waiting job, see `topolane.slurm.wait_reasons.WaitReason`."""
    expected_start: float | None
    sentences: list[str]


def explain(preview: Preview, number: str) -> Explanation:
    """Explains the job of that number. For an array: its first waiting task, or its last task if none waits.

    This advances `preview.mirror` to the end of the forecast. Raises InputError if there is no such job.
    """
    jobs = job_named(preview.snapshot, number)
    if not jobs:
        raise InputError(f"Slurm knows no job {number} (it forgets a job some minutes after its end)")
    job = next((job for job in jobs if job.waits), jobs[-1])
    said = []
    if len(jobs) > 1:
        waiting = sum(job.waits for job in jobs)
        said.append(f"Of the {len(jobs)} tasks of job {number} that Slurm knows {waiting} wait.")
    if job.waits and preview.mirror.manages(job):
        return _Waiting(preview, job).explain(said)
    return Explanation(job.number, job.state, None, None, [*said, *_not_waiting(preview, job)])


def _not_waiting(preview: Preview, job: Job) -> Iterator[str]:
    snapshot = preview.snapshot
    if job.waits:
        managed = "not managed here" if len(job.partitions) == 1 else "not all managed here"
        yield (
            f"Job {job.number} waits in {_partitions(job)}, {managed}: Slurm decides when it starts, and says "
            f"{job.reason or 'nothing'}."
        )
        return
    if not job.holds_nodes:
        yield f"Job {job.number} has ended: {job.state}."
        return
    holders = {known: nodes for known, nodes in holding(snapshot, preview.machine).items() if nodes}
    names = {known: snapshot.jobs[known].number for known in holders}
    links = Links(preview.machine, holders, names, preview.dedicated)
    level, home = links.home(holders[job.id])
    since = clock(job.start, snapshot.time)
    yield f"Job {job.number} is {job.state} on {job.nodes} since {since}."
    if job.walltime is not None:
        yield f"It ends by {clock(job.start + job.walltime, snapshot.time)}, its walltime."
    used = links.of(job.id)
    if not used:
        yield f"Its nodes are in {home} (T{level}): it uses no link between switches."
        return
    groups = ", ".join(group for group, _ in used[:LISTED]) + (" and others" if len(used) > LISTED else "")
    own = preview.dedicated.get(job.id)
    if own is None:
        yield f"Its nodes are in {home} (T{level}): it may use the uplinks of {groups}."
    else:
        yield (
            f"Its nodes are in {home} (T{level}): it owns {plural(len(own.links), 'link')} of {groups}, with "
            f"{bandwidth(own.bandwidth_share)} on them."
        )
        if own.lent and own.share is not None:
            yield (
                f"It is lent {plural(len(own.lent), 'link')} in addition, until a job is placed there: with "
                f"these it has {bandwidth(round(own.share.bandwidth_share, 3))}."
            )
    met = [(group, others) for group, others in used if others]
    yield from (f"On those of {group} it may meet {jobs_named(others)}." for group, others in met[:LISTED])
    if not met:
        yield "No other job may use them."


def bandwidth(share: float) -> str:
    """A share of full bandwidth in words."""
    return "full bandwidth" if share >= 1.0 else f"{share:g} of full bandwidth"


def _partitions(job: Job) -> str:
    return f"partition{'' if len(job.partitions) == 1 else 's'} {', '.join(job.partitions)}"


class _Waiting:
    """The explanation of a job that waits."""

    def __init__(self, preview: Preview, job: Job) -> None:
        self.preview, self.job, self.now = preview, job, preview.snapshot.time
        self.machine, scheduler = preview.machine, preview.mirror.scheduler.scheduler
        self.holders = {given.id: given.nodes for given, _, _ in scheduler.running}
        self.holders |= holding(preview.snapshot, self.machine)
        self.names = {known: preview.snapshot.jobs[known].number for known in self.holders}
        self.dedicated = preview.dedicated
        self.promised = preview.promised
        self.before = 0
        """How many jobs that may start now are before it in the queue."""
        for known in scheduler.waiting:
            if known == job.id:
                break
            request = preview.mirror.request(known)
            self.before += request is not None and request.begin <= self.now

    def explain(self, said: list[str]) -> Explanation:
        job, mirror = self.job, self.preview.mirror
        wait, request = wait_reasons(self.preview)[job.id], mirror.request(job.id)
        said = [*said, f"Job {job.number} waits since {clock(job.submit, self.now)}: {wait.words}."]
        said += self._what_can_be_done(wait)
        if wait.kind == "queued" and request is not None:
            refusal = mirror.scheduler.scheduler.explain(job.id)
            said += [*self._nodes(request, refusal), *self._queue(request, refusal is None)]
        expected = None
        if wait.kind not in ("refused", "starts", "released"):
            expected = None if wait.kind == "loose" else self._forecast(said)
        return Explanation(job.number, job.state, wait.kind, expected, said)

    def _what_can_be_done(self, wait: WaitReason) -> Iterator[str]:
        job = self.job
        if wait.kind == "refused":
            yield CHANGE.format(job=job.number)
        elif wait.kind == "starts":
            yield "The daemon releases it at its next look; if nothing happens, the daemon does not run."
        elif wait.kind == "loose":
            yield (
                "A daemon that runs without --dry-run holds it at its next look and places it; otherwise Slurm "
                "starts it like any other job."
            )
        elif wait.words in HELP:
            yield HELP[wait.words].format(job=job.number)
        elif job.dependency and wait.kind == "held" and wait.words.startswith("waits for"):
            yield from self._dependency()

    def _dependency(self) -> Iterator[str]:
        """Says so if a dependency can no longer be met: Slurm does not notice that while the job is held."""
        kind, _, number = self.job.dependency.partition("(")[0].partition(":")
        others = job_named(self.preview.snapshot, number)
        ended = others and not any(other.waits or other.holds_nodes for other in others)
        if ended and kind in ("afterok", "aftercorr", "afternotok"):
            states = ", ".join(sorted({other.state for other in others}))
            yield f"Job {number} has ended ({states}): this can never be met. " + CHANGE.format(
                job=self.job.number
            )

    def _nodes(self, request: JobRequest, refusal: Refusal | None) -> Iterator[str]:
        """Which nodes it may use, which of them are idle, and what keeps the job from them."""
        machine, total = self.machine, self.machine.nodes
        eligible = list(range(total)) if request.eligible is None else list(request.eligible)
        may = f"any of the {total}" if len(eligible) == total else f"{len(eligible)} of {total}"
        which = "" if len(eligible) == total else f": {machine.hostlist(eligible)}"
        yield f"It asks for {plural(request.nodes, 'node')} and may use {may}{which}."
        if request.min_bandwidth is not None:
            yield f"On dedicated links it accepts {bandwidth(request.min_bandwidth)}."
        if request.share is not None:
            others = [
                (name, count) for name, count in request.share.items() if name not in ("cores", "memory")
            ]
            more = "".join(f", {count} {name}" for name, count in others)
            cores = plural(request.share["cores"], "core")
            yield f"It takes {cores}{more} of each, and others may be on the same node."
            return
        busy = {node for nodes in self.holders.values() for node in nodes}
        closed = closed_nodes(self.preview.snapshot, machine) - busy
        idle = [node for node in eligible if node not in busy and node not in closed]
        out = sum(node in closed for node in eligible)
        without = f", {out} are out of service" if out else ""
        yield f"Of these {len(idle)} are idle{without}{self._where(idle)}."
        if refusal is not None and refusal.name == "would-share-links":
            yield from in_the_way(refusal, request.nodes, self.names)

    def _where(self, idle: list[int]) -> str:
        """Idle nodes by the groups of the lowest levels: `: pod1 5 (leaf1 2, leaf2 3)`."""
        rows = self.machine.outline(idle)
        has_pods = any(level > 2 for level, *_ in rows)
        parts: list[tuple[str, list[str]]] = []
        for level, name, count, _ in rows:
            if level == (2 if has_pods else 1):
                parts.append((f"{name} {count}", []))
            elif level == 1:
                parts[-1][1].append(f"{name} {count}")
        if not parts:
            return ""
        words = [f"{group} ({', '.join(inside)})" if inside else group for group, inside in parts]
        return f": {', '.join(words[:12])}" + (", ..." if len(words) > 12 else "")

    def _queue(self, request: JobRequest, fits: bool) -> Iterator[str]:
        """Its place in the queue, and the job that it must not delay."""
        if self.promised is not None and self.promised[0] == self.job.id:
            by = clock(self.promised[1], self.now)
            yield f"It is first in the queue: it is promised a start by {by}, and no job that would delay it starts."
            return
        yield f"Before it in the queue: {plural(self.before, 'job')}."
        if self.promised is None or not fits:
            return
        head = self.preview.snapshot.jobs[self.promised[0]].number
        by, ends = clock(self.promised[1], self.now), self.now + request.walltime
        until = "without end" if ends == float("inf") else f"until {clock(ends, self.now)}"
        yield (
            f"There is room for it, but job {head} is promised a start by {by}: this job could run {until} "
            "and would delay it. A shorter walltime may help."
        )

    def _forecast(self, said: list[str]) -> float | None:
        """When it is expected to start, and which jobs must end first; appended to `said`."""
        preview, job = self.preview, self.job
        found = forecast(preview.mirror, preview.snapshot, preview.changes, preview.starts)
        known = found.starts.get(job.id)
        if known is None:
            if found.until is not None:
                said.append(f"It is not expected to start before {clock(found.until, self.now)}.")
            else:
                said.append("It does not start by what is known now, even when all other jobs have ended.")
            return None
        when, start = known
        said.append(
            f"It is expected to start by {clock(when, self.now)} (in {duration(when - self.now)}) on {start.hosts}, "
            "if all jobs run to their walltimes and no new job goes before it in the queue."
        )
        said += self._first_must_end(found, when, start)
        return when

    def _first_must_end(self, found: Forecast, when: float, start: Start) -> Iterator[str]:
        """The running jobs that must leave its nodes, or the links that it may use, before it starts."""
        nodes, links = start.decision.nodes, set(start.decision.links)
        dedicated = self.dedicated | ({self.job.id: Allocation.of(start.decision)} if links else {})
        after = Links(
            self.machine,
            self.holders | {self.job.id: nodes},
            self.names | {self.job.id: self.job.number},
            dedicated,
        )
        met = {other for _, others in after.of(self.job.id) for other in others}
        ends = []
        for known, held in self.holders.items():
            record = self.preview.snapshot.jobs[known]
            if record.waits or record.walltime is None:
                continue
            end = record.start + record.walltime
            own = self.dedicated.get(known)
            same = set(held) & set(nodes) or (own is not None and links & set(own.links))
            if end <= when and (same or record.number in met):
                by = "past its walltime" if end < self.now else f"by {clock(end, self.now)}"
                ends.append((end, f"{record.number} ({by})"))
        if ends:
            names = [name for _, name in sorted(ends)]
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            yield f"Until then must end: job{'s' * (len(names) > 1)} {', '.join(names[:LISTED])}{more}."
        between = [
            (then, start.job.number)
            for then, start in found.starts.values()
            if start.job.id not in self.holders and then < when and set(start.decision.nodes) & set(nodes)
        ]
        if between:
            said = jobs_named([number for _, number in sorted(between)[:LISTED]])
            more = f" and {len(between) - LISTED} more" if len(between) > LISTED else ""
            yield f"Before it, {said}{more} {'runs' if len(between) == 1 else 'run'} there."
