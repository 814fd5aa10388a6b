"""The bandwidth that k flows share: that of a single flow, and that of all together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy

SHARED = 0.95
"""The flows have a common limit if each has less than this fraction of a single flow's bandwidth."""


@dataclass(frozen=True)
class FlowSharing:
    """A fit in which k simultaneous flows have min(one, total / k) bytes per second each."""

    one: float
    """The bandwidth of a single flow."""
    total: float | None
    """The bandwidth of all flows together; None if the measured flows did not reach a limit."""
    error: float
    """Root mean square of the relative errors of the fitted bandwidths."""


def sharing(rates: dict[int, float]) -> FlowSharing:
    """Fits min(one, total / k) in logarithms; tries every k up to which the first term may hold."""
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
    return FlowSharing(math.exp(one), math.exp(total) if reached else None, math.sqrt(error))
