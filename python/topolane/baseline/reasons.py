"""Jobs that start much earlier or later than recorded, with the likely reason if the records show one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from topolane.baseline.details import Details
from topolane.baseline.measures import RunArrays
from topolane.failures import Failure
from topolane.units import HOUR

MUCH = HOUR
"""In seconds: a job that starts this much earlier or later gets a reason."""


def reasons(
    recorded: RunArrays, replayed: RunArrays, details: Sequence[Details], down: Sequence[Failure]
) -> list[str]:
    """The likely reason for each job that starts over an hour too early or late; empty for the others. All
    arguments have the same order.

    A job that starts too early was reserved, limited or held, or nodes were down between the two starts; the
    first that applies is given. A job that starts too late had a reservation. Otherwise the reason is
    unknown.
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
    """The number of jobs with each reason, the most frequent reason first."""
    return dict(Counter(filter(None, reasons)).most_common())
