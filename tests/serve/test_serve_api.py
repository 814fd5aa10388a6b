"""What the page's server answers: it is what the engine says of the same moment."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from waiting import DEADLINE

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastapi", reason="the extra serve is not installed")
from served import SMALL, served
from topolane import sources
from topolane._engine import Scheduler, State, make_room
from topolane.serve import forecast, outlook, source
from topolane.serve.live import Live
from topolane.serve.replay import ReplaySource
from topolane.sources import Shape
from topolane.sweep import Task

TASK = Task(machine="cab", workload="cab-aug", policy="dedicated", failures="none", shape=Shape(limit=1500))


@pytest.fixture(scope="module")
def replay() -> ReplaySource:
    """The replay that the page shows."""
    return ReplaySource(TASK, [TASK.run()], None, 0.0)


def test_the_page_shows_the_jobs_of_the_run(page: str, replay: ReplaySource) -> None:
    """A snapshot has the jobs that run and wait at its time, on the nodes and links that the run gave them."""
    shown = httpx.get(f"{page}/api/snapshot").json()
    now = replay.now()
    assert shown["time"] == now.time
    assert [row[0] for row in shown["running"]] == [job.id for job in now.running]
    assert [row[0] for row in shown["waiting"]] == [job.id for job in now.waiting]
    assert len(shown["waiting"]) > 1
    assert any(row[7] for row in shown["running"])  # some own links
    machine = httpx.get(f"{page}/api/machine").json()
    assert len(machine["nodes"]) == replay.machine.nodes == machine["levels"][-1][-1][1]


def test_the_uplinks_of_each_group_are_its_links(page: str, replay: ReplaySource) -> None:
    """The range of links that the page draws on a group are the links whose lower end is a switch of this group."""
    machine, rows = httpx.get(f"{page}/api/machine").json(), replay.machine.link_names()
    assert machine["uplinks"]
    for level, group, first, end, _ in machine["uplinks"]:
        name = machine["levels"][level - 1][group][2]
        assert {row[1] for row in rows[first:end]} == {name}


def test_each_rail_has_its_own_uplinks() -> None:
    """On a machine with rails, each row of the uplinks has the links of the switches of one rail, and every domain has its nodes."""
    machine = sources.machine("nvl72(units=2)")
    picture, names = source.picture(machine), machine.link_names()
    assert (picture["rails"], picture["gpus"]) == ([4, 4, 4], 4)
    assert {row[4] for row in picture["uplinks"]} == {0, 1, 2, 3}
    for level, group, first, end, rail in picture["uplinks"]:
        switch = f"{picture['levels'][level - 1][group][2]}-rail{rail}"
        assert all(row[0] == switch or row[0].startswith(f"{switch}-") for row in names[first:end])
    assert picture["domains"][1] == ["rack2", [18, 36]]


def test_why_a_job_waits_is_what_the_engine_explains(page: str, replay: ReplaySource) -> None:
    """The sentences of a waiting job begin with the engine's refusal of it, with the running jobs as they are."""
    now = replay.now()
    engine = Scheduler(replay.machine, "dedicated", "easy")
    for job in now.running:
        engine.adopt(
            *(job.id, job.nodes, job.start, job.end - job.start),
            links=job.links,
            bandwidth_share=job.bandwidth_share,
        )
    first = now.waiting[0]
    engine.submit(first.id, first.nodes, first.walltime)
    refusal = engine.explain(first.id)
    sentences = httpx.get(f"{page}/api/why", params={"job": first.id}).json()["sentences"]
    assert refusal is not None and refusal.why.lower() in sentences[0].lower()
    assert "It is the first in the queue." in sentences


def test_a_running_or_unknown_job_has_no_reason(page: str, replay: ReplaySource) -> None:
    """Only a waiting job has a reason; for another the answer is 404."""
    assert httpx.get(f"{page}/api/why", params={"job": replay.now().running[0].id}).status_code == 404
    assert httpx.get(f"{page}/api/why", params={"job": 10**9}).status_code == 404


def test_the_form_is_answered_by_the_engine(page: str, replay: ReplaySource) -> None:
    """A job of the form starts when the engine starts it, on free nodes, and the jobs in its way are those of `make_room`."""
    given = {"nodes": 200, "hours": 2, "policy": "dedicated"}
    answer = httpx.post(f"{page}/api/ask", json=given, timeout=DEADLINE).json()
    now = replay.now()
    assert answer["start"] > now.time and not answer["never"] and answer["why"]
    nodes = [
        node for low, high in zip(answer["nodes"][::2], answer["nodes"][1::2]) for node in range(low, high)
    ]
    assert len(nodes) == 200 and replay.machine.nodes_named(answer["hosts"]) == nodes
    rows = [
        (job.id, job.nodes, job.links, (now.time - job.start) * len(job.nodes), None) for job in now.running
    ]
    found = make_room(
        State(replay.machine), "dedicated", 200, rows, id=1 + max(job.id for job in (*now.running, *now.waiting)),
        questions=outlook.ROOM_QUESTIONS,
    )  # fmt: skip
    assert answer["room"]["jobs"] == found.requeued != []


def test_without_the_jobs_in_the_way_there_is_room(replay: ReplaySource) -> None:
    """When the jobs that the answer names are gone and no other job waits, the engine starts the job at once."""
    now = replay.now()
    question = outlook.ForecastQuestion(200, 7200.0, "dedicated")
    gone = set(outlook.ask(replay.machine, now, "easy", question)["room"]["jobs"])
    freed = type(now)(now.time, tuple(job for job in now.running if job.id not in gone), ())
    assert outlook.ask(replay.machine, freed, "easy", question)["start"] == now.time


def test_a_job_wider_than_the_machine_never_starts(page: str) -> None:
    """The answer for a job that the empty machine cannot hold is that it never starts, with the reason."""
    given = {"nodes": 5000, "hours": 1, "policy": "isolated"}
    answer = httpx.post(f"{page}/api/ask", json=given, timeout=DEADLINE).json()
    assert answer["never"] and answer["start"] is None and answer["why"] and answer["room"] is None


def test_a_forecast_starts_no_job_before_it_can(replay: ReplaySource) -> None:
    """In the coming hours no node has two jobs at a time: running jobs keep theirs until their walltime ends."""
    now = replay.now()
    found = forecast.Copy(replay.machine, now, "dedicated", "easy").run(now.time + outlook.HORIZON, 30.0)
    assert {one.id for one in found.starts} == {job.id for job in now.waiting}
    stays = [(max(job.end, now.time), now.time, job.nodes) for job in now.running]
    stays += [(one.end, one.start, tuple(one.nodes)) for one in found.starts]
    for index, (end, start, nodes) in enumerate(stays):
        for other_end, other_start, others in stays[:index]:
            if start < other_end and other_start < end:
                assert not set(nodes) & set(others)


def test_any_time_of_the_log_can_be_looked_at(page: str, replay: ReplaySource) -> None:
    """A snapshot of the past is the run's at that time; a time outside the log is its nearest end."""
    first, last = replay.span()
    for at in (first + 0.4 * (last - first), last + 1e6):
        shown = httpx.get(f"{page}/api/snapshot", params={"at": at}).json()
        expected = replay.at(at)
        assert shown["time"] == expected.time
        assert {row[0] for row in shown["running"]} == {job.id for job in expected.running}
    assert httpx.get(f"{page}/api/snapshot", params={"at": "nan"}).status_code == 422
    past = httpx.get(f"{page}/api/outlook", params={"at": first + 0.4 * (last - first)}).json()
    assert past["time"] == replay.at(first + 0.4 * (last - first)).time


def test_changes_lead_to_the_same_as_the_whole_snapshot() -> None:
    """A viewer that applies every change to its first snapshot has what a new viewer reads."""
    with served(*SMALL[:-1], "3000") as page:
        with httpx.stream("GET", f"{page}/api/events", timeout=DEADLINE) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: hello"
            shown = httpx.get(f"{page}/api/snapshot").json()
            running = {row[0]: row for row in shown["running"]}
            waiting = {row[0]: row for row in shown["waiting"]}
            changes = 0
            for line in lines:
                if not line.startswith("data: ") or "started" not in line:
                    continue
                change = json.loads(line.removeprefix("data: "))
                if change["version"] <= shown["version"]:
                    continue
                changes += bool(change["started"] or change["ended"] or change["queued"])
                for id in change["ended"]:
                    del running[id]
                running |= {row[0]: row for row in change["started"]}
                for id in change["left"]:
                    del waiting[id]
                waiting |= {row[0]: row for row in change["queued"]}
                if "order" in change:
                    waiting = {id: waiting[id] for id in change["order"]}
                if changes >= 3:
                    break
            at = change["time"]
        whole = httpx.get(f"{page}/api/snapshot", params={"at": at}).json()
        assert {row[0]: row for row in whole["running"]} == running
        assert list(waiting.values()) == whole["waiting"]


def test_figures_of_a_second_policy_are_served(replay: ReplaySource) -> None:
    """`--shadow` adds a line of the same times for each policy; utilisation is that of the run's table."""
    import polars

    runs = [TASK.run(), Task(**{**vars(TASK), "policy": "first-fit"}).run()]
    series = ReplaySource(TASK, runs, None, 0.0).series()
    assert [line.name for line in series.lines] == ["dedicated", "first-fit"]
    table = polars.DataFrame(runs[1].tables["utilization"])
    time_of = series.times[200]
    row = table.filter(polars.col("time") <= time_of).tail(1)
    assert series.lines[1].waiting[200] == row["waiting_jobs"][0]


class Counted(ReplaySource):
    """A replay that counts how often its figures are read."""

    read = 0

    def series(self) -> source.Series:
        self.read += 1
        return super().series()


def test_many_viewers_read_the_same_figures() -> None:
    """Figures are made once for each snapshot, however many viewers ask at the same time, and again for the next one."""
    source = Counted(TASK, [TASK.run()], None, 0.0)

    async def asked() -> list[int]:
        live, counts = Live(source), []
        for _ in range(2):
            await live.look()
            answers = await asyncio.gather(*(live.series() for _ in range(20)))
            assert len(set(answers)) == 1
            counts.append(source.read)
        return counts

    assert asyncio.run(asked()) == [1, 2]


def test_a_viewer_does_not_keep_the_page_from_ending(page: str) -> None:
    """A page with a viewer that never leaves ends, with exit code 0, when it is asked to."""
    with served(*SMALL) as other:
        stream = httpx.stream("GET", f"{other}/api/events", timeout=DEADLINE)
        lines = stream.__enter__().iter_lines()
        assert next(lines) == "event: hello"
    with contextlib.suppress(httpx.HTTPError):
        stream.__exit__(None, None, None)
