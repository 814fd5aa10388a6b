"""Faults in a log: one line with a count for each."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from topolane.units import plural

if TYPE_CHECKING:
    from topolane._engine import Workload

NO_FAULTS = frozenset(
    {
        "never ran",
        "never started",
        "still running",
        "step of a job",
        "part of a job that has a line of its own",
    }
)
"""Reasons for skipping a record that are not faults."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fault and how often it occurs."""

    count: int
    what: str
    is_left_out: bool = False
    """Whether these runs are missing from the workload."""
    of: str = "run"
    """The word for what is counted."""
    cluster: str | None = None
    """The cluster, if the file has several."""

    def __str__(self) -> str:
        where = "" if self.cluster is None else f"{self.cluster}: "
        if self.is_left_out:
            return f"{where}skipped: {self.count:,} {self.what}"
        return f"{where}{plural(self.count, self.of)} {self.what}"


@dataclasses.dataclass(frozen=True)
class Checked:
    """The result of checking a log."""

    runs: int
    """The number of runs that can be replayed."""
    findings: list[Finding]
    unknown: list[str]
    """Sentences on what is unknown or assumed, because a file, a column or a number is missing."""


def of_workload(workload: Workload) -> Checked:
    """The faults in a log that the engine has read."""
    columns = workload.columns()
    start, late = columns["start"], columns["run"] - columns["walltime"]
    known = ~np.isnan(start)
    counts = {
        "without a recorded start, where others have one": int((~known).sum()) if known.any() else 0,
        "ran over a minute past the walltime, at which a replay ends a job": int((late > 60).sum()),
    }
    findings = [
        Finding(count, reason, is_left_out=True)
        for reason, count in sorted(workload.left_out.items())
        if reason not in NO_FAULTS
    ]
    findings += [Finding(count, what, of="job") for what, count in workload.changed.items()]
    findings += [Finding(count, what, of="job") for what, count in counts.items() if count]
    unknown = [] if known.any() else ["no job records a start: a replay cannot be put next to the records"]
    return Checked(len(known), findings, [*unknown, *workload.assumed])
