"""Claims of a paper that become rows, or missing rows where what they need cannot be run."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Generic, TypeVar

from topolane_studies import judging

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from topolane_studies import PaperRow
    from topolane_studies.judging import Tolerance

Found = TypeVar("Found")


@dataclasses.dataclass(frozen=True)
class Claim(Generic[Found]):
    """A claim, and how it is judged by what was found."""

    what: str
    paper: str
    row: Callable[[Found], PaperRow]
    value: bool = False
    side: bool = False

    def missing(self, why: str) -> PaperRow:
        """The row if nothing was found."""
        return judging.missing(self.what, self.paper, why, value=self.value, side=self.side)


def figure(
    what: str,
    paper: float,
    ours: Callable[[Found], float],
    tolerance: Tolerance,
    *,
    neutral: float | None = None,
    shown: Callable[[float], str] = "{:,.0f}".format,
    why: Callable[[Found], str] = lambda _: "",
) -> Claim[Found]:
    """A figure, as in `judging.figure`."""

    def row(found: Found) -> PaperRow:
        own = ours(found)
        printed = (shown(paper), shown(own))
        return judging.figure(what, paper, own, tolerance, neutral=neutral, shown=printed, why=why(found))

    return Claim(what, shown(paper), row, value=True, side=neutral is not None)


def direction(what: str, claim: str, seen: Callable[[Found], tuple[bool, str, str]]) -> Claim[Found]:
    """A claim without a figure. seen: whether it holds, what was found, and why."""
    return Claim(what, claim, lambda found: judging.direction(what, claim, *seen(found)), side=True)


def rank(
    what: str,
    paper: Mapping[str, float],
    ours: Callable[[Found], Mapping[str, float]],
    why: Callable[[Found], str] = lambda _: "",
) -> Claim[Found]:
    """The order of figures by name."""

    def row(found: Found) -> PaperRow:
        return judging.rank(what, [(paper, ours(found))], why=why(found))

    return Claim(what, judging.in_order(paper), row, side=True)
