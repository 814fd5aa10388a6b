"""The twin of a real Slurm: the plan of the experiment, the measures, and a small run's records (tests/live/slurm/records-of-a-twin)."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from topolane import InputError
from topolane.baseline.measures import RunArrays
from topolane.slurm import accounting, accounting_jobs, accounting_workload
from topolane.sources import machine

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("benches", "benches/slurm", "tests/live/slurm", "tests/slurm")]

import flavour_plan
import flavours
import registry
import run
import twin
import twin_plan
import twin_scale
import twin_shaken
import twin_single
import twin_synthetic
import twin_table
from measure import Row
from topolane.baseline import flavours as known_flavours
from topolane.baseline.decisions import Decisions

RECORDS = ROOT / "tests" / "live" / "slurm" / "records-of-a-twin"


def runs(*rows: tuple[int, float, float, float, float]) -> RunArrays:
    """Runs of (id, submit, start, run, nodes)."""
    ids, *values = zip(*rows)
    return RunArrays(np.array(ids, np.int64), *(np.array(each, float) for each in values))


def test_a_replay_that_is_what_happened_meets_every_target() -> None:
    recorded = runs((1, 0, 0, 60, 2), (2, 0, 10, 60, 1), (3, 5, 70, 10, 3))
    found = twin_table.closeness(recorded, recorded, nodes=4, interval=10)
    assert (found.mean_off, found.rank, found.utilisation_off, found.within) == (0, pytest.approx(1), 0, 100)
    assert "MISSED" not in {row.verdict for row in twin_table.rows("easy", [found], 10)}


def test_measures_of_a_replay_that_is_off() -> None:
    """Waits 0, 10, 60 become 0, 25, 20: one start is over 20 s away. Job 4 ran in the records only."""
    recorded = runs((1, 0, 0, 60, 2), (2, 0, 10, 50, 1), (3, 0, 60, 60, 4), (4, 0, 0, 1, 1))
    replay = runs((3, 0, 20, 60, 4), (2, 0, 25, 50, 1), (1, 0, 0, 60, 2))
    found = twin_table.closeness(recorded, replay, nodes=8, interval=10)
    assert found.jobs == 3
    assert (found.recorded, found.replayed) == (pytest.approx(70 / 3), pytest.approx(15))
    assert found.mean_off == pytest.approx(100 * (1 - 45 / 70))
    assert found.rank == pytest.approx(0.5)
    assert found.within == pytest.approx(200 / 3)
    # Six parts of 20 s. Recorded: 2 nodes for 60 s, 1 node from 10 to 60, one for a second, then all four.
    assert [round(part, 6) for part, _ in found.utilisation] == [31.875, 37.5, 37.5, 50, 50, 50]
    assert [round(part, 6) for _, part in found.utilisation] == [25, 84.375, 87.5, 59.375, 0, 0]
    assert found.whole_off == pytest.approx((256.875 - 256.25) / 6)
    judged = {row.what: row.verdict for row in twin_table.rows("easy", [found], 10) if row.limit is not None}
    assert [what for what, verdict in judged.items() if verdict != "MISSED"] == [
        "utilisation is off by, in the whole time"
    ]
    assert len(judged) == 5


def test_without_a_run_in_both_there_is_nothing_to_measure() -> None:
    with pytest.raises(ValueError, match="no run is both"):
        twin_table.closeness(runs((1, 0, 0, 1, 1)), runs((2, 0, 0, 1, 1)), nodes=1, interval=1)


@pytest.mark.parametrize(("nodes", "jobs", "minutes"), [(24, 50, 3), (72, 1000, 60)])
def test_the_plan_is_one_that_slurm_can_carry_out(nodes: int, jobs: int, minutes: float) -> None:
    """Every job fits its partition and its QOS, may run as long as it wants to, and depends on an earlier job of its user."""
    plan = twin_plan.plan(nodes, jobs, minutes, 1.0, 1)
    assert plan == twin_plan.plan(nodes, jobs, minutes, 1.0, 1)
    by_number = {job.number: job for job in plan.jobs}
    first, last = plan.partitions.batch
    low, high = plan.partitions.debug
    assert low <= last <= high == nodes and first == 1  # some nodes are in both, and all in one
    for job in plan.jobs:
        assert 0 <= job.submit <= plan.seconds
        assert job.run < 60 * job.minutes
        assert 1 <= job.nodes <= last
        assert job.user in twin_plan.ACCOUNTS[job.account][1]
        if job.partition == "pdebug":
            assert job.nodes <= plan.partitions.debug_nodes
            assert job.minutes <= plan.partitions.debug_minutes
        if job.after:
            other = by_number[job.after[1]]
            assert (other.user, other.submit <= job.submit) == (job.user, True)
    assert {job.qos for job in plan.jobs} == set(plan.site.qos)
    widest = max(job.nodes for job in plan.jobs if job.qos == "large")
    assert f"MaxTRESPerUser=node={nodes // 3}" in plan.site.qos["large"]
    assert widest <= math.floor(twin_plan.WIDEST * nodes) <= nodes // 3


def test_the_plan_has_the_load_that_is_asked_for() -> None:
    plan = twin_plan.plan(72, 1000, 60, 1.1, 1)
    work = sum(job.nodes * job.run for job in plan.jobs if not job.reservation)
    assert work / (72 * 60 * 60 * twin_plan.SUBMITTED) == pytest.approx(1.1, rel=0.01)


def test_a_log_with_too_few_jobs_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("id,submit,run,nodes\n1,0,10,1\n2,5,10,1\n")
    with pytest.raises(InputError, match=r"log\.csv: 2 jobs, where --jobs wants 3"):
        twin_plan.plan(24, 3, 3, 1.0, 1, log)


def test_records_of_a_real_slurm_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """The recorded mean wait is Start - Eligible, from Submit if Eligible was overwritten by a requeue. A job that a failed node ended
    waits from its first submission to its last start."""
    rows, more = twin.compared(RECORDS, ["easy"])
    waits = []
    failed: dict[str, int] = {}
    with open(RECORDS / "jobs.txt", newline="") as file:
        for row in csv.DictReader(file, delimiter=";"):
            if row["Start"] not in ("Unknown", "None") and row["State"].split()[0] != "PENDING":
                start, submit = int(row["Start"]), int(row["Submit"])
                eligible = submit if row["Eligible"] == "Unknown" else int(row["Eligible"])
                if row["State"] == "NODE_FAIL":
                    failed[row["JobIDRaw"]] = submit
                    continue
                if row["JobIDRaw"] in failed:
                    submit = eligible = failed[row["JobIDRaw"]]
                waits.append(start - (submit if eligible > start else max(eligible, submit)))
    figures = {row.what: row for row in rows if row.figure == "--queue easy"}
    (recorded,) = (row for what, row in figures.items() if what.startswith("mean wait, recorded"))
    assert recorded.what == f"mean wait, recorded ({len(waits)} runs)"
    assert recorded.median == pytest.approx(sum(waits) / len(waits))
    assert len(more["utilisation"]["easy"]) == twin_table.BINS
    assert all(0 <= part <= 100 for pair in more["utilisation"]["easy"] for part in pair)
    assert "1 run that ended because a node failed, joined with" in capsys.readouterr().out


def test_a_replay_of_recorded_starts_meets_every_target() -> None:
    """The import keeps what the measures need: with the starts of the log, nothing is off."""
    rows, _ = twin.compared(RECORDS, ["recorded"])
    judged = [row for row in rows if row.limit is not None]
    assert [row.verdict for row in judged] == ["met"] * 5


def test_the_queue_slurm_is_closer_to_a_real_slurm_than_easy() -> None:
    """With the configuration that the import finds, waits come in the order of the records, and their mean is not far off."""
    rows, _ = twin.compared(RECORDS.with_name("records-of-a-twin-45-minutes"), ["easy", "slurm"])
    found = {(row.figure, row.what): row.median for row in rows}
    rank = {queue: found[f"--queue {queue}", "rank correlation of waits"] for queue in ("easy", "slurm")}
    assert rank["slurm"] > 0.78 > rank["easy"]
    assert found["--queue slurm", "mean wait is off by"] < 30 < found["--queue easy", "mean wait is off by"]


@pytest.mark.parametrize("records", ["an-hour", "with-another-seed", "with-a-third-seed"])
def test_a_replay_of_slurm_meets_its_targets(records: str) -> None:
    """Where seconds matter little, order of waits, starts and use of nodes are what a real Slurm recorded, and so is the mean wait on
    two of three records."""
    rows, _ = twin.compared(RECORDS.with_name(f"records-of-a-twin-{records}"), ["slurm"])
    judged = {row.what: row.verdict for row in rows if row.limit is not None}
    utilisation = f"utilisation is off by, at most, in {twin_table.BINS} parts of the time"
    missed = {what for what, verdict in judged.items() if verdict == "MISSED"}
    assert missed <= ({utilisation, "mean wait is off by"} if records == "an-hour" else {utilisation})
    assert len(judged) == 5


def test_the_records_are_of_the_plan() -> None:
    """What was submitted is what sacct has: users, QOS, partitions, nodes and time limits."""
    plan = json.loads((RECORDS / "plan.json").read_text())
    planned = sorted(
        (job["user"], job["qos"], job["partition"], job["nodes"], job["minutes"]) for job in plan["jobs"]
    )
    last = {}
    with open(RECORDS / "jobs.txt", newline="") as file:
        for row in csv.DictReader(file, delimiter=";"):
            last[row["JobIDRaw"]] = row
    found = sorted(
        (row["User"], row["QOS"], row["Partition"], int(row["NNodes"]), int(row["TimelimitRaw"]))
        for row in last.values()
    )
    assert found == planned


def test_a_shaken_log_differs_by_a_second_in_one_thing() -> None:
    """All submissions come a second later, or each run is a second longer or shorter, or only the turns of schedulers move."""
    jobs = [{"id": "1", "submit": "5", "run": "10"}, {"id": "2", "submit": "6", "run": "1"}]
    config = {"begin": -3, "never_started": [{"id": 3, "submit": 7}]}
    later, runs, turns = (list(each) for each in twin_shaken.shakes(jobs, config, 9).values())
    ((late, its_config),) = later
    assert [job["submit"] for job in late + its_config["never_started"]] == [6, 7, 8]
    assert [job["run"] for job in late] == ["10", "1"] and its_config["begin"] == -3
    assert len(runs) == 9 and all(its_config == config for _, its_config in runs)
    assert {job["run"] for made, _ in runs for job in made} == {9, 11, 1, 2}  # a run takes at least a second
    assert {job["submit"] for made, _ in runs for job in made} == {"5", "6"}
    assert [its_config["begin"] for _, its_config in turns] == list(range(-4, -13, -1))
    assert all(made == jobs for made, _ in turns)


def test_jobs_keep_their_order_and_their_second_if_only_its_part_is_drawn() -> None:
    """Records cut times to whole seconds, so a run was up to a second shorter or longer."""
    jobs = [{"id": "1", "submit": "5", "run": "10"}, {"id": "2", "submit": "5", "run": "10"}]
    jobs.append({"id": "3", "submit": "6", "run": "1"})
    found = [twin_shaken.in_their_seconds(jobs, seed) for seed in range(20)]
    for first, second, third in found:
        assert 5 <= first["submit"] <= second["submit"] < 6 <= third["submit"] < 7
        assert all(9 < job["run"] < 11 for job in (first, second)) and 1 <= third["run"] < 2
    assert len({first["submit"] for first, *_ in found}) == 20
    assert found[3] == twin_shaken.in_their_seconds(jobs, 3)


def test_a_replay_of_the_synthetic_plan_is_the_plan_s_own_record(tmp_path: Path) -> None:
    """The queue slurm repeats its own starts; shaken replays of them are measured, each way with its number of replays."""
    words = ["--synthetic", "--slurmds", "24", "--jobs", "60", "--minutes", "4", "--shaken", "2"]
    (case,) = run.selected(["slurm/twin"])
    given = run.parser_of([case]).parse_args([*words, "--queues", "slurm"])
    rows, _ = twin.synthetic(run.options_of(case, given))
    by_figure: dict[str, list[Row]] = {}
    for row in rows:
        by_figure.setdefault(row.figure, []).append(row)
    own, *shaken = by_figure.values()
    assert [row.verdict for row in own if row.limit is not None] == ["met"] * 5
    assert [len(rows[0].values) for rows in shaken] == [1, 2, 2]
    assert any(row.median not in (0, 1, 100) for rows in shaken for row in rows[2:])
    assert {row.verdict for rows in shaken for row in rows} == {"-"}, "no shaken replay misses a target"


def test_a_run_that_a_failed_node_ended_holds_its_nodes(tmp_path: Path) -> None:
    """Job 1 runs from 0 to 40, is ended, and runs again from 60 to 120. Its wait is that of the last run, its nodes are in use in both."""
    columns = "id,submit,start,run,nodes\n"
    log = tmp_path / "log.csv"
    log.write_text(f"{columns}1,0,0,40,2\n{accounting_workload.RUN_ID + 1},50,60,60,2\n")
    found = twin_table.closeness(twin_table.imported(log), runs((1, 0, 60, 60, 2)), nodes=4, interval=10)
    assert (found.jobs, found.recorded, found.replayed) == (1, 60, 60)
    assert [recorded for recorded, _ in found.utilisation] == [50, 50, 0, 50, 50, 50]
    assert [replayed for _, replayed in found.utilisation] == [0, 0, 0, 50, 50, 50]


def test_a_synthetic_dependency_holds(tmp_path: Path) -> None:
    """A job that depends on another is submitted when that one ends, if it was not submitted later."""
    plan = twin_plan.plan(24, 60, 4, 1.0, 1)
    log, topology = tmp_path / "log.csv", tmp_path / "topology.conf"
    topology.write_text(twin_synthetic.topology(24))
    twin_synthetic.write(plan, log, ("--machine", topology, "--policy", twin.POLICY))
    with open(log, newline="") as file:
        rows = {int(row["id"]): row for row in csv.DictReader(file)}
    depending = [job for job in plan.jobs if job.after]
    for job in depending:
        assert job.after
        other = rows[job.after[1]]
        assert float(rows[job.number]["submit"]) >= float(other["start"]) + float(other["run"])
    assert depending


def test_the_topology_is_that_of_a_real_run() -> None:
    """Leaves and pods as tests/slurm/config.sh writes them."""
    recorded = RECORDS.with_name("records-of-a-twin-45-minutes") / "topology.conf"
    assert twin_synthetic.topology(72) == recorded.read_text()


def test_the_synthetic_year_is_read_without_a_complaint(tmp_path: Path) -> None:
    path = tmp_path / accounting.JOBS
    path.write_text("".join(f"{row}\n" for row in twin_scale.rows(500)))
    jobs = accounting_jobs.read(path)
    assert (len(jobs.runs), jobs.skipped.total(), jobs.notes.total()) == (500, 0, 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "x", "--slurmds", "5"], "at least 24"),
        (["--out", "x", "--minutes", "1"], "at least 2"),
        (["--records", "x", "--jobs", "1"], "at least 2"),
        (["--records", "x", "--shaken", "-1"], "at least 0"),
        ([], "required"),
    ],
)
def test_options_that_cannot_be_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["slurm/twin", *words]) == 2
    assert message in capsys.readouterr().err


def test_records_that_are_not_there_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["slurm/twin", "--records", str(tmp_path)]) == 2
    assert "twin.json" in capsys.readouterr().err


def test_facts_that_are_none_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "twin.json").write_text("{}")
    assert run.main(["slurm/twin", "--records", str(tmp_path)]) == 2
    assert "twin.json: not what a run of the twin writes: 'nodes'" in capsys.readouterr().err


def test_every_recorded_start_of_a_scheduler_has_one_answer(tmp_path: Path) -> None:
    """The counts of each scheduler's answers add up to the starts that sacct says it made."""
    log = tmp_path / "log.csv"
    twin_single.imported(RECORDS, log)
    found = twin_single.counts(log, machine(RECORDS / "topology.conf"), twin.POLICY)
    with open(RECORDS / "jobs.txt", newline="") as file:
        flags = [row["Flags"] for row in csv.DictReader(file, delimiter=";")]
    for flag, by in accounting_jobs.SCHEDULERS.items():
        asked = sum(found[by].answers.get(answer, 0) for answer in twin_single.ANSWERS)
        assert asked == found[by].asked == sum(flag in flags.split(",") for flags in flags) > 0


def test_a_log_that_names_no_schedulers_has_no_single_decisions(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("id,submit,run,nodes,start,hosts\n1,0,10,1,5,twin1\n")
    (tmp_path / "log-slurm.json").write_text('{"epoch": 0}\n')
    assert twin_single.counts(log, machine(RECORDS / "topology.conf"), twin.POLICY) == {}


@pytest.mark.parametrize(
    ("records", "minutes", "load", "seed", "untold"),
    [
        ("records-of-a-twin-an-hour", 60, 1.05, 1, set()),
        ("records-of-a-twin-with-another-seed", 45, 1.05, 2, set()),
        ("records-of-a-twin-with-a-third-seed", 60, 1.0, 3, {24, 40}),
    ],
)
def test_the_import_finds_the_nice_values_that_slurm_was_given(
    records: str, minutes: int, load: float, seed: int, untold: set[int]
) -> None:
    """The plan of a run says with which nice value each job was submitted: the import finds no wrong value, and none for another job."""
    given = {
        number: str(job.nice)
        for number, job in enumerate(twin_plan.plan(72, 1000, minutes, load, seed).jobs, start=1)
        if job.nice and number not in untold
    }
    imported = accounting_workload.read(RECORDS.with_name(records))
    rows = csv.DictReader(io.StringIO(imported.csv))
    assert {int(row["job"]): row["nice"] for row in rows if row["nice"]} == given


@pytest.mark.parametrize("flavour", flavour_plan.NAMES)
def test_a_plan_of_a_flavour_is_the_same_for_a_seed_and_another_for_another(flavour: str) -> None:
    plan = flavour_plan.plan(flavour, 1)
    assert plan == flavour_plan.plan(flavour, 1) != flavour_plan.plan(flavour, 2)
    assert 110 <= len(plan.jobs) <= 160
    assert {job.partition for job in plan.jobs} <= plan.site.partitions.keys()
    assert {job.qos for job in plan.jobs} <= plan.site.qos.keys()
    assert all(1 <= job.nodes <= flavour_plan.NODES and job.run < 60 * job.minutes for job in plan.jobs)


def test_the_bench_has_every_flavour_and_the_command_knows_each() -> None:
    assert tuple(flavour_plan.NAMES) == tuple(flavour_plan.FLAVOURS) == registry.FLAVOURS
    assert known_flavours.FLAVOURS.keys() == flavour_plan.NAMES.keys()


def test_a_mean_wait_is_judged_by_what_slurm_is_off_itself() -> None:
    """Two runs of a plan with mean waits of 100 and 110 s are 10 and 9.1 % apart. Replays are off by 5 and 10 %."""
    decisions = {"main": Decisions({"same": 19, "limit": 1}, 2), "backfill": Decisions({"other nodes": 4}, 0)}
    runs = [flavours.Recorded(100, 105, decisions, ()), flavours.Recorded(110, 99, decisions, ())]
    main, backfill, off, noise = flavours.rows("basic", [runs])
    assert (main.median, backfill.median) == (95, 100)
    assert "of 40, and 4 others" in main.what
    assert off.median == pytest.approx(7.5)
    assert off.limit == noise.median == pytest.approx((10 + 100 / 11) / 2)


def test_shaken_replays_say_how_far_replays_are_off_without_the_chance_of_one() -> None:
    """Slurm's runs of the plan have mean waits of 100 and 120 s, 110 in the mean; shaken replays 121, so 10 % more.
    Those of one record are 20 s apart, which is a fifth of 100 or a sixth of 120, or 10 s apart.
    """
    decisions = {"main": Decisions({"same": 1}, 0), "backfill": Decisions({"same": 1}, 0)}
    runs = [
        flavours.Recorded(100, 150, decisions, (100, 120)),
        flavours.Recorded(120, 80, decisions, (127, 137)),
    ]
    *_, off, itself = flavours.rows("basic", [runs])
    assert off.median == pytest.approx(10)
    assert itself.median == pytest.approx((20 + 100 / 6 + 1000 / 127 + 1000 / 137) / 4)
