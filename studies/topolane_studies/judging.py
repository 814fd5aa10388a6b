"""How a figure of a paper is compared with ours (docs/explanation/paper-figures.md).

A row is given or tested. Only tested rows count, and each must be able to fail. Labels, tolerances and neutral values are
written and committed before a row is first run.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from typing import TYPE_CHECKING

from topolane_studies import PaperRow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ALIKE = 0.9
"""An order agrees if at least this share of the pairs is ordered as in the paper."""
TIE = 0.02
"""Figures of the paper that differ by less than this share have no order."""
AIM_VALUES, AIM_SIDES = 0.5, 0.8
"""Shares of the tested claims of all studies that were to agree in value and in direction; set before the runs."""
TOO_WIDE = "the tolerance is wider than the effect"


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """How far ours may be from the paper's."""

    words: str
    holds: Callable[[float, float], bool]
    """Of ours and the paper's figure."""


def within_share(share: float, at_least: float = 0.0, unit: str = "") -> Tolerance:
    """Within a share of the paper's figure, or `at_least`, whichever is more."""
    words = f"{share:.0%}" + (f" or {at_least:g}{unit and ' '}{unit}" if at_least else "")
    return Tolerance(words, lambda ours, paper: abs(ours - paper) <= max(share * abs(paper), at_least))


def within_factor(factor: float) -> Tolerance:
    """Between the paper's figure over `factor` and `factor` times it."""
    return Tolerance(
        f"factor {factor:g}", lambda ours, paper: ours > 0 < paper and 1 / factor <= ours / paper <= factor
    )


def within_points(points: float, unit: str = "points") -> Tolerance:
    """Within an absolute difference."""
    return Tolerance(f"{points:g} {unit}", lambda ours, paper: abs(ours - paper) <= points)


def within_gain(share: float) -> Tolerance:
    """For speed-ups: S - 1 within a share of the paper's S - 1."""
    return Tolerance(f"{share:.0%} of S - 1", lambda ours, paper: abs(ours - paper) <= share * abs(paper - 1))


def figure(
    what: str,
    paper: float,
    ours: float | Sequence[float],
    tolerance: Tolerance,
    *,
    neutral: float | None = None,
    shown: tuple[str, str] | None = None,
    form: str = ",.2f",
    why: str = "",
    given: str = "",
) -> PaperRow:
    """A figure. Of several of ours, such as one a seed, the mean is compared.

    neutral: the value without the effect, such as 1 for a ratio; the row then has a direction too: the side of it. A row
    whose tolerance reaches the neutral value is given. shown: the paper's figure and ours, as printed. given: why the row
    cannot fail.
    """
    values = [ours] if isinstance(ours, (int, float)) else list(ours)
    mean = statistics.fmean(values)
    spread = f" ({min(values):{form}} to {max(values):{form}})" if len(values) > 1 else ""
    side = None
    if neutral is not None:
        side = (mean - neutral) * (paper - neutral) > 0
        given = given or (TOO_WIDE if tolerance.holds(neutral, paper) else "")
    printed = shown or (f"{paper:{form}}", f"{mean:{form}}{spread}")
    return PaperRow(what, *printed, tolerance.words, why, given, tolerance.holds(mean, paper), side)


def direction(what: str, claim: str, holds: bool, ours: str, why: str = "", *, given: str = "") -> PaperRow:
    """A claim without a figure, such as "longer". It agrees if it holds in the mean over the seeds."""
    return PaperRow(what, claim, ours, "the side", why, given, side=holds)


def rank(
    what: str,
    groups: Sequence[tuple[Mapping[str, float], Mapping[str, float]]],
    form: Callable[[Mapping[str, float]], str] | None = None,
    why: str = "",
    *,
    given: str = "",
) -> PaperRow:
    """The order of figures within each group, as (the paper's, ours) by name; pairs of names are compared."""
    right = of = 0
    for paper, ours in groups:
        same, pairs = ordered_alike(paper, ours)
        right, of = right + same, of + pairs
    shown = form or in_order
    papers, own = ("; ".join(shown(group[side]) for group in groups) for side in (0, 1))
    counted = f"{right} of {of} pairs as in the paper"
    why = f"{counted}; {why}" if why else counted
    tolerance = f"{ALIKE:.0%} of the pairs"
    return PaperRow(what, papers, own, tolerance, why, given, side=of > 0 and right >= ALIKE * of)


def missing(what: str, paper: str, why: str, *, value: bool = False, side: bool = False) -> PaperRow:
    """A claim that is not measured: it counts as a miss, by value, by direction, or both."""
    return PaperRow(what, paper, "-", "", why, "", False if value else None, False if side else None, False)


def ordered_alike(paper: Mapping[str, float], ours: Mapping[str, float]) -> tuple[int, int]:
    """How many pairs of names are ordered as in the paper, of how many that it orders; one that ours lacks is in no order."""
    right = of = 0
    for a, b in itertools.combinations(paper, 2):
        if abs(paper[a] - paper[b]) <= TIE * max(abs(paper[a]), abs(paper[b])):
            continue
        of += 1
        if a in ours and b in ours:
            right += (paper[a] > paper[b]) == (ours[a] > ours[b]) and ours[a] != ours[b]
    return right, of


def in_order(values: Mapping[str, float]) -> str:
    """The names, the one of the greatest value first."""
    return " > ".join(sorted(values, key=lambda name: -values[name]))


@dataclasses.dataclass(frozen=True)
class Tally:
    """Of the tested rows of a study: how many claims of each kind there are, and how many agree."""

    study: str
    given: int
    tested: int
    values: int
    values_agree: int
    sides: int
    sides_agree: int

    def cells(self) -> list[str]:
        """As printed in the summary."""
        counts = [str(self.given), str(self.tested)]
        for agree, of in ((self.values_agree, self.values), (self.sides_agree, self.sides)):
            counts.append(f"{agree} of {of} ({agree / of:.0%})" if of else "-")
        return [self.study, *counts]


def tally(study: str, rows: Sequence[PaperRow]) -> Tally:
    """Counts the rows of a study. Claims that were not measured count, and do not agree."""
    tested = [row for row in rows if not row.given]
    values = [row.value for row in tested if row.value is not None]
    sides = [row.side for row in tested if row.side is not None]
    counts = (len(values), sum(values), len(sides), sum(sides))
    return Tally(study, len(rows) - len(tested), len(tested), *counts)


def total(tallies: Sequence[Tally]) -> Tally:
    """All studies together."""
    names = [field.name for field in dataclasses.fields(Tally)][1:]
    return Tally("all", *(sum(getattr(one, name) for one in tallies) for name in names))


def aims(of: Tally) -> str:
    """Whether enough claims agree, in words."""
    counts = (
        ("value", of.values_agree, of.values, AIM_VALUES),
        ("direction", of.sides_agree, of.sides, AIM_SIDES),
    )
    said = []
    for kind, agree, tested, aim in counts:
        verdict = "reached" if tested and agree >= aim * tested else "missed"
        said.append(f"{aim:.0%} in {kind}: {verdict}")
    return f"aimed at: {', '.join(said)}"
