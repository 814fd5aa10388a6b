"""Who holds what, the bins and the words, without drawing."""

from __future__ import annotations

import dataclasses

import polars
import pytest
from schedules import NUMBERS, finish, picture
from topolane.moment import MOVE_COLUMNS, intervals
from topolane.report import MachinePicture, Subtree
from topolane.report.bins import bin_label, size_bins
from topolane.report.fat_tree import held
from topolane.report.figures.fat_tree import _uplinks
from topolane.report.style import LOCAL, SHARED
from topolane.report.tree_layout import ROW_LEAVES, lay_out
from topolane.units import change, clean, duration, moment, span

RADIX_SIX = (3, 3, 2)


def run_of(*allocated: str, links_shared: int = 1):
    """Jobs 1, 2, ... that hold these nodes from 0 s to 600 s and may meet others on `links_shared` links each."""
    rows = [
        (
            number,
            0.0,
            0.0,
            600.0,
            0.0,
            600.0,
            600.0,
            1,
            1.0,
            0.0,
            0.0,
            0.0,
            links_shared,
            nodes,
            "COMPLETED_SUCCESSFULLY",
        )
        for number, nodes in enumerate(allocated, start=1)
    ]
    return finish("run", polars.DataFrame(rows, schema=NUMBERS, orient="row"), 18, 3, {})


def test_the_papers_example_of_shared_links():
    """SC'18, radix 6: red on nodes 1 and 4, blue on 2, 3, 5, 10, 11, yellow on 7, 13, 14 (from 1).

    Red and blue may meet on leaf-to-pod links, blue and yellow on pod-to-core links.
    """
    red, blue, yellow = 1, 2, 3
    state = held(run_of("0 3", "1-2 4 9-10", "6 12-13"), picture(RADIX_SIX), 0.0)
    assert state.crossing[0] == [[red, blue], [red, blue], [yellow], [blue], [yellow], []]
    assert state.crossing[1] == [[blue, yellow], [blue, yellow]]
    assert state.crossing[2] == [[]]
    assert (state.shared(0), state.shared(1), state.busy) == (2, 2, 10)
    assert len({state.colour[job] for job in (red, blue, yellow)}) == 3


def test_jobs_on_links_of_their_own_share_none():
    """The same three jobs, each on uplinks that no other uses: all cross what they crossed, and none meets another."""
    state = held(run_of("0 3", "1-2 4 9-10", "6 12-13", links_shared=0), picture(RADIX_SIX), 0.0)
    assert state.crossing[0] == [[1, 2], [1, 2], [3], [2], [3], []]
    assert (state.shared(0), state.shared(1)) == (0, 0)
    lines = _uplinks(state, 0, 0)
    assert {colour for (colour, _), _ in lines} == {state.colour[1], state.colour[2]}
    assert len({near for _, near in lines}) == 2
    shared = held(run_of("0 3", "1-2 4 9-10", "6 12-13"), picture(RADIX_SIX), 0.0)
    assert [colour for (colour, _), _ in _uplinks(shared, 0, 0)] == [SHARED]


def test_a_job_inside_a_leaf_is_grey_and_crosses_nothing():
    state = held(run_of("0-2", "3 4"), picture(RADIX_SIX), 0.0)
    assert not any(jobs for level in state.crossing for jobs in level)
    assert set(state.colour.values()) == {LOCAL}


def test_a_job_holds_its_nodes_until_it_finishes():
    assert held(run_of("0-2"), picture(RADIX_SIX), 599.9).busy == 3
    assert held(run_of("0-2"), picture(RADIX_SIX), 600.0).busy == 0


def test_a_job_that_moved_is_drawn_where_it_was_then():
    """Job 1 begins on nodes 0-1, is on 3-4 from 100 s, and on 6-7 from 200 s to its end."""
    rows = [(1, 100.0, "0-1", "3-4", 5.0), (1, 200.0, "3-4", "6-7", 5.0)]
    moves = polars.DataFrame(rows, schema=[*MOVE_COLUMNS], orient="row")
    run = dataclasses.replace(run_of("6-7"), moves=moves)
    for time, nodes in ((0.0, (0, 1)), (99.9, (0, 1)), (100.0, (3, 4)), (200.0, (6, 7)), (599.0, (6, 7))):
        holder = held(run, picture(RADIX_SIX), time).holder
        assert tuple(node for node, job in enumerate(holder) if job == 1) == nodes


@pytest.mark.parametrize(
    ("text", "ranges"),
    [("0-3 7 9-10", [(0, 4), (7, 8), (9, 11)]), ("0-1,4", [(0, 2), (4, 5)]), ("", []), (None, [])],
)
def test_intervals(text, ranges):
    assert intervals(text) == ranges


@pytest.mark.parametrize("text", ["a", "1-", "-3", "5-2", "1--2"])
def test_what_is_not_an_interval(text):
    with pytest.raises(ValueError, match="interval"):
        intervals(text)


def test_a_picture_is_checked():
    with pytest.raises(ValueError, match="does not begin at node 3"):
        MachinePicture(6, [[Subtree("a", 0, 3), Subtree("b", 4, 6)]])
    with pytest.raises(ValueError, match="ends at node 3 of 6"):
        MachinePicture(6, [[Subtree("a", 0, 3)]])
    with pytest.raises(ValueError, match="splits a group"):
        MachinePicture(
            4, [[Subtree("a", 0, 3), Subtree("b", 3, 4)], [Subtree("p", 0, 2), Subtree("q", 2, 4)]]
        )


def test_uneven_groups_have_places():
    """A leaf of 3 and one of 1 in a pod, and a pod that is a single leaf."""
    uneven = MachinePicture(
        6,
        [
            [Subtree("a", 0, 3), Subtree("b", 3, 4), Subtree("c", 4, 6)],
            [Subtree("p", 0, 4), Subtree("q", 4, 6)],
            [Subtree("all", 0, 6)],
        ],
    )
    layout = lay_out(uneven)
    assert [row.groups[0] for row in layout.rows] == [[0, 1, 2]]
    assert layout.x[0][0] < layout.x[0][1] < layout.x[0][2]
    assert layout.x[1] == [0.5, layout.x[0][2]]


def test_wide_machines_wrap_between_pods():
    layout = lay_out(picture((22, 22, 22)))
    assert [len(row.leaves) for row in layout.rows] == [132, 132, 132, 88]
    assert all(len(row.leaves) <= ROW_LEAVES for row in layout.rows)
    assert sorted(leaf for row in layout.rows for leaf in row.leaves) == list(range(484))


def test_a_leaf_is_a_boundary_of_the_bins():
    labels = [bin_label(bounds) for bounds in size_bins(18, 300)]
    assert labels == ["1", "2–4", "5–18", "19–64", "65–128", "129–256", "257+"]
    assert [bin_label(bounds) for bounds in size_bins(4, 4)] == ["1", "2–4"]
    assert [bin_label(bounds) for bounds in size_bins(18, 1)] == ["1"]


def test_words_for_numbers():
    seconds = (None, 0, 45, 90, 720, 3599, 28440, 1188000, -2700)
    assert [duration(s) for s in seconds] == [
        "–",
        "0 s",
        "45 s",
        "1.5 min",
        "12 min",
        "1.0 h",
        "7.9 h",
        "330 h",
        "−45 min",
    ]
    assert [change(s) for s in (None, 0, 2700, -2700)] == ["–", "0 s", "+45 min", "−45 min"]
    assert span(31.2 * 86400) == "31.2 days"
    assert moment(11 * 86400 + 3 * 3600 + 14 * 60) == "day 12, 03:14"
    assert clean("a\n\x00b" + "c" * 50, 10) == "a bcccccc…"
