"""The past of a live source: bounded memory, and every change leads from one snapshot to the next."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topolane import Machine
from topolane.cluster.view import Running, View, Waiting
from topolane.serve.feed import PageState
from topolane.serve.history import SnapshotHistory
from topolane.serve.live import QUEUED, Busy, Live
from topolane.serve.source import SnapshotSource, ranges


def snapshot(time: float, running: dict[int, int], waiting: list[int], out: tuple[int, ...] = ()) -> View:
    return View(
        time,
        tuple(Running(id, str(id), "", "", (node,), 0.0, 9.0) for id, node in running.items()),
        tuple(Waiting(id, str(id), "", "", 1, 0.0, None) for id in waiting),
        out,
    )


def test_older_times_are_kept_at_coarser_steps() -> None:
    """However long it runs, the history stays in its memory, from its first time to its last; the newest steps stay fine."""
    history = SnapshotHistory(64, "x", most_bytes=20_000)
    for time in range(2000):
        history.add(snapshot(float(time), {time * 64 + n: n for n in range(64)}, []))
    assert history.bytes <= 20_000 and 10 < len(history) < 2000
    assert history.span() == (0.0, 1999.0)
    assert history.at(1999.0).time == 1999.0 and history.at(1998.0).time == 1998.0
    assert history.at(-5.0).time == 0.0
    found = history.at(700.0)
    assert found.time <= 700.0 and len(found.running) == 64


def test_a_snapshot_that_is_not_later_is_passed_over() -> None:
    """A source that does not answer repeats its last snapshot, which the history has already."""
    history = SnapshotHistory(4, "x")
    for time in (1.0, 1.0, 2.0, 2.0):
        history.add(snapshot(time, {}, []))
    assert len(history) == 2 and history.series().times == [1.0, 2.0]


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=40))
def test_a_clock_that_is_set_back_loses_nothing(clock: list[float]) -> None:
    """Whatever the clock says, the times of the history ascend, its last one is the clock's, and its snapshots stand in the order
    in which they came."""
    history = SnapshotHistory(4, "x")
    came = [time for time, before in zip(clock, [None, *clock]) if time != before]
    for number, time in enumerate(clock):
        history.add(snapshot(time, {number: 0}, []))
    times = history.series().times
    assert len(history) == len(times) == len(came) and history.span() == (times[0], clock[-1])
    assert times == sorted(times)
    # Steps below the resolution of a number fall together; then the latest of them is found.
    if all(earlier < later for earlier, later in itertools.pairwise(times)):
        assert [history.at(time).time for time in times] == came


class Clock(SnapshotSource):
    """A system without jobs whose clock says what it is given."""

    machine = Machine.of("small", [(["leaf1"], ["n1", "n2"])])
    title, policy, queue = "clock", "first-fit", "easy"
    says = 0.0

    def now(self) -> View:
        return View(self.says, (), ())

    def span(self) -> None:
        return None

    def series(self) -> None:
        return None


def test_the_page_goes_on_after_its_clock_was_set_back() -> None:
    """A moment of the past that was read before the clock was set back is read again after it, and figures of other policies begin
    again."""

    async def looked() -> None:
        source = Clock()
        live = Live(source, ["first-fit"])
        for source.says in (1000.0, 1010.0):
            await live.look()
        assert (await live.past(1005.0)).time == 1000.0
        for source.says in (500.0, 510.0):
            await live.look()
        assert live.span() == (480.0, 510.0)
        assert (await live.past(1005.0)).time == 510.0 and (await live.past(495.0)).time == 1010.0
        series = live.comparison.series()
        assert series is not None and 500.0 < series.times[0] <= series.times[-1] == 510.0

    asyncio.run(looked())


def test_an_explanation_keeps_no_other_viewer_waiting() -> None:
    """It is asked for in another thread than the one that answers all viewers. More than `QUEUED` at a time are refused."""

    class Explaining(Clock):
        def now(self) -> View:
            return View(1.0, (), (Waiting(7, "7", "", "", 1, 0.0, None),))

        def explain(self, snapshot: View, job: Waiting) -> list[str]:
            return [threading.current_thread().name]

    async def asked() -> None:
        live = Live(Explaining())
        await live.look()
        assert await live.why(7, None) != [threading.current_thread().name]
        live._asking = QUEUED
        with pytest.raises(Busy):
            await live.why(7, None)

    asyncio.run(asked())


states = st.tuples(
    st.dictionaries(st.integers(0, 8), st.integers(0, 9), max_size=6),
    st.lists(st.integers(20, 28), unique=True, max_size=8),
    st.sets(st.integers(0, 9), max_size=3).map(lambda nodes: tuple(sorted(nodes))),
)


@given(states, states)
def test_a_change_leads_from_any_state_to_any_other(before: tuple, after: tuple) -> None:
    """What the page does with a change (`Moment.apply`) gives the running jobs, the queue in its order and the nodes out of
    service of the later state."""
    old, new = PageState(snapshot(1.0, *before), 1), PageState(snapshot(2.0, *after), 2)
    change = json.loads(json.dumps(new.since(old)))
    running, waiting = dict(old.running), dict(old.waiting)
    for id in change["ended"]:
        del running[id]
    running |= {row[0]: row for row in change["started"]}
    for id in change["left"]:
        del waiting[id]
    waiting |= {row[0]: row for row in change["queued"]}
    if "order" in change:
        waiting = {id: waiting[id] for id in change["order"]}
    assert running == new.running
    assert list(waiting.items()) == list(new.waiting.items())
    assert change.get("out", old.out) == new.out


@given(st.sets(st.integers(0, 50)))
def test_ranges_hold_the_same_numbers(numbers: set[int]) -> None:
    """Half-open ranges, one after the other, hold exactly the numbers that they were made of."""
    found = ranges(numbers)
    assert {n for low, high in zip(found[::2], found[1::2]) for n in range(low, high)} == numbers
    assert found == sorted(set(found))
