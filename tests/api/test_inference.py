"""What recorded starts say about holds, nodes out of service and order: small machines, worked out by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import topolane
from topolane import InputError, Shape, Task, inference
from topolane.inference.holds import held_until
from topolane.inference.log import RunLog, cores_of
from topolane.inference.service import Service

HOUR = 3600.0
DAY = 24 * HOUR


def log(*jobs: tuple[float, float, float, float, float], by_start: bool = False) -> RunLog:
    """Jobs of (submit, start, run, walltime, nodes) in the order of their submission."""
    submit, start, run, walltime, nodes = np.array(jobs, float).T
    order = np.argsort(start if by_start else submit, kind="stable")
    return RunLog(submit, start, start + run, walltime, nodes, np.argsort(order, kind="stable"))


def held(jobs: RunLog, nodes: int = 4) -> list[float | None]:
    """Until when each was held; None for one that was not."""
    return [None if math.isnan(time) else time for time in held_until(jobs, Service.full(nodes)).tolist()]


def test_a_job_that_waits_for_nodes_is_not_held() -> None:
    assert held(log((0, 0, 100, 100, 4), (10, 100, 10, 10, 1))) == [None, None]


def test_a_job_is_held_as_long_as_its_nodes_are_free() -> None:
    """Three of four nodes are free all the time, and no job is ahead of it."""
    assert held(log((0, 0, 1000, 1000, 1), (10, 500, 10, 10, 3))) == [None, 500]


def test_a_hold_ends_before_the_wait_for_nodes_begins() -> None:
    """Job 1 could have started until job 2 took its nodes at 200. At 300, the next moment of the log, it waits for job 2."""
    jobs = log((0, 0, 1000, 1000, 1), (10, 600, 10, 10, 3), (200, 200, 400, 400, 2), (300, 300, 10, 10, 1))
    assert held(jobs) == [None, 300, None, None]


@pytest.mark.parametrize(("walltime", "expected"), [(500, None), (50, 100)])
def test_a_job_that_would_have_delayed_the_head_is_not_held(walltime: float, expected: float | None) -> None:
    """Job 1 waits for all nodes until 100. Job 2 fits next to job 0 only if it ends before."""
    jobs = log((0, 0, 100, 100, 3), (10, 100, 100, 100, 4), (20, 200, 10, walltime, 1))
    assert held(jobs) == [None, None, expected]


def test_a_head_that_is_delayed_by_a_start_is_held() -> None:
    """Job 2 starts at 20 and may run long past 100, when job 1 could have had all nodes. At 100 job 1 waits for job 2."""
    jobs = log((0, 0, 100, 100, 3), (10, 520, 100, 100, 4), (20, 20, 500, 500, 1))
    assert held(jobs) == [None, 100, None]


def test_a_job_that_starts_within_a_minute_is_not_held() -> None:
    assert held(log((0, 0, 100, 100, 4), (10, 160, 10, 10, 1))) == [None, None]
    assert held(log((0, 0, 100, 100, 4), (10, 161, 10, 10, 1))) == [None, 161]


def test_what_easy_did_itself_held_nothing() -> None:
    """The pass is the engine's: in a log of what EASY started, with hundreds waiting, it finds no job that should have started."""
    machine = topolane.machine("cab")
    workload = topolane.workload("cab-sep", machine.nodes, shape=Shape(limit=1500))
    columns = workload.columns()
    jobs = topolane.simulate(workload, machine, policy="first-fit", queue="easy").jobs.sort("job_id")
    assert jobs["job_id"].to_list() == columns["id"].tolist()
    columns["start"] = jobs["starting_time"].to_numpy()
    cores, known = cores_of(machine), np.ones(len(jobs), bool)
    made = RunLog.of(columns, workload.earlier_runs(), known, cores, None, by_start=False)
    assert np.isnan(held_until(made, Service.full(machine.nodes))).all()


def test_a_held_job_that_does_not_fit_is_not_the_head_of_the_queue() -> None:
    """Of 4 nodes 2 are free until 100, and the others are expected back at 100 and 1000. Job 2 waits for 3 of them, and so job 3
    may not run past 100. Job 1 came first and wants all 4. That it is held is seen only at 1000, when all are free.
    """
    jobs = log(
        *((0, 0, 100, 100, 1), (0, 1200, 10, 10, 4)),
        *((10, 100, 900, 900, 3), (20, 1000, 100, 500, 2), (0, 0, 1000, 1000, 1)),
    )
    assert held(jobs) == [None, 1200, None, None, None]


def test_in_the_recorded_order_who_started_first_was_ahead() -> None:
    """Job 1 came first, but job 2 got the nodes at 100. By submission job 1 was held; by start job 2 was ahead of it."""
    jobs = ((0, 0, 100, 100, 4), (10, 200, 10, 10, 4), (20, 100, 100, 100, 4))
    assert held(log(*jobs)) == [None, 200, None]
    assert held(log(*jobs, by_start=True)) == [None, None, None]


def test_a_job_without_a_run_time_holds_nothing() -> None:
    assert held(log((0, 0, 0, 0, 4), (0, 0, 10, 10, 4), (0, 10, 10, 10, 4))) == [None, None, None]


def in_service(jobs: RunLog, nodes: int = 4) -> Service:
    """What is inferred if every job wants its nodes from its submission on."""
    return Service.of(jobs, jobs.submit, nodes)


def test_nodes_that_were_not_used_while_jobs_wanted_more_are_out_of_service() -> None:
    """For a day 3 of 4 nodes are the most, and a job waits. Afterwards all 4 that are wanted are used."""
    service = in_service(log((0, 0, DAY, DAY, 3), (10, DAY, 2 * HOUR, 2 * HOUR, 4)))
    assert service.nodes.tolist() == 24 * [3] + 2 * [4]
    assert [(span.start, span.end) for span in service.spans()] == [(0.0, DAY)]
    assert service.node_seconds_out == DAY
    assert service.at(np.array([-1.0, 0.0, DAY - 1, DAY, 9 * DAY])).tolist() == [4, 3, 3, 4, 4]


def test_nodes_that_were_not_used_for_less_than_a_day_are_in_service() -> None:
    run = DAY - HOUR
    assert in_service(log((0, 0, run, run, 3), (10, run, 2 * HOUR, 2 * HOUR, 4))).spans() == []


@pytest.mark.parametrize(("hours", "out"), [(3, True), (2, False)])
def test_more_nodes_must_be_wanted_for_a_tenth_of_the_time(hours: int, out: bool) -> None:
    """Of 24 hours with 3 of 4 nodes in use, a job waits in the last two or three. The next hour all nodes are in use."""
    jobs = log((0, 0, DAY, DAY, 3), (DAY - hours * HOUR, DAY, HOUR, HOUR, 4))
    assert in_service(jobs).node_seconds_out == (DAY if out else 0)


def service_of(*nodes: int, machine_nodes: int = 64) -> Service:
    """The number of nodes in service, hour by hour."""
    return Service(machine_nodes, HOUR * np.arange(len(nodes) + 1.0), np.minimum(nodes, machine_nodes))


def test_nodes_that_come_back_together_lie_side_by_side() -> None:
    """Three nodes go out one after another and come back at once: they are neighbours, under each seed elsewhere."""
    service = service_of(64, 63, 62, 61, 64)
    places = {tuple(span.node for span in service.spans(seed)) for seed in range(8)}
    assert len(places) > 4
    assert all([(node - nodes[0]) % 64 for node in nodes] == [0, 1, 2] for nodes in places)
    assert [span.start / HOUR for span in service.spans()] == [1, 2, 3]
    assert {span.end / HOUR for span in service.spans()} == {4}


def test_nodes_that_come_back_one_by_one_or_scattered_lie_anywhere() -> None:
    """Of 64 nodes 8 are out."""
    one_by_one = service_of(56, 57, 58, 59, 60, 61, 62, 63, 64).spans()
    together = service_of(56, 64)
    for spans in (one_by_one, together.spans(scattered=True)):
        nodes = sorted(span.node for span in spans)
        assert len(set(nodes)) == 8
        assert np.diff(nodes).max() > 1
    assert together.spans(3) == together.spans(3) != together.spans(3, scattered=True)


def test_no_node_is_out_twice_at_a_time() -> None:
    """Nodes come and go at random: in every hour as many are out as the service says."""
    nodes = np.random.default_rng(1).integers(0, 17, 200)
    service = service_of(*nodes.tolist(), machine_nodes=16)
    for scattered in (False, True):
        spans = service.spans(scattered=scattered)
        for hour, in_service in enumerate(nodes.tolist()):
            out = [span.node for span in spans if span.start <= hour * HOUR < span.end]
            assert len(out) == len(set(out)) == 16 - in_service


def test_a_log_of_over_a_hundred_years_is_refused() -> None:
    with pytest.raises(
        InputError, match="--capacity recorded: .* 2,777,778 hours, over 1,000,000; one of its times is wrong"
    ):
        in_service(log((0, 0, 10, 10, 1), (1e10, 1e10, 10, 10, 1)))


def test_an_idle_machine_is_in_service() -> None:
    assert in_service(log((0, 0, 100, 100, 1), (3 * DAY, 3 * DAY, 100, 100, 1))).spans() == []


FOUR = """
name = "four"
[[site]]
name = "core"
children = [2, 2]
parents = [1, 1]
"""
LOG = "id,submit,run,walltime,nodes,start\n1,0,1000,1000,1,0\n2,10,10,10,3,500\n3,600,10,10,1,600\n"


@pytest.fixture
def recorded(tmp_path):
    """A machine of 4 nodes and a log of three jobs, the second of which was held until 500."""
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "four.toml").write_text(FOUR)
    machine = topolane.machine(tmp_path / "four.toml")
    return topolane.workload(tmp_path / "log.csv", machine.nodes), machine


def starts(workload, machine, **settings):
    jobs = topolane.simulate(workload, machine, policy="first-fit", queue="easy", **settings).jobs
    return dict(zip(jobs["job_id"].to_list(), jobs["starting_time"].to_list()))


def test_a_replay_holds_what_was_held(recorded) -> None:
    workload, machine = recorded
    assert starts(workload, machine)[2] == 10
    assert starts(workload, machine, held="recorded") == {1: 0, 2: 500, 3: 600}
    run = topolane.simulate(workload, machine, held="recorded")
    assert run.summary["inferred"] == {"options": ["held"], "held_jobs": 1, "held_seconds": 490.0}
    assert run.jobs.filter(run.jobs["job_id"] == 2)["waiting_time"].to_list() == [490]


def test_runs_of_one_workload_infer_once(recorded, tmp_path, monkeypatch) -> None:
    """Policies and seeds change nothing of what the records say, and a sweep gives all of them one workload."""
    asked = []
    monkeypatch.setattr(inference, "held_until", lambda *its: asked.append(its) or held_until(*its))
    base = Task(str(tmp_path / "four.toml"), str(tmp_path / "log.csv"), held="recorded")
    rules = [dataclasses.replace(base, policy=policy) for policy in ("first-fit", "isolated")]
    runs = topolane.compare([*rules, dataclasses.replace(base, seed=3)], workers=1)
    assert len(asked) == 1
    assert [run.summary["inferred"]["held_jobs"] for run in runs] == [1, 1, 1]
    ends = [run.jobs.filter(run.jobs["job_id"] == 2)["starting_time"].item() for run in runs]
    assert ends[:2] == [500, 500] and 500 < ends[2] <= 560
    log = (tmp_path / "log.csv").read_text()
    (tmp_path / "log.csv").write_text(log.replace("2,10,10,10,3,500", "2,10,10,10,3,10"))
    (run,) = topolane.compare([base], workers=1)
    assert run.summary["inferred"]["held_jobs"] == 0, "the file has changed"


def test_what_held_jobs_want_says_nothing_about_service(recorded, tmp_path) -> None:
    """Of 4 nodes 1 is in use, and another 2 for half of each hour. Job 2 waits two days for 1, though the 3 were enough for it."""
    half = HOUR / 2
    jobs = [(0, 0, 3 * DAY, 3 * DAY, 1), (10, 2 * DAY, half, half, 1)]
    jobs += [(hour * HOUR, hour * HOUR, half, half, 2) for hour in range(72)]
    assert in_service(log(*jobs)).node_seconds_out > 0
    lines = [",".join(map(str, (number, *job))) for number, job in enumerate(jobs, 1)]
    (tmp_path / "one-held.csv").write_text("\n".join(["id,submit,start,run,walltime,nodes", *lines]))
    _, machine = recorded
    run = topolane.simulate(
        topolane.workload(tmp_path / "one-held.csv", machine.nodes), machine, capacity="recorded"
    )
    assert run.summary["inferred"]["node_seconds_out"] == 0


AGAIN = "id,submit,run,walltime,nodes,start,earlier_runs\n"
"""Jobs with runs that were ended, after which they ran again."""


def again(tmp_path, machine, *rows: tuple[object, ...]):
    lines = [",".join(map(str, row)) for row in rows]
    (tmp_path / "again.csv").write_text(AGAIN + "\n".join(lines) + "\n")
    return topolane.workload(tmp_path / "again.csv", machine.nodes)


def test_a_job_that_ran_several_times_was_held_until_its_first_run(recorded, tmp_path) -> None:
    """Job 1 ran at once on all 4 nodes until 1000, and again at 5000, after a hold. Job 2 waited for its first run. Job 3 could
    have started at 10 and did so at 500."""
    _, machine = recorded
    workload = again(tmp_path, machine, (1, 0, 500, 5000, 4, 5000, "0:1000:4"), (2, 10, 10, 10, 1, 1000, ""))
    run = topolane.simulate(workload, machine, held="recorded")
    assert run.summary["inferred"]["held_jobs"] == 0
    workload = again(tmp_path, machine, (3, 10, 500, 5000, 4, 5000, "2000:100:4 500:1000:4"))
    assert starts(workload, machine, held="recorded") == {3: 500}


def test_nodes_of_earlier_runs_were_in_service(recorded, tmp_path) -> None:
    """Of 4 nodes one has a job for two days, and the other 3 those of a job that a failed node ended after a day. It ran again, on 2
    nodes that were left, while another job waited for all 4: only on the second day one node was out."""
    _, machine = recorded
    rows = ((1, 0, 2 * DAY, 2 * DAY, 1, 0, ""), (2, 0, DAY, DAY, 2, DAY, f"0:{DAY}:3"))
    workload = again(tmp_path, machine, *rows, (3, 10, DAY, DAY, 4, 2 * DAY, ""))
    service = topolane.simulate(workload, machine, capacity="recorded").summary["inferred"]
    assert service["node_seconds_out"] == pytest.approx(DAY)


def test_a_job_that_ran_several_times_is_ordered_by_its_first_run(recorded, tmp_path) -> None:
    """Job 2 started before job 1 and was ended. Both wait for all nodes."""
    _, machine = recorded
    rows = ((1, 0, 10, 10, 4, 500, ""), (2, 0, 10, 10, 4, 900, "100:50:4"))
    assert starts(again(tmp_path, machine, *rows), machine, order="recorded") == {2: 0, 1: 10}


@pytest.mark.parametrize(("days", "is_out"), [(3, False), (2, True)])
def test_a_job_that_starts_when_no_other_ends_waited_for_no_nodes(recorded, tmp_path, days, is_out) -> None:
    """Of 4 nodes 2 are in use. Job 2 wants 2 and starts after two days; if job 1 ends then, it may have waited for nodes."""
    (tmp_path / "wide.csv").write_text(
        f"id,submit,start,run,walltime,nodes\n1,0,0,{days * DAY},{3 * DAY},2\n2,10,{2 * DAY},3600,3600,2\n"
    )
    _, machine = recorded
    run = topolane.simulate(
        topolane.workload(tmp_path / "wide.csv", machine.nodes), machine, capacity="recorded"
    )
    assert (run.summary["inferred"]["node_seconds_out"] > 0) == is_out


def test_under_seeds_above_0_holds_end_up_to_a_minute_later(recorded) -> None:
    """The same seed draws the same seconds. Jobs that were not held stay as they are."""
    workload, machine = recorded
    ends = [starts(workload, machine, held="recorded", seed=seed) for seed in (1, 2, 2)]
    assert ends[0] != ends[1] == ends[2]
    assert all(500 <= end[2] <= 560 and (end[1], end[3]) == (0, 600) for end in ends)


def test_what_cannot_be_inferred_is_refused(recorded, tmp_path) -> None:
    workload, machine = recorded
    (tmp_path / "plain.csv").write_text("id,submit,run,nodes\n1,0,10,1\n")
    plain = topolane.workload(tmp_path / "plain.csv", machine.nodes)
    with pytest.raises(InputError, match="plain records no starts"):
        topolane.simulate(plain, machine, held="recorded")
    with pytest.raises(InputError, match="--order accounting: it can only be inferred as recorded"):
        topolane.simulate(workload, machine, order="accounting")
    with pytest.raises(InputError, match="--capacity any: it can only be inferred as recorded or scattered"):
        topolane.simulate(workload, machine, capacity="any")


def test_a_replay_of_recorded_starts_is_left_as_it_is(recorded) -> None:
    workload, machine = recorded
    run = topolane.simulate(workload, machine, queue="recorded", held="recorded", capacity="recorded")
    assert "inferred" not in run.summary
