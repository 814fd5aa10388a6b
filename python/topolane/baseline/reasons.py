"""Jobs that start much earlier or later than recorded, and the likely reason as far as the records tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from topolane.baseline.details import Details
from topolane.baseline.measures import Runs
from topolane.failures import Failure
from topolane.units import HOUR

MUCH = HOUR
"""Seconds: a job that starts this much earlier or later is listed with a reason."""


def reasons(recorded: Runs, replayed: Runs, details: Sequence[Details], down: Sequence[Failure]) -> list[str]:
    """The likely reason for each job that starts over an hour off, empty for the others; all in one order.

    A job that starts too early was reserved, limited or held, or nodes were down between the two starts, in this order. A job
    that starts too late had a reservation. All others are unknown.
    """
    spans = np.array([(failure.start, failure.end) for failure in down], float).reshape(-1, 2)
    found = []
    for start, other, job in zip(recorded.start.tolist(), replayed.start.tolist(), details):
        if abs(other - start) <= MUCH:
            found.append("")
        elif job.is_reserved:
            found.append("reserved")
        elif other > start:
            found.append("unknown")
        elif job.is_limited:
            found.append("limits")
        elif job.is_held:
            found.append("held")
        elif ((spans[:, 0] < start) & (spans[:, 1] > other)).any():
            found.append("nodes down")
        else:
            found.append("unknown")
    return found


def counted(reasons: Iterable[str]) -> dict[str, int]:
    """How many jobs have each reason, the most frequent first."""
    return dict(Counter(filter(None, reasons)).most_common())
