"""Estimates how far differences between policies move with the unknown parts of the records."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane.sweep import Task

DRAWS = 4
FACTOR = 2
"""A few draws seldom enclose the true value, so their spread is multiplied by this. It was chosen on other
synthetic logs than those of `benches/inference.py`.
"""


def tasks(today: Task, policies: Sequence[str]) -> list[Task]:
    """Tasks for today's rules and the other policies: first unchanged, then under each draw. Empty without
    anything to draw or to compare.

    In half of the draws, each node out of service may be anywhere, because the records do not say where it
    is.
    """
    others = [name for name in dict.fromkeys(policies) if name not in ("recorded", today.policy)]
    if not others or not (today.held or today.capacity):
        return []
    found = []
    for draw in range(1 + DRAWS):
        capacity = "scattered" if today.capacity and draw > DRAWS // 2 else today.capacity
        drawn = dataclasses.replace(today, seed=(today.seed + draw) % 2**64, capacity=capacity)
        found += [dataclasses.replace(drawn, policy=name) for name in (today.policy, *others)]
    return found


def least_difference(waits: Sequence[float]) -> float:
    """FACTOR times the largest change that a draw causes in a difference of mean waits from today's rules.
    `waits` are the mean waits of `tasks`.
    """
    width = len(waits) // (1 + DRAWS)
    rows = [[wait - row[0] for wait in row] for row in _rows(waits, width)]
    return FACTOR * max((abs(one - other) for row in rows for one, other in zip(row, rows[0])), default=0.0)


def _rows(values: Sequence[float], width: int) -> list[Sequence[float]]:
    return [values[first : first + width] for first in range(0, len(values), width or 1)]
