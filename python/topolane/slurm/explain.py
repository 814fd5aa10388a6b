"""Why a job does not run yet, in plain sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from topolane._engine import InputError, Refusal
from topolane.live.ask import Ask
from topolane.live.held import Held
from topolane.live.links import LISTED, Links, in_the_way, jobs_named
from topolane.slurm.forecast import Forecast, forecast
from topolane.slurm.look import Look, job_named
from topolane.slurm.mirror import Start
from topolane.slurm.records import Job
from topolane.slurm.usage import closed_nodes, holding
from topolane.slurm.waits import Wait, clock, waits
from topolane.units import duration, plural

HELP = {
    "held by its user": "Its user may release it: scontrol release {job}.",
    "held by an administrator": "An administrator may release it: scontrol release {job}.",
    "held, and not by the submission hook": "Whoever holds it may release it; it is not placed before that.",
}
CHANGE = "It stays held until it is changed (scontrol update jobid={job} ...) or cancelled."


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A job and why it is where it is. Times in seconds since 1970."""

    job: str
    state: str
    kind: str | None
    """Of a waiting job: see `topolane.slurm.waits.Wait`."""
    expected_start: float | None
    sentences: list[str]


def explain(look: Look, number: str) -> Explanation:
    """Explains the job of that number, or of an array the first task that waits, else its last.

    `look.mirror` is at the end of a forecast afterwards. Raises InputError where there is no such job.
    """
    jobs = job_named(look.snapshot, number)
    if not jobs:
        raise InputError(f"Slurm knows no job {number} (it forgets a job some minutes after its end)")
    job = next((job for job in jobs if job.waits), jobs[-1])
    said = []
    if len(jobs) > 1:
        waiting = sum(job.waits for job in jobs)
        said.append(f"Of the {len(jobs)} tasks of job {number} that Slurm knows {waiting} wait.")
    if job.waits and look.mirror.manages(job):
        return _Waiting(look, job).explain(said)
    return Explanation(job.number, job.state, None, None, [*said, *_not_waiting(look, job)])


def _not_waiting(look: Look, job: Job) -> Iterator[str]:
    snapshot = look.snapshot
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
    holders = {known: nodes for known, nodes in holding(snapshot, look.machine).items() if nodes}
    names = {known: snapshot.jobs[known].number for known in holders}
    links = Links(look.machine, holders, names, look.owned)
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
    own = look.owned.get(job.id)
    if own is None:
        yield f"Its nodes are in {home} (T{level}): it may use the uplinks of {groups}."
    else:
        yield (
            f"Its nodes are in {home} (T{level}): it owns {plural(len(own.links), 'link')} of {groups}, with "
            f"{bandwidth(own.bandwidth_share)} on them."
        )
        if own.lent and own.share is not None:
            yield (
                f"It is lent {plural(len(own.lent), 'link')} beside them, until somebody is placed there: with "
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

    def __init__(self, look: Look, job: Job) -> None:
        self.look, self.job, self.now = look, job, look.snapshot.time
        self.machine, scheduler = look.machine, look.mirror.scheduler.scheduler
        self.holders = {given.id: given.nodes for given, _, _ in scheduler.running}
        self.holders |= holding(look.snapshot, self.machine)
        self.names = {known: look.snapshot.jobs[known].number for known in self.holders}
        self.owned = look.owned
        self.promised = look.promised
        self.before = 0
        """How many jobs that may start now are before it in the queue."""
        for known in scheduler.waiting:
            if known == job.id:
                break
            ask = look.mirror.ask(known)
            self.before += ask is not None and ask.begin <= self.now

    def explain(self, said: list[str]) -> Explanation:
        job, mirror = self.job, self.look.mirror
        wait, ask = waits(self.look)[job.id], mirror.ask(job.id)
        said = [*said, f"Job {job.number} waits since {clock(job.submit, self.now)}: {wait.words}."]
        said += self._what_can_be_done(wait)
        if wait.kind == "queued" and ask is not None:
            refusal = mirror.scheduler.scheduler.explain(job.id)
            said += [*self._nodes(ask, refusal), *self._queue(ask, refusal is None)]
        expected = None
        if wait.kind not in ("refused", "starts", "released"):
            expected = None if wait.kind == "loose" else self._forecast(said)
        return Explanation(job.number, job.state, wait.kind, expected, said)

    def _what_can_be_done(self, wait: Wait) -> Iterator[str]:
        job = self.job
        if wait.kind == "refused":
            yield CHANGE.format(job=job.number)
        elif wait.kind == "starts":
            yield "The daemon releases it at its next look; if nothing happens, the daemon does not run."
        elif wait.kind == "loose":
            yield (
                "A daemon that is live holds it at its next look and places it; where there is none, or but a "
                "shadow, Slurm starts it as it would any job."
            )
        elif wait.words in HELP:
            yield HELP[wait.words].format(job=job.number)
        elif job.dependency and wait.kind == "held" and wait.words.startswith("waits for"):
            yield from self._dependency()

    def _dependency(self) -> Iterator[str]:
        """A dependency that cannot come true any more is not noticed by Slurm while the job is held."""
        kind, _, number = self.job.dependency.partition("(")[0].partition(":")
        others = job_named(self.look.snapshot, number)
        ended = others and not any(other.waits or other.holds_nodes for other in others)
        if ended and kind in ("afterok", "aftercorr", "afternotok"):
            states = ", ".join(sorted({other.state for other in others}))
            yield f"Job {number} has ended ({states}): this can never be met. " + CHANGE.format(
                job=self.job.number
            )

    def _nodes(self, ask: Ask, refusal: Refusal | None) -> Iterator[str]:
        """What it may use, what of it is idle and where, and what is in the way."""
        machine, total = self.machine, self.machine.nodes
        eligible = list(range(total)) if ask.eligible is None else list(ask.eligible)
        may = f"any of the {total}" if len(eligible) == total else f"{len(eligible)} of {total}"
        which = "" if len(eligible) == total else f": {machine.hostlist(eligible)}"
        yield f"It asks for {plural(ask.nodes, 'node')} and may use {may}{which}."
        if ask.min_bandwidth is not None:
            yield f"On dedicated links it accepts {bandwidth(ask.min_bandwidth)}."
        if ask.share is not None:
            cores = plural(ask.share[0], "core")
            yield f"It takes {cores} of each, and others may be on the same node."
            return
        busy = {node for nodes in self.holders.values() for node in nodes}
        closed = closed_nodes(self.look.snapshot, machine) - busy
        idle = [node for node in eligible if node not in busy and node not in closed]
        out = sum(node in closed for node in eligible)
        without = f", {out} are out of service" if out else ""
        yield f"Of these {len(idle)} are idle{without}{self._where(idle)}."
        if refusal is not None and refusal.name == "would-share-links":
            yield from in_the_way(refusal, ask.nodes, self.names)

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

    def _queue(self, ask: Ask, fits: bool) -> Iterator[str]:
        """Its place, and who must not be delayed."""
        if self.promised is not None and self.promised[0] == self.job.id:
            by = clock(self.promised[1], self.now)
            yield f"It is first in the queue: it is promised a start by {by}, and nobody who would delay that starts."
            return
        yield f"Before it in the queue: {plural(self.before, 'job')}."
        if self.promised is None or not fits:
            return
        head = self.look.snapshot.jobs[self.promised[0]].number
        by, ends = clock(self.promised[1], self.now), self.now + ask.walltime
        until = "without end" if ends == float("inf") else f"until {clock(ends, self.now)}"
        yield (
            f"There is room for it, but job {head} is promised a start by {by}: this job could run {until} "
            "and would delay it. A shorter walltime may help."
        )

    def _forecast(self, said: list[str]) -> float | None:
        """When and after whom it is expected to start; said at the end of `said`."""
        look, job = self.look, self.job
        found = forecast(look.mirror, look.snapshot, look.changes, look.starts)
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
            "if all jobs run to their walltimes and nobody comes before it in the queue."
        )
        said += self._first_must_end(found, when, start)
        return when

    def _first_must_end(self, found: Forecast, when: float, start: Start) -> Iterator[str]:
        """The running jobs that are then no more on its nodes, or on links that it may then use."""
        nodes, links = start.decision.nodes, set(start.decision.links)
        owned = self.owned | ({self.job.id: Held.of(start.decision)} if links else {})
        after = Links(
            self.machine,
            self.holders | {self.job.id: nodes},
            self.names | {self.job.id: self.job.number},
            owned,
        )
        met = {other for _, others in after.of(self.job.id) for other in others}
        ends = []
        for known, held in self.holders.items():
            record = self.look.snapshot.jobs[known]
            if record.waits or record.walltime is None:
                continue
            end = record.start + record.walltime
            own = self.owned.get(known)
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
