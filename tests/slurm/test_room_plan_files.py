"""Plans that make room, from records of Slurm made by hand: costs, what may go, bad input. No Slurm runs here."""

from __future__ import annotations

import dataclasses
import fcntl
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from room_records import FULL, NOW, TREE, Killed, Slurm, look_at, runs, waits
from topolane import InputError
from topolane._engine import Decision, State
from topolane.cli.slurm_plan import apply
from topolane.cluster import room_files
from topolane.cluster.allocation import Allocation
from topolane.cluster.decided import Decided
from topolane.cluster.room_files import NoPlanError, NotAppliedError, RoomJournal, journal_of, sum_of
from topolane.cluster.view import Refused
from topolane.slurm import room_apply, room_plan
from topolane.slurm.inspection import InspectionSettings, SlurmInspection
from topolane.slurm.links_out import LinksOut
from topolane.slurm.records import SlurmJob
from topolane.slurm.requeueing import ProtectedJobs, cost_of
from topolane.slurm.room_apply import RequeueApplying
from topolane.slurm.room_plan import make_plan

TOPOLANE = (sys.executable, "-c", "from topolane.cli import main; main()", "slurm")


def gone(look: SlurmInspection, untouchable: ProtectedJobs | None = None) -> list[str]:
    return [each.job for each in make_plan(look, "9", untouchable).requeued]


def with_words(look: SlurmInspection, nodes: Collection[int], word: str) -> SlurmInspection:
    """The same where the state of these nodes has that word."""
    assert look.snapshot is not None
    there = dict(look.snapshot.nodes)
    for name in map(TREE.node_name, nodes):
        there[name] = dataclasses.replace(there[name], words=frozenset({word}))
    return dataclasses.replace(look, snapshot=dataclasses.replace(look.snapshot, nodes=there))


def test_the_cost_is_the_work_since_the_start(tmp_path: Path) -> None:
    """Nodes times hours: 6 x 1 and 6 x 2. The plan is for the cheapest two of four leaves."""
    plan = make_plan(look_at(tmp_path, *FULL, waits(9, 12)), "9")
    assert [(each.job, each.node_hours) for each in plan.requeued] == [("3", 12.0), ("4", 6.0)]
    assert (plan.node_hours, plan.least_node_hours, plan.nodes) == (18.0, 18.0, "node[13-24]")
    assert cost_of(runs(1, "node1", -1), NOW, 1) == 0, "a clock that went back"


@pytest.mark.parametrize(
    ("change", "untouchable"),
    [
        ({"requeueable": False}, None),
        ({"priority": 21}, None),
        ({"state": "SUSPENDED"}, None),
        ({"qos": "urgent"}, ProtectedJobs.of(["qos=urgent"])),
        ({"account": "chem"}, ProtectedJobs.of(["account=chem"])),
        ({"partitions": ("q",)}, ProtectedJobs.of(["partition=q"])),
    ],
)
def test_untouchable_jobs_stay(tmp_path: Path, change: dict[str, Any], untouchable: Any) -> None:
    """The youngest would go first, but must stay: the next ones go. If all must stay, there is no plan."""
    young = dataclasses.replace(FULL[3], **change)
    assert gone(look_at(tmp_path, *FULL[:3], young, waits(9, 6)), untouchable) == ["3"]
    all_stay = [dataclasses.replace(job, **change) for job in FULL]
    with pytest.raises(NoPlanError, match=r"there is no plan for job 9: .*4 running jobs must stay"):
        gone(look_at(tmp_path, *all_stay, waits(9, 6)), untouchable)


def test_jobs_that_share_nodes_stay(tmp_path: Path) -> None:
    """A suspended job and one that runs in its place, and jobs on parts of nodes: their nodes are not given."""
    suspended = runs(5, "node[19-24]", 1, state="SUSPENDED")
    assert gone(look_at(tmp_path, *FULL, suspended, waits(9, 6))) == ["3"]
    part = dataclasses.replace(FULL[3], exclusive=False)
    assert gone(look_at(tmp_path, *FULL[:3], part, waits(9, 6))) == ["3"]


def test_jobs_of_higher_priority_may_go_if_asked(tmp_path: Path) -> None:
    high = [dataclasses.replace(job, priority=30) for job in FULL]
    assert gone(look_at(tmp_path, *high, waits(9, 6)), ProtectedJobs(any_priority=True)) == ["4"]


def test_the_plan_is_the_cheapest_of_all_subsets(tmp_path: Path) -> None:
    """Random jobs on the tree, against every set of jobs: none that makes room costs less, and the plan's bound is below it. A job of
    the same priority may go. Excluded nodes and those out of service are never given."""
    draw, compared = random.Random(7), 0
    for _ in range(60):
        free, jobs = list(range(24)), []
        for number in range(1, 9):
            size = draw.choice((1, 2, 3, 4, 6))
            if size > len(free):
                break
            at = draw.randrange(len(free) - size + 1)
            held, free = free[at : at + size], free[:at] + free[at + size :]
            given = {"requeueable": draw.random() < 0.8, "priority": draw.choice((5, 20, 25))}
            jobs.append(runs(number, TREE.hostlist(held), draw.uniform(0, 5), **given))
        wide = waits(9, draw.randint(2, 14), excluded=draw.choice(("", "node[1-3]")))
        down = set(draw.sample(range(24), draw.choice((0, 0, 2))))
        look = with_words(look_at(tmp_path, *jobs, wide), down, "drain")
        may_go = [job for job in jobs if job.requeueable and job.priority <= 20]
        allowed = [node for node in range(24) if node not in down and (not wide.excluded or node > 2)]
        best = None
        for count in range(len(may_go) + 1):
            for some in itertools.combinations(may_go, count):
                state = State(TREE)
                for job in jobs:
                    if job not in some:
                        state.hold(TREE.nodes_named(job.nodes))
                if isinstance(state.place("isolated", wide.fewest_nodes, eligible=allowed), Decision):
                    cost = sum(len(TREE.nodes_named(job.nodes)) * (NOW - job.start) for job in some) / 3600
                    best = cost if best is None else min(best, cost)
        if best is None:
            with pytest.raises(NoPlanError, match="there is no plan for job 9: "):
                make_plan(look, "9")
            continue
        plan = make_plan(look, "9")
        assert plan.least_node_hours <= best + 1e-5
        assert plan.node_hours == pytest.approx(best, abs=1e-4)
        assert set(TREE.nodes_named(plan.nodes)) <= set(allowed)
        compared += 1
    assert compared > 20


def test_less_bandwidth_needs_less_room(tmp_path: Path) -> None:
    """The least share of bandwidth is that of the line of topolane.conf, and only for policies that heed it."""
    for policy, wanted in (("dedicated", 0.5), ("isolated", 1.0)):
        look = look_at(tmp_path, *FULL, waits(9, 6), policy=policy, min_bandwidth=0.5)
        assert make_plan(look, "9").min_bandwidth == wanted


def test_the_share_that_the_plugin_refused_counts(tmp_path: Path) -> None:
    """The plugin knows what the job itself asked for; topolane.conf has only what is asked where a job says nothing."""
    look = look_at(tmp_path, *FULL, waits(9, 6), policy="dedicated", min_bandwidth=0.5)
    assert look.state is not None and look.state.jobs is not None
    for number, wanted in ((9, 0.25), (8, 0.5)):
        refused = Decided("dedicated", share=0.25, refused=Refused("not-now", 6))
        jobs = dataclasses.replace(look.state.jobs, waiting={number: refused})
        known = dataclasses.replace(look, state=dataclasses.replace(look.state, jobs=jobs))
        assert make_plan(known, "9").min_bandwidth == wanted


def test_links_out_of_service_are_not_given(tmp_path: Path) -> None:
    """Two jobs have a node on each leaf and links of their own. Five nodes need a leaf, thus either job's node there: the cheaper job goes.
    If one of its links is out of service, its links would not become free, so the other goes. Six nodes need links as well, so a job that
    keeps one that is out of service stays. Once the first job is gone, its other links are enough.
    """
    asked, jobs, owned = State(TREE), [], {}
    for number in (1, 2):
        found = asked.place("dedicated", 4, id=number, eligible=range(number - 1, 24, 6))
        assert isinstance(found, Decision) and found.links
        owned[number] = Allocation(frozenset(found.nodes), tuple(found.links))
        jobs.append(runs(number, TREE.hostlist(sorted(found.nodes)), number))
        asked.hold(found.nodes, None, found.links, 1.0, id=number)

    def look(nodes: int, *out: int) -> SlurmInspection:
        found = look_at(tmp_path, *jobs, waits(9, nodes), policy="dedicated")
        out_of_service = LinksOut(frozenset(owned[number].links[0] for number in out))
        return dataclasses.replace(found, owned=owned, out=out_of_service if out else None)

    for out, goes in (((), "1"), ((1,), "2"), ((2,), "1")):
        plan = make_plan(look(5, *out), "9")
        assert [each.job for each in plan.requeued] == [goes] and plan.least_node_hours == plan.node_hours
    with pytest.raises(NoPlanError, match=r"2 running jobs must stay: 2 on shared nodes or links\)$"):
        make_plan(look(5, 1, 2), "9")
    plan = make_plan(look(6), "9")
    assert gone(look(6)) == ["1"] and room_plan.still_places(look(6), plan, waits(9, 6)) is None
    for out in (1, 2):
        with pytest.raises(NoPlanError, match=r"\(1 running job must stay: 1 on shared nodes or links\)$"):
            make_plan(look(6, out), "9")
    lost = [room_plan.still_places(look(6, out), plan, waits(9, 6)) for out in (1, 2)]
    assert lost == [None, f"dedicated has no place on {plan.nodes} any more"]


def test_an_empty_machine_without_room_has_no_plan(tmp_path: Path) -> None:
    with pytest.raises(NoPlanError, match=r"\(no job runs\)$"):
        make_plan(with_words(look_at(tmp_path, waits(9, 24)), [3], "down"), "9")


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (runs(9, "node1", 1), "the job does not wait: it is RUNNING"),
        (waits(9, 6, priority=0), "the job is held"),
        (waits(9, 6, dependency="afterok:1"), "the job waits for afterok:1, not for nodes"),
        (waits(9, 6, exclusive=False), "the job may share its nodes"),
        (waits(9, 6, unsupported_option="--contiguous"), "plans are not made for jobs with --contiguous"),
        (waits(8, 6), "Slurm knows no such job"),
    ],
)
def test_a_job_for_which_no_plan_can_be_made(tmp_path: Path, job: SlurmJob, sentence: str) -> None:
    with pytest.raises(InputError, match=f"--room-for 9: .*{sentence}"):
        make_plan(look_at(tmp_path, job), "9")


def test_without_the_plugin_there_is_no_plan(tmp_path: Path) -> None:
    look = look_at(tmp_path, *FULL, waits(9, 6))
    other = dataclasses.replace(look, configuration={"TopologyPlugin": "topology/tree"})
    with pytest.raises(InputError, match="topology/topolane is not active: Slurm's TopologyPlugin"):
        make_plan(other, "9")
    with pytest.raises(InputError, match="stock Slurm chooses its nodes"):
        make_plan(look_at(tmp_path, *FULL, waits(9, 6), policy="stock"), "9")


def test_without_slurmctld_or_a_machine_there_is_no_plan(tmp_path: Path) -> None:
    look = look_at(tmp_path, *FULL, waits(9, 6))
    for missing, sentence in (
        ("snapshot", "slurmctld does not answer"),
        ("machine", "the plugin names no machine"),
    ):
        without = dataclasses.replace(look, **{missing: None})
        with pytest.raises(InputError, match=f"^{sentence}$"):
            make_plan(without, "9")
        with pytest.raises(InputError, match="^one; two$"):
            make_plan(dataclasses.replace(without, problems=("one.", "two.")), "9")


def test_a_plan_is_written_and_read(tmp_path: Path) -> None:
    plan = make_plan(look_at(tmp_path, *FULL, waits(9, 12)), "9")
    file = tmp_path / "plan"
    room_files.write(file, plan)
    assert room_plan.read(file) == plan
    good = json.loads(file.read_text())
    assert good["version"] == 1, "plans of earlier releases are read"
    for change, sentence in (
        ({"format": "other"}, "it is no plan"),
        ({"version": 2}, "version 2 of plans is not known"),
        ({"requeued": 3}, "requeued is no list"),
        ({"requeued": [7]}, r"requeued\[0\]: it is no object"),
        ({"job": "9; reboot"}, "is no number of a job"),
        ({"nodes": 5}, "nodes is '?5'?, which is no str"),
        ({"walltime": True}, "walltime is"),
        ({"more": 1}, "more'? is not known"),
    ):
        file.write_text(json.dumps(good | change))
        with pytest.raises(InputError, match=sentence):
            room_plan.read(file)
    del good["user"]
    file.write_text(json.dumps(good))
    with pytest.raises(InputError, match="user is missing"):
        room_plan.read(file)
    file.write_bytes(random.Random(3).randbytes(500))
    with pytest.raises(InputError, match=f"^{file}: "):
        room_plan.read(file)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["plan"], "--room-for"),
        (
            ["plan", "--room-for", "3", "--untouchable", "user=ada"],
            "partition=NAME, qos=NAME or account=NAME",
        ),
        (["plan", "--room-for", "3", "--out", "/nowhere/plan"], "--out /nowhere/plan"),
        (["apply"], "PLAN"),
        (["apply", "/nowhere/plan"], "/nowhere/plan"),
        (["apply", "/dev/null"], "/dev/null"),
    ],
)
def test_bad_input_is_reported_in_a_sentence(words: list[str], sentence: str) -> None:
    done = subprocess.run([*TOPOLANE, *words], capture_output=True, text=True)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """Four jobs on a leaf each, and one of a pod that waits; its plan is in the file `plan`."""
    made = Slurm(tmp_path, *FULL, waits(9, 12))
    made.replace_real_one(monkeypatch, room_apply)
    room_files.write(tmp_path / "plan", make_plan(made.look(InspectionSettings()), "9"))
    return made


def carry_out(state: Path, seconds: float = 5, undo: bool = False) -> list[str]:
    said: list[str] = []
    RequeueApplying.apply(state / "plan", InspectionSettings(), seconds=seconds, tell=said.append, undo=undo)
    return said


CHANGES = ["create reservation", "update JobId=9", "requeue 3", "requeue 4"]
CHANGES += ["update ReservationName=topolane_room_9 Flags+=FLEX EndTime="]


def test_a_death_at_any_change_leaves_what_apply_goes_on_with(slurm: Slurm, tmp_path: Path) -> None:
    """Before and after each of the five changes: afterwards each has been made once, in this order."""
    deaths = 0
    for number in range(len(CHANGES)):
        for after in (False, True):
            slurm.dies = (number, after)
            with pytest.raises(Killed):
                carry_out(tmp_path)
            deaths += 1
            slurm.dies = None
    assert deaths == 10 and carry_out(tmp_path)[-1] == "Job 9 runs on node[13-24]."
    assert len(slurm.changes) == len(CHANGES)
    assert all(made.startswith(wanted) for made, wanted in zip(slurm.changes, CHANGES)), slurm.changes
    assert carry_out(tmp_path) == ["The plan has been carried out already, or given up: nothing is changed."]
    assert len(slurm.changes) == len(CHANGES)


@pytest.mark.parametrize(
    ("number", "change", "sentence"),
    [
        ("9", {"state": "RUNNING", "nodes": "node1"}, "job 9 does not wait any more: it is RUNNING"),
        ("9", {"submit": 5.0}, "job 9 does not wait any more"),
        ("3", {"start": NOW - 5}, "job 3 does not run on node\\[13-18\\] any more"),
        ("3", {"restarts": 1}, "job 3 does not run on node\\[13-18\\] any more"),
        ("3", {"nodes": "node[13-17]"}, "job 3 does not run on node\\[13-18\\] any more"),
        ("4", {"requeueable": False}, "job 4 may not be requeued any more"),
        ("1", {"nodes": "node[1-6,14]"}, "isolated has no place on node\\[13-24\\] any more"),
    ],
)
def test_a_plan_that_is_no_longer_true_changes_nothing(
    slurm: Slurm, tmp_path: Path, number: str, change: dict[str, Any], sentence: str
) -> None:
    slurm.change(number, **change)
    with pytest.raises(NotAppliedError, match=f"the plan is no longer true: {sentence}"):
        carry_out(tmp_path)
    assert not slurm.changes and not journal_of(tmp_path / "plan").exists()


def test_apply_says_its_steps_as_json(slurm: Slurm, tmp_path: Path) -> None:
    """One object with the sentences that are printed otherwise, also if the plan cannot be carried out: then why, and exit code 1."""
    words = [str(tmp_path / "plan"), "--timeout", "1", "--json"]
    slurm.jobs.append(runs(5, "node1", 1))  # so that the waiting job does not start
    failed = CliRunner().invoke(apply, words)
    found = json.loads(failed.output)
    assert failed.exit_code == 1 and not found["done"] and "has not started yet" in found["why"]
    assert found["steps"][0] == "The reservation topolane_room_9 keeps node[13-24] for ada."
    slurm.change("9", state="RUNNING", nodes="node[13-24]", allocated="node[13-24]", start=NOW)
    done = CliRunner().invoke(apply, words)
    assert (done.exit_code, json.loads(done.output)) == (
        0,
        {
            "done": True,
            "steps": [
                f"Going on with {journal_of(tmp_path / 'plan')}.",
                "The reservation topolane_room_9 ends.",
                "Job 9 runs on node[13-24].",
            ],
            "why": None,
        },
    )


def test_a_job_that_does_not_start_keeps_its_reservation(slurm: Slurm, tmp_path: Path) -> None:
    """Until it starts, and `apply` is run again; or until it is cancelled: then the reservation is removed, and apply says so."""
    slurm.jobs.append(runs(5, "node1", 1))  # so that the waiting job does not start
    with pytest.raises(NotAppliedError, match="job 9 has not started yet .*run `apply` again to go on"):
        carry_out(tmp_path, seconds=0.05)
    assert list(slurm.reserved) == ["topolane_room_9"]
    slurm.jobs = [job for job in slurm.jobs if job.number != "9"]
    with pytest.raises(NotAppliedError, match="job 9 does not wait any more and does not run"):
        carry_out(tmp_path)
    assert not slurm.reserved and slurm.changes.count("requeue 3") == 1


def test_a_plan_that_was_begun_can_be_given_up(slurm: Slurm, tmp_path: Path) -> None:
    """The reservation is removed, the waiting job waits on without it, and no other job is requeued."""
    assert carry_out(tmp_path, undo=True) == ["The plan is not being carried out: nothing is changed."]
    slurm.dies = (CHANGES.index("requeue 4"), False)
    with pytest.raises(Killed):
        carry_out(tmp_path)
    slurm.dies = None
    assert carry_out(tmp_path, undo=True) == [
        "The reservation topolane_room_9 ends.",
        "The plan is given up.",
    ]
    assert not slurm.reserved and slurm.running() == ["1", "2", "4"]
    assert next(job.reservation for job in slurm.jobs if job.number == "9") == ""
    assert carry_out(tmp_path) == ["The plan has been carried out already, or given up: nothing is changed."]


def test_a_plan_that_reserved_nothing_leaves_the_reservation_of_another(slurm: Slurm, tmp_path: Path) -> None:
    """apply died right after its first line. Another plan for the same job has made a reservation since: it stays."""
    path = tmp_path / "plan"
    RoomJournal(journal_of(path), sum_of(path), RequeueApplying.STEPS).write("begin")
    slurm.reserved["topolane_room_9"] = "node[1-2]"
    assert carry_out(tmp_path, undo=True) == ["The plan is given up."]
    assert list(slurm.reserved) == ["topolane_room_9"] and not slurm.changes


def test_a_journal_that_is_cut_short_or_of_another_plan(slurm: Slurm, tmp_path: Path) -> None:
    """A line that was not written whole is of a step that was not taken."""
    path = journal_of(tmp_path / "plan")
    journal = RoomJournal(path, "one", RequeueApplying.STEPS)
    journal.write("begin")
    journal.write("requeue", "3")
    with path.open("a") as file:
        file.write('{"step": "requeue", "jo')
    again = RoomJournal(path, "one", RequeueApplying.STEPS)
    assert again.has("requeue", "3") and not again.has("requeue", "4")
    again.write("requeue", "4")
    assert [one.get("job") for one in RoomJournal(path, "one", RequeueApplying.STEPS).steps] == [
        None,
        "3",
        "4",
    ]
    with pytest.raises(InputError, match="it is of another plan"):
        carry_out(tmp_path)
    path.write_text('{"step": "reboot"}\n')
    with pytest.raises(InputError, match="plan.journal:1: it is no step of a plan"):
        RoomJournal(path, "one", RequeueApplying.STEPS)
    assert not slurm.changes


def test_two_at_once_are_not_let(slurm: Slurm, tmp_path: Path) -> None:
    with (tmp_path / "plan").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another `topolane slurm apply` carries it out now"):
            carry_out(tmp_path)
    assert not slurm.changes


def outside(look: SlurmInspection, number: int) -> SlurmInspection:
    """The same where that job may use any link, because it is outside and its rule says Outside=share."""
    assert look.state is not None and look.state.jobs is not None
    running = {number: Decided("stock", link_use="none")}
    jobs = dataclasses.replace(look.state.jobs, running=running)
    return dataclasses.replace(look, state=dataclasses.replace(look.state, jobs=jobs))


def test_nodes_of_jobs_outside_are_not_given(tmp_path: Path) -> None:
    """A job that may use any link holds none in the engine's state, but its nodes are taken: no plan gives them, and a plan that
    names them is no longer true."""
    look = outside(look_at(tmp_path, *FULL, waits(9, 6)), 4)
    plan = make_plan(look, "9")
    assert ([each.job for each in plan.requeued], plan.nodes) == (["3"], "node[13-18]")
    of_others = dataclasses.replace(plan, nodes="node[19-24]", requeued=())
    assert room_plan.still_places(look, plan, waits(9, 6)) is None
    assert room_plan.still_places(look, of_others, waits(9, 6)) == "job 9 may not use node[19-24] now"
