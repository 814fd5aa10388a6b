"""Measures how close replayed starts are to recorded ones."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

PARTS = 10
"""The number of equal parts into which jobs are split to find the least meaningful difference."""


@dataclasses.dataclass(frozen=True)
class RunArrays:
    """Runs of jobs as parallel arrays. Times are in seconds."""

    ids: NDArray[np.int64]
    submit: NDArray[np.float64]
    start: NDArray[np.float64]
    run: NDArray[np.float64]
    nodes: NDArray[np.float64]
    """Nodes that each run holds; parts of nodes count as fractions."""

    @property
    def wait(self) -> NDArray[np.float64]:
        """Seconds from submission to start."""
        return self.start - self.submit

    def of(self, ids: NDArray[np.int64]) -> RunArrays:
        """The runs with the given ids, in the order of `ids`. All ids must exist."""
        order = np.argsort(self.ids)
        at = order[np.searchsorted(self.ids, ids, sorter=order)]
        return RunArrays(self.ids[at], self.submit[at], self.start[at], self.run[at], self.nodes[at])

    def where(self, those: NDArray[np.bool_]) -> RunArrays:
        """The runs for which the mask is true."""
        return RunArrays(*(getattr(self, field.name)[those] for field in dataclasses.fields(self)))

    def and_also(self, others: RunArrays) -> RunArrays:
        """These runs followed by the others."""
        names = [field.name for field in dataclasses.fields(self)]
        return RunArrays(*(np.concatenate((getattr(self, name), getattr(others, name))) for name in names))

    def last(self) -> RunArrays:
        """The last run of each job, with the submission of its first run; ordered by id."""
        ids, first = np.unique(self.ids, return_index=True)
        last = len(self.ids) - 1 - np.unique(self.ids[::-1], return_index=True)[1]
        return RunArrays(ids, self.submit[first], self.start[last], self.run[last], self.nodes[last])

    def utilisation(self, edges: NDArray[np.float64], nodes: float) -> NDArray[np.float64]:
        """The mean fraction of `nodes` that the runs hold between each two neighbouring edges."""
        end = self.start + self.run
        held = _node_seconds(self.start, self.nodes, edges) - _node_seconds(end, self.nodes, edges)
        return np.diff(held) / (nodes * np.diff(edges))


def _node_seconds(
    since: NDArray[np.float64], nodes: NDArray[np.float64], until: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Node-seconds up to each time in `until`, if `nodes[i]` nodes are held for ever from `since[i]` on."""
    order = np.argsort(since)
    times, counts = since[order], nodes[order]
    held = np.concatenate(([0.0], np.cumsum(counts)))
    before = np.concatenate(([0.0], np.cumsum(counts * times)))
    place = np.searchsorted(times, until)
    return np.asarray(held[place] * until - before[place])


def spearman(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Spearman's rank correlation, where equal values have the mean of their ranks; nan if all values of one
    array are equal.
    """
    x, y = _ranks(a), _ranks(b)
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / scale if scale else math.nan


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place], float)


def within(recorded: RunArrays, replayed: RunArrays, seconds: float) -> float:
    """The fraction of starts that differ from the recorded ones by at most `seconds`. Both arguments must
    have the same order.
    """
    return float(np.mean(np.abs(recorded.start - replayed.start) <= seconds))


@dataclasses.dataclass(frozen=True)
class Waits:
    """Recorded and replayed waits of a group of jobs, as pairs in seconds."""

    what: str
    """The name of the group."""
    jobs: int
    mean: tuple[float, float]
    median: tuple[float, float]
    p95: tuple[float, float]
    rank: float | None
    """Spearman's correlation of the waits; None if one of the two has only equal waits."""

    @classmethod
    def of(cls, what: str, recorded: NDArray[np.float64], replayed: NDArray[np.float64]) -> Waits:
        """The measures of these waits. Both arrays must have the same order."""
        both = (recorded, replayed)
        mean, median, p95 = (
            (float(measure(both[0])), float(measure(both[1])))
            for measure in (np.mean, np.median, lambda waits: np.quantile(waits, 0.95))
        )
        rank = spearman(recorded, replayed)
        return cls(what, len(recorded), mean, median, p95, None if math.isnan(rank) else rank)


def least_difference(recorded: NDArray[np.float64], replayed: NDArray[np.float64]) -> float:
    """The mean difference of the mean waits over `PARTS` equal parts of the jobs, in order of submission.

    It is never smaller than the difference of the mean waits of all jobs. It is larger if errors of different
    weeks cancel.
    """
    parts = min(PARTS, len(recorded))
    apart = [
        len(one) * abs(one.mean() - other.mean())
        for one, other in zip(np.array_split(recorded, parts), np.array_split(replayed, parts))
    ]
    return float(sum(apart)) / len(recorded)
