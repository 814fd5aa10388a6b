"""Reservations in forecasts and in the form: who may start on reserved nodes, and when."""

from __future__ import annotations

import dataclasses

import pytest
from topolane._engine import Machine
from topolane.cluster.view import Reserved, View, Waiting
from topolane.serve import outlook
from topolane.serve.forecast import Copy
from topolane.serve.replay import ReplaySource
from topolane.sources import Shape
from topolane.sweep import Task

HOUR = 3600.0
MACHINE = Machine.of("small", [(["leaf1"], [f"n{node}" for node in range(8)])])
HALF = Reserved("upgrade", (0, 1, 2, 3), HOUR, 2 * HOUR)
"""Half of the nodes, for an hour, in an hour."""


def start(nodes: int, walltime: float | None, reservation: str = "") -> tuple[float, set[int]] | None:
    """When and where the only job starts; None if it does not."""
    job = Waiting(1, "1", "", "", nodes, 0.0, walltime, reservations=(reservation,) if reservation else ())
    copy = Copy(MACHINE, View(0.0, (), (job,), reserved=(HALF,)), "first-fit", "easy")
    found = copy.run(outlook.HORIZON, 30.0).starts
    return (found[0].start, set(found[0].nodes)) if found else None


@pytest.mark.parametrize(
    ("nodes", "walltime", "expected"),
    [
        (8, HOUR, (0.0, set(range(8)))),
        (8, HOUR + 1, (2 * HOUR, set(range(8)))),
        (4, 9 * HOUR, (0.0, {4, 5, 6, 7})),
        (4, None, (0.0, {4, 5, 6, 7})),
        (8, None, (2 * HOUR, set(range(8)))),
    ],
)
def test_other_jobs_end_before_a_reservation_begins(
    nodes: int, walltime: float | None, expected: tuple[float, set[int]]
) -> None:
    """A job starts on nodes of a reservation only if it ends before the reservation begins, or after it has ended."""
    assert start(nodes, walltime) == expected


@pytest.mark.parametrize(
    ("nodes", "walltime", "expected"),
    [(4, HOUR, (HOUR, {0, 1, 2, 3})), (4, HOUR + 1, None), (2, HOUR / 2, (HOUR, {0, 1}))],
)
def test_a_job_of_a_reservation_runs_within_it(
    nodes: int, walltime: float, expected: tuple[float, set[int]] | None
) -> None:
    """A job of a reservation starts on its nodes, not before it begins, and only if it ends within it."""
    assert start(nodes, walltime, "upgrade") == expected


def test_a_job_of_a_reservation_waits_for_the_jobs_that_run_there() -> None:
    """Two jobs of half a reservation each start together; a third starts when one has ended."""
    jobs = tuple(
        Waiting(id, str(id), "", "", 2, 0.0, HOUR / 3, reservations=("upgrade",)) for id in range(1, 4)
    )
    found = Copy(MACHINE, View(0.0, (), jobs, reserved=(HALF,)), "first-fit", "easy").run(9 * HOUR, 30.0)
    assert [(one.id, one.start) for one in found.starts] == [(1, HOUR), (2, HOUR), (3, HOUR + HOUR / 3)]


SOON = Reserved("soon", (4, 5), HOUR / 2, 2 * HOUR)
"""Two other nodes, half an hour earlier."""


def first_starts(*jobs: Waiting, reserved: tuple[Reserved, ...]) -> dict[int, tuple[float, set[int]]]:
    """When and where each job starts."""
    found = Copy(MACHINE, View(0.0, (), jobs, reserved=reserved), "first-fit", "easy").run(9 * HOUR, 30.0)
    return {one.id: (one.start, set(one.nodes)) for one in found.starts}


@pytest.mark.parametrize(
    ("nodes", "walltime", "expected"),
    [
        (2, HOUR, (HOUR / 2, {4, 5})),
        (4, HOUR, (HOUR, {0, 1, 2, 3})),
        (2, 1.5 * HOUR, (HOUR / 2, {4, 5})),
        (6, HOUR, None),
        (4, 1.5 * HOUR, None),
    ],
)
@pytest.mark.parametrize("names", [("upgrade", "soon"), ("soon", "upgrade")])
def test_a_job_of_several_reservations_runs_in_the_one_that_it_can_use_first(
    nodes: int, walltime: float, expected: tuple[float, set[int]] | None, names: tuple[str, ...]
) -> None:
    """A job that names two reservations runs in the one that lets it start first, never on nodes of both, and never outside."""
    job = Waiting(1, "1", "", "", nodes, 0.0, walltime, reservations=names)
    assert first_starts(job, reserved=(HALF, SOON)) == ({} if expected is None else {1: expected})


def test_of_reservations_that_have_begun_the_first_named_with_room_is_used() -> None:
    """Jobs that name two open reservations fill the first that they name, then the second; the fourth waits for the first to end."""
    open_ = (dataclasses.replace(HALF, start=0.0), dataclasses.replace(SOON, start=0.0))
    jobs = [
        Waiting(id, str(id), "", "", 2, 0.0, id * HOUR / 9, reservations=("upgrade", "soon"))
        for id in range(1, 5)
    ]
    starts = first_starts(*jobs, reserved=open_)
    assert [starts[id] for id in (1, 2, 3)] == [(0.0, {0, 1}), (0.0, {2, 3}), (0.0, {4, 5})]
    assert starts[4] == (HOUR / 9, {0, 1})


def test_no_forecast_breaks_a_reservation() -> None:
    """With a quarter of a full machine reserved for ten hours, no job outside is on a reserved node in this time."""
    task = Task(
        machine="cab", workload="cab-aug", policy="dedicated", failures="none", shape=Shape(limit=1500)
    )
    replay = ReplaySource(task, [task.run()], None, 0.0)
    now = replay.now()
    kept = Reserved("upgrade", tuple(range(320)), now.time + 2 * HOUR, now.time + 12 * HOUR)
    found = Copy(replay.machine, dataclasses.replace(now, reserved=(kept,)), "dedicated", "easy").run(
        now.time + outlook.HORIZON, 30.0
    )
    free = Copy(replay.machine, now, "dedicated", "easy").run(now.time + outlook.HORIZON, 30.0)
    assert {one.id for one in found.starts} <= {job.id for job in now.waiting}
    assert found.starts != free.starts
    for one in found.starts:
        if one.start < kept.end and kept.start < one.end:
            assert not set(one.nodes) & set(kept.nodes)


def asked(nodes: int, hours: float, reservation: str = "") -> dict:
    question = outlook.ForecastQuestion(nodes, hours * HOUR, "first-fit", reservation=reservation)
    return outlook.ask(MACHINE, View(0.0, (), (), reserved=(HALF,)), "easy", question)


def test_the_form_names_the_reservation_in_the_way() -> None:
    """The answer says which reservation keeps the job off nodes, and when it begins; within it, when the job may start."""
    answer = asked(8, 2)
    assert answer["start"] == 2 * HOUR
    assert answer["why"] == ["On 4 nodes it would not end before the reservation upgrade begins in 1.0 h."]
    inside = asked(4, 1, "upgrade")
    assert (inside["start"], inside["hosts"]) == (HOUR, "n[0-3]")
    assert inside["why"] == ["Its reservation upgrade begins in 1.0 h."]
    assert inside["room"] is None
    late = asked(4, 1.5, "upgrade")
    assert late["start"] is None and "It cannot end within its reservation upgrade." in late["why"]


def test_reserved_nodes_are_no_free_slots() -> None:
    """The table of free slots leaves out the nodes of a reservation that has begun."""
    begun = dataclasses.replace(HALF, start=-HOUR)
    room = outlook.outlook(MACHINE, View(0.0, (), (), reserved=(begun,)), "first-fit", "easy")["room"]
    assert room["free"] == 4
    room = outlook.outlook(MACHINE, View(0.0, (), (), reserved=(HALF,)), "first-fit", "easy")["room"]
    assert room["free"] == 8
