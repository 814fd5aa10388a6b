"""Why a job waits, or where it runs, in plain sentences: what is the same for every system.

Each system adds what only it knows: its own reason, what it offered, and whether its plug-in works.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

from topolane._engine import Decision, InputError, Machine, Refusal, linking_policies
from topolane.cluster.hypothetical import Hypothetical, NodeSlots, Question
from topolane.cluster.links import LISTED, Links, Words, in_the_way, jobs_named, links_used
from topolane.cluster.view import Refused, Running, View, Waiting
from topolane.units import clock, plural

FOR_EVER = ("never", "cannot-isolate")
"""Kinds of refusals that no end of another job changes."""
MOST_SECONDS = 2.0
"""How long the search for jobs that must end may take."""
LONGEST_HOSTS = 60
"""Letters of a list of nodes that a sentence holds."""
GROUP_OF_DRAGONFLY = 2
"""The level of its groups in the hierarchy."""

Answer: TypeAlias = Decision | Refusal | None
"""None if the engine here does not know the policy, or cannot take over the jobs."""


@dataclasses.dataclass(frozen=True)
class Ending:
    """A job that must end before another one has a place. Times in seconds since 1970."""

    job: str
    by: float | None
    """The end of its time; None if it has no limit, or if that is not known."""


@dataclasses.dataclass(frozen=True)
class InTheWay:
    """Where a refused job could lie, and what keeps it from there."""

    candidates: str
    """The nodes that its system offered, a hostlist."""
    idle: str
    """The offered nodes that have room for it now, a hostlist."""
    idle_count: int
    where: str
    """The idle ones by group: `pod1 5 (leaf1 2, leaf2 3)`."""
    has_place: bool
    """Whether the policy has a place for it by now."""
    obstacles: list[str]
    """The groups and jobs in the way, a sentence each."""
    must_end: list[Ending]
    """The jobs that must end before there is a place; empty if that is not known."""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The state of a job, and the reasons for it. Times in seconds since 1970."""

    job: str
    state: str
    """As its system calls it."""
    reason: str | None = None
    """Its system's reason of a job that waits."""
    policy: str | None = None
    policy_from: str | None = None
    """What gives it that policy."""
    refused: Refused | None = None
    """The plug-in's last refusal, if that is why the job waits."""
    in_the_way: InTheWay | None = None
    expected_start: float | None = None
    """As its system expects it."""
    level: int | None = None
    """Of a running job: 1 if it lies in one leaf (T1), 2 if in one pod (T2), ..."""
    home: str | None = None
    """The lowest group that contains it."""
    ranks: list[str] = dataclasses.field(default_factory=list)
    """Its nodes in rank order, once per slot; empty where its system does not say."""
    links: list[int] = dataclasses.field(default_factory=list)
    """Its own links between switches, by the machine's numbers."""
    bandwidth_share: float | None = None
    """Its share of full bandwidth on them."""
    may_meet: list[str] = dataclasses.field(default_factory=list)
    """Other jobs that may use the same links."""
    sentences: list[str] = dataclasses.field(default_factory=list)


def running(
    machine: Machine | None, view: View, job: Running, said: Collection[str], words: Words
) -> Explanation:
    """Explains a running job. said: what its system adds at the beginning."""
    links = None if machine is None else Links(machine, view)
    level, home = (None, None) if links is None else links.home(job)
    sentences = [*said, *_policy(job)]
    if machine is not None and links is not None and job.nodes:
        where = f"Its nodes are in {home} (T{level})"
        detours = machine.detours if level is not None and level > GROUP_OF_DRAGONFLY else None
        sentences += links_used(where, job, links.of(job), words.job, links.words, detours)
    return Explanation(
        job.name,
        job.state,
        policy=job.policy,
        policy_from=job.rule,
        level=level,
        home=home,
        ranks=list(job.ranks),
        links=list(job.links),
        bandwidth_share=job.bandwidth_share if job.links else None,
        may_meet=[] if links is None else links.met(job),
        sentences=sentences,
    )


def waiting(
    job: Waiting, state: str, said: Collection[str], more: Collection[str], way: InTheWay | None = None
) -> Explanation:
    """Explains a waiting job. said, more: what its system adds before and after its policy."""
    return Explanation(
        job.name,
        state,
        job.reason,
        job.policy,
        job.rule,
        refused=job.refused,
        in_the_way=way,
        expected_start=job.expected_start,
        sentences=[*said, *_policy(job), *more],
    )


def _policy(job: Running | Waiting) -> Iterator[str]:
    if job.policy is not None:
        yield f"Its policy is {job.policy}{f' ({job.rule})' if job.rule else ''}."


class Why:
    """What keeps a refused job from a place, by the engine that the plug-in asks.

    slots: the slots that each node has for it once some jobs have ended. Links of jobs count as they are in the view.
    """

    def __init__(
        self,
        machine: Machine,
        view: View,
        job: Waiting,
        slots: Callable[[Collection[int]], NodeSlots],
        words: Words,
    ) -> None:
        self._machine, self._view, self._job, self._slots, self._words = machine, view, job, slots, words
        self.slots = slots(())
        self.idle = [node for node, free in enumerate(self.slots.free) if free]

    def ask(self, gone: Collection[int] = ()) -> Answer:
        """The policy's answer if these jobs had ended."""
        job, refused = self._job, self._job.refused
        if job.policy is None or refused is None:
            return None
        # Other policies give links of their own only with full bandwidth.
        least = refused.min_bandwidth if (job.policy, True) in linking_policies() else None
        try:
            asked = Hypothetical.of(
                self._machine, self._view, job.policy, least, counts_slots=True, gone=gone
            )
            return asked.decide(Question(job.id, refused.wanted, slots=self._slots(gone)))
        except InputError:
            return None

    def obstacles(self, answer: Answer) -> list[str]:
        """What is in the way, in sentences."""
        refused = self._job.refused
        if not isinstance(answer, Refusal) or refused is None:
            return []
        wanted, free = refused.wanted, sum(self.slots.free)
        if answer.name == "would-share-links":
            return in_the_way(answer, wanted, self._view.names, self._words)
        if free < wanted:
            return [f"It lacks {plural(wanted - free, self._words.free)}."]
        return [f"The engine says: {answer.why}."] if answer.name in FOR_EVER else []

    def way(self) -> InTheWay:
        """What the engine says of the slots that are free now."""
        answer, idle = self.ask(), self._machine.hostlist(self.idle)
        has_place, obstacles = isinstance(answer, Decision), self.obstacles(answer)
        return InTheWay("", idle, len(self.idle), "", has_place, obstacles, self.must_end(answer))

    def now(self, way: InTheWay, policy: str | None, then: str) -> Iterator[str]:
        """What is in the way now, in sentences. policy: what users call it. then: when the job starts if there is a place for it."""
        words, nodes = self._words, plural(way.idle_count, "node")
        has = "has" if way.idle_count == 1 else "have"
        yield f"Now {nodes} {has} {plural(sum(self.slots.free), words.free)} for its {words.slot}s."
        if way.has_place:
            yield f"By now {policy} has a place for it: {then}."
            return
        yield from way.obstacles
        yield from until_then(way.must_end, self._view.time, words)

    def must_end(self, answer: Answer) -> list[Ending]:
        """A minimal set of running jobs whose end makes a place for the job, with those that end soonest first. Empty if there
        is none, or if the search takes too long.
        """
        if not isinstance(answer, Refusal) or answer.name == "never":
            return []
        deadline, gone = time.monotonic() + MOST_SECONDS, list[Running]()
        jobs = [job for job in self._view.running if job.nodes and job.is_ours]
        for job in sorted(jobs, key=lambda job: (job.end is None, job.end or 0.0, job.id)):
            gone.append(job)
            if time.monotonic() > deadline:
                return []
            if isinstance(self.ask([each.id for each in gone]), Decision):
                break
        else:
            return []
        for job in list(gone[:-1]):
            fewer = [other for other in gone if other is not job]
            if time.monotonic() < deadline and isinstance(self.ask([each.id for each in fewer]), Decision):
                gone = fewer
        return [Ending(job.name, job.end) for job in gone]


def until_then(endings: Collection[Ending], now: float, words: Words) -> Iterator[str]:
    """Which jobs must end, in a sentence; none if that is not known."""
    if endings:
        ends = [f"{one.job}{_by(one, now, words)}" for one in endings]
        more = f" and {len(ends) - LISTED} more" if len(ends) > LISTED else ""
        yield f"Until then must end: {jobs_named(ends[:LISTED], words.job)}{more}."


def _by(one: Ending, now: float, words: Words) -> str:
    if one.by is None:
        return words.no_limit
    return f" ({'past its time limit' if one.by < now else f'by {clock(one.by, now)}'})"
