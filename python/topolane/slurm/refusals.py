"""What stands in the way of a job that the plugin refused, by the engine that the plugin asks."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Collection, Iterator

from topolane._engine import (
    Decision,
    InputError,
    LinkUse,
    Machine,
    Refusal,
    Scheduler,
    State,
    linking_policies,
)
from topolane.cluster.allocation import Allocation
from topolane.cluster.links import LISTED, in_the_way, jobs_named
from topolane.slurm.inspection import Inspection, names_in, number_of, on_machine
from topolane.slurm.plugin_state import Refused
from topolane.slurm.records import Job
from topolane.slurm.wait_reasons import idle_of
from topolane.units import plural

MOST_SECONDS = 2.0
"""How long the search for jobs that must end may take."""
MOST_GROUPS = 12
FAR = 1e9
"""Seconds: longer than any job."""


@dataclasses.dataclass(frozen=True)
class Ending:
    """A job that must end before another one has a place. Times in seconds since 1970."""

    job: str
    by: float | None
    """The end of its time; None if it has no limit."""


@dataclasses.dataclass(frozen=True)
class InTheWay:
    """Where a refused job could lie, and what keeps it from there."""

    candidates: str
    """The nodes that Slurm offered, a hostlist."""
    idle: str
    """Those that no job holds now."""
    idle_count: int
    where: str
    """The idle ones by group: `pod1 5 (leaf1 2, leaf2 3)`."""
    has_place: bool
    """Whether the policy has a place for it by now."""
    obstacles: list[str]
    """The groups and jobs in the way, a sentence each."""
    must_end: list[Ending]
    """The jobs that must end before there is a place; empty if that is not known."""


class Room:
    """A machine with its jobs, to ask the engine about one that was refused."""

    def __init__(self, look: Inspection, machine: Machine, job: Job, refused: Refused) -> None:
        self.look, self.machine, self.job, self.refused = look, machine, job, refused
        self.own = look.allocations
        self.idle = idle_of(look, refused)
        held = {node for nodes in look.holders.values() for node in nodes}
        self.may_use = sorted(frozenset(refused.candidates) | (self._others() & held))
        """What Slurm offered, and the nodes that it may offer once the jobs there have ended."""

    def in_the_way(self) -> InTheWay:
        """What keeps the job from a place, at this moment."""
        machine, refused = self.machine, self.refused
        if refused.kind == "no-area":
            answer, said = None, list(self._isolated_around())
        else:
            answer = self.ask(frozenset())
            said = list(self._sentences(answer)) if isinstance(answer, Refusal) else []
        return InTheWay(
            machine.hostlist(refused.candidates),
            machine.hostlist(self.idle),
            len(self.idle),
            where(machine, self.idle),
            isinstance(answer, Decision),
            said,
            self._must_end() if isinstance(answer, Refusal) and answer.name != "never" else [],
        )

    def ask(self, gone: Collection[int]) -> Decision | Refusal | None:
        """The policy's answer if these jobs had ended. None if the engine here does not know the policy, or the jobs do not
        fit together.
        """
        try:
            if self.refused.min_bandwidth < 1 and (self.refused.policy, True) in linking_policies():
                return self._ask_with_bandwidth(gone)
            return self._asked(self._state(gone))
        except InputError:
            return None

    def _asked(self, state: State) -> Decision | Refusal:
        policy, wanted, number = self.refused.policy, self.refused.wanted, number_of(self.job)
        if self.job.exclusive:
            return state.place(policy, wanted, id=number, eligible=self.may_use)
        # Slurm knows which nodes have room for a job that shares them.
        slots = [0] * self.machine.nodes
        for node in self.refused.candidates:
            slots[node] = 1
        return state.place(policy, wanted, id=number, share=(1, 0), slots=slots)

    def _state(self, gone: Collection[int]) -> State:
        state = State(self.machine)
        for job, nodes in self.look.holders.items():
            if job in gone:
                continue
            own = self.own.get(job, Allocation(frozenset(), ()))
            if job not in self.look.claiming:
                state.take_out(nodes)
                continue
            try:
                state.hold(nodes, None, own.links, own.bandwidth_share, id=job)
            except InputError:
                # Another job is on one of its nodes, or owns one of its links.
                state.overlay(nodes)
        return state

    def _ask_with_bandwidth(self, gone: Collection[int]) -> Decision | Refusal | None:
        scheduler, number = Scheduler(self.machine, self.refused.policy, "fcfs"), number_of(self.job)
        for job, nodes in self.look.holders.items():
            own = self.own.get(job, Allocation(frozenset(), ()))
            if job in gone or job == number:
                continue
            with contextlib.suppress(InputError):
                scheduler.adopt(
                    job,
                    nodes,
                    0.0,
                    FAR,
                    links=own.links,
                    bandwidth_share=own.bandwidth_share if own.links else 1.0,
                )
        bandwidth = self.refused.min_bandwidth
        never = scheduler.submit(
            number, self.refused.wanted, FAR, min_bandwidth=bandwidth, eligible=self.may_use
        )
        if never is not None:
            return never
        refusal = scheduler.explain(number)
        return refusal if refusal is not None else next(iter(scheduler.start(0.0)), None)

    def _others(self) -> frozenset[int]:
        """The nodes of the job's partitions that take new jobs."""
        job, snapshot = self.job, self.look.snapshot
        if snapshot is None or job.required or job.features or job.reservation:
            return frozenset()
        named = [snapshot.partitions[name].nodes for name in job.partitions if name in snapshot.partitions]
        listed = {node for hosts in named for node in on_machine(hosts, self.machine)}
        excluded = (self.machine.node_named(name) for name in names_in(job.excluded))
        return frozenset(listed - self.look.closed - {node for node in excluded if node is not None})

    def _sentences(self, refusal: Refusal) -> Iterator[str]:
        if refusal.name == "would-share-links":
            yield from in_the_way(refusal, self.refused.wanted, self.look.names)
        elif refusal.name in ("never", "cannot-isolate") and len(self.idle) >= self.refused.wanted:
            yield f"The engine says: {refusal.why}."
        elif len(self.idle) < self.refused.wanted:
            missing = self.refused.wanted - len(self.idle)
            yield f"It lacks {plural(missing, 'idle node')}."

    def _isolated_around(self) -> Iterator[str]:
        """The groups with idle nodes whose uplinks isolated jobs have for themselves: stock Slurm's nodes keep off these."""
        look = self.look
        claims = [
            (job, look.holders[job], self.own[job].links if job in self.own else ())
            for job in sorted(look.isolated)
        ]
        use = LinkUse(self.machine, claims)
        users: dict[str, list[str]] = {}
        for job, *_ in claims:
            for group, _ in use.meetings(job):
                users.setdefault(group, []).append(look.names[job])
        counted = {name: count for _, name, count, _ in self.machine.outline(self.idle)}
        found = sorted((-counted[group], group) for group in users if counted.get(group))
        for less, group in found[:LISTED]:
            jobs = users[group]
            yield (
                f"{group} has {plural(-less, 'idle node')}, but {jobs_named(jobs)} "
                f"{'has' if len(jobs) == 1 else 'have'} {group}'s uplinks for {'itself' if len(jobs) == 1 else 'themselves'}."
            )
        if len(found) > LISTED:
            yield f"So it is with {len(found) - LISTED} more."

    def _must_end(self) -> list[Ending]:
        """A minimal set of running jobs whose end makes a place for the job, with those that end soonest first. Empty if there
        is none, or if the search takes too long.
        """
        if not self.job.exclusive:
            return []
        deadline, gone = time.monotonic() + MOST_SECONDS, []
        by_end = sorted(self.look.holders, key=lambda job: (_end(self.look.jobs[job]) or FAR * 10, job))
        for job in by_end:
            gone.append(job)
            if time.monotonic() > deadline:
                return []
            if isinstance(self.ask(frozenset(gone)), Decision):
                break
        else:
            return []
        for job in list(gone[:-1]):
            fewer = [other for other in gone if other != job]
            if time.monotonic() < deadline and isinstance(self.ask(frozenset(fewer)), Decision):
                gone = fewer
        return [Ending(self.look.names[job], _end(self.look.jobs[job])) for job in gone]


def _end(job: Job) -> float | None:
    return None if job.walltime is None else job.start + job.walltime


def where(machine: Machine, nodes: Collection[int]) -> str:
    """Nodes by the groups of the lowest levels: `pod1 5 (leaf1 2, leaf2 3)`."""
    rows = machine.outline(sorted(nodes))
    has_pods = any(level > 2 for level, *_ in rows)
    parts: list[tuple[str, list[str]]] = []
    for level, name, count, _ in rows:
        if level == (2 if has_pods else 1):
            parts.append((f"{name} {count}", []))
        elif level == 1:
            parts[-1][1].append(f"{name} {count}")
    said = [f"{group} ({', '.join(inside)})" if inside else group for group, inside in parts]
    return ", ".join(said[:MOST_GROUPS]) + (", ..." if len(said) > MOST_GROUPS else "")
