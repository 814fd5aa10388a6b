"""Verdicts by direction and by rank, which the studies print next to those by value.

Absolute figures depend on logs, clusters and codes that are not public. The side on which a figure lies, and the order
of several, depend on them less. The tolerances here and in `docs/explanation/paper-figures.md` were committed before the
rows were first run.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from topolane_studies import PaperRow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from topolane_studies import Verdict

ALIKE = 0.9
"""An order agrees if at least this share of the pairs is ordered as in the paper."""
TIE = 0.02
"""Figures of the paper that differ by less than this share have no order."""


def direction(what: str, claim: str, holds: bool, ours: str, why: str = "") -> PaperRow:
    """A claim without a figure, such as "longer"; it agrees if it holds in the mean over the seeds."""
    return PaperRow(what, claim, ours, _verdict(holds), why, "the side", "direction")


def rank(
    what: str,
    groups: Sequence[tuple[Mapping[str, float], Mapping[str, float]]],
    form: Callable[[Mapping[str, float]], str] | None = None,
    why: str = "",
) -> PaperRow:
    """The order of figures within each group, as (the paper's, ours) by name; pairs of names are compared."""
    right = of = 0
    for paper, ours in groups:
        same, pairs = ordered_alike(paper, ours)
        right, of = right + same, of + pairs
    shown = form or in_order
    papers, own = ("; ".join(shown(group[side]) for group in groups) for side in (0, 1))
    counted = f"{right} of {of} pairs as in the paper"
    return PaperRow(
        what,
        papers,
        own,
        _verdict(of > 0 and right >= ALIKE * of),
        f"{counted}; {why}" if why else counted,
        f"{ALIKE:.0%} of the pairs",
        "rank",
    )


def ordered_alike(paper: Mapping[str, float], ours: Mapping[str, float]) -> tuple[int, int]:
    """How many pairs of names are ordered as in the paper, of how many that it orders."""
    right = of = 0
    for a, b in itertools.combinations(paper, 2):
        if abs(paper[a] - paper[b]) <= TIE * max(abs(paper[a]), abs(paper[b])):
            continue
        of += 1
        right += (paper[a] > paper[b]) == (ours[a] > ours[b]) and ours[a] != ours[b]
    return right, of


def in_order(values: Mapping[str, float]) -> str:
    """The names, the one of the greatest value first."""
    return " > ".join(sorted(values, key=lambda name: -values[name]))


def _verdict(holds: bool) -> Verdict:
    return "agrees" if holds else "differs"
