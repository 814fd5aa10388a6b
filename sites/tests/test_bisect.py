"""Cuts: by halves of the ranks, by least traffic, and guests divided so that few move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topolane.mpi.counts import Matrix
from topolane_sites.bisect import contracted, crossing, cut_weight, divide, halves, least_halves


def matrix_of(ranks: int, rows: list[tuple[int, int, float, float, float]]) -> Matrix:
    """Rows of sender, receiver, messages, bytes, turns."""
    table = np.array(rows, float).reshape(len(rows), 5)
    return Matrix(ranks, table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2:])


def ring(ranks: int, order: np.ndarray) -> Matrix:
    """Everybody sends both neighbours a message of 100 bytes, and waits for each."""
    rows = [(order[at], order[(at + step) % ranks], 1, 100, 1) for at in range(ranks) for step in (1, -1)]
    return matrix_of(ranks, rows)


def test_what_crosses_is_counted_by_definition() -> None:
    """Ranks 0,1 | 2,3: bytes of the busier direction, turns of the rank that waits most, the busiest pair."""
    matrix = matrix_of(
        4, [(0, 2, 5, 500, 3), (0, 3, 1, 100, 4), (1, 0, 9, 9000, 9), (2, 0, 2, 50, 1), (1, 2, 1, 7, 6)]
    )
    cut = crossing(matrix, halves(4))
    assert (cut.bytes, cut.turns, cut.messages) == (607, 7, 9)
    assert (cut.pair_bursts, cut.pair_bytes) == (3, 500)


def test_halves_of_an_odd_number() -> None:
    """Five ranks: three and two."""
    assert halves(5).tolist() == [0, 0, 0, 1, 1]


def test_the_least_cut_of_a_shuffled_ring_is_two_neighbours() -> None:
    """A ring of 64 whose ranks are shuffled: halves of the ranks cut it in many places, the least cut in two."""
    matrix = ring(64, np.random.default_rng(5).permutation(64))
    least = least_halves(matrix)
    assert np.bincount(least).tolist() == [32, 32]
    assert crossing(matrix, least).bytes == 200
    assert crossing(matrix, halves(64)).bytes > 1000


@pytest.mark.parametrize("rows", [[], [(0, 0, 1, 1, 1)], [(0, 1, 1, 0, 0)]])
def test_programs_that_say_nothing_are_cut(rows) -> None:
    """No traffic, traffic to oneself, messages of no bytes: halves all the same."""
    assert np.bincount(least_halves(matrix_of(4, rows))).tolist() == [2, 2]
    assert least_halves(matrix_of(1, [])).tolist() == [0]


def test_ranks_are_contracted_to_their_guests() -> None:
    """What guests send each other is what their ranks send, at what a WAN costs; ranks of no guest are skipped."""
    matrix = matrix_of(4, [(0, 1, 1, 100, 0), (0, 2, 1, 100, 10), (2, 1, 1, 200, 0), (3, 0, 1, 999, 9)])
    weights = contracted(matrix, np.array([0, 0, 1, -1]), 2, 0.01, 1000.0)
    assert weights == pytest.approx(np.array([[0, 0.4], [0.4, 0]]))


symmetric = st.integers(2, 9).flatmap(
    lambda count: st.lists(st.integers(0, 20), min_size=count * count, max_size=count * count).map(
        lambda each: np.array(each, float).reshape(count, count)
    )
)


@settings(deadline=None)
@given(symmetric, st.data())
def test_a_division_has_the_sizes_asked_for(weights, data) -> None:
    """Whatever the traffic, and wherever the guests are now: each site gets the number that was asked for, and moving fewer
    is given up only for less traffic across."""
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    count = len(weights)
    to = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    now = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count)))
    sizes = [int((to == part).sum()) for part in range(3)]
    part = divide(weights, sizes, now)
    assert [int((part == one).sum()) for one in range(3)] == sizes
    fewest = sum(max(0, size - int((now == one).sum())) for one, size in enumerate(sizes))
    if int((part != now).sum()) > fewest:
        assert (now < 0).all() or cut_weight(weights, part) < cut_weight(
            weights, divide(0 * weights, sizes, now)
        )


def test_who_is_chatty_stays_together_and_who_is_there_stays() -> None:
    """Two hidden groups of eight: found; on the sites where most of each are already; equal traffic: no guest moves
    without need."""
    hidden = np.random.default_rng(2).permutation(np.repeat([0, 1], 8))
    weights = np.where(hidden[:, None] == hidden, 10.0, 1.0)
    np.fill_diagonal(weights, 0)
    for flip in (0, 1):
        now = np.where(np.arange(16) < 2, 1 - hidden ^ flip, hidden ^ flip)
        assert divide(weights, [8, 8], now).tolist() == (hidden ^ flip).tolist()
    even = np.ones((8, 8)) - np.eye(8)
    now = np.array([1, 0, 1, 0, 1, 0, 1, 0])
    assert divide(even, [4, 4], now).tolist() == now.tolist()
    assert (divide(even, [2, 6], now) != now).sum() == 2
