"""What counts as agreement, and what counts at all."""

from __future__ import annotations

import pytest
from topolane_studies import judging


def test_a_direction_agrees_where_it_holds() -> None:
    row = judging.direction("wait", "longer", True, "2 h")
    assert (row.paper, row.ours, row.value, row.side, row.verdict) == ("longer", "2 h", None, True, "agrees")
    assert judging.direction("wait", "longer", False, "0 h").verdict == "failed"


@pytest.mark.parametrize(
    ("ours", "right"),
    [
        ({"a": 30, "b": 20, "c": 10}, 3),
        ({"a": 20, "b": 30, "c": 10}, 2),
        ({"a": 10, "b": 20, "c": 30}, 0),
        # Equal ones of ours have no order, so they are not the paper's.
        ({"a": 20, "b": 20, "c": 10}, 2),
        # What ours lacks, such as a refused row, is in no order.
        ({"b": 20, "c": 10}, 1),
    ],
)
def test_pairs_are_compared(ours: dict[str, float], right: int) -> None:
    assert judging.ordered_alike({"a": 3, "b": 2, "c": 1}, ours) == (right, 3)
    row = judging.rank("order", [({"a": 3, "b": 2, "c": 1}, ours)])
    assert (row.paper, row.value) == ("a > b > c", None)
    assert row.side == (right == 3)
    assert f"{right} of 3 pairs" in row.why


def test_what_the_paper_has_equal_is_skipped() -> None:
    """Figures within 2 % of each other have no order there."""
    paper = {"a": 100.0, "b": 98.5, "c": 97.0}
    assert judging.ordered_alike(paper, {"a": 1, "b": 2, "c": 0}) == (1, 1)


def test_groups_are_not_compared_with_each_other() -> None:
    """Nine of ten pairs suffice, wherever they are; a pair of two groups is none."""
    groups = [({"a": 2.0, "b": 1.0}, {"a": 2.0, "b": 1.0})] * 9
    wrong = ({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 2.0})
    assert judging.rank("order", [*groups, wrong]).side is True
    assert judging.rank("order", [*groups, wrong, wrong]).side is False


@pytest.mark.parametrize(
    ("ours", "value", "side"),
    [(1.19, True, True), (1.11, False, True), (1.3, False, True), (0.95, False, False), (1.0, False, False)],
)
def test_a_figure_has_a_value_and_a_side(ours: float, value: bool, side: bool) -> None:
    """A better figure than the paper's does not agree, and none at all is on no side."""
    row = judging.figure("ratio", 1.2, ours, judging.within_points(0.05), neutral=1.0)
    assert (row.value, row.side, row.given) == (value, side, "")


def test_a_tolerance_that_reaches_no_effect_is_no_test() -> None:
    """A tenth of 1.06 accepts 1.00."""
    row = judging.figure("speed-up", 1.06, 1.0, judging.within_share(0.1), neutral=1.0)
    assert (row.given, row.verdict) == (judging.TOO_WIDE, "given")
    assert not judging.figure("speed-up", 1.06, 1.0, judging.within_gain(0.25), neutral=1.0).given


def test_only_tested_rows_count_and_missing_ones_count_as_misses() -> None:
    exact = judging.within_points(0.0)
    rows = [
        judging.figure("given", 1.0, 1.0, exact, given="an input"),
        judging.figure("right", 1.0, 1.0, exact),
        judging.figure("right side", 1.5, 1.2, exact, neutral=1.0),
        judging.direction("wrong", "longer", False, "0"),
        judging.missing("refused", "2", "no program", value=True, side=True),
    ]
    counted = judging.tally("study", rows)
    assert counted == judging.Tally("study", 1, 4, values=3, values_agree=1, sides=3, sides_agree=1)
    assert judging.total([counted, counted]) == judging.Tally("all", 2, 8, 6, 2, 6, 2)
    assert rows[-1].verdict == "not measured: failed" and rows[2].verdict == "right side, value failed"


@pytest.mark.parametrize(
    ("values", "sides", "said"),
    [
        ((5, 10), (8, 10), "50% in value: reached, 80% in direction: reached"),
        ((4, 10), (7, 10), "50% in value: missed, 80% in direction: missed"),
        ((0, 0), (1, 1), "50% in value: missed, 80% in direction: reached"),
    ],
)
def test_a_missed_aim_is_printed_as_missed(
    values: tuple[int, int], sides: tuple[int, int], said: str
) -> None:
    tally = judging.Tally("all", 0, 20, values[1], values[0], sides[1], sides[0])
    assert judging.aims(tally) == f"aimed at: {said}"
