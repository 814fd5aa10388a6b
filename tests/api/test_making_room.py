"""Room for a request by requeueing jobs: what reaches Python. The rules are tested in Rust (crates/placement)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from topolane import InputError
from topolane._engine import Machine, NoRoom, RoomPlan, State, make_room

LEAVES = [(["site", f"leaf{leaf}"], [f"n{leaf}.{node}" for node in range(4)]) for leaf in range(3)]
MACHINE = Machine.of("three leaves of four", LEAVES)
Job = tuple[int, list[int], list[int], float | None, int | None]
RUNNING: list[Job] = [
    (1, [0, 1], [], 9.0, None),
    (2, [2, 4, 5], [], 4.0, 0),
    (3, [6], [], 5.0, 0),
    (4, [7], [], None, None),
]


def full() -> State:
    state = State(MACHINE)
    state.hold([8, 9, 10, 11])
    return state


def test_the_cheapest_jobs_go_and_the_state_stays() -> None:
    """One node is free. Three more are cheapest of job 2, which holds three; in one leaf, of jobs 1 and 2."""
    state = full()
    for _ in range(2):
        plan = make_room(state, "first-fit", 4, RUNNING, budgets=[2], id=77)
        assert isinstance(plan, RoomPlan)
        assert (plan.requeued, plan.cost, plan.least) == ([2], 4.0, 4.0)
        assert (plan.decision.id, sorted(plan.decision.nodes)) == (77, [2, 3, 4, 5])
    plan = make_room(state, "kueue-tas", 4, RUNNING, budgets=[2], within="required:leaf")
    assert isinstance(plan, RoomPlan)
    assert (plan.requeued, plan.cost, plan.least) == ([1, 2], 13.0, 13.0)
    assert sorted(plan.decision.nodes) == [0, 1, 2, 3]


def test_only_eligible_nodes_are_given() -> None:
    """Job 2 is the cheapest of all, but only job 1 holds nodes that the request may use. Less bandwidth is asked on links alone."""
    plan = make_room(full(), "first-fit", 2, RUNNING, budgets=[2], eligible=[0, 1], min_bandwidth=0.5)
    assert isinstance(plan, RoomPlan) and plan.requeued == [1]
    assert sorted(plan.decision.nodes) == [0, 1]
    for words, sentence in (
        ({"eligible": [99]}, "eligible node 99"),
        ({"min_bandwidth": 0.0}, "the minimum bandwidth share must be above 0 and at most 1, not 0"),
    ):
        given: Any = words
        with pytest.raises(InputError, match=sentence):
            make_room(full(), "first-fit", 2, RUNNING, budgets=[2], **given)


def test_movable_jobs_move() -> None:
    """Job 1 holds two nodes of a leaf and fits next to job 3. To move it is cheaper than to requeue job 2."""
    running = [(1, [0, 1], [], 1.0, None), (2, [4, 5, 6], [], 4.0, None), (3, [8, 9], [], None, None)]
    within = "required:leaf"
    plan = make_room(State(MACHINE), "kueue-tas", 4, running, within=within, movable=[1])
    assert isinstance(plan, RoomPlan)
    assert (plan.requeued, plan.cost, plan.least) == ([], 1.0, 1.0)
    assert [(moved.id, sorted(moved.nodes)) for moved in plan.moved] == [(1, [10, 11])]
    assert sorted(plan.decision.nodes) == [0, 1, 2, 3]


def test_a_move_makes_links_free() -> None:
    """Job 7 crosses two leaves, of which one then has four nodes for no other isolated group. Moved onto one leaf, it leaves the
    other. With a budget of no move there is no room."""
    for budget in (1, 0):
        plan = make_room(
            full(), "isolated-hop-bytes", 4, [(7, [0, 1, 4], [], 3.0, 0)], movable=[7], budgets=[budget]
        )
        if budget == 0:
            assert isinstance(plan, NoRoom) and plan.impossible
            continue
        assert isinstance(plan, RoomPlan) and (plan.cost, plan.least) == (3.0, 3.0)
        (moved,), given = plan.moved, plan.decision
        assert (moved.id, len(moved.nodes), len(given.nodes)) == (7, 3, 4)
        assert all(len({node // 4 for node in one.nodes}) == 1 for one in (moved, given))
        assert not set(moved.nodes) & set(given.nodes) and max(*moved.nodes, *given.nodes) < 8


def test_jobs_may_share_nodes() -> None:
    """Jobs 1 and 2 share a node: it is free when both have left. Without `stacked`, no node is held twice."""
    running = [(1, [0], [], 1.0, None), (2, [0], [], 1.0, None), (3, [1], [], 3.0, None)]
    plan = make_room(State(MACHINE), "first-fit", 11, running, stacked=True)
    assert isinstance(plan, RoomPlan) and (plan.requeued, plan.cost, plan.least) == ([1, 2], 2.0, 2.0)
    with pytest.raises(InputError, match="job 2: node .* is held already"):
        make_room(State(MACHINE), "first-fit", 11, running)


def test_what_must_not_go_stays() -> None:
    """Jobs 1 to 3 hold six nodes; of jobs 2 and 3 only one may go if the budget says so."""
    plan = make_room(full(), "first-fit", 7, RUNNING, budgets=[2])
    assert isinstance(plan, RoomPlan) and plan.requeued == [1, 2, 3]
    for nodes, budget in ((8, 2), (7, 1)):
        nothing = make_room(full(), "first-fit", nodes, RUNNING, budgets=[budget])
        assert isinstance(nothing, NoRoom) and nothing.impossible
        assert nothing.reason == "no jobs that may be disturbed hold what is missing"


@pytest.mark.parametrize(
    ("running", "sentence"),
    [
        ([(7, [12], [], 1.0, None)], "job 7: node 12 is not on the machine"),
        ([(7, [8], [], 1.0, None)], "job 7: node n2.0, or a link above it, is held already"),
        ([(7, [0], [], -1.0, None)], "job 7: a cost is 0 or more, not -1"),
        ([(7, [0], [], float("nan"), None)], "job 7: a cost is 0 or more, not NaN"),
        ([(7, [0], [], 1.0, 0)], "job 7: there is no budget of group 0"),
    ],
)
def test_bad_input_is_one_sentence(running: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        make_room(full(), "first-fit", 4, running)
    with pytest.raises(InputError, match="at least 1 node"):
        make_room(full(), "first-fit", 0, [])


def test_what_a_policy_in_python_raises_comes_out() -> None:
    class Fails:
        def choose(self, request: Any, state: Any) -> list[int]:
            raise RuntimeError("no idea")

    with pytest.raises(InputError, match="no idea"):
        make_room(State(MACHINE), Fails(), 1, [])
