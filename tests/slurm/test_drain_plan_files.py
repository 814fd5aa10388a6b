"""Plans that empty nodes before maintenance, from records of Slurm made by hand. No Slurm runs here."""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from room_records import FULL, NOW, TREE, Killed, Slurm, look_at, runs
from topolane import InputError
from topolane.cluster import applying, room_files
from topolane.cluster.room_files import NoPlanError, NotAppliedError, journal_of
from topolane.slurm import drain_apply, drain_plan, requeueing
from topolane.slurm.drain_apply import DrainApplying
from topolane.slurm.drain_plan import make_plan
from topolane.slurm.inspection import InspectionSettings
from topolane.slurm.records import Reservation
from topolane.slurm.requeueing import ProtectedJobs
from topolane.units import clock

TOPOLANE = (sys.executable, "-c", "from topolane.cli import main; main()", "slurm")
HOUR = 3600.0
BY = NOW + 6 * HOUR


def test_jobs_on_the_nodes_go_unless_they_end_before(tmp_path: Path) -> None:
    """Job 1 is on other nodes. Job 2 ends before by its limit, job 3 after, and job 4 has none: these two are requeued. The cost is
    their work since they started, on all of their nodes."""
    one, two, three, four = FULL
    two = dataclasses.replace(two, latest_end=BY)
    three = dataclasses.replace(three, latest_end=BY + 1)
    plan = make_plan(look_at(tmp_path, one, two, three, four), "node[8-19]", BY)
    assert [each.job for each in plan.requeued] == ["3", "4"]
    assert [(each.job, each.end) for each in plan.ending] == [("2", BY)]
    assert (plan.nodes, plan.node_count, plan.node_hours) == ("node[8-19]", 12, 18.0)
    at_once = make_plan(look_at(tmp_path, one, two, three, four), "node[8-19]")
    assert ([each.job for each in at_once.requeued], at_once.by) == (["2", "3", "4"], NOW)
    assert make_plan(look_at(tmp_path, one, two, three, four), "node[8-19]", NOW) == at_once


def test_a_job_past_its_limit_or_suspended_does_not_end_by_itself(tmp_path: Path) -> None:
    """Slurm lets a job run on past its limit (OverTimeLimit), and the clock of a suspended job stands still. A job that completes
    leaves by itself."""
    for over in (60, 0):
        late = runs(1, "node1", 4, latest_end=NOW - over)
        assert [each.job for each in make_plan(look_at(tmp_path, late), "node1", BY).requeued] == ["1"]
    suspended = runs(1, "node1", 4, state="SUSPENDED", latest_end=NOW + 60)
    with pytest.raises(NoPlanError, match="job 1 in state SUSPENDED must stay$"):
        make_plan(look_at(tmp_path, suspended), "node1", BY)
    completes = runs(1, "node1", 4, state="COMPLETING")
    ending = make_plan(look_at(tmp_path, completes), "node1").ending
    assert [(each.job, each.end) for each in ending] == [("1", NOW)]


@pytest.mark.parametrize(
    ("change", "untouchable"),
    [({"requeueable": False}, None), ({"qos": "urgent"}, ProtectedJobs.of(["qos=urgent"]))],
)
def test_a_job_that_must_stay_prevents_the_plan(
    tmp_path: Path, change: dict[str, Any], untouchable: Any
) -> None:
    """The sentence names it, and the time from which on a plan is possible. One that ends before is not in the way."""
    stays = dataclasses.replace(FULL[3], latest_end=BY + 60, **change)
    look = look_at(tmp_path, *FULL[:3], stays)
    with pytest.raises(
        NoPlanError, match=r"empties node\[19-24\] by .*: job 4 .* must stay; they end by .*--by"
    ):
        make_plan(look, "node[19-24]", BY, untouchable)
    plan = make_plan(look, "node[19-24]", BY + 60, untouchable)
    assert not plan.requeued and [each.job for each in plan.ending] == ["4"]


@pytest.mark.parametrize(
    ("jobs", "limits", "listed"),
    [
        (5, 5, "job 5 that Slurm may not requeue must stay; they end by "),
        (7, 7, "job 5 that Slurm may not requeue and 2 more must stay; they end by "),
        (7, 6, "job 5 that Slurm may not requeue and 2 more must stay$"),
    ],
)
def test_five_jobs_that_must_stay_are_listed(tmp_path: Path, jobs: int, limits: int, listed: str) -> None:
    """The others are counted. When the last of them ends is said if all have a limit."""
    stay = [
        runs(number, f"node{number}", 1, requeueable=False, latest_end=BY + 60 * number)
        for number in range(1, jobs + 1)
    ]
    stay[limits:] = [dataclasses.replace(job, latest_end=None) for job in stay[limits:]]
    with pytest.raises(NoPlanError, match=listed) as said:
        make_plan(look_at(tmp_path, *stay), "node[1-7]", BY)
    if limits == jobs:
        assert f"they end by {clock(BY + 60 * jobs, NOW)} (--by)" in str(said.value)


def test_no_job_is_left_and_none_goes_in_vain(tmp_path: Path) -> None:
    """Random jobs, some of which share nodes: without those that the plan requeues, every job on the nodes ends before. Each job of the plan
    is on the nodes and would not."""
    draw = random.Random(5)
    for _ in range(200):
        jobs = []
        for number in range(1, 9):
            held = TREE.hostlist(sorted(draw.sample(range(24), draw.randint(1, 6))))
            end = draw.choice((None, NOW + draw.uniform(0, 12) * HOUR))
            jobs.append(runs(number, held, draw.uniform(0, 5), latest_end=end, exclusive=draw.random() < 0.5))
        nodes = set(draw.sample(range(24), draw.randint(1, 12)))
        plan = make_plan(look_at(tmp_path, *jobs), TREE.hostlist(sorted(nodes)), BY)
        must_go = {
            job.number
            for job in jobs
            if nodes & set(TREE.nodes_named(job.nodes)) and (job.latest_end is None or job.latest_end > BY)
        }
        assert {each.job for each in plan.requeued} == must_go


@pytest.mark.parametrize(
    ("hosts", "after_now", "sentence"),
    [
        ("node[20-30]", None, r"--drain 'node\[20-30\]': Slurm has no node node25"),
        ("node[", None, r"--drain 'node\[': it is no list of nodes"),
        ("node1", -5.0, "--by: the time is over"),
    ],
)
def test_bad_nodes_and_times(tmp_path: Path, hosts: str, after_now: float | None, sentence: str) -> None:
    by = None if after_now is None else NOW + after_now
    with pytest.raises(InputError, match=sentence):
        make_plan(look_at(tmp_path, *FULL), hosts, by)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["plan"], "give one of --room-for and --drain"),
        (["plan", "--room-for", "3", "--drain", "node1"], "give one of --room-for and --drain"),
        (["plan", "--room-for", "3", "--by", "2100-01-01"], "--by needs --drain"),
        (["plan", "--drain", "node1", "--any-priority"], "--any-priority needs --room-for"),
        (["plan", "--drain", "node1", "--by", "noon"], "noon is no time such as 2026-11-27T18:00"),
    ],
)
def test_options_that_do_not_fit_are_reported_in_a_sentence(words: list[str], sentence: str) -> None:
    done = subprocess.run([*TOPOLANE, *words], capture_output=True, text=True)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr


def test_a_plan_is_written_and_read(tmp_path: Path) -> None:
    ends = dataclasses.replace(FULL[0], latest_end=BY)
    plan = make_plan(look_at(tmp_path, ends, *FULL[1:]), "node[1-12]", BY)
    file = tmp_path / "plan"
    room_files.write(file, plan)
    assert drain_plan.read(file) == plan
    good = json.loads(file.read_text())
    assert good["version"] == 1, "plans of earlier releases are read"
    for change, sentence in (
        ({"nodes": "node[1"}, "which is no list of nodes"),
        ({"ending": [good["ending"][0] | {"job": "1; reboot"}]}, "is no number of a job"),
        ({"by": "noon"}, "by is .noon., which is no float"),
    ):
        file.write_text(json.dumps(good | change))
        with pytest.raises(InputError, match=sentence):
            drain_plan.read(file)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """Four jobs on a leaf each, of which the first ends in time; the plan to empty three of the leaves is in the file `plan`."""
    made = Slurm(tmp_path, dataclasses.replace(FULL[0], latest_end=BY), *FULL[1:])
    made.replace_real_one(monkeypatch, drain_apply)
    room_files.write(tmp_path / "plan", make_plan(made.look(InspectionSettings()), "node[1-18]", BY))
    return made


def carry_out(state: Path, seconds: float = 5, undo: bool = False) -> list[str]:
    said: list[str] = []
    DrainApplying.apply(state / "plan", InspectionSettings(), seconds=seconds, tell=said.append, undo=undo)
    return said


def test_a_death_at_any_change_leaves_what_apply_goes_on_with(slurm: Slurm, tmp_path: Path) -> None:
    """Before and after each of the three changes: afterwards each has been made once, in this order."""
    changes = ["create reservation ReservationName=topolane_drain_node1 ", "requeue 2", "requeue 3"]
    for number in range(len(changes)):
        for after in (False, True):
            slurm.dies = (number, after)
            with pytest.raises(Killed):
                carry_out(tmp_path)
            slurm.dies = None
    assert carry_out(tmp_path)[-2] == "node[1-18]: what runs there ends in time: job 1."
    assert len(slurm.changes) == len(changes)
    assert all(made.startswith(wanted) for made, wanted in zip(slurm.changes, changes)), slurm.changes
    assert "Nodes=node[1-18] StartTime=2" in slurm.changes[0] and "Flags=MAINT," in slurm.changes[0]
    assert carry_out(tmp_path) == ["The plan has been carried out already, or given up: nothing is changed."]


@pytest.mark.parametrize(
    ("number", "change", "sentence"),
    [
        ("2", {"start": NOW - 5}, r"job 2 runs on node\[7-12\] and does not end before "),
        ("4", {"nodes": "node[18-24]"}, r"job 4 runs on node\[18-24\] and does not end before "),
        ("1", {"latest_end": BY + 60}, r"job 1 runs on node\[1-6\] and does not end before "),
        ("3", {"requeueable": False}, "job 3 may not be requeued any more"),
    ],
)
def test_a_plan_that_is_no_longer_true_changes_nothing(
    slurm: Slurm, tmp_path: Path, number: str, change: dict[str, Any], sentence: str
) -> None:
    slurm.change(number, **change)
    with pytest.raises(NotAppliedError, match=f"the plan is no longer true: {sentence}"):
        carry_out(tmp_path)
    assert not slurm.changes and not journal_of(tmp_path / "plan").exists()


def test_a_job_that_has_ended_meanwhile_is_not_in_the_way(slurm: Slurm, tmp_path: Path) -> None:
    slurm.jobs = [job for job in slurm.jobs if job.number != "2"]
    carry_out(tmp_path)
    assert [change for change in slurm.changes if change.startswith("requeue")] == ["requeue 3"]


def test_another_reservation_of_that_name_is_left_alone(slurm: Slurm, tmp_path: Path) -> None:
    """One that keeps the nodes already, for instance of an earlier plan, is used."""
    name = "topolane_drain_node1"
    slurm.reserved[name] = Reservation(name, "node[1-6]", NOW, NOW + 9e9)
    with pytest.raises(NotAppliedError, match="there is another reservation topolane_drain_node1 already"):
        carry_out(tmp_path)
    slurm.reserved[name] = Reservation(name, "node[1-24]", NOW, NOW + 9e9)
    carry_out(tmp_path)
    assert slurm.changes == ["requeue 2", "requeue 3"]


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_plan_that_was_begun_can_be_given_up(slurm: Slurm, tmp_path: Path, is_ours: bool) -> None:
    """The reservation that it made is removed, and one that was there before stays. No other job is requeued."""
    name = "topolane_drain_node1"
    if not is_ours:
        slurm.reserved[name] = Reservation(name, "node[1-24]", NOW, NOW + 9e9)
    slurm.dies = (2 if is_ours else 1, False)
    with pytest.raises(Killed):
        carry_out(tmp_path)
    slurm.dies = None
    assert carry_out(tmp_path, undo=True)[-1] == "The plan is given up."
    assert (name in slurm.reserved) is not is_ours and slurm.running() == ["1", "3", "4"]


@pytest.mark.parametrize(("seconds", "is_enough"), [(2.5, True), (1.5, False)])
def test_apply_waits_for_the_time_that_it_was_given(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, is_enough: bool
) -> None:
    """The jobs leave in the third pause of a second. The clock of this test goes on only while apply pauses."""
    clock, real = [100.0], slurm.scontrol

    def pause(length: float) -> None:
        clock[0] += length
        if clock[0] > 102.9:
            for number in ("2", "3"):
                slurm.change(number, state="PENDING", nodes="", allocated="")

    def requeues(*words: str) -> str:
        if words[0] != "requeue":
            return real(*words)
        slurm.change(words[1], state="COMPLETING")
        return ""

    monkeypatch.setattr(requeueing, "scontrol", requeues)
    monkeypatch.setattr(applying, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=pause))
    monkeypatch.setattr(applying.Applying, "PAUSE", 1.0)
    if is_enough:
        carry_out(tmp_path, seconds)
        assert clock == [103.0]
    else:
        with pytest.raises(NotAppliedError, match="still has jobs 2, 3"):
            carry_out(tmp_path, seconds)


@pytest.mark.parametrize("runs_on", [True, False])
def test_a_job_that_slurm_does_not_requeue(slurm: Slurm, tmp_path: Path, runs_on: bool) -> None:
    """If it still runs, apply ends with what Slurm said. If it has just ended by itself, apply goes on, and reports no requeueing."""
    real = slurm.scontrol

    def refuses(*words: str) -> str:
        if words[:2] != ("requeue", "2"):
            return real(*words)
        if not runs_on:
            slurm.jobs = [job for job in slurm.jobs if job.number != "2"]
        raise InputError("scontrol requeue 2: refused")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topolane.slurm.requeueing.scontrol", refuses)
        if runs_on:
            with pytest.raises(InputError, match="scontrol requeue 2: refused"):
                carry_out(tmp_path)
            return
        said = carry_out(tmp_path)
    assert "Job 3 is requeued: node[13-18] becomes free." in said
    assert not any("Job 2" in each for each in said) and slurm.running() == ["1", "4"]


def test_apply_waits_until_requeued_jobs_have_left(slurm: Slurm, tmp_path: Path) -> None:
    """A job that still completes has not left. A second `apply` goes on."""
    real, requeued = slurm.scontrol, []

    def slow(*words: str) -> str:
        if words[0] != "requeue":
            return real(*words)
        requeued.append(words[1])
        slurm.change(words[1], state="COMPLETING")
        return ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topolane.slurm.requeueing.scontrol", slow)
        with pytest.raises(NotAppliedError, match=r"node\[1-18\] still has jobs 2, 3: .*run `apply` again"):
            carry_out(tmp_path, seconds=0.05)
    for number in ("2", "3"):
        slurm.change(number, state="PENDING", nodes="", allocated="")
    assert (
        carry_out(tmp_path)[-1]
        == "After the maintenance: scontrol delete ReservationName=topolane_drain_node1"
    )
    assert requeued == ["2", "3"]
