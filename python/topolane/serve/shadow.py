"""The log of a shadow as a source: jobs where their system placed them, and beside it what the shadow's policy would have done."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from topolane._engine import InputError, Machine
from topolane.live.log import events
from topolane.live.shadows import no_event, policy_of
from topolane.serve.snapshot import Line, Running, Series, Snapshot, Waiting
from topolane.units import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

POINTS = 200
"""Points of a line."""
RESOURCES = ("cores", "memory", "gpu")
"""What a job of a cluster takes of a node, in the order of the log."""


@dataclasses.dataclass
class _Stay:
    """A job on its nodes. Times in seconds since 1970."""

    job: Running
    submit: float
    end: float = float("inf")
    hops: tuple[float | None, float | None] = (None, None)
    """Average pairwise hops: the system's, the policy's."""
    meets: tuple[int | None, int | None] = (None, None)
    """With how many jobs it may share links: the system's placement, the policy's."""


class Shadow:
    """The log that `topolane slurm shadow --log` or `topolane k8s shadow --log` writes, also while it is written.

    policy: the `module:Class` of the shadow, if it is one: code that only the log names is not run. Raises InputError if the file is
    no such log.
    """

    queue = "easy"
    epoch = 0.0

    def __init__(self, path: str, policy: str | None, interval: float) -> None:
        self._path, self._policy, self.interval = path, policy, interval
        self.partitions: dict[str, tuple[int, ...]] = {}
        self._size = -1
        self._read()
        self.title = f"{self._system} and {self.policy} in its shadow"
        self.notes = (
            *self.machine.notes,
            f"This is the log of a shadow: jobs stand where {self._system} placed them. {self.policy} was asked about each start.",
            "The log names a job only when it starts, so it shows no waiting jobs at its end.",
        )

    def now(self) -> Snapshot:
        """The last moment of the log."""
        self._read()
        return self._at(self._last)

    def at(self, time: float) -> Snapshot:
        """The jobs at any time of the log."""
        return self._at(min(max(time, self._first), self._last))

    def span(self) -> tuple[float, float]:
        """The first and the last moment of the log."""
        return self._first, self._last

    def explain(self, snapshot: Snapshot, job: Waiting) -> None:
        """The log does not say why a job waits."""

    def series(self) -> Series:
        """Utilisation, queue and waits of the system, and hops and shared links of both."""
        edges = np.linspace(self._first, max(self._last, self._first + 1.0), POINTS + 1)
        return Series(
            [float(edge) for edge in edges[1:]],
            [
                self._line(self._system, 0, edges),
                dataclasses.replace(
                    self._line(self.policy, 1, edges),
                    utilisation=[None] * POINTS,
                    waiting=[None] * POINTS,
                    wait=[None] * POINTS,
                ),
            ],
        )

    def _read(self) -> None:
        """Reads the log again if it has grown."""
        try:
            size = os.stat(self._path).st_size
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror}") from error
        if size == self._size:
            return
        self._size = size
        self._stays: list[_Stay] = []
        self._first = self._last = 0.0
        machine: Machine | None = None
        open_stays: dict[int, _Stay] = {}
        for line, event in events(self._path):
            where = f"{self._path}:{line}"
            try:
                self._last = float(event["time"])
                if event["event"] == "shadow":
                    machine = Machine.parse(event["machine"], where, "toml")
                    self.policy = policy_of(event, self._policy, where)
                    self._system = "Kubernetes" if event.get("system") == "kubernetes" else "Slurm"
                    self._first = self._first or self._last
                elif machine is not None:
                    self._follow(event, machine, open_stays)
            except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
                raise no_event(where, error) from error
        if machine is None:
            raise InputError(f"{self._path}: not the log of a shadow: no line has its machine and policy")
        self.machine = machine

    def _follow(self, event: Mapping[str, Any], machine: Machine, open_stays: dict[int, _Stay]) -> None:
        kind = event["event"]
        if kind == "ends" and (stay := open_stays.pop(int(event["id"]), None)) is not None:
            stay.end = float(event["at"])
        if kind not in ("holds", "start"):
            return
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
            beside=self._said(event) if kind == "start" else "",
        )
        stay = _Stay(
            job,
            float(event["submit"]),
            hops=(event.get("aph"), answer.get("aph")),
            meets=(event.get("shares_with"), answer.get("shares_with")),
        )
        self._stays.append(stay)
        open_stays[job.id] = stay

    def _said(self, event: Mapping[str, Any]) -> str:
        """What the policy would have done with a job that started."""
        if "not_asked" in event:
            return f"{self.policy} was not asked: {event['not_asked']}."
        answer = event["policy"]
        if "refusal" in answer:
            return f"{self.policy} would have let it wait: {answer['why']}."
        return (
            f"{self.policy} would have taken {answer['nodes']}: {_measured(answer)}. "
            f"Where it runs: {_measured(event)}."
        )

    def _at(self, time: float) -> Snapshot:
        running = [stay for stay in self._stays if stay.job.start <= time < stay.end and stay.job.nodes]
        waiting = [stay for stay in self._stays if stay.submit <= time < stay.job.start]
        waiting.sort(key=lambda stay: (stay.submit, stay.job.id))
        return Snapshot(time, tuple(stay.job for stay in running), tuple(_waiting(stay) for stay in waiting))

    def _line(self, name: str, side: int, edges: NDArray[Any]) -> Line:
        starts = np.array([stay.job.start for stay in self._stays])
        ends = np.array([stay.end for stay in self._stays])
        submits = np.array([stay.submit for stay in self._stays])
        nodes = np.array([len(stay.job.nodes) for stay in self._stays])
        busy = [int(nodes[(starts <= time) & (ends > time)].sum()) for time in edges[1:]]
        queued = [int(((submits <= time) & (starts > time)).sum()) for time in edges[1:]]
        of = np.searchsorted(edges, starts, side="right") - 1
        hops = [stay.hops[side] if len(stay.job.nodes) > 1 else None for stay in self._stays]
        meets = [None if (met := stay.meets[side]) is None else 100.0 * (met > 0) for stay in self._stays]
        return Line(
            name,
            [round(min(count / self.machine.nodes, 1.0), 4) for count in busy],
            [float(count) for count in queued],
            _means(of, [stay.job.start - stay.submit for stay in self._stays]),
            _means(of, hops),
            _means(of, meets),
        )


def _means(point: Iterable[int], values: Sequence[float | None]) -> list[float | None]:
    """The mean of the values at each point; None where there are none."""
    rows: dict[int, list[float]] = {}
    for at, value in zip(point, values):
        if value is not None:
            rows.setdefault(int(at), []).append(float(value))
    return [round(sum(rows[at]) / len(rows[at]), 3) if at in rows else None for at in range(POINTS)]


def _measured(placed: Mapping[str, Any]) -> str:
    others = placed["shares_with"]
    shares = "no link shared" if not others else f"links shared with {plural(others, 'job')}"
    return f"{placed['aph']:.2f} hops, {shares}"


def _share(told: Any, machine: Machine) -> dict[str, float] | None:
    """What a job takes of a node: a table in the log of a Slurm, three numbers in that of a cluster."""
    found = told if isinstance(told, dict) or told is None else dict(zip(RESOURCES, told))
    if found is None:
        return None
    return {str(name): count for name, count in found.items() if count and name in machine.resources} or None


def _waiting(stay: _Stay) -> Waiting:
    job = stay.job
    return Waiting(
        *(job.id, job.name, job.title, job.user, len(job.nodes), stay.submit),
        None if job.end is None else job.end - job.start,
        why="the log of a shadow does not say why",
        expected_start=job.start,
        share=job.share,
    )
