"""The past of a live source: bounded memory, and every change leads from one snapshot to the next."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from topolane.serve.feed import State
from topolane.serve.history import History
from topolane.serve.snapshot import Running, Snapshot, Waiting, ranges


def snapshot(time: float, running: dict[int, int], waiting: list[int], out: tuple[int, ...] = ()) -> Snapshot:
    return Snapshot(
        time,
        tuple(Running(id, str(id), "", "", (node,), 0.0, 9.0) for id, node in running.items()),
        tuple(Waiting(id, str(id), "", "", 1, 0.0, None) for id in waiting),
        out,
    )


def test_older_times_are_kept_at_coarser_steps() -> None:
    """However long it runs, the history stays in its memory, from its first time to its last; the newest steps stay fine."""
    history = History(64, "x", most_bytes=20_000)
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
    history = History(4, "x")
    for time in (1.0, 1.0, 0.5, 2.0):
        history.add(snapshot(time, {}, []))
    assert len(history) == 2 and history.series().times == [1.0, 2.0]


states = st.tuples(
    st.dictionaries(st.integers(0, 8), st.integers(0, 9), max_size=6),
    st.lists(st.integers(20, 28), unique=True, max_size=8),
    st.sets(st.integers(0, 9), max_size=3).map(lambda nodes: tuple(sorted(nodes))),
)


@given(states, states)
def test_a_change_leads_from_any_state_to_any_other(before: tuple, after: tuple) -> None:
    """What the page does with a change (`Moment.apply`) gives the running jobs, the queue in its order and the nodes out of
    service of the later state."""
    old, new = State(snapshot(1.0, *before), 1), State(snapshot(2.0, *after), 2)
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
