"""The log of a shadow as a source: jobs where their system placed them, and where the shadow's policy would
have placed them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from topolane._engine import InputError, Machine
from topolane.cluster.answers import no_event, policy_of
from topolane.cluster.log import events
from topolane.cluster.view import Running, View, Waiting
from topolane.serve.lines import POINTS, edges_of, line_of, means, points_of
from topolane.serve.source import PolicyLine, Series
from topolane.units import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

TIMES = ("time", "submit", "start", "at")
"""The fields of an event that are times. If the clock is set back, earlier times are moved back too, so that
the log stays in order.
"""
RESOURCES = ("cores", "memory", "gpu")
"""The resources of a node that a job in a Kubernetes log takes, in the order of the log."""


@dataclasses.dataclass
class _LoggedJob:
    """A job on its nodes. Times are in seconds since 1970."""

    job: Running
    submit: float
    end: float = float("inf")
    hops: tuple[float | None, float | None] = (None, None)
    """Average pairwise hops under the system's and under the policy's placement."""
    meets: tuple[int | None, int | None] = (None, None)
    """The number of jobs that it may share links with under the system's and under the policy's placement."""


@dataclasses.dataclass(frozen=True)
class _Log:
    """The content of a log."""

    machine: Machine
    policy: str
    system: str
    """The system that placed the jobs."""
    jobs: list[_LoggedJob]
    first: float
    last: float


class ShadowSource:
    """The log that `topolane slurm shadow --log` or `topolane k8s shadow --log` writes. It may still be
    growing.

    policy: the shadow's policy as `module:Class`, required if it is one, because code that only the log names
    is not run. Raises InputError if the file is not such a log.
    """

    queue = "easy"
    epoch = 0.0

    def __init__(self, path: str, policy: str | None, interval: float) -> None:
        self._path, self._policy, self.interval = path, policy, interval
        self.partitions: dict[str, tuple[int, ...]] = {}
        self._size = -1
        self._read()
        system = self._log.system
        self.title = f"{system} and {self.policy} in its shadow"
        self.notes = (
            *self.machine.notes,
            f"This is the log of a shadow: jobs stand where {system} placed them. {self.policy} was asked about each start.",
            "The log names a job only when it starts, so it shows no waiting jobs at its end.",
        )

    def now(self) -> View:
        """The state at the last moment of the log."""
        self._read()
        return self._at(self._log.last)

    def at(self, time: float) -> View:
        """The state at a time of the log."""
        log = self._log
        return self._at(min(max(time, log.first), log.last))

    def span(self) -> tuple[float, float]:
        """The first and the last time of the log."""
        log = self._log
        return log.first, log.last

    def explain(self, snapshot: View, job: Waiting) -> None:
        """None, because the log does not record why a job waits."""

    def series(self) -> Series:
        """Utilisation, queue and waits of the system, and hops and shared links of system and policy."""
        log = self._log
        edges = edges_of(log.first, log.last)
        return Series(
            [float(edge) for edge in edges[1:]],
            [
                _line(log, log.system, 0, edges),
                dataclasses.replace(
                    _line(log, log.policy, 1, edges),
                    utilisation=[None] * POINTS,
                    waiting=[None] * POINTS,
                    wait=[None] * POINTS,
                ),
            ],
        )

    def _read(self) -> None:
        """Reads the log again if it has grown. After an error the earlier content stays."""
        try:
            size = os.stat(self._path).st_size
            if size != self._size:
                log = self._parsed()
                self.machine, self.policy = log.machine, log.policy
                self._log = log  # in one assignment, because viewers read the past in other threads
                self._size = size
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror}") from error

    def _parsed(self) -> _Log:
        jobs: list[_LoggedJob] = []
        first = last = before = 0.0
        back = 0.0  # the seconds by which the clock was set back while the log was written
        machine: Machine | None = None
        policy = system = ""
        unended: dict[int, _LoggedJob] = {}
        for line, event in events(self._path):
            where = f"{self._path}:{line}"
            try:
                back += max(before - float(event["time"]), 0.0)
                before = float(event["time"])
                if back:
                    event = event | {word: float(event[word]) + back for word in TIMES if word in event}
                time = float(event["time"])
                # A line's time is rounded, so an event may be slightly later.
                last = max(last, time, *(float(event[word]) for word in ("start", "at") if word in event))
                if event["event"] == "shadow":
                    machine = Machine.parse(event["machine"], where, "toml")
                    policy = policy_of(event, self._policy, where)
                    system = "Kubernetes" if event.get("system") == "kubernetes" else "Slurm"
                    first = first or time
                elif machine is not None and (logged := _followed(event, machine, policy, unended)):
                    jobs.append(logged)
            except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
                raise no_event(where, error) from error
        if machine is None:
            raise InputError(f"{self._path}: not the log of a shadow: no line has its machine and policy")
        for logged in jobs if back else ():
            logged.job = dataclasses.replace(
                logged.job,
                start=logged.job.start - back,
                end=None if logged.job.end is None else logged.job.end - back,
            )
            logged.submit, logged.end = logged.submit - back, logged.end - back
        return _Log(machine, policy, system, jobs, first - back, last - back)

    def _at(self, time: float) -> View:
        jobs = self._log.jobs
        running = [logged for logged in jobs if logged.job.start <= time < logged.end and logged.job.nodes]
        waiting = [logged for logged in jobs if logged.submit <= time < logged.job.start]
        waiting.sort(key=lambda logged: (logged.submit, logged.job.id))
        return View(
            time, tuple(logged.job for logged in running), tuple(_waiting(logged) for logged in waiting)
        )


def _followed(
    event: Mapping[str, Any], machine: Machine, policy: str, unended: dict[int, _LoggedJob]
) -> _LoggedJob | None:
    """The job that an event starts, if any. If the event ends a job, its end is recorded."""
    kind = event["event"]
    if kind == "ends" and (logged := unended.pop(int(event["id"]), None)) is not None:
        logged.end = float(event["at"])
    if kind not in ("holds", "start"):
        return None
    answer = event.get("policy") or {}
    limit, start = event["walltime"], float(event["start"])
    job = Running(
        *(int(event["id"]), str(event["job"]), "", str(event.get("partition", ""))),
        tuple(machine.nodes_named(event["nodes"])) if event["nodes"] else (),
        start,
        end=None if limit is None else start + float(limit),
        links=tuple(map(int, event.get("links", ()))),
        bandwidth_share=float(event.get("bandwidth_share", 1.0)),
        share=_share(event.get("share"), machine),
        shadow_note=_said(event, policy) if kind == "start" else "",
    )
    logged = _LoggedJob(
        job,
        float(event["submit"]),
        hops=(event.get("aph"), answer.get("aph")),
        meets=(event.get("shares_with"), answer.get("shares_with")),
    )
    unended[job.id] = logged
    return logged


def _said(event: Mapping[str, Any], policy: str) -> str:
    """A sentence on what the policy would have done with a job that started."""
    if "not_asked" in event:
        return f"{policy} was not asked: {event['not_asked']}."
    answer = event["policy"]
    if "refusal" in answer:
        return f"{policy} would have let it wait: {answer['why']}."
    return (
        f"{policy} would have taken {answer['nodes']}: {_measured(answer)}. "
        f"Where it runs: {_measured(event)}."
    )


def _line(log: _Log, name: str, side: int, edges: NDArray[Any]) -> PolicyLine:
    jobs = log.jobs
    starts = [logged.job.start for logged in jobs]
    nodes = [len(logged.job.nodes) for logged in jobs]
    found = line_of(
        *(name, edges, log.machine.nodes, [logged.submit for logged in jobs], starts),
        *([logged.end for logged in jobs], nodes),
    )
    hops = [logged.hops[side] if count > 1 else None for logged, count in zip(jobs, nodes)]
    meets = [None if (met := logged.meets[side]) is None else 100.0 * (met > 0) for logged in jobs]
    points = points_of(starts, edges)
    return dataclasses.replace(found, hops=means(points, hops), sharing=means(points, meets))


def _measured(placed: Mapping[str, Any]) -> str:
    others = placed["shares_with"]
    shares = "no link shared" if not others else f"links shared with {plural(others, 'job')}"
    return f"{placed['aph']:.2f} hops, {shares}"


def _share(logged: Any, machine: Machine) -> dict[str, float] | None:
    """The share of a node that a job takes: a table in the log of a Slurm, three numbers in the log of a
    Kubernetes cluster.
    """
    found = logged if isinstance(logged, dict) or logged is None else dict(zip(RESOURCES, logged))
    if found is None:
        return None
    return {str(name): count for name, count in found.items() if count and name in machine.resources} or None


def _waiting(logged: _LoggedJob) -> Waiting:
    job = logged.job
    return Waiting(
        *(job.id, job.name, job.title, job.user, len(job.nodes), logged.submit),
        None if job.end is None else job.end - job.start,
        why="the log of a shadow does not say why",
        expected_start=job.start,
        share=job.share,
    )
