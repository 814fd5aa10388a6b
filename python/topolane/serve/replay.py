"""A replayed log as a source. Its clock runs at the requested speed, and every time of the log can be shown."""

from __future__ import annotations

import bisect
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from topolane.cluster.view import HeadWait, Running, View, Waiting
from topolane.moment import intervals, share_of
from topolane.serve.source import PolicyLine, Series

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topolane.run import Run
    from topolane.sweep import Task

QUEUES_OF_LOGS = ("slurm", "recorded")
"""Queues that a forecast cannot use, because they need more than the jobs. For them, forecasts assume `easy`."""
REPLAYED = (
    "This is a replayed log. Starts are the engine's; a forecast knows only walltimes, so jobs that end earlier start others "
    "earlier than it says."
)
POINTS = 600
"""Points of a line."""


class ReplaySource:
    """The runs of a log. The page shows the first run; the others are lines for comparison.

    at: seconds after the first submission at which the clock starts; None for the minute with the longest
    queue. speed: seconds of the log per second.
    """

    def __init__(self, task: Task, runs: Sequence[Run], at: float | None, speed: float) -> None:
        import polars

        self.machine, self.policy = task.fabric(), runs[0].policy
        self.queue = "easy" if task.queue in QUEUES_OF_LOGS else task.queue
        self.partitions: dict[str, tuple[int, ...]] = {}
        self.title = f"{runs[0].workload} on {self.machine.name}, {self.policy}, {runs[0].queue}"
        self.notes = _notes(task, self.queue)
        self.epoch = task.jobs().epoch
        self.interval = 1.0
        jobs = polars.DataFrame(runs[0].tables["jobs"]).sort("submission_time", "job_id")
        self._jobs = jobs.to_dict(as_series=False)
        self._submit, self._start, self._finish = (
            jobs[name].to_numpy() for name in ("submission_time", "starting_time", "finish_time")
        )
        self._links = _links(runs[0])
        self._head_waits = _head_waits(runs[0])
        self._series = _series(runs, self.machine.nodes)
        first, last = self.span()
        shown = _longest_queue(runs[0]) if at is None else first + at
        self._speed, self._shown, self._last = speed, min(max(shown, first), last), last
        self._began = time.monotonic()

    def now(self) -> View:
        """The jobs at the clock's time."""
        return self._at(min(self._shown + (time.monotonic() - self._began) * self._speed, self._last))

    def at(self, time: float) -> View:
        """The jobs at a time of the log."""
        first, last = self.span()
        return self._at(min(max(time, first), last))

    def span(self) -> tuple[float, float]:
        """The first submission and the last end."""
        return float(self._submit.min()), float(self._finish.max())

    def explain(self, snapshot: View, job: Waiting) -> None:
        """None, because a log does not record why jobs wait: the engine finds the reason."""

    def series(self) -> Series:
        """Utilisation, queue length and waits of every run."""
        return self._series

    def _at(self, time: float) -> View:
        runs = np.nonzero((self._start <= time) & (self._finish > time))[0]
        waits = np.nonzero((self._submit <= time) & (self._start > time))[0]
        return View(
            time,
            tuple(self._running(int(row), time) for row in runs),
            tuple(self._waiting(int(row)) for row in waits),
            head_wait=self._head_wait(time),
        )

    def _head_wait(self, time: float) -> HeadWait | None:
        place = bisect.bisect_right(self._head_waits, time, key=lambda row: row[0]) - 1
        if place < 0:
            return None
        _, id, until = self._head_waits[place]
        return HeadWait(id, self.policy, until)

    def _running(self, row: int, time: float) -> Running:
        jobs = self._jobs
        id = jobs["job_id"][row]
        links, bandwidth_share = self._owned(id, time)
        start, walltime = jobs["starting_time"][row], jobs["requested_time"][row]
        return Running(
            *(id, str(id), "", "", _numbers(jobs["allocated_resources"][row]), start),
            end=None if walltime is None else start + walltime,
            links=links,
            bandwidth_share=bandwidth_share,
            share=_share(jobs, row),
        )

    def _waiting(self, row: int) -> Waiting:
        jobs = self._jobs
        id = jobs["job_id"][row]
        return Waiting(
            *(id, str(id), "", "", jobs["requested_number_of_resources"][row]),
            jobs["submission_time"][row],
            jobs["requested_time"][row],
            share=_share(jobs, row),
        )

    def _owned(self, id: int, time: float) -> tuple[tuple[int, ...], float]:
        for start, until, share, links in self._links.get(id, ()):
            if start <= time < until:
                return _numbers(links), share
        return (), 1.0


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(number for low, high in intervals(text) for number in range(low, high))


def _share(jobs: dict[str, list[Any]], row: int) -> dict[str, float] | None:
    return share_of(jobs["taken"][row]) if "taken" in jobs else None


def _longest_queue(run: Run) -> float:
    import polars

    table = polars.DataFrame(run.tables["utilization"])
    return float(table["time"][table["waiting_jobs"].arg_max() or 0]) if len(table) else 0.0


def _links(run: Run) -> dict[int, list[tuple[float, float, float, str]]]:
    """By job: the periods in which it owned links, as from, until, share of full bandwidth, links."""
    import polars

    found: dict[int, list[tuple[float, float, float, str]]] = {}
    if "job-links" not in run.tables:
        return found
    table = polars.DataFrame(run.tables["job-links"])
    for id, *row in table.select("job_id", "from", "until", "bandwidth_share", "links").iter_rows():
        found.setdefault(id, []).append((row[0], row[1], row[2], row[3]))
    return found


def _head_waits(run: Run) -> list[tuple[float, int, float | None]]:
    """The waits of heads of the queue: their start, the job, and the time by which the rule for heads had to
    place it.
    """
    import polars

    if "head-waits" not in run.tables:
        return []
    table = polars.DataFrame(run.tables["head-waits"])
    return table.select("time", "job_id", polars.col("until").cast(polars.Float64)).rows()


def _series(runs: Sequence[Run], nodes: int) -> Series:
    import polars

    last = max(float(polars.DataFrame(run.tables["jobs"])["finish_time"].max()) for run in runs)  # type: ignore[arg-type]
    edges = np.linspace(0.0, last, POINTS + 1)
    return Series([float(edge) for edge in edges[1:]], [_line(run, edges, nodes) for run in runs])


def _line(run: Run, edges: NDArray[Any], nodes: int) -> PolicyLine:
    import polars

    jobs = polars.DataFrame(run.tables["jobs"])
    busy = polars.DataFrame(run.tables["utilization"])
    times = busy["time"].to_numpy()
    rows = np.clip(np.searchsorted(times, edges[1:], side="right") - 1, 0, None)
    starts, waits = jobs["starting_time"].to_numpy(), jobs["waiting_time"].to_numpy()
    counts, _ = np.histogram(starts, edges)
    sums, _ = np.histogram(starts, edges, weights=waits)
    return PolicyLine(
        run.label,
        [round(float(one) / nodes, 4) for one in busy["busy_nodes"].to_numpy()[rows]],
        [float(one) for one in busy["waiting_jobs"].to_numpy()[rows]],
        [None if not count else round(float(total / count), 1) for total, count in zip(sums, counts)],
    )


def _notes(task: Task, queue: str) -> tuple[str, ...]:
    notes = [REPLAYED]
    if queue != task.queue:
        notes.append(
            f"Forecasts assume the queue {queue}: the queue {task.queue} needs what a snapshot lacks."
        )
    return (*task.fabric().notes, *notes)
