"""The studies of the papers behind the project: each reruns an experiment and prints its figures with ours."""

from __future__ import annotations

import dataclasses
from typing import Literal

Verdict = Literal["agrees", "better", "differs", "not measured"]
JudgedBy = Literal["value", "direction", "rank"]


@dataclasses.dataclass(frozen=True)
class PaperRow:
    """One figure of a paper, compared with ours."""

    what: str
    paper: str
    ours: str
    verdict: Verdict
    why: str
    tolerance: str = ""
    """What counts as agreeing; fixed in the code before the run."""
    by: JudgedBy = "value"
    """What the verdict compares: the figure, the side on which it lies, or the order of several."""
