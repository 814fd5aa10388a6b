"""The shadow: at each start of a job in a live system, where a policy would have placed it. It reads the system and changes nothing.

What calls what:

    WatchedSlurm, WatchedCluster    look() -> Look { events: Ended | Started, out, problems }
      -> Shadow                     asks cluster.hypothetical: a Question -> Placement | NoPlace
      -> log                        one line of JSON per event
      -> cluster.shadow_log         past(): where the next shadow goes on; replay(): each decision made again
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from topolane._engine import Machine
from topolane.cluster.answers import SIDES, answered
from topolane.cluster.hypothetical import Holder, Hypothetical, Question
from topolane.cluster.shadow_log import Past
from topolane.policy import resolve

PATIENCE = 10.0
"""Seconds between two attempts to reach a system that does not answer."""
SHARE_OF_TIME = 4
"""A shadow waits at least this many times as long as the system took to answer, so that it is no burden."""


@dataclasses.dataclass(frozen=True)
class Ended:
    """A job holds its nodes no longer."""

    job: int
    at: float


@dataclasses.dataclass(frozen=True)
class Started:
    """A job got nodes."""

    facts: Mapping[str, Any]
    """For the log: `id`, `job` (its name), `submit`, `start`, `walltime`, `nodes`, and what else its system says of it."""
    holder: Holder
    slots: Sequence[int] = ()
    """Its nodes once per slot, if several slots lie on one."""
    is_missed: bool = False
    """Whether no policy is asked: the shadow does not cover its kind of job, or what was free at its start is not known."""
    plugin: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    """`plugin`: the policy that our plug-in gave it; empty where that is not known."""
    unknown: Sequence[str] = ()
    """Nodes of it that the machine does not name."""
    question: Callable[[], tuple[Question, Mapping[str, Any]]] | None = None
    """What to ask, and what the log needs to ask it again; None if the machine names none of its nodes."""


@dataclasses.dataclass(frozen=True)
class Look:
    """What a look at the system saw, compared with what was known."""

    events: Sequence[Ended | Started] = ()
    """In order."""
    out: frozenset[int] | None = None
    """The nodes that take no new jobs; None where each question says so."""
    problems: Sequence[str] = ()
    """What could not be read, in sentences."""


class Watched(Protocol):
    """A live system, as its adapter shows it to a shadow."""

    system: str
    """Its name in the log."""
    counts_slots: bool
    """Whether the system counts what is free on nodes (see Hypothetical)."""
    error: type[Exception]
    """What `look` raises if the system does not answer."""
    facts: Mapping[str, str]
    """What the log says of it at the beginning."""

    def look(self) -> Look | None:
        """What happened since the last look; None if nothing did."""

    def forget(self) -> None:
        """The system did not answer, so what changed is not known."""


class Shadow:
    """A policy in the shadow of a live system.

    past: what an earlier shadow knew whose log goes on here. write: gets every event of the log. report: gets each event of a start.
    Raises InputError for a policy that does not exist, and what `watched.look` raises.
    """

    def __init__(
        self,
        watched: Watched,
        machine: Machine,
        policy: str,
        *,
        min_bandwidth: float | None = None,
        interval: float = 5.0,
        past: Past | None = None,
        write: Callable[..., None],
        report: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:
        self._watched, self._machine, self._interval = watched, machine, interval
        self._write, self._report = write, report
        self.stopping = threading.Event()
        self._problems: frozenset[str] = frozenset()
        """Problems of the last look, so that each is logged once."""
        self._hypothetical = Hypothetical(
            machine, resolve(policy), min_bandwidth, counts_slots=watched.counts_slots
        )
        before = past or Past()
        self.summary = before.summary
        self.summary.policy, self.summary.system = policy, SIDES[watched.system]
        self.away = None if before.until is None else max(time.time() - before.until, 0.0)
        """Seconds in which no shadow looked, if this goes on from a log."""
        for number, run in before.runs.items():
            self._hypothetical.hold(number, run.holder)
        more: dict[str, Any] = dict(watched.facts)
        if min_bandwidth is not None:
            more["min_bandwidth"] = min_bandwidth
        if self.away is not None:
            more["away"] = round(self.away, 3)
        first = watched.look()
        write("shadow", machine=machine.to("toml"), policy=policy, system=watched.system, **more)
        self._follow(first)

    @property
    def jobs(self) -> int:
        """The number of jobs that hold nodes."""
        return self._hypothetical.jobs

    def run(self) -> None:
        """Looks until `stopping` is set. A system that does not answer is asked again."""
        took = 0.0
        while not self.stopping.wait(max(self._interval, SHARE_OF_TIME * took)):
            begun = time.monotonic()
            try:
                self._follow(self._watched.look())
            except self._watched.error as error:
                self._write("error", error=str(error))
                self._watched.forget()
                took = PATIENCE / SHARE_OF_TIME
            else:
                took = time.monotonic() - begun
        self._write("stopped")

    def _follow(self, look: Look | None) -> None:
        if look is None:
            return
        for problem in look.problems:
            if problem not in self._problems:
                self._write("error", error=problem)
        self._problems = frozenset(look.problems)
        if look.out is not None and look.out != self._hypothetical.out:
            self._write("service", out=self._machine.hostlist(sorted(look.out)))
            self._hypothetical.serve(look.out)
        for event in look.events:
            if isinstance(event, Ended):
                self._write("ends", id=event.job, at=event.at)
                self._hypothetical.end(event.job)
            else:
                self._started(event)

    def _started(self, event: Started) -> None:
        job, nodes = event.facts["id"], event.holder.nodes
        facts = dict(event.facts)
        if event.is_missed:
            self._write("holds", **facts)
            self.summary.missed += 1
        else:
            facts |= event.plugin
            if nodes:
                holder, slots = event.holder, event.slots or nodes
                placed = self._hypothetical.placed(job, slots, holder.links, holder.bandwidth_share)
                facts |= {"aph": placed.aph, "shares_with": placed.shares_with}
            if event.unknown or not nodes or event.question is None:
                names = ", ".join(sorted(event.unknown)[:3]) or "none that is known"
                facts["not_asked"] = f"the machine does not name its nodes: {names}"
            else:
                question, more = event.question()
                facts |= {**more, **answered(self._hypothetical.ask(question), self._machine)}
            self._write("start", **facts)
            self.summary.add(facts, len(set(nodes)))
            self._report(facts)
        self._hypothetical.hold(job, event.holder)
