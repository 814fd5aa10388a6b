"""Logs that were read wrongly, checked as fit though a replay refused them, or shortened without a word: a rule for each kind."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from topolane import texts
from topolane._engine import InputError
from topolane.cli import cli
from topolane.slurm import accounting_workload

DATA = Path(__file__).parent / "data"
TREE = DATA / "tree.toml"


class Said:
    """What a command said, and its exit code."""

    def __init__(self, *arguments: object) -> None:
        done = CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)
        if done.exception is not None and not isinstance(done.exception, InputError):
            raise done.exception
        self.code = 2 if done.exception else done.return_value or 0
        self.error = str(done.exception or "")
        self.out, self.notes = done.stdout, done.stderr


@pytest.mark.parametrize("to", ["swf", "csv"])
def test_a_conversion_without_a_machine_keeps_jobs_of_any_width(to):
    said = Said("workload", "convert", DATA / "wide-jobs.swf", "--to", to)
    rows = [line for line in said.out.splitlines() if line[0].isdigit()]
    assert (len(rows), said.notes) == (3, "")


def test_a_conversion_for_a_machine_counts_wider_jobs():
    said = Said("workload", "convert", DATA / "wide-jobs.swf", "--to", "csv", "--machine", "cab")
    assert len(said.out.splitlines()) == 2
    assert said.notes == "note: skipped: 2 wider than the machine\n"


def test_a_conversion_counts_what_it_leaves_out_by_reason():
    """As `simulate` does, and with the same words."""
    said = Said("workload", "convert", DATA / "unfinished.sacct.txt", "--to", "csv")
    lines = [f"skipped: {line}" for line in ("2 never started", "1 step of a job", "1 still running")]
    assert sorted(said.notes.splitlines()) == sorted(f"note: {line}" for line in lines)
    run = Said("simulate", "--machine", TREE, "--trace", DATA / "unfinished.sacct.txt")
    assert set(lines) <= set(run.out.splitlines())


def test_a_load_needs_a_machine():
    said = Said("workload", "convert", DATA / "wide-jobs.swf", "--load", "0.5")
    assert (said.code, said.error) == (2, "a load is one of a machine: name it with --machine")


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("same-number-twice.sacct.txt", "job 70001 appears a second time"),
        ("semicolons.sacct.txt", "semicolons between the fields, where sacct -P writes |"),
        ("tabs.sacct.txt", "tabs between the fields, where sacct -P writes |"),
        ("no-header.sacct.txt", "no header line: the first line is a job"),
        ("torque.txt", "accounting log of PBS"),
        ("batsim-workload.json", "workload of Batsim in JSON"),
        ("no-part-of-a-gpu.openb.csv", "gpu_milli 0 of num_gpu 1"),
    ],
)
def test_check_and_replay_refuse_the_same_logs_in_one_sentence(file, says):
    """The sentence says what the file is or lacks, and names it."""
    checked = Said("workload", "check", DATA / file)
    replayed = Said("simulate", "--machine", TREE, "--trace", DATA / file)
    assert checked.code == replayed.code == 2
    assert checked.error == replayed.error
    assert file in checked.error and says in checked.error


def test_check_ends_with_1_if_something_is_wrong_and_0_otherwise():
    assert Said("workload", "check", DATA / "commas.swf").code == 0
    for more in ([], ["--json"]):
        said = Said("workload", "check", DATA / "autumn.sacct.txt", *more)
        assert said.code == 1 and "submission is moved to the start" in said.out


def test_a_job_that_started_before_its_submission_counts_as_submitted_then(tmp_path):
    """The clock went back from 3 to 2 o'clock: job 11 starts at 2:15, half an hour after job 12 was submitted."""
    trace = ("--machine", TREE, "--trace", DATA / "autumn.sacct.txt", "--queue", "recorded")
    said = Said("simulate", *trace, "--out", tmp_path / "out", "--no-report")
    assert "1 job started before submission: the clock jumped; submission is moved to the start" in said.out
    rows = csv.DictReader(io.StringIO((tmp_path / "out" / "jobs.csv").read_text()))
    assert {row["job_id"]: float(row["starting_time"]) for row in rows} == {"11": 1800.0, "12": 0.0}


def test_a_start_of_minus_one_is_no_start():
    said = Said("workload", "convert", DATA / "not-started.batsim.csv", "--to", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [row["start"] for row in rows] == ["", "9"]


def test_numbers_with_commas_in_a_header_are_numbers():
    said = Said("workload", "convert", DATA / "commas.swf", "--to", "csv")
    assert [row["nodes"] for row in csv.DictReader(io.StringIO(said.out))] == ["1"]


def test_assumed_numbers_are_printed_as_assumed(tmp_path):
    """Cores per node that no header gives, and walltimes that jobs do not have."""
    log = tmp_path / "log.swf"
    log.write_text("1 0 0 10 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n")
    said = Said("simulate", "--machine", TREE, "--trace", log)
    assert "1 core per node is assumed" in said.out
    assert "1 job without a walltime: the run time is assumed for each" in said.out
    given = Said(
        "simulate", "--machine", TREE, "--trace", log, "--cores-per-node", 4, "--default-walltime", 60
    )
    assert "1 core per node" not in given.out and "60 s is assumed for each" in given.out
    assert "1 core per node is assumed" in Said("workload", "convert", log).notes
    assert "1 core per node is assumed" in Said("workload", "check", log).out


def log_of(nodes):
    return f"JobID|Submit|Start|ElapsedRaw|NNodes|NodeList\n1|1|1|5|2|{nodes}\n2|2|6|5|1|n1\n"


def test_a_machine_without_any_node_of_the_log_is_refused(tmp_path):
    """--drop-hosts replays the jobs by their numbers of nodes; some missing nodes are counted."""
    log = tmp_path / "log.txt"
    log.write_text(log_of("x[1-2]").replace("|n1", "|x1"))
    trace = ("simulate", "--machine", TREE, "--trace", log)
    said = Said(*trace)
    assert said.code == 2 and "machine tree has none of the 2 nodes that the log names" in said.error
    assert Said(*trace, "--policy", "recorded").code == 2
    assert Said(*trace, "--drop-hosts").code == 0
    log.write_text(log_of("n[4-5]"))
    assert "machine tree does not have 1 of the 3 nodes that the log names" in Said(*trace).out
    log.write_text(log_of("n[1-2]"))
    assert "that the log names" not in Said(*trace).out


BAD = "a\u202eb\x00c\x1b[2Jd\u061ce"
COLUMNS = "JobIDRaw;JobID;Submit;Eligible;Start;End;ElapsedRaw;State;NNodes;Partition;QOS;Account;User;Priority;Reason;NodeList"


def dump(directory, rows, **files):
    """A directory as the commands of the import write it."""
    directory.mkdir()
    lines = [COLUMNS]
    for row in rows:
        lines.append(";".join(str(row.get(name, "")) for name in COLUMNS.split(";")))
    (directory / "jobs.txt").write_text("\n".join(lines) + "\n")
    for name, text in files.items():
        (directory / f"{name}.txt").write_text(text)
    return directory


def job(number, submit, *, eligible=None, start=None, priority=1, **more):
    eligible = submit if eligible is None else eligible
    start = eligible + 1 if start is None else start
    times = {"Submit": submit, "Eligible": eligible, "Start": start, "End": start + 60, "ElapsedRaw": 60}
    return {
        "JobIDRaw": number,
        "JobID": number,
        "State": "COMPLETED",
        "NNodes": 1,
        "NodeList": "n1",
        "Priority": priority,
        **times,
        **more,
    }


def is_harmless(text):
    return all(texts.is_printable(letter) for letter in text if letter not in "\n\r")


def test_no_control_character_passes_through_an_import(tmp_path):
    """Names that users choose are escaped where they enter: in the log, the configuration, on the terminal and in tables."""
    rows = [job(1, 1000, User=BAD, Account=BAD, Partition=BAD, QOS=BAD, Reason=BAD, NodeList="n1")]
    assoc = f"Cluster|Account|User\n|{BAD}|\n|{BAD}|{BAD}\n"
    directory = dump(tmp_path / "dump", rows, assoc=assoc, qos=f"Name|Priority\n{BAD}|1\n")
    said = Said("workload", "import", directory, "--out", tmp_path / "log.csv")
    assert said.code == 0 and is_harmless(said.out)
    checked = Said("workload", "check", directory)
    assert is_harmless(checked.out)
    log = (tmp_path / "log.csv").read_text()
    assert is_harmless(log) and "\\u202e" in log
    assert is_harmless((tmp_path / "log-slurm.json").read_text())
    run = Said(
        *("simulate", "--machine", TREE, "--trace", tmp_path / "log.csv", "--out", tmp_path / "out"),
        *("--queue", "slurm", "--no-report"),
    )
    assert run.code == 0, run.error
    assert is_harmless(run.out)
    assert all(is_harmless(file.read_text()) for file in (tmp_path / "out").rglob("*.csv"))


def order_of(imported):
    """The jobs in the order of their places, and the priorities in this order."""
    rows = sorted(csv.DictReader(io.StringIO(imported.csv)), key=lambda row: float(row["queued"]))
    return [int(row["id"]) for row in rows]


BASIC = "SelectType = select/linear\nPriorityType = priority/basic\n"


def test_priority_basic_orders_by_the_recorded_number(tmp_path):
    """set_job_prio gives the next lower number at submission, and again when a hold is released or the job is requeued. Job 2 has a
    dependency and keeps its number. Job 3 was held until 400. Job 4 has a nice value of 2."""
    rows = [
        job(1, 100, priority=1000),
        job(2, 110, eligible=500, priority=999),
        job(3, 120, eligible=400, priority=995),
        job(4, 130, priority=996),
        job(5, 140, priority=997),
        job(6, 300, priority=996),
        job(7, 450, priority=994),
    ]
    imported = accounting_workload.read(dump(tmp_path / "dump", rows, config=BASIC))
    order = order_of(imported)
    assert order[:3] == [1, 2, 5] and set(order[3:5]) == {4, 6} and order[5:] == [3, 7]


def test_in_a_second_jobs_go_by_their_number_and_tasks_by_that_of_their_array(tmp_path):
    """sort_job_queue2: the second of the submission, then the job number, then the task. The array 2 got the numbers 2, 4 and 5."""
    rows = [
        job(1, 100),
        job(3, 100),
        job(4, 100) | {"JobID": "2_1"},
        job(5, 100) | {"JobID": "2_2"},
        job(2, 100) | {"JobID": "2_3"},
        job(6, 99),
    ]
    multifactor = BASIC.replace("basic", "multifactor")
    order = order_of(accounting_workload.read(dump(tmp_path / "dump", rows, config=multifactor)))
    assert order == [6, 1, 4, 5, 2, 3]


def test_other_priorities_leave_ties_to_the_submission(tmp_path):
    """Under priority/multifactor the recorded priority is no number of a place."""
    rows = [job(1, 100, priority=5), job(2, 110, eligible=500, priority=9), job(3, 120, priority=7)]
    multifactor = BASIC.replace("basic", "multifactor")
    assert order_of(accounting_workload.read(dump(tmp_path / "dump", rows, config=multifactor))) == [1, 2, 3]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_recorded_numbers_have_the_order_of_the_places(tmp_path_factory, data):
    """Whatever numbers the records have, no job with a higher number stands behind one with a lower number."""
    numbers = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=12))
    times = data.draw(st.lists(st.integers(100, 110), min_size=len(numbers), max_size=len(numbers)))
    rows = [job(n, submit, priority=p) for n, (submit, p) in enumerate(zip(times, numbers), start=1)]
    folder = tmp_path_factory.mktemp("numbers")
    imported = accounting_workload.read(dump(folder / "dump", rows, config=BASIC))
    found = sorted(csv.DictReader(io.StringIO(imported.csv)), key=lambda row: float(row["queued"]))
    priorities = [int(row["priority"]) for row in found]
    assert priorities == sorted(priorities, reverse=True)


def test_the_queue_slurm_starts_jobs_in_the_order_of_their_submission(tmp_path):
    """Job 2 waits for job 1, and was submitted before job 3; both want the whole machine, and job 3 was eligible earlier."""
    rows = [
        job(1, 100, start=101, priority=9, NNodes=4, NodeList="n[1-4]"),
        job(2, 110, eligible=161, start=162, priority=8, NNodes=4, NodeList="n[1-4]"),
        job(3, 120, start=230, priority=7, NNodes=4, NodeList="n[1-4]"),
    ]
    rows[0] |= {"End": 301, "ElapsedRaw": 200}
    dump(tmp_path / "dump", rows, config=BASIC)
    assert Said("workload", "import", tmp_path / "dump", "--out", tmp_path / "log.csv").code == 0
    run = (
        *("simulate", "--machine", TREE, "--trace", tmp_path / "log.csv", "--queue", "slurm"),
        *("--out", tmp_path / "out", "--no-report"),
    )
    assert Said(*run).code == 0
    table = csv.DictReader(io.StringIO((tmp_path / "out" / "jobs.csv").read_text()))
    starts = {int(row["job_id"]): float(row["starting_time"]) for row in table}
    assert starts[1] < starts[2] < starts[3]


CELL = st.sampled_from(["", "Unknown", "None", "100", "160", "2024-03-01T08:00:00", "-5", "x", "9" * 12])
CSV_COLUMNS = ("id", "submit", "run", "nodes", "start")
NUMBER = st.sampled_from(["1", "2", "3", "3_1", "3_[1-2]", "2.batch", "3+0", "4", "x"])


@st.composite
def sacct_logs(draw):
    """What sacct may print, and what people make of it: another delimiter, no header, numbers that come twice."""
    names = ["JobIDRaw", "JobID", "Submit", "Start", "End", "ElapsedRaw", "NNodes", "State", "NodeList"]
    delimiter = draw(st.sampled_from(["|", "|", "|", ";", "\t"]))
    rows = [names] if draw(st.booleans()) or draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 4))):
        times = [draw(CELL) if draw(st.integers(0, 5)) == 0 else each for each in ("100", "110", "170", "60")]
        own = draw(NUMBER) if draw(st.booleans()) else str(10 + number)
        state = draw(st.sampled_from(["COMPLETED", "RUNNING", "PENDING", "CANCELLED by 0", "TIMEOUT"]))
        nodes = draw(st.sampled_from(["0", "1", "2", "4", "9", "x"]))
        hosts = draw(st.sampled_from(["", "n1", "n[1-2]", "None assigned", "n[1", "n[2-3]"]))
        rows.append([own, own, *times, nodes, state, hosts])
    return "log.txt", "".join(delimiter.join(row) + "\n" for row in rows)


@st.composite
def other_logs(draw):
    """SWF and CSV, with values that may be wrong."""
    time = st.sampled_from(["0", "5", "60", "-1", "1e18", "x", "1e12", "700000000"])
    width = st.sampled_from(["0", "5", "60", "-1", "x"])
    numbers = [draw(st.integers(1, 4)) for _ in range(draw(st.integers(0, 3)))]
    if draw(st.booleans()):
        rows = [(number, draw(time), draw(time), draw(width), draw(time)) for number in numbers]
        return "log.csv", "".join(f"{','.join(map(str, row))}\n" for row in [CSV_COLUMNS, *rows])
    rows = [(number, draw(time), draw(time), draw(time), draw(width), *["-1"] * 13) for number in numbers]
    return "log.swf", "; MaxProcs: 1,024\n" + "".join(f"{' '.join(map(str, row))}\n" for row in rows)


@given(st.one_of(sacct_logs(), other_logs()))
@settings(max_examples=150, deadline=None)
def test_check_says_that_a_log_can_be_replayed_if_and_only_if_a_replay_takes_it(tmp_path_factory, log):
    name, text = log
    file = tmp_path_factory.mktemp("log") / name
    file.write_text(text)
    checked = Said("workload", "check", file)
    replayed = Said("simulate", "--machine", "cab", "--trace", file, "--drop-hosts")
    assert (checked.code == 2) == (replayed.code == 2), (checked.error, replayed.error)
    if checked.code != 2:
        assert "that can be replayed" in checked.out


def test_json_of_a_check_counts_the_runs_that_a_replay_takes():
    found = json.loads(Said("workload", "check", DATA / "unfinished.sacct.txt", "--json").out)
    assert found["runs"] == 1


@pytest.mark.parametrize(("given", "is_assumed"), [("", True), ("[node]\nnic-bandwidth = 12.5e9\n", False)])
def test_a_default_speed_of_adapters_is_printed_as_assumed(tmp_path, given, is_assumed):
    """An adapter of 4 GB/s by default is slower than its cable, which is given."""
    machine = tmp_path / "fast.toml"
    machine.write_text(f'name = "fast"\n{given}[[site]]\nname = "a"\nchildren = [2, 2]\nbandwidth = 12.5e9\n')
    notes = Said("machine", "show", machine).notes
    assert ("adapters of 4 GB/s are assumed" in notes) == is_assumed


def test_cables_that_the_machine_file_does_not_give_are_printed_as_assumed(tmp_path):
    machine = tmp_path / "topology.conf"
    machine.write_text("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=c Switches=a,b\n")
    run = ("simulate", "--machine", machine, "--trace", DATA / "not-started.batsim.csv")
    assert "one of 4 GB/s is assumed" in Said(*run, "--network", "max-min").notes
    assert Said(*run).notes == ""
