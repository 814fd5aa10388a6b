"""Room for a request by moving a few that run: the scheduler's rule on its own."""

from __future__ import annotations

import re
from typing import Any

import pytest
from topolane import InputError, Refusal
from topolane._engine import Machine, Repair, State, repair

LEAVES = [(["site", f"leaf{leaf}"], [f"n{leaf}.{node}" for node in range(4)]) for leaf in range(3)]
MACHINE = Machine.of("three leaves of four", LEAVES)


def full(*nodes: int) -> State:
    state = State(MACHINE)
    state.hold(list(nodes))
    return state


def test_one_move_makes_room_and_the_state_stays() -> None:
    """Job 7 crosses two leaves, of which one then has four nodes for nobody else. Moved together, it leaves it."""
    state = full(8, 9, 10, 11)
    found = repair(state, "isolated-hop-bytes", 4, [(7, [0, 1, 4], [])])
    assert isinstance(found, Repair)
    (moved,), given = found.moved, found.decision
    places = {moved.id: moved.nodes, given.id: given.nodes}
    assert (moved.id, given.id) == (7, 0) and moved.links == given.links == []
    assert sorted(len(nodes) for nodes in places.values()) == [3, 4]
    assert all(len({node // 4 for node in nodes}) == 1 for nodes in places.values())
    assert not set(moved.nodes) & set(given.nodes) and max(*moved.nodes, *given.nodes) < 8
    again = repair(state, "isolated-hop-bytes", 4, [(7, [0, 1, 4], [])])
    assert isinstance(again, Repair) and again.moved[0].nodes == moved.nodes, (
        "nothing is held that was not before"
    )


def test_room_that_there_is_needs_no_move() -> None:
    found = repair(State(MACHINE), "isolated-hop-bytes", 4, [(7, [0, 1, 4], [])])
    assert isinstance(found, Repair) and found.moved == [] and len(found.decision.nodes) == 4


def test_what_no_move_helps_is_refused_as_things_are() -> None:
    """With no job to be moved, with one as large as the request, and where there are too few nodes anyway."""
    state = full(8, 9, 10, 11)
    job = (7, [0, 1, 4], [])
    for nodes, running, most in ((4, [job], 0), (3, [job], 3), (6, [job], 3)):
        found = repair(state, "isolated-hop-bytes", nodes, running, most=most)
        if nodes == 3:  # inside the leaf that has three
            assert isinstance(found, Repair) and found.moved == []
            continue
        assert isinstance(found, Refusal)
        assert found.name == ("not-now" if nodes == 6 else "would-share-links")


@pytest.mark.parametrize(
    ("running", "sentence"),
    [
        ([(7, [12], [])], "job 7: node 12 is not on the machine"),
        ([(7, [8], [])], "job 7: node n2.0, or a link above it, is held already"),
        ([(7, [0], []), (7, [1], [])], "two of those that run have the identity 7"),
        ([(7, [], [])], "job 7 runs on no node"),
        ([(7, [0], [10**6])], "job 7: there is no cable 1000000"),
    ],
)
def test_bad_input_is_one_sentence(running: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        repair(full(8, 9, 10, 11), "isolated-hop-bytes", 4, running)
    with pytest.raises(InputError, match="at least 1 node"):
        repair(State(MACHINE), "isolated-hop-bytes", 0, [])
    with pytest.raises(InputError, match="unknown policy"):
        repair(State(MACHINE), "isolatd", 1, [])


def test_what_a_policy_in_python_raises_comes_out() -> None:
    class Fails:
        def choose(self, request: Any, state: Any) -> list[int]:
            raise RuntimeError("no idea")

    with pytest.raises(InputError, match="no idea"):
        repair(State(MACHINE), Fails(), 1, [])
