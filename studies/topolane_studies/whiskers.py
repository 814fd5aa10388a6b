"""Whiskers of bars, from the least to the most of several runs."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def whiskers(values: Sequence[float]) -> tuple[float, float]:
    """Lengths below and above the mean. The mean of equal values may differ from them in the last bit, and a length is
    never negative.
    """
    mean = statistics.fmean(values)
    return max(mean - min(values), 0.0), max(max(values) - mean, 0.0)
