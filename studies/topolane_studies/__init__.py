"""The studies of the papers behind the project: each reruns an experiment and prints its figures with ours."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class PaperRow:
    """One claim of a paper, compared with ours. `judging` makes them."""

    what: str
    paper: str
    ours: str
    tolerance: str = ""
    """What counts as agreeing; fixed in the code before the run."""
    why: str = ""
    given: str = ""
    """Why the row cannot fail, and so does not count: an input, a conserved sum, a fitted value. Empty if it is tested."""
    value: bool | None = None
    """Whether the figure agrees; None if the claim has none."""
    side: bool | None = None
    """Whether the direction or the order agrees; None if the claim has none."""
    measured: bool = True

    @property
    def verdict(self) -> str:
        """In words."""
        if self.given:
            return "given"
        if not self.measured:
            return "not measured: failed"
        if self.value is False:
            return "right side, value failed" if self.side else "failed"
        return "agrees" if self.side is not False else "failed"
