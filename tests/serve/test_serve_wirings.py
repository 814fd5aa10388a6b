"""What the page's server says of machines that are not trees: where switches are drawn, and which jobs may meet on links."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from topolane import machine
from topolane._engine import LinkUse
from topolane.cluster.view import Running, View
from topolane.panels import panels_of
from topolane.serve import source
from topolane.serve.feed import Feed, PageState, packed
from topolane.serve.outlook import met

TORUS, DRAGONFLY = "torus(size=4x4)", "slingshot(nodes=32, groups=4, switches=4, cables=2)"
LARGE = ("theta", "frontier", "tpu-v4", "torus(size=22x22x22)", "hyperx(size=22x22, nodes=11)")


def view(time: float, jobs: dict[int, list[int]]) -> View:
    return View(
        time, tuple(Running(id, str(id), "", "", tuple(nodes), 0.0, None) for id, nodes in jobs.items()), ()
    )


@pytest.mark.parametrize("name", [DRAGONFLY, "torus(size=8x4x8, cube=4x2x4)", "hyperx(size=4x3, nodes=2)"])
def test_the_page_gets_the_panels_of_the_report(name: str) -> None:
    """Each panel has the leaves and cells of `panels_of`; cells that count from 0 up are not sent."""
    fabric = machine(name)
    sent = json.loads(json.dumps(source.picture(fabric)))
    for (label, columns, rows, leaves, cells), panel in zip(
        sent["panels"], panels_of(fabric).panels, strict=True
    ):
        assert (label, columns, rows) == (panel.name, panel.columns, panel.rows)
        own = [leaf for low, high in zip(leaves[::2], leaves[1::2]) for leaf in range(low, high)]
        assert own == list(panel.leaves)
        assert (cells or list(range(len(own)))) == list(panel.cells)
    assert sent["uplinks"] == []


def test_a_tree_has_no_panels_and_no_jobs_that_meet() -> None:
    """Its bars of uplinks show who owns which."""
    assert source.picture(machine("cab"))["panels"] == []
    assert PageState(view(1.0, {1: [0, 20], 2: [1, 21]}), 1, machine("cab")).meeting == frozenset()


@pytest.mark.parametrize("name", LARGE)
def test_panels_add_less_than_the_names_of_nodes(name: str) -> None:
    """The page's data stays small: packed, the panels of a machine of 4,000 to 11,000 nodes take less than its nodes' names."""
    picture = source.picture(machine(name))
    assert len(packed(picture["panels"])) < len(packed(picture["nodes"]))


states = st.dictionaries(
    st.integers(1, 6), st.sets(st.integers(0, 15), min_size=1, max_size=5).map(sorted), max_size=6
)


@given(
    states,
    states,
    st.sampled_from([TORUS, "hyperx(size=4x4)", "slingshot(nodes=16, groups=2, switches=4, cables=2)"]),
)
def test_a_change_names_the_jobs_that_come_to_meet_or_part(before: dict, after: dict, name: str) -> None:
    """What the page does with a change (`Moment.apply`) gives the jobs that share a link with some other job, pair by pair."""
    fabric = machine(name)
    old = PageState(view(1.0, before), 1, fabric)
    new = PageState(view(2.0, after), 2, fabric, old)
    change = json.loads(json.dumps(new.since(old)))
    meeting = set(old.whole()["meeting"]) - set(change["ended"]) - set(change.get("apart", ()))
    meeting |= set(change.get("meet", ()))
    users = [(id, nodes, ()) for id, nodes in after.items()]
    assert meeting == {
        one[0]
        for one in users
        if any(LinkUse(fabric, [one, other]).shared for other in users if other != one)
    }
    if new.meeting == old.meeting:
        assert "meet" not in change and "apart" not in change


def test_a_running_job_names_whom_it_may_meet() -> None:
    """On a mesh, jobs 1 and 2 cross each other, job 3 has its own links, and job 4 has one router."""
    fabric = machine("torus(size=4x4m)")
    seen = view(1.0, {1: [0, 8], 2: [4, 9], 3: [13, 14], 4: [3]})
    said = {job.id: met(fabric, seen, job) for job in seen.running}
    assert said == {
        1: ["It may meet job 2 on links."],
        2: ["It may meet job 1 on links."],
        3: ["No other job may use the links that it may use."],
        4: ["It uses no link between switches."],
    }


def test_only_some_of_many_are_named() -> None:
    """Of 15 other jobs that cross the same row of a mesh, 12 are named."""
    fabric = machine("torus(size=2x32m)")
    seen = view(1.0, {id: [id, id + 16] for id in range(16)})
    (said,) = met(fabric, seen, seen.running[0])
    assert said.endswith(" and 3 others on links.")
    assert said.count(",") == 11


def test_the_feed_asks_the_engine_of_its_machine() -> None:
    """Two jobs that cross each other on a mesh meet; when one has gone, the other meets none."""
    feed = Feed(machine("torus(size=4x4m)"))
    asyncio.run(feed.publish(view(1.0, {1: [0, 8], 2: [4, 9], 3: [13, 14]})))
    assert feed.state is not None and feed.state.meeting == {1, 2}
    asyncio.run(feed.publish(view(2.0, {1: [0, 8], 3: [13, 14]})))
    assert b'"apart":[1]' in feed.state.change
    assert feed.state.meeting == frozenset()
