"""Another policy compared with a live system: its figures are those of the simulator with the same jobs."""

from __future__ import annotations

import dataclasses
import statistics

import pytest
from topolane._engine import Machine
from topolane.cluster.view import Running, View, Waiting
from topolane.serve import comparison
from topolane.serve.comparison import Followed, PolicyComparison
from topolane.serve.forecast import NEVER
from topolane.serve.replay import ReplaySource
from topolane.sources import Shape
from topolane.sweep import Task

polars = pytest.importorskip("polars")
TASK = Task(machine="cab", workload="cab-aug", policy="isolated", failures="none", shape=Shape(limit=600))
MACHINE = Machine.of("small", [(["leaf1"], [f"n{node}" for node in range(4)])])


@pytest.fixture(scope="module")
def watched() -> tuple[ReplaySource, list[View]]:
    """A system under the policy isolated, and a snapshot at each submission, start and end."""
    run = TASK.run()
    replay = ReplaySource(TASK, [run], None, 0.0)
    jobs = polars.DataFrame(run.tables["jobs"])
    names = ("submission_time", "starting_time", "finish_time")
    times = sorted({time for name in names for time in jobs[name].to_list()})
    return replay, [View(times[0] - 1.0, (), ()), *(replay.at(time) for time in times)]


@pytest.mark.parametrize("policy", ["first-fit", "dedicated"])
def test_starts_are_those_of_the_simulator(watched: tuple[ReplaySource, list[View]], policy: str) -> None:
    """Of jobs that were seen at each event of one policy, another one makes what a simulation of it makes: the same starts."""
    replay, snapshots = watched
    followed = Followed()
    for snapshot in snapshots:
        followed.add(snapshot)
    found = sorted(comparison.starts(replay.machine, followed, policy, "easy"))
    jobs = polars.DataFrame(dataclasses.replace(TASK, policy=policy).run().tables["jobs"])
    assert found == sorted(jobs["starting_time"].to_list())
    assert found != sorted(each.start for each in followed.jobs)


def test_the_lines_are_of_the_system_and_of_the_policy(watched: tuple[ReplaySource, list[View]]) -> None:
    """Both lines have the same times. The waits of the system's are its own, and the policy's jobs wait less than under isolated."""
    replay, snapshots = watched
    drawn = PolicyComparison(replay.machine, "system", ["first-fit"], "easy")
    for snapshot in snapshots:
        drawn.add(snapshot)
    series = drawn.series()
    assert series is not None
    assert [line.name for line in series.lines] == ["system", "first-fit, easy"]
    system, other = ([wait for wait in line.wait if wait is not None] for line in series.lines)
    assert statistics.mean(other) < statistics.mean(system)
    at = series.times[100]
    shown = replay.at(at)
    assert series.lines[0].waiting[100] == len(shown.waiting)
    busy = sum(len(job.nodes) for job in shown.running)
    assert series.lines[0].utilisation[100] == pytest.approx(busy / replay.machine.nodes, abs=1e-4)


def running(id: int, nodes: tuple[int, ...], start: float) -> Running:
    return Running(id, str(id), "", "", nodes, start, start + 100.0)


def waiting(id: int, nodes: int, submit: float, held: bool = False) -> Waiting:
    return Waiting(id, str(id), "", "", nodes, submit, 100.0, held=held)


def seen(*snapshots: View) -> tuple[Followed, list[float]]:
    followed = Followed()
    for snapshot in snapshots:
        followed.add(snapshot)
    return followed, comparison.starts(MACHINE, followed, "first-fit", "easy")


def test_a_held_job_comes_when_it_is_released() -> None:
    """A job that was held waits from its release on, in the system and in the shadow."""
    followed, starts = seen(
        View(0.0, (), ()),
        View(10.0, (), (waiting(1, 2, 5.0, held=True),)),
        View(20.0, (), (waiting(1, 2, 5.0),)),
        View(30.0, (running(1, (0, 1), 25.0),), ()),
    )
    assert [(each.since, each.start) for each in followed.jobs] == [(20.0, 25.0)]
    assert starts == [20.0]


def test_a_job_that_was_requeued_comes_twice() -> None:
    """Its first run ends where it was requeued, and its second begins again."""
    followed, starts = seen(
        View(0.0, (running(1, (0, 1), -5.0),), ()),
        View(10.0, (), (waiting(1, 2, -9.0),)),
        View(20.0, (running(1, (2, 3), 15.0),), ()),
    )
    assert [(each.start, each.end) for each in followed.jobs] == [(-5.0, 10.0), (15.0, NEVER)]
    assert starts == [-5.0, 10.0]


def test_a_job_that_is_seen_while_its_nodes_are_given_to_it_has_all_of_them() -> None:
    """A Kubernetes group may be seen half bound, at the first look or later. It is one job, on the nodes it has in the end."""
    followed, starts = seen(
        View(0.0, (running(1, (0,), -1.0),), ()),
        View(10.0, (running(1, (0, 1), -1.0), running(2, (2,), 9.0)), ()),
        View(20.0, (running(1, (0, 1), -1.0), running(2, (2, 3), 9.0)), ()),
    )
    assert [(each.job.nodes, each.start) for each in followed.jobs] == [(2, -1.0), (2, 9.0)]
    assert followed.base is not None and followed.base.running[0].nodes == (0, 1)
    assert starts == [-1.0, 9.0]


def test_a_job_that_runs_again_at_the_next_look_comes_twice() -> None:
    """If a job was requeued and started again between two looks, its first run ends at the latest where its second begins."""
    followed, starts = seen(
        View(0.0, (), ()),
        View(10.0, (running(1, (0, 1), 5.0),), ()),
        View(20.0, (running(1, (0, 1), 15.0),), ()),
        View(30.0, (), ()),
    )
    assert [(each.start, each.end) for each in followed.jobs] == [(5.0, 15.0), (15.0, 30.0)]
    assert starts == [5.0, 15.0]


def test_a_job_that_ended_in_the_system_may_still_wait_in_the_shadow() -> None:
    """The queue of a policy holds the jobs that it has not started, whether the system has ended them or not."""
    drawn = PolicyComparison(MACHINE, "system", ["first-fit"], "easy")
    base = running(1, (0, 1, 2), 0.0)
    for snapshot in (
        View(0.0, (base,), ()),
        View(10.0, (base, running(2, (2, 3), 5.0)), ()),  # on a node that it shares
        View(20.0, (base,), ()),
        View(100.0, (base,), ()),
    ):
        drawn.add(snapshot)
    series = drawn.series()
    assert series is not None
    assert [line.waiting[-1] for line in series.lines] == [0.0, 1.0]


def test_there_are_no_figures_before_the_first_snapshot() -> None:
    """A page whose system has not answered yet shows the figures of its history."""
    assert PolicyComparison(MACHINE, "system", ["first-fit"], "easy").series() is None


def test_a_job_that_is_cancelled_is_gone_in_both() -> None:
    """A job that goes without a start takes no nodes after that; a job that runs on keeps its nodes."""
    base = running(1, (0, 1, 2), 0.0)
    followed, starts = seen(
        View(0.0, (base,), ()),
        View(10.0, (base,), (waiting(2, 2, 9.0), waiting(3, 2, 9.5))),
        View(20.0, (base,), (waiting(3, 2, 9.5),)),
        View(500.0, (base,), (waiting(3, 2, 9.5),)),
    )
    assert followed.jobs[1].end == 20.0 and followed.jobs[1].start == NEVER
    assert starts == [0.0, NEVER, NEVER]


def test_nodes_out_of_service_are_out_in_both() -> None:
    """A job does not start on nodes that the system had taken out; it starts when they are back."""
    _, starts = seen(
        View(0.0, (), (), out=(0, 1, 2)),
        View(10.0, (), (waiting(1, 2, 5.0),), out=(0, 1, 2)),
        View(20.0, (), (waiting(1, 2, 5.0),)),
    )
    assert starts == [20.0]


def test_a_long_history_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the most jobs the shadow begins with the system as it is, so its memory is bounded."""
    monkeypatch.setattr(comparison, "MOST_JOBS", 3)
    drawn = PolicyComparison(MACHINE, "system", ["first-fit"], "easy")
    for time in range(1, 6):
        drawn.add(View(float(time), (running(time, (0,), float(time)),), ()))
    series = drawn.series()
    assert series is not None and series.times[0] > 4.9
