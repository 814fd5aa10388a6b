"""Bandwidth that k flows share: what one alone has, what all together have."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy

SHARED = 0.95
"""A limit of all together shows once each has less than this part of what one alone has."""


@dataclass(frozen=True)
class Sharing:
    """k at once have min(one, total / k) bytes per second each."""

    one: float
    """What one alone has."""
    total: float | None
    """What all have together; None where so many at once did not reach it."""
    error: float
    """Root mean square of the relative errors of the fitted bandwidths."""


def sharing(rates: dict[int, float]) -> Sharing:
    """Fits min(one, total / k), in logarithms; up to which k the first holds is tried out."""
    sharers = numpy.array(sorted(rates))
    measured = numpy.log([rates[k] for k in sharers])
    together = measured + numpy.log(sharers)
    tried = []
    for alone in range(1, len(sharers) + 1):
        one = measured[:alone].mean()
        total = together[alone:].mean() if alone < len(sharers) else math.inf
        fitted = numpy.minimum(one, total - numpy.log(sharers))
        tried.append((float(((fitted - measured) ** 2).mean()), float(one), float(total)))
    error, one, total = min(tried)
    reached = total - math.log(sharers[-1]) < one + math.log(SHARED)
    return Sharing(math.exp(one), math.exp(total) if reached else None, math.sqrt(error))
