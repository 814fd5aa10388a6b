"""The measures of the twin with their targets: how close a replay comes to what a real Slurm did."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from measure import Row
from topolane.baseline.measures import RunArrays, spearman, within
from topolane.slurm.accounting_workload import RUN_ID

RANK, MEAN, UTILISATION, WITHIN = 0.95, 5.0, 1.0, 90.0
"""Targets: rank correlation, per cent of the mean wait, points of utilisation, per cent of starts within two intervals."""
BINS = 6
"""The number of equal periods in which utilisation is compared: ten minutes each in an hour."""


@dataclasses.dataclass(frozen=True)
class Closeness:
    """A replay compared with the records."""

    jobs: int
    """The number of runs that are in both."""
    recorded: float
    """Mean wait of these runs in seconds."""
    replayed: float
    rank: float
    """Spearman's correlation of the waits."""
    utilisation: tuple[tuple[float, float], ...]
    """Recorded and replayed utilisation in per cent of the nodes, in each period."""
    within: float
    """Per cent of starts within two backfill intervals."""

    @property
    def whole_off(self) -> float:
        """The error of the utilisation over the whole time, in percentage points."""
        recorded, replayed = np.mean(self.utilisation, axis=0)
        return float(abs(replayed - recorded))

    @property
    def mean_off(self) -> float:
        """The error of the replayed mean wait, in per cent."""
        if self.recorded == 0:
            return 0.0 if self.replayed == 0 else math.inf
        return 100 * abs(self.replayed / self.recorded - 1)

    @property
    def utilisation_off(self) -> float:
        """The largest difference of utilisation, in percentage points."""
        return max(abs(a - b) for a, b in self.utilisation)


def rows(
    figure: str,
    found: Sequence[Closeness],
    interval: float,
    what: str = "replayed",
    *,
    with_targets: bool = True,
) -> list[Row]:
    """The figures of one or more replays, with or without their targets."""

    def row(
        what: str, unit: str, value: Callable[[Closeness], float], *target: float, more: bool = False
    ) -> Row:
        limits = target if with_targets else ()
        return Row(figure, what, unit, tuple(map(value, found)), *limits, more_is_better=more)

    return [
        row(f"mean wait, recorded ({found[0].jobs:,} runs)", "s", lambda each: each.recorded),
        row(f"mean wait, {what}", "s", lambda each: each.replayed),
        row("mean wait is off by", "%", lambda each: each.mean_off, MEAN),
        row("rank correlation of waits", "", lambda each: each.rank, RANK, more=True),
        row("utilisation is off by, in the whole time", "points", lambda each: each.whole_off, UTILISATION),
        row(
            f"utilisation is off by, at most, in {BINS} parts of the time",
            "points",
            lambda each: each.utilisation_off,
            UTILISATION,
        ),
        row(
            f"starts within {2 * interval:.0f} s of the recorded ones",
            "%",
            lambda each: each.within,
            WITHIN,
            more=True,
        ),
    ]


def imported(path: Path) -> RunArrays:
    """The runs of an imported log."""
    return _read(path, ("id", "submit", "start", "run", "nodes"))


def replayed(path: Path) -> RunArrays:
    """The runs in `jobs.csv` of `topolane simulate`."""
    return _read(
        path,
        ("job_id", "submission_time", "starting_time", "execution_time", "requested_number_of_resources"),
    )


def _read(path: Path, names: Sequence[str]) -> RunArrays:
    with open(path, newline="") as file:
        rows = [[row[name] for name in names] for row in csv.DictReader(file)]
    ids = np.array([int(row[0]) % RUN_ID for row in rows], np.int64)
    return RunArrays(ids, *np.array([row[1:] for row in rows], float).reshape(len(rows), 4).T)


def closeness(recorded: RunArrays, replay: RunArrays, nodes: int, interval: float) -> Closeness:
    """The measures of a replay. For a job that ran several times, the last run's wait counts, but all its
    runs hold nodes.

    nodes: those of the machine; interval: of backfill, in seconds. Raises ValueError if no run is in both.
    """
    both = np.intersect1d(recorded.ids, replay.ids)
    if not len(both):
        raise ValueError("no run is both in the records and in the replay")
    a, b = recorded.last().of(both), replay.last().of(both)
    first = float(recorded.start.min())
    last = float((recorded.start + recorded.run).max())
    edges = np.linspace(first, last, BINS + 1)
    parts = tuple(zip(*(100 * runs.utilisation(edges, nodes) for runs in (recorded, replay))))
    return Closeness(
        len(both),
        float(a.wait.mean()),
        float(b.wait.mean()),
        spearman(a.wait, b.wait),
        parts,
        100 * within(a, b, 2 * interval),
    )
