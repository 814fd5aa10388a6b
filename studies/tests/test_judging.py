"""Verdicts by direction and by rank."""

from __future__ import annotations

import pytest
from topolane_studies import judging


def test_a_direction_agrees_where_it_holds() -> None:
    row = judging.direction("wait", "longer", True, "2 h")
    assert (row.by, row.paper, row.ours, row.verdict) == ("direction", "longer", "2 h", "agrees")
    assert judging.direction("wait", "longer", False, "0 h").verdict == "differs"


@pytest.mark.parametrize(
    ("ours", "right"),
    [
        ({"a": 30, "b": 20, "c": 10}, 3),
        ({"a": 20, "b": 30, "c": 10}, 2),
        ({"a": 10, "b": 20, "c": 30}, 0),
        # Equal ones of ours have no order, so they are not the paper's.
        ({"a": 20, "b": 20, "c": 10}, 2),
    ],
)
def test_pairs_are_compared(ours: dict[str, float], right: int) -> None:
    assert judging.ordered_alike({"a": 3, "b": 2, "c": 1}, ours) == (right, 3)
    row = judging.rank("order", [({"a": 3, "b": 2, "c": 1}, ours)])
    assert (row.by, row.paper) == ("rank", "a > b > c")
    assert row.verdict == ("agrees" if right == 3 else "differs")
    assert f"{right} of 3 pairs" in row.why


def test_what_the_paper_has_equal_is_skipped() -> None:
    """Figures within 2 % of each other have no order there."""
    paper = {"a": 100.0, "b": 98.5, "c": 97.0}
    assert judging.ordered_alike(paper, {"a": 1, "b": 2, "c": 0}) == (1, 1)


def test_groups_are_not_compared_with_each_other() -> None:
    """Nine of ten pairs suffice, wherever they are; a pair of two groups is none."""
    groups = [({"a": 2.0, "b": 1.0}, {"a": 2.0, "b": 1.0})] * 9
    wrong = ({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 2.0})
    assert judging.rank("order", [*groups, wrong]).verdict == "agrees"
    assert judging.rank("order", [*groups, wrong, wrong]).verdict == "differs"
