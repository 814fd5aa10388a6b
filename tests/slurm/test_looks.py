"""What two looks at Slurm's jobs tell of starts and ends, without a Slurm."""

from __future__ import annotations

import dataclasses
from typing import Any

from topolane.slurm.looks import Looks, SlurmEnded, SlurmStarted, WatchedRun
from topolane.slurm.records import SlurmJob, Snapshot


def job(number: int, state: str = "RUNNING", **facts: Any) -> SlurmJob:
    fields = {each.name: None for each in dataclasses.fields(SlurmJob)}
    fields |= {"id": number, "number": str(number), "state": state, "priority": 1, "start": 0.0, "end": 0.0}
    nodes = "" if state == "PENDING" else f"n{number}"
    return SlurmJob(**(fields | {"nodes": nodes, "allocated": nodes} | facts))  # type: ignore[arg-type]


def events_of(looks: Looks, time: float, *jobs: SlurmJob) -> list[tuple[Any, ...]]:
    """A look: `("start", number, whether it is missed)` and `("end", number, time)`."""
    events = looks.update(Snapshot(time, {each.id: each for each in jobs}, {}, {}, {}))
    return [
        ("start", one.job.id, one.is_missed) if isinstance(one, SlurmStarted) else ("end", one.job, one.at)
        for one in events
        if isinstance(one, SlurmStarted | SlurmEnded)
    ]


def test_starts_and_ends_come_in_order() -> None:
    """By time; of one second ends first, then jobs that start and end in it, then starts by priority."""
    looks = Looks(100)
    assert events_of(looks, 10, job(1, start=5.0), job(2, "COMPLETED", start=1.0, end=3.0)) == [
        ("start", 1, True)
    ]
    assert events_of(
        looks,
        20,
        job(1, "COMPLETED", start=5.0, end=15.0),
        job(2, "COMPLETED", start=1.0, end=3.0),
        job(3, start=15.0),
        job(4, start=15.0, priority=9),
        job(5, "COMPLETED", start=15.0, end=15.0),
        job(6, "FAILED", start=12.0, end=14.0),
        job(7, "PENDING", start=0.0),
    ) == [
        ("start", 6, False),
        ("end", 6, 14.0),
        ("end", 1, 15.0),
        ("start", 5, False),
        ("end", 5, 15.0),
        ("start", 4, False),
        ("start", 3, False),
    ]
    assert events_of(looks, 21, job(3, start=15.0)) == [("end", 4, 21)]  # Slurm has forgotten it


def test_a_job_that_is_requeued_has_two_stays() -> None:
    """It ends when it waits again, also if it has started again before the next look."""
    looks = Looks(100)
    events_of(looks, 10)
    assert events_of(looks, 11, job(1, start=11.0)) == [("start", 1, False)]
    assert events_of(looks, 15, job(1, "PENDING")) == [("end", 1, 15)]
    assert events_of(looks, 20, job(1, start=18.0)) == [("start", 1, False)]
    assert events_of(looks, 30, job(1, start=25.0)) == [("end", 1, 25.0), ("start", 1, False)]


def test_states_in_which_a_job_frees_its_nodes_or_waits_for_them() -> None:
    """A completing job has ended, though its nodes become fewer; a configuring one gets a later start when they are up; a
    job that was resized is held again."""
    looks = Looks(100)
    events_of(looks, 10)
    assert events_of(looks, 12, job(1, "CONFIGURING", start=11.0)) == [("start", 1, False)]
    assert events_of(looks, 20, job(1, start=19.0)) == []
    assert events_of(looks, 25, job(1, start=19.0, nodes="n9", allocated="n9")) == [
        ("end", 1, 25),
        ("start", 1, True),
    ]
    late = job(1, "COMPLETING", start=19.0, end=30.0, nodes="", allocated="n9")
    assert events_of(looks, 31, late) == [("end", 1, 30.0)]
    assert events_of(looks, 32, dataclasses.replace(late, state="COMPLETED")) == []


def test_what_ended_before_the_first_shadow_is_not_new_to_the_next() -> None:
    """A shadow that goes on from a log knows the jobs in it. One that had ended when the log began is not there; one that came in
    between is new, also if it has ended."""
    looks = Looks(100, {1: WatchedRun(5.0, None)}, {2: WatchedRun(6.0, None)}, since=4.0)
    before = job(3, "COMPLETED", start=1.0, end=3.0)
    known = job(2, "COMPLETED", start=6.0, end=8.0)
    brief = job(4, "COMPLETED", start=11.0, end=12.0)
    assert events_of(looks, 20, job(1, start=5.0), known, before, brief) == [
        ("start", 4, False),
        ("end", 4, 12.0),
    ]
    assert events_of(looks, 21, job(1, "COMPLETED", start=5.0, end=20.0), known, before, brief) == [
        ("end", 1, 20.0)
    ]


def test_a_start_long_ago_is_missed() -> None:
    """After a long time without a look, jobs that ended meanwhile are not known any more."""
    looks = Looks(100)
    events_of(looks, 10)
    assert events_of(looks, 500, job(1, start=399.0), job(2, start=401.0)) == [
        ("start", 1, True),
        ("start", 2, False),
    ]
