"""Computes lines over time from the submissions, starts and ends of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from topolane.serve.source import PolicyLine

if TYPE_CHECKING:
    from numpy.typing import NDArray

POINTS = 200
"""Points of a line."""


def edges_of(first: float, last: float) -> NDArray[Any]:
    """The edges of the periods of all points: the start of the first, and the end of each."""
    return np.linspace(first, max(last, first + 1.0), POINTS + 1)


def points_of(starts: Sequence[float], edges: NDArray[Any]) -> NDArray[Any]:
    """The index of the point at which each job starts; -1 for none."""
    at = np.array(starts)
    found = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, POINTS - 1)
    # Systems that record whole seconds may report a first start before the log begins. Jobs that started long
    # before count at no point.
    return np.where((at < edges[0] - 1.0) | (at > edges[-1]), -1, found)


def line_of(
    name: str,
    edges: NDArray[Any],
    all_nodes: int,
    submits: Sequence[float],
    starts: Sequence[float],
    ends: Sequence[float],
    nodes: Sequence[int],
) -> PolicyLine:
    """Utilisation, queue length and mean waits of jobs. An unknown start or end is infinite."""
    submit, start, end, size = (np.array(column, dtype=float) for column in (submits, starts, ends, nodes))
    busy = [size[(start <= time) & (end > time)].sum() for time in edges[1:]]
    queued = [((submit <= time) & (start > time) & (end > time)).sum() for time in edges[1:]]
    return PolicyLine(
        name,
        [round(min(float(count) / all_nodes, 1.0), 4) for count in busy],
        [float(count) for count in queued],
        means(points_of(starts, edges), [start - submit for start, submit in zip(starts, submits)]),
    )


def means(points: Iterable[int], values: Sequence[float | None]) -> list[float | None]:
    """The mean of the values at each point; None at a point without values."""
    rows: dict[int, list[float]] = {}
    for at, value in zip(points, values):
        if value is not None:
            rows.setdefault(int(at), []).append(float(value))
    return [round(sum(rows[at]) / len(rows[at]), 3) if at in rows else None for at in range(POINTS)]
