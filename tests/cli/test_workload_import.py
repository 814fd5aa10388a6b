"""What Slurm's accounting knows becomes one workload: made by hand, a test for each rule. tests/slurm/test_import_live.py has a real Slurm."""

from __future__ import annotations

import csv
import io
import json
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from topolane import sources
from topolane._engine import InputError
from topolane.slurm import accounting, accounting_check, accounting_jobs, accounting_workload
from topolane.slurm.accounting_jobs import AccountedRun, Share

ZERO = 1_795_000_000
ROW = {
    **dict.fromkeys(accounting.FIELDS, ""),
    "JobIDRaw": "10",
    "JobID": "10",
    "Cluster": "hex",
    "State": "COMPLETED",
    "TimelimitRaw": "60",
    "Submit": ZERO,
    "Eligible": ZERO,
    "Start": ZERO + 100,
    "End": ZERO + 700,
    "ElapsedRaw": "600",
    "Suspended": "00:00:00",
    "NNodes": "2",
    "NCPUS": "32",
    "Partition": "batch",
    "QOS": "normal",
    "Account": "physics",
    "User": "alice",
    "Priority": "1000",
    "Restarts": "0",
    "NodeList": "n[1-2]",
    "ReqTRES": "cpu=2,mem=1G,node=2",
    "AllocTRES": "billing=32,cpu=32,mem=64G,node=2",
}


def table(*rows, header=accounting.FIELDS, delimiter=";"):
    """What sacct prints: rows are changes of ROW."""
    cells = [[str((ROW | row)[name]) for name in header] for row in rows]
    return "".join(delimiter.join(line) + "\n" for line in [list(header), *cells])


def at(start, end=None, **others):
    """A run from and until these seconds, submitted at once."""
    times = {"Submit": ZERO + start, "Eligible": ZERO + start, "Start": ZERO + start}
    end = start + 10 if end is None else end
    return times | {"End": ZERO + end, "ElapsedRaw": str(max(0, end - start))} | others


@pytest.fixture
def dump(tmp_path):
    """Writes a directory of files."""

    def dump(jobs, **others):
        (tmp_path / "jobs.txt").write_text(jobs)
        for name, text in others.items():
            (tmp_path / f"{name}.txt").write_text(text)
        return tmp_path

    return dump


def rows_of(imported):
    return list(csv.DictReader(io.StringIO(imported.csv)))


def says_once(imported, sentence):
    """Whether one line, and no more, says this."""
    return [line for line in imported.notes if sentence in line] == [sentence]


def test_a_job_keeps_its_times_and_its_owner(dump):
    imported = accounting_workload.read(dump(table({"Eligible": ZERO + 40})))
    assert rows_of(imported) == [
        {
            "id": "10",
            "submit": "0",
            "run": "600",
            "walltime": "3600",
            "nodes": "2",
            "start": "60",
            "hosts": "n[1-2]",
            "job": "10",
            "submitted": "-40",
            "state": "COMPLETED",
            "partition": "batch",
            "user": "alice",
            "account": "physics",
            "qos": "normal",
            "reservation": "",
            "requested_processors": "2",
            "nice": "",
            "licenses": "",
            "requeue": "",
            "queued": "-40",
            "priority": "1000",
            "reason": "",
            "earlier_runs": "",
            "scheduler": "",
        }
    ]
    assert (imported.jobs, imported.zero) == (1, ZERO + 40)
    assert says_once(
        imported,
        "1 run had to wait for a hold, a dependency or a begin time first: the wait begins at Eligible",
    )


def test_nodes_are_whole_where_slurm_says_so(dump):
    directory = dump(
        table({}, at(5, JobIDRaw=11, Partition="whole")),
        config="ClusterName = hex\nSelectType = select/cons_tres\n",
        partitions="PartitionName=batch OverSubscribe=NO\nPartitionName=whole OverSubscribe=EXCLUSIVE\n",
    )
    first, second = rows_of(accounting_workload.read(directory))
    assert (first["cores"], first["memory"]) == ("16", str(32 << 30))
    assert (second["cores"], second["memory"]) == ("", "")
    assert "cores" not in rows_of(accounting_workload.read(directory, shared=False))[0]
    assert rows_of(accounting_workload.read(directory, shared=True))[1]["cores"] == "16"
    (directory / "config.txt").write_text("SelectType = select/linear\n")
    assert "cores" not in rows_of(accounting_workload.read(directory))[0]
    (directory / "partitions.txt").unlink()
    imported = accounting_workload.read(directory)
    assert "cores" not in rows_of(imported)[0]
    assert any(line.startswith("no partitions.txt: ") for line in imported.notes)


def test_generic_resources_are_an_even_part_of_each_node(dump, tmp_path):
    tres = "cpu=3,gres/gpu=4,gres/gpu:h100=4,gres/nic=1,mem=62.50G,node=2"
    imported = accounting_workload.read(dump(table({"AllocTRES": tres})), shared=True)
    (row,) = rows_of(imported)
    assert (row["cores"], row["memory"]) == ("2", str(125 << 28))
    assert (row["resource:gpu"], row["resource:gpu:h100"], row["resource:nic"]) == ("2", "2", "1")
    (tmp_path / "log.csv").write_text(imported.csv)
    assert len(sources.workload(tmp_path / "log.csv")) == 1


def test_a_type_counts_only_if_the_job_asked_for_it(dump):
    """The job got h100s on its two nodes and would have taken any GPUs."""
    got, asked = "cpu=2,gres/gpu=4,gres/gpu:h100=4,node=2", "cpu=2,gres/gpu=4,node=2"
    (row,) = rows_of(accounting_workload.read(dump(table({"AllocTRES": got, "ReqTRES": asked})), shared=True))
    assert row["resource:gpu"] == "2" and "resource:gpu:h100" not in row
    (row,) = rows_of(accounting_workload.read(dump(table({"AllocTRES": got, "ReqTRES": got})), shared=True))
    assert (row["resource:gpu"], row["resource:gpu:h100"]) == ("2", "2")


def test_every_run_of_a_requeued_job_is_a_job(dump):
    # Slurm writes the eligible time of the second run into the row of the first.
    first = at(0, 50, State="REQUEUED", Eligible=ZERO + 170, Restarts=0)
    second = at(60, 90, Eligible=ZERO + 170, Start=ZERO + 200, End=ZERO + 260, ElapsedRaw=60, Restarts=1)
    imported = accounting_workload.read(dump(table(first, second)))
    found = [(row["id"], row["submit"], row["start"], row["run"], row["state"]) for row in rows_of(imported)]
    assert found == [("10", "0", "0", "50", "REQUEUED"), ("10000000010", "170", "200", "60", "COMPLETED")]
    assert says_once(imported, "1 further run of requeued jobs: each is a job")
    assert not any("missing" in line for line in imported.notes)


def test_runs_that_are_missing_are_counted(dump):
    imported = accounting_workload.read(dump(table({"Restarts": "3"}, at(900, Restarts=3))))
    assert says_once(
        imported,
        "2 runs missing, of jobs that ran several times: purged, too early, or sacct without --duplicates",
    )


def test_arrays_and_heterogeneous_jobs_are_jobs(dump):
    jobs = table(
        at(0, JobIDRaw=12, JobID="10_1"),
        at(0, JobIDRaw=10, JobID="10_2"),
        at(0, JobIDRaw=13, JobID="13+0"),
        at(0, JobIDRaw=14, JobID="13+1"),
    )
    imported = accounting_workload.read(dump(jobs))
    assert [row["id"] for row in rows_of(imported)] == ["12", "10", "13", "14"]
    assert says_once(imported, "2 tasks of 1 array: each task is a job")
    assert says_once(
        imported, "2 components of 1 heterogeneous job: each component is a job, which may start alone"
    )


SKIPPED = [
    ({"Start": "Unknown", "End": "Unknown", "State": "PENDING"}, "never started"),
    ({"NodeList": "None assigned", "State": "CANCELLED by 1001"}, "never started"),
    ({"End": "Unknown", "State": "RUNNING"}, "still running"),
    (
        {"End": "Unknown", "State": "COMPLETED"},
        "without an end, though the state says that there was one",
    ),
    (
        {"End": "Unknown", "State": "RUNNING", "TimelimitRaw": "1"},
        "without an end, and past the time limit: see sacctmgr show runawayjobs",
    ),
    ({"End": ZERO + 99}, "ended before the start: the clock jumped"),
    ({"NNodes": 0}, "ran on 0 nodes"),
    ({"NNodes": 0, "End": ZERO + 100}, "never started"),
    ({"Submit": 1}, "over ten years before or after the other runs: the clock jumped"),
    (
        {"Start": ZERO * 50, "End": ZERO * 50 + 5},
        "over ten years before or after the other runs: the clock jumped",
    ),
    ({"Submit": "Unknown"}, "without a time of submission: a purge has cut them off"),
    ({"JobIDRaw": "10.batch", "JobID": "10.batch"}, "steps of jobs"),
]


@pytest.mark.parametrize(
    ("row", "reason"), SKIPPED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_rows_that_are_no_run_are_counted_by_reason(dump, row, reason):
    """No row is dropped silently: jobs and counts add up to the rows."""
    imported = accounting_workload.read(dump(table(row, at(5000, JobIDRaw=20), at(6000, JobIDRaw=21))))
    assert [job["id"] for job in rows_of(imported)] == ["20", "21"]
    assert says_once(imported, f"skipped: 1 {reason}")
    assert sum(line.startswith("skipped: ") for line in imported.notes) == 1


def test_runs_that_waited_before_the_records_begin_are_reported(dump):
    """sacct leaves out what ended before the first day, so a replay cannot know what such a run waited for."""
    day = 24 * 3600
    waited = {"Submit": ZERO - 2 * day, "Eligible": ZERO - 2 * day, "Start": ZERO, "End": ZERO + 900}
    jobs = table({"JobIDRaw": 9, **waited, "ElapsedRaw": "900"}, at(0, 600), at(50, JobIDRaw=11))
    line = "1 run waited from over a day before the first run here ended: if earlier runs are missing, a replay starts such a run too early"
    directory = dump(jobs)
    assert says_once(accounting_workload.read(directory), line)
    assert line in map(str, accounting_check.of_directory(directory).findings)
    began = jobs.replace(f";{ZERO};{ZERO + 900};", f";{ZERO - 2 * day + 60};{ZERO + 900};")
    assert began != jobs
    assert not says_once(accounting_workload.read(dump(began)), line)


def test_a_second_export_of_the_same_time_counts_once(dump):
    imported = accounting_workload.read(dump(table({}, {"JobIDRaw": 11}) + table({})))
    assert sorted(row["id"] for row in rows_of(imported)) == ["10", "11"]
    assert says_once(imported, "skipped: 1 a second row of the same run")


CHANGED = [
    (
        {"Submit": ZERO + 300, "Eligible": ZERO + 300},
        ("0", "0", "600"),
        "1 run started before submission: the clock jumped; submission is moved to the start",
    ),
    (
        {"Eligible": ZERO + 300},
        ("0", "100", "600"),
        "1 run started before Eligible: the wait begins at submission",
    ),
    (
        {"ElapsedRaw": 4200},
        ("0", "100", "4200"),
        "1 run whose End - Start is not the run time: the clock jumped; ElapsedRaw is used",
    ),
]


@pytest.mark.parametrize(("row", "times", "sentence"), CHANGED)
def test_clocks_that_jump_are_reported(dump, row, times, sentence):
    imported = accounting_workload.read(dump(table(row)))
    (job,) = rows_of(imported)
    assert (job["submit"], job["start"], job["run"]) == times
    assert says_once(imported, sentence)


def test_a_suspended_job_holds_its_nodes(dump):
    """Slurm gives the time back: the walltime is later too, and a replay does not end the job at the old one."""
    imported = accounting_workload.read(
        dump(table({"ElapsedRaw": 300, "Suspended": "00:05:00", "TimelimitRaw": "6"}))
    )
    assert [(row["run"], row["walltime"]) for row in rows_of(imported)] == [("600", "660")]
    assert not any("clock" in line or "walltime" in line for line in imported.notes)


def test_steps_without_their_job_are_what_a_purge_leaves(dump):
    imported = accounting_workload.read(dump(table({}, {"JobIDRaw": "10.0"}, {"JobIDRaw": "9.0"})))
    assert says_once(imported, "1 run missing, of which only steps are there: a purge has cut them off")


def test_accounts_and_qos_that_are_gone_are_counted(dump):
    directory = dump(
        table({}, {"JobIDRaw": 11, "Account": "old"}, {"JobIDRaw": 12, "User": "bob", "QOS": "former"}),
        assoc="Cluster|Account|User|Partition\nhex|physics||\nhex|physics|alice|\nother|old||\n",
        qos="Name|Priority\nnormal|0\n",
    )
    imported = accounting_workload.read(directory)
    assert says_once(imported, "1 run of an account that is gone")
    assert says_once(imported, "1 run of a user who is gone from the account")
    assert says_once(imported, "1 run with a QOS that was deleted or renamed")


def test_nodes_that_were_down_are_failures(dump, tmp_path, topolane):
    events = [
        "Cluster|NodeName|TimeStart|TimeEnd|State",
        f"hex||{ZERO}|Unknown|",
        f"hex|n3|{ZERO + 50}|{ZERO + 90}|DOWN*+DRAIN",
        f"hex|n1|{ZERO + 60}|Unknown|DOWN",
        f"hex|n2|{ZERO + 60}|Unknown|DRAIN",
        f"hex|n4|{ZERO - 90}|{ZERO - 60}|DOWN",
        f"other|n4|{ZERO + 60}|Unknown|DOWN",
        "",
    ]
    dump(table({}), events="\n".join(events))
    printed = topolane("workload", "import", tmp_path, "--out", "log.csv")
    assert (tmp_path / "log-failures.csv").read_text() == "node,from,until\nn3,50,90\nn1,60,\n"
    assert "\nnodes that were down: log-failures.csv\n" in printed
    assert (
        "\n1 time that a node was drained or in maintenance: jobs on it run on, and only the queue slurm starts no others there\n"
        in printed
    )
    config = json.loads((tmp_path / "log-slurm.json").read_text())
    found = [(row["nodes"], row["ends_jobs"]) for row in config["out_of_service"]]
    assert found == [("n3", True), ("n1", True), ("n2", False)]
    assert "\nsecond 0 is 2026-11-18T11:06:40 UTC\n" in printed


def test_what_is_written_is_compared(dump, tmp_path, topolane):
    dump(table({}, at(10, 400, JobIDRaw=11)))
    topolane("workload", "import", tmp_path, "--out", "log.csv")
    done = topolane.run(
        *("compare", "--machine", "fat-tree(radix=4)", "--trace", "log.csv", "--policies", "first-fit"),
        *("--scenarios", "none", "--no-report", "--drop-hosts"),
    )
    assert done.returncode == 0, done.stderr
    assert "2 jobs" in done.stdout


def test_a_run_that_started_on_reserved_nodes_is_in_the_reservation(dump):
    """No other job may start there. Runs before, after and only in part on its nodes are not in it."""
    runs = [at(5), at(20), at(25, NodeList="n[2-3]"), at(60)]
    rows = table(*({"JobIDRaw": number, "JobID": number} | run for number, run in enumerate(runs, start=1)))
    kept = f"Cluster|Name|TimeStart|TimeEnd|NodeName\nhex|course|{ZERO + 20}|{ZERO + 60}|n[1-2]\n"
    imported = accounting_workload.read(dump(rows, reservations=kept))
    assert [row["reservation"] for row in rows_of(imported)] == ["", "course", "", ""]
    assert says_once(imported, "1 run on the nodes of a reservation, which accounting does not name: in it")


def test_runs_of_jobs_that_became_one_are_kept(dump):
    """All runs of the job, with the schedulers that started them."""
    first = at(0, 50, State="NODE_FAIL", NodeList="n[1-2]", Flags="SchedMain,StartReceived")
    second = at(60, 90, Restarts=1, Submit=ZERO + 50, Flags="SchedBackfill")
    down = f"Cluster|NodeName|TimeStart|TimeEnd|State\nhex|n1|{ZERO + 50}|{ZERO + 55}|DOWN*\n"
    imported = accounting_workload.read(dump(table(first, second, at(5, JobIDRaw=11)), events=down))
    runs = list(csv.DictReader(io.StringIO(imported.runs)))
    assert [(row["start"], row["scheduler"]) for row in runs] == [("0", "main"), ("60", "backfill")]
    assert [row["job"] for row in rows_of(imported) if row["earlier_runs"]] == ["10"]
    assert accounting_workload.read(dump(table({}))).runs is None


def test_reservations_are_counted(dump):
    """Only those that kept nodes while the jobs were there."""
    directory = dump(
        table({"Reservation": "maint"}),
        reservations=f"Cluster|Name|TimeStart|TimeEnd|NodeName\nhex|maint|{ZERO}|{ZERO + 60}|n1\n"
        f"hex|old|{ZERO - 60}|{ZERO - 9}|n1\nhex|licences|{ZERO}|{ZERO + 60}|\n",
    )
    imported = accounting_workload.read(directory)
    assert says_once(imported, "1 run in a reservation, which only the queue slurm knows")
    assert says_once(
        imported,
        "1 reservation kept nodes or licences from other jobs: all queues but slurm give these to every job",
    )


def test_anonymous_users_and_accounts_are_numbers(dump, tmp_path, topolane):
    dump(
        table(
            {"QOS": "physics-long", "Partition": "alice"},
            at(200, JobIDRaw=11, User="bob", Account="physics", State="CANCELLED by 4711"),
            at(300, JobIDRaw=12, Account="chem"),
        )
    )
    printed = topolane("workload", "import", tmp_path, "--out", "log.csv", "--anonymize")
    text = (tmp_path / "log.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["user"], row["account"]) for row in rows] == [("1", "1"), ("2", "1"), ("1", "2")]
    assert (rows[0]["qos"], rows[0]["partition"]) == ("1-long", "1")
    for name in ("alice", "bob", "physics", "chem", "4711"):
        assert name not in text
        assert name not in printed


def test_the_configuration_of_the_queue_slurm_is_written(dump, tmp_path, topolane):
    """Weights, parameters, partitions, QOS, shares, reservations, nodes out of service and jobs that never started."""
    dump(
        table(
            {"ReqTRES": "cpu=3,node=2"}, at(5, JobIDRaw=11, Start="Unknown", End=ZERO + 50, State="CANCELLED")
        ),
        config="SelectType = select/linear\nPriorityType = priority/multifactor\nPriorityWeightAge = 7\n"
        "PriorityMaxAge = 1-00:00:10\nSchedulerParameters = bf_interval=20,bf_window=10\nPriorityWeightAssoc = 9\n"
        f"BOOT_TIME = {ZERO - 9}\n",
        partitions="PartitionName=batch Nodes=n[1-4] PriorityTier=3 PriorityJobFactor=2 TotalNodes=4 TotalCPUs=8\n",
        qos="Name|Priority|GrpTRES|MaxJobsPU\nnormal|5|cpu=9,node=2|3\n",
        assoc="Cluster|Account|User|Share|MaxJobs\nhex|root||1|\nhex|physics||8|\nhex|physics|alice|parent|4\n",
        reservations=f"Cluster|Name|TimeStart|TimeEnd|NodeName\nhex|r|{ZERO + 1}|{ZERO + 2}|n1\n",
        events=f"Cluster|NodeName|TimeStart|TimeEnd|State\nhex|n2|{ZERO + 1}|Unknown|DRAIN\n",
    )
    printed = topolane("workload", "import", tmp_path, "--out", "log.csv")
    assert "PriorityWeightAssoc is '9', which the queue slurm does not know" in printed
    config = json.loads((tmp_path / "log-slurm.json").read_text())
    assert (config["epoch"], config["begin"], config["processors_per_node"]) == (ZERO, -9, 2)
    assert (config["priority"]["weight_age"], config["priority"]["max_age"]) == (7, 86_410)
    assert config["schedulers"] == {"backfill_interval": 20, "backfill_window": 600}
    assert config["partitions"] == [{"name": "batch", "nodes": "n[1-4]", "tier": 3, "factor": 2}]
    assert config["qos"] == [
        {"name": "normal", "priority": 5, "usage_factor": 1.0, "limits": {"nodes": 2, "jobs_per_user": 3}}
    ]
    assert [row["shares"] for row in config["associations"]] == [1, 8, None]
    assert config["reservations"] == [{"name": "r", "nodes": "n1", "from": 1, "until": 2}]
    assert config["out_of_service"] == [{"nodes": "n2", "from": 1, "until": None, "ends_jobs": False}]
    assert [(job["id"], job["submit"], job["until"]) for job in config["never_started"]] == [(11, 5, 50)]
    run = (
        "simulate",
        "--machine",
        "fat-tree(radix=4)",
        "--trace",
        "log.csv",
        "--no-report",
        "--drop-hosts",
        "--queue",
        "slurm",
    )
    topolane.refused(
        *run, says="log-slurm.json: partition batch: machine fat-tree(radix=4, pods=4) has none of its nodes"
    )
    (tmp_path / "other.json").write_text("{\n")
    topolane.refused(*run, "--queue-config", "other.json", says="other.json:2: EOF while parsing an object")


EACH_MINUTE = (
    "SelectType = select/linear\nPriorityType = priority/multifactor\nPriorityCalcPeriod = 00:01:00\n"
    f"BOOT_TIME = {ZERO - 10}\n"
)
"""Priorities are computed each minute, ten seconds before it is full."""


@pytest.mark.parametrize(
    ("submitted", "other", "nice"),
    [
        (2, {}, "300"),
        (2, {"User": "bob"}, ""),
        (2, {"NNodes": "1", "ReqTRES": "cpu=1,node=1"}, ""),
        (51, {}, ""),  # the next computation was before it
        (50, {}, ""),  # in the second of the computation
        (2, {"Priority": "0"}, ""),  # held
    ],
)
def test_a_nice_value_is_what_priority_lacks_among_jobs_alike(dump, submitted, other, nice):
    """Jobs of a user that ask for the same, submitted between two computations of priorities, differ in nice only."""
    first = at(1, JobIDRaw=1, Priority=1000)
    second = at(submitted, JobIDRaw=2, Priority=700) | other
    imported = accounting_workload.read(dump(table(first, second), config=EACH_MINUTE))
    assert {row["id"]: row["nice"] for row in rows_of(imported)} == {"1": "", "2": nice}


@pytest.mark.parametrize(
    ("submitted", "after", "nice"),
    [
        (2, 61, "400"),  # at least 299, and another job has 400
        (50, 61, "400"),  # in the second of the computation: between two turns
        (2, 50, "400"),  # the one after is in such a second and gives no value, but its own turn does
        (55, 115, "400"),  # a turn of its own: those before and after give the value
        (55, 80, ""),  # fair share may have fallen
    ],
)
def test_the_lowest_priority_gives_the_least_value_of_a_nice_value(dump, submitted, after, nice):
    """A priority of 1 may lie any amount below 0. The least nice value that another job has and that is enough counts."""
    others = [
        at(1, JobIDRaw=number, User="bob", Priority=priority)
        for number, priority in ((1, 900), (2, 500), (3, 700))
    ]
    mine = [
        at(1, JobIDRaw=4, Priority=300),
        at(submitted, JobIDRaw=5, Priority=1),
        at(after, JobIDRaw=6, Priority=900 if after != 80 else 1),
    ]
    imported = accounting_workload.read(dump(table(*others, *mine), config=EACH_MINUTE))
    found = {row["id"]: row["nice"] for row in rows_of(imported)}
    assert {number: found[number] for number in "12345"} == {
        "1": "",
        "2": "400",
        "3": "200",
        "4": "",
        "5": nice,
    }


def test_a_nice_value_is_enough_for_the_lowest_priority_where_no_other_job_has_more(dump):
    jobs = [at(1, JobIDRaw=1, Priority=300), at(2, JobIDRaw=2, Priority=1), at(3, JobIDRaw=3, Priority=200)]
    imported = accounting_workload.read(dump(table(*jobs), config=EACH_MINUTE))
    assert {row["id"]: row["nice"] for row in rows_of(imported)} == {"1": "", "2": "299", "3": "100"}


def test_a_job_that_never_started_has_a_nice_value_too(dump):
    """The line says how many jobs have one, those that never started included."""
    waits = at(2, JobIDRaw=2, Priority=900, Start="Unknown", End=ZERO + 50, State="CANCELLED")
    imported = accounting_workload.read(dump(table(at(1, JobIDRaw=1), waits), config=EACH_MINUTE))
    assert [row["nice"] for row in json.loads(imported.queue)["never_started"]] == [100]
    assert says_once(imported, "1 job with a nice value, by the recorded priorities")


CONFIG = "SelectType = select/linear\nLicenses = matlab:4,fluent:2\nSchedulerParameters = bf_licenses\n"


def test_licences_go_to_the_queue_slurm(dump):
    """A run has the licences of its column Licenses, or of ReqTRES. The configuration has those of slurm.conf."""
    rows = (
        at(1, JobIDRaw=1, Licenses="matlab:2,fluent"),
        at(2, JobIDRaw=2, ReqTRES="cpu=2,license/matlab=3,node=2"),
        at(3, JobIDRaw=3, Licenses="matlab:1|fluent:1"),
        at(4, JobIDRaw=4, Start="Unknown", End=ZERO + 50, State="CANCELLED", Licenses="fluent:2"),
    )
    directory = dump(table(*rows), config=CONFIG)
    imported = accounting_workload.read(directory)
    assert [row["licenses"] for row in rows_of(imported)] == ["matlab:2,fluent:1", "matlab:3", ""]
    queue = json.loads(imported.queue)
    assert queue["licenses"] == {"matlab": 4, "fluent": 2}
    assert queue["schedulers"]["backfill_licenses"] is True
    assert [row["licenses"] for row in queue["never_started"]] == [{"fluent": 2}]
    assert says_once(imported, "2 runs asked for licences, which only the queue slurm counts")
    assert says_once(imported, "1 run asked for one of several licences: no queue counts them")
    assert not accounting_check.of_directory(directory).findings


def test_what_scontrol_says_of_licences_counts(dump):
    """`scontrol show licenses` knows those of servers too. A licence without a count is reported, and so are more than there are."""
    known = "LicenseName=matlab@server Total=3 Used=0 Free=3 Reserved=0 Remote=yes\n"
    rows = (at(1, JobIDRaw=1, Licenses="matlab@server:5"), at(2, JobIDRaw=2, Licenses="gone"))
    directory = dump(table(*rows), config=CONFIG, licenses=known)
    imported = accounting_workload.read(directory)
    assert json.loads(imported.queue)["licenses"] == {"matlab@server": 5}
    faults = (
        "1 run asked for licence gone: no file says how many there are, and no queue counts it",
        "1 run asked for more of licence matlab@server than the 3 there are: the number is raised to the highest request",
    )
    for fault in faults:
        assert says_once(imported, fault)
    assert [str(finding) for finding in accounting_check.of_directory(directory).findings] == list(faults)
    imported = accounting_workload.read(dump(table(at(1)), licenses="No licenses configured in Slurm.\n"))
    assert json.loads(imported.queue)["licenses"] == {}


def test_licences_that_cannot_be_read_are_an_error(dump):
    """The sentence names file, line and value."""
    jobs = table(at(1, Licenses="matlab:two"))
    with pytest.raises(InputError, match=r"jobs.txt:2: Licenses 'matlab:two' is not like matlab:2,fluent"):
        accounting_workload.read(dump(jobs))
    with pytest.raises(InputError, match=r"licenses.txt:1: no LicenseName with a Total in 'matlab 3'"):
        accounting_workload.read(dump(table(at(1)), licenses="matlab 3\n"))
    with pytest.raises(InputError, match=r"config.txt: Licenses 'a b' is not like"):
        config = "SelectType = select/linear\nLicenses = a b\n"
        (dump(table(at(1))) / "licenses.txt").unlink()
        accounting_workload.read(dump(table(at(1)), config=config))


RESERVED = (
    "Cluster|Name|TimeStart|TimeEnd|NodeName|TRES\n"
    f"hex|course|{ZERO + 5}|{ZERO + 60}||license/matlab=3\n"
    f"hex|tests|{ZERO + 7}|{ZERO + 90}|n1|cpu=4\n"
    f"hex|empty|{ZERO + 7}|{ZERO + 90}||\n"
)


def test_reservations_keep_licences(dump):
    """Accounting says which, or scontrol of the present ones. A reservation may keep licences and no nodes."""
    now = (
        f"ReservationName=tests StartTime={ZERO + 7} EndTime={ZERO + 90} Nodes=n1 Licenses=fluent:2 State=ACTIVE\n"
        f"ReservationName=empty StartTime={ZERO + 700} EndTime={ZERO + 900} Nodes=(null) Licenses=fluent:1 State=INACTIVE\n"
        f"ReservationName=course StartTime={ZERO + 5} EndTime={ZERO + 60} Nodes=(null) Licenses=(null) State=ACTIVE\n"
    )
    directory = dump(table(at(1)), reservations=RESERVED, **{"reservations-now": now})
    assert json.loads(accounting_workload.read(directory).queue)["reservations"] == [
        {"name": "course", "nodes": "", "licenses": {"matlab": 3}, "from": 4, "until": 59},
        {"name": "tests", "nodes": "n1", "licenses": {"fluent": 2}, "from": 6, "until": 89},
    ]
    dump(table(at(1)), **{"reservations-now": "No reservations in the system\n"})
    _, tests = json.loads(accounting_workload.read(directory).queue)["reservations"]
    assert tests == {"name": "tests", "nodes": "n1", "from": 6, "until": 89}


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        ("ReservationName=a EndTime=1", "1: no StartTime in 'ReservationName=a EndTime=1'"),
        (
            "ReservationName=a StartTime=1 EndTime=2 Licenses=x:y",
            "1: Licenses 'x:y' is not like matlab:2,fluent",
        ),
        ("ReservationName=a StartTime=soon EndTime=2", "1: 'soon' is not a time"),
    ],
)
def test_reservations_that_cannot_be_read_are_an_error(dump, now, sentence):
    """The sentence names file, line and value."""
    directory = dump(table(at(1)), reservations=RESERVED, **{"reservations-now": now + "\n"})
    with pytest.raises(InputError, match=re.escape(f"reservations-now.txt:{sentence}")):
        accounting_workload.read(directory)


def drained(dump, *events, jobs):
    """From when the import takes nodes out of service, by name."""
    lines = "".join(f"hex|{name}|{ZERO + start}|{end}|DRAIN\n" for name, start, end in events)
    head = "Cluster|NodeName|TimeStart|TimeEnd|State\n"
    last = at(1000, JobIDRaw=9, NodeList="n9")
    imported = accounting_workload.read(dump(table(*jobs, last), config=CONFIG, events=head + lines))
    zero = json.loads(imported.queue)["epoch"] - ZERO
    return {row["nodes"]: row["from"] + zero for row in json.loads(imported.queue)["out_of_service"]}


def test_a_node_drains_before_slurm_records_it(dump):
    """Slurm records a drained node when its last job ends (update_node and make_node_idle in node_mgr.c), and starts no
    job on it from the command on. The middle of the time since the last start is taken.
    """
    jobs = [at(0, 300, JobIDRaw=1, NodeList="n1"), at(100, 200, JobIDRaw=2, NodeList="n1")]
    assert drained(dump, ("n1", 301, ZERO + 900), jobs=jobs) == {"n1": 200}
    assert drained(dump, ("n1", 301, "Unknown"), jobs=jobs) == {"n1": 200}, "it is still drained"
    assert drained(dump, ("n1", 350, ZERO + 900), jobs=jobs) == {"n1": 350}, "no job ended: the node was idle"
    assert drained(dump, ("n2", 301, ZERO + 900), jobs=jobs) == {"n2": 301}, "the job was on another node"


def test_nodes_that_came_back_together_began_to_drain_together(dump):
    """The last start on any of them and the first event bound the time. An idle node has it exactly. If a job started
    on one after another was drained, each has its own time.
    """
    jobs = [at(0, 300, JobIDRaw=1, NodeList="n1"), at(100, 500, JobIDRaw=2, NodeList="n2")]
    both = [("n1", 300, ZERO + 900), ("n2", 500, ZERO + 900)]
    assert drained(dump, *both, jobs=jobs) == {"n1": 200, "n2": 200}
    assert drained(dump, *both, ("n3", 240, ZERO + 900), jobs=jobs) == {"n1": 240, "n2": 240, "n3": 240}
    later = [jobs[0], at(400, 500, JobIDRaw=2, NodeList="n2")]
    assert drained(dump, *both, jobs=later) == {"n1": 150, "n2": 450}


PREEMPTING = (
    "SelectType = select/linear\nPreemptType = preempt/qos\nPreemptMode = REQUEUE\nPreemptExemptTime = 00:02:00\n"
    "KillWait = 5 sec\nMessageTimeout = 10 sec\nAuthInfo = socket=/x,cred_expire=20\n"
    "PreemptParameters = youngest_first,reorder_count=3,strict_order\n"
)
QOS_HEAD = "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode\n"


def test_preemption_goes_to_the_queue_slurm(dump):
    """Its kind, its times and the lists of the QOS are read. What the queue does not know is reported."""
    qos = f"{QOS_HEAD}high|9|00:00:00|low,lost||cluster\nlow|0|00:00:00||00:00:30|requeue\nlost|0|00:01:00|||suspend\n"
    imported = accounting_workload.read(dump(table({}), config=PREEMPTING, qos=qos))
    queue = json.loads(imported.queue)
    assert queue["preemption"] == {
        "by": "qos",
        "mode": "requeue",
        "youngest_first": True,
        "reorder": 3,
        "exempt": 120,
        "again": 15,
    }
    assert queue["schedulers"]["requeue_after"] == 21
    assert queue["schedulers"]["over_time"] == 5
    longer = dump(table({}), config=PREEMPTING + "OverTimeLimit = 2 min\n", qos=qos)
    assert json.loads(accounting_workload.read(longer).queue)["schedulers"]["over_time"] == 125
    keys = ("preempts", "preempt_mode", "preempt_exempt", "grace")
    assert [tuple(row[key] for key in keys) for row in queue["qos"]] == [
        (["low", "lost"], None, None, 0),
        ([], "requeue", 30, 0),
        ([], "off", None, 60),
    ]
    assert says_once(imported, "PreemptParameters has 'strict_order', which the queue slurm does not know")
    assert says_once(
        imported, "QOS lost: PreemptMode 'suspend' is not known to the queue slurm: its jobs do not give way"
    )


def test_partitions_preempt(dump):
    """The mode of each partition is read if tiers decide. Suspension is not known: only jobs of partitions with another mode give way."""
    partitions = "PartitionName=low Nodes=n[1-2] PriorityTier=1 PreemptMode=CANCEL GraceTime=45\n"
    config = PREEMPTING.replace("preempt/qos", "preempt/partition_prio")
    queue = json.loads(accounting_workload.read(dump(table({}), config=config, partitions=partitions)).queue)
    low = queue["partitions"][0]
    assert (queue["preemption"]["by"], low["preempt_mode"], low["grace"]) == ("partition", "cancel", 45)
    suspending = config.replace("REQUEUE", "SUSPEND,GANG")
    imported = accounting_workload.read(dump(table({}), config=suspending, partitions=partitions))
    queue = json.loads(imported.queue)
    assert (queue["preemption"]["mode"], queue["partitions"][0]["preempt_mode"]) == ("off", "cancel")
    assert says_once(
        imported,
        "PreemptMode 'SUSPEND,GANG' is not known to the queue slurm: no job gives way unless its QOS or partition has another mode",
    )
    imported = accounting_workload.read(
        dump(table({}), config=config.replace("preempt/partition_prio", "preempt/x"))
    )
    assert "preemption" not in json.loads(imported.queue)
    assert says_once(imported, "PreemptType 'preempt/x' is not known to the queue slurm: no job gives way")


def test_suspended_runs_are_counted(dump):
    """A run that stood still for a time keeps its nodes for that time too. It is no fault."""
    directory = dump(table(at(0, 700, Suspended="00:01:40", ElapsedRaw="600"), at(1, 20, JobIDRaw=11)))
    imported = accounting_workload.read(directory)
    assert says_once(
        imported, "1 run spent some time suspended: a run takes as long as recorded, and keeps its nodes"
    )
    assert [row["run"] for row in rows_of(imported)] == ["700", "19"]
    assert not accounting_check.of_directory(directory).findings


def test_a_preempted_run_is_one_job_with_the_next(dump):
    """The job waits since its first submission and takes as long as its last run. Without preemption in the queue, runs stay apart."""
    rows = (
        at(1, 20, JobIDRaw=1, State="PREEMPTED"),
        at(60, 90, JobIDRaw=1, State="PREEMPTED"),
        at(120, 220, JobIDRaw=1),
        at(5, 30, JobIDRaw=2, State="PREEMPTED"),
    )
    imported = accounting_workload.read(dump(table(*rows), config=PREEMPTING))
    names = ("submit", "start", "run", "earlier_runs")
    found = {row["id"]: tuple(row[name] for name in names) for row in rows_of(imported)}
    assert found == {"1": ("0", "119", "100", "0:19:2 59:30:2"), "2": ("4", "4", "25", "")}
    assert says_once(
        imported,
        "2 runs that ended by preemption, joined with the later run of the same job: the queue slurm decides again which job gives way",
    )
    assert not [line for line in imported.notes if "further runs" in line]
    apart = accounting_workload.read(dump(table(*rows), config="SelectType = select/linear\n"))
    assert len(rows_of(apart)) == 4
    assert says_once(apart, "2 further runs of requeued jobs: each is a job")


def test_names_in_lists_of_qos_become_numbers_too(dump):
    """A QOS that carries the name of an account has the same number where another QOS preempts it."""
    qos = f"{QOS_HEAD}high|9||physics-low||\nphysics-low|0||||\n"
    imported = accounting_workload.read(dump(table({}), config=PREEMPTING, qos=qos), anonymize=True)
    high, low = json.loads(imported.queue)["qos"]
    assert high["preempts"] == [low["name"]] == ["1-low"]


def test_a_run_that_a_node_ended_stays_separate_from_the_next(dump):
    """Both runs are jobs, each as long as recorded, and the second waits since Slurm queued it again. Neither preemption nor a missing
    run changes that."""
    rows = (at(1, 20, JobIDRaw=1, State="NODE_FAIL", Restarts=0), at(60, 90, JobIDRaw=1, Restarts=1))
    for config in (PREEMPTING, "SelectType = select/linear\n"):
        directory = dump(table(*rows), config=config)
        imported = accounting_workload.read(directory)
        found = [(row["id"], row["job"], row["submit"], row["run"]) for row in rows_of(imported)]
        assert found == [("1", "10", "0", "19"), ("10000000001", "10", "59", "30")]
        assert says_once(imported, "1 run ended because a node failed: a run takes as long as recorded")
        assert says_once(imported, "1 further run of requeued jobs: each is a job")
        assert not accounting_check.of_directory(directory).findings
    imported = accounting_workload.read(dump(table(at(60, 90, JobIDRaw=1, Restarts=1))))
    assert says_once(
        imported,
        "1 run missing, of jobs that ran several times: purged, too early, or sacct without --duplicates",
    )


def test_a_later_run_waits_since_it_was_queued_again(dump):
    """Slurm submits the job again when a run ends, eligible some seconds later. It overwrites Eligible of a run that it requeues: that
    one waits since Submit, which is the end of the run before."""
    again = {"JobIDRaw": 1, "State": "NODE_FAIL"}
    rows = (
        at(0, 20, **again) | {"Start": ZERO + 5, "ElapsedRaw": "15", "Eligible": ZERO + 31},
        at(60, 70, **again) | {"Submit": ZERO + 20, "Eligible": ZERO + 81},
        at(120, JobIDRaw=1) | {"Submit": ZERO + 70, "Eligible": ZERO + 81},
    )
    found = [(row["submit"], row["start"]) for row in rows_of(accounting_workload.read(dump(table(*rows))))]
    assert found == [("0", "5"), ("20", "60"), ("81", "120")]


def test_a_job_of_several_runs_keeps_its_place(dump):
    """It goes before a job that was submitted after it in the same second, though its last run comes later in the file."""
    rows = (
        at(1, 20, JobIDRaw=1, State="PREEMPTED", Restarts=0),
        at(1, 50, JobIDRaw=2),
        at(60, 90, JobIDRaw=1, Restarts=1),
    )
    imported = accounting_workload.read(dump(table(*rows), config=PREEMPTING))
    assert [(row["id"], row["submit"], row["run"]) for row in rows_of(imported)] == [
        ("1", "0", "30"),
        ("2", "0", "49"),
    ]


def test_a_run_that_a_failed_node_ended_is_one_job_with_the_next(dump):
    """If the records say that one of its nodes went down then, the job waits since its first submission and takes as long as its last
    run. A run after which it did not run again stays, and the job is not requeued in a replay."""
    rows = (
        at(1, 20, JobIDRaw=1, State="NODE_FAIL"),
        at(60, 90, JobIDRaw=1, State="NODE_FAIL"),
        at(120, 220, JobIDRaw=1, NodeList="n[3-4]"),
        at(5, 30, JobIDRaw=2, State="NODE_FAIL"),
        at(6, 40, JobIDRaw=3),
    )
    head = "Cluster|NodeName|TimeStart|TimeEnd|State\n"
    events = f"{head}hex|n2|{ZERO + 21}|{ZERO + 40}|DOWN*\nhex|n1|{ZERO + 90}|Unknown|DOWN\n"
    imported = accounting_workload.read(dump(table(*rows), events=events))
    found = {
        row["id"]: (row["submit"], row["start"], row["run"], row["requeue"]) for row in rows_of(imported)
    }
    assert found == {
        "1": ("0", "119", "100", ""),
        "2": ("4", "4", "25", "no"),
        "3": ("5", "5", "34", ""),
    }
    assert says_once(
        imported,
        "2 runs that ended because a node failed, joined with the later run of the same job: in the queue slurm a job starts again if one of its own nodes fails",
    )
    for other in (events.replace("DOWN", "DRAIN"), events.replace("|n", "|m"), head):
        apart = rows_of(accounting_workload.read(dump(table(*rows), events=other)))
        assert [row["requeue"] for row in apart if row["id"].endswith("1")] == ["no", "no", ""]


def test_runs_that_became_one_are_listed_by_their_starts(dump):
    """Whether a node or another job ended them: start, run time and nodes of each, in the last run of the job."""
    head = "Cluster|NodeName|TimeStart|TimeEnd|State\n"
    events = f"{head}hex|n2|{ZERO + 20}|{ZERO + 40}|DOWN\nhex|n3|{ZERO + 320}|Unknown|DOWN\n"
    ended = [
        at(1, 20, JobIDRaw=1, State="NODE_FAIL"),
        at(100, 200, JobIDRaw=1, State="PREEMPTED", NNodes=1, NodeList="n4"),
        at(300, 320, JobIDRaw=1, State="NODE_FAIL", NNodes=4, NodeList="n[1-4]"),
    ]
    last = at(400, 450, JobIDRaw=1)
    imported = accounting_workload.read(dump(table(*ended, last), config=PREEMPTING, events=events))
    (row,) = rows_of(imported)
    assert (row["start"], row["earlier_runs"]) == ("399", "0:19:2 99:100:1 299:20:4")


def test_a_node_that_was_down_for_no_second_ends_its_job(dump):
    """Slurm records whole seconds. A node that went down and came back in one has ended its jobs, so it is down for a second: for the
    queue slurm and in the file for --failures. One that was drained in one second is skipped."""
    rows = (at(1, 20, JobIDRaw=1, State="NODE_FAIL"), at(60, 90, JobIDRaw=1))
    head = "Cluster|NodeName|TimeStart|TimeEnd|State\n"
    events = f"{head}hex|n2|{ZERO + 20}|{ZERO + 20}|DOWN\nhex|n1|{ZERO + 30}|{ZERO + 30}|DRAIN\n"
    imported = accounting_workload.read(dump(table(*rows), config=CONFIG, events=events))
    (out,) = json.loads(imported.queue)["out_of_service"]
    assert (out["nodes"], out["until"] - out["from"], out["ends_jobs"]) == ("n2", 1, True)
    assert imported.failures.splitlines()[1:] == [f"n2,{out['from']},{out['until']}"]


def test_jobs_are_not_requeued_where_slurm_does_not(dump):
    """With JobRequeue=0 only jobs that the records show to be requeued start again in a replay."""
    rows = (at(1, 20, JobIDRaw=1, State="REQUEUED"), at(60, 90, JobIDRaw=1), at(5, JobIDRaw=2))
    config = "SelectType = select/linear\nJobRequeue = 0\n"
    found = rows_of(accounting_workload.read(dump(table(*rows), config=config)))
    assert [(row["job"], row["requeue"]) for row in found] == [("10", ""), ("10", "no"), ("10", "")]


def test_what_no_queue_does_is_counted(dump):
    """Jobs that Slurm preempted stay: a line counts them. They are no faults."""
    directory = dump(table(at(1, JobIDRaw=1), at(2, JobIDRaw=2, State="PREEMPTED")))
    imported = accounting_workload.read(directory)
    assert imported.jobs == 2
    assert says_once(imported, "1 run ended by preemption: a run takes as long as recorded")
    assert not accounting_check.of_directory(directory).findings


def test_one_cluster_and_one_partition_are_chosen(dump, tmp_path, topolane):
    dump(table({}, {"JobIDRaw": 11, "Cluster": "two"}, {"JobIDRaw": 12, "Partition": "debug"}))
    arguments = ("workload", "import", tmp_path, "--out", "log.csv")
    topolane.refused(
        *arguments, says="jobs.txt: rows of 2 clusters (hex 2, two 1): choose one with --cluster"
    )
    topolane.refused(*arguments, "--cluster", "no", says="no row is of cluster 'no'; there are hex, two")
    dump(table({}, {"JobIDRaw": 12, "Partition": "debug"}))
    topolane.refused(
        *arguments, "--partition", "no", says="jobs.txt: no row is of partition 'no'; there are batch, debug"
    )
    dump(table({}, {"JobIDRaw": 11, "Cluster": "two"}, {"JobIDRaw": 12, "Partition": "debug"}))
    printed = topolane(*arguments, "--cluster", "hex", "--partition", "batch")
    assert printed.startswith("1 job: log.csv\n")
    assert "skipped: 1 of another cluster\nskipped: 1 in another partition\n" in printed or (
        "skipped: 1 in another partition\nskipped: 1 of another cluster\n" in printed
    )


REFUSED = [
    (table({})[:-2], "jobs.txt:2: 27 fields, where the header has 28"),
    (table({"Constraints": "a;b"}), "jobs.txt:2: 29 fields, where the header has 28"),
    (table({}, {"Start": "yesterday"}), "jobs.txt:3: Start 'yesterday' is neither seconds"),
    (table({"End": "2026-02-30T00:00:00"}), "jobs.txt:2: End '2026-02-30T00:00:00' is neither seconds"),
    (table({"NNodes": "-2"}), "jobs.txt:2: NNodes '-2' is not a whole number"),
    (table({"JobIDRaw": "x1"}), "jobs.txt:2: JobIDRaw 'x1' is not a whole number"),
    (table({"TimelimitRaw": "1h"}), "jobs.txt:2: TimelimitRaw '1h' is not a whole number"),
    (table({"AllocTRES": "cpu=2,mem=many"}), "jobs.txt:2: mem 'many' is not an amount of memory"),
    (table({"Suspended": "often"}), "jobs.txt:2: Suspended 'often' is not a time"),
    (table({}, header=("JobIDRaw", "Submit")), "jobs.txt:1: no column Start"),
    (table(), "jobs.txt: a header line and no rows"),
    ("", "jobs.txt: the file is empty"),
    (table({"End": "Unknown"}), "jobs.txt: no job that ran and ended (skipped: 1 without an end"),
    (table({"NodeList": "=n1"}), "jobs.txt:2: '=n1': a spreadsheet would take it for a formula"),
    (table({"NodeList": "n[1-"}), "jobs.txt:2: NodeList 'n[1-' is not a list of nodes"),
    (table({"Priority": "-5"}), "jobs.txt:2: Priority '-5' is not a whole number below 4,294,967,296"),
    (table({"Priority": 1 << 32}), "jobs.txt:2: Priority '4294967296' is not a whole number"),
    (table({"ReqTRES": "cpu=many,node=2"}), "jobs.txt:2: cpu 'many' is not a whole number"),
    (table({"ReqTRES": f"cpu={1 << 31}"}), "jobs.txt:2: cpu '2147483648' is not a whole number"),
]


@pytest.mark.parametrize(("jobs", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_a_file_that_is_not_what_it_should_be_is_refused(dump, jobs, says):
    with pytest.raises(InputError, match=re.escape(says)):
        accounting_workload.read(dump(jobs))


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        (
            "events",
            "Cluster|NodeName|TimeStart|TimeEnd|State\nhex|n1|noon||DOWN\n",
            "events.txt:2: 'noon' is not",
        ),
        (
            "events",
            "Cluster|NodeName|TimeStart|TimeEnd|State\nhex|n1\n",
            "events.txt:2: 2 fields, where the header has 5",
        ),
        (
            "events",
            f"Cluster|NodeName|TimeStart|TimeEnd|State\nhex|@n1|{ZERO}||DOWN\n",
            "events.txt:2: NodeName '@n1' is not a list of nodes",
        ),
        (
            "reservations",
            "No reservations in the system\n",
            "reservations.txt:1: no column Name in 'No reservations in the system', where the header line of sacctmgr",
        ),
        (
            "reservations",
            f"Cluster|Name|TimeStart|TimeEnd|NodeName\nhex|r|{ZERO}||n[1-\n",
            "reservations.txt:2: NodeName 'n[1-' is not a list of nodes",
        ),
        ("qos", "Priority\n1\n", "qos.txt:1: no column Name"),
        ("qos", "Name|UsageFactor\nq|1\nr|nan\n", "qos.txt:3: UsageFactor 'nan' is not a number like 1.5"),
        ("qos", "Name|GrpJobs\nq|-1\n", "qos.txt:2: GrpJobs '-1' is not a whole number below 4,294,967,296"),
        ("assoc", "", "assoc.txt: the file is empty"),
        ("partitions", "", "partitions.txt: the file is empty"),
        ("partitions", "NodeName=n1\n", "partitions.txt:1: no PartitionName"),
        (
            "partitions",
            "PartitionName=p PriorityTier=4294967296\n",
            "partitions.txt:1: PriorityTier '4294967296' is not a whole number",
        ),
        (
            "partitions",
            "PartitionName=p Nodes=n[1-\n",
            "partitions.txt:1: Nodes 'n[1-' is not a list of nodes",
        ),
        ("licenses", "", "licenses.txt: the file is empty"),
        ("config", "slurm_load_ctl_conf error\n", "config.txt: no SelectType"),
        (
            "config",
            "SelectType=select/linear\nNodeName=n[1-4] CPUs=16\n",
            "config.txt:2: 'NodeName=n[1-4] CPUs=16' is a line of slurm.conf, where the output of scontrol show config",
        ),
        (
            "config",
            "SelectType=select/linear\nInclude nodes.conf\n",
            "config.txt:2: 'Include nodes.conf' is a line",
        ),
    ],
)
def test_the_other_files_are_checked_too(dump, file, text, says):
    """The import and the check refuse the same files."""
    directory = dump(table({}), **{file: text})
    for read in (accounting_workload.read, accounting_check.of_directory):
        with pytest.raises(InputError, match=re.escape(says)):
            read(directory)


def test_files_from_windows_are_read(dump):
    """A byte order mark and carriage returns change nothing."""
    files = {
        "qos": "Name|Priority\nnormal|0\n",
        "assoc": "Cluster|Account|User\nhex|physics|alice\n",
        "config": "ClusterName = hex\nSelectType = select/linear\n",
        "partitions": "PartitionName=batch Nodes=n[1-2]\n",
    }
    plain = dump(table({}), **files)
    expected = (accounting_workload.read(plain), accounting_check.of_directory(plain))
    for name in ("jobs", *files):
        path = plain / f"{name}.txt"
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert (accounting_workload.read(plain), accounting_check.of_directory(plain)) == expected


def test_settings_that_the_queue_does_not_know_are_reported(dump):
    """Unknown words of SchedulerParameters, schedulers that are switched off, and a start of slurmctld in an unknown zone."""
    config = (
        "SelectType = select/linear\nPriorityType = priority/multifactor\nPriorityMaxAge = UNLIMITED\n"
        "BOOT_TIME = 2026-10-01T08:00:00\n"
        "SchedulerParameters = bf_continue,defer,bf_interval=-1,sched_interval=30,bf_max_time=300\n"
    )
    imported = accounting_workload.read(dump(table({}), config=config))
    queue = json.loads(imported.queue)
    assert queue["schedulers"] == {"interval": 30}
    assert queue["priority"]["max_age"] == (1 << 32) - 1
    assert says_once(
        imported,
        "SchedulerParameters has 'defer', 'bf_interval=-1', 'bf_max_time=300', which the queue slurm does not know",
    )
    assert any(
        line.startswith("BOOT_TIME '2026-10-01T08:00:00' is a time of unknown zone")
        for line in imported.notes
    )


def test_files_that_are_missing_are_reported(dump, tmp_path, topolane):
    topolane.refused(
        "workload", "import", "nowhere", "--out", "log.csv", says="nowhere: there is no such directory"
    )
    topolane.refused("workload", "import", tmp_path, "--out", "log.csv", says="no jobs.txt")
    topolane.refused("workload", "import", says="give a directory and --out LOG.csv, or --commands")
    imported = accounting_workload.read(dump(table({}, header=accounting_jobs.NEEDED)))
    for file in ("partitions", "config", "qos", "assoc", "events", "reservations"):
        assert len([line for line in imported.notes if line.startswith(f"no {file}.txt: ")]) == 1
    for column in accounting_jobs.FURTHER:
        assert len([line for line in imported.notes if line.startswith(f"no column {column}: ")]) == 1


def test_the_files_are_written_together_or_not_at_all(dump, tmp_path, topolane):
    """If one of them cannot be written, the others are as they were. What the import reads is never replaced."""
    events = "Cluster|NodeName|TimeStart|TimeEnd|State\n"
    jobs = table({})
    dump(jobs, events=f"{events}hex|n1|{ZERO + 60}|Unknown|DOWN\n")
    (tmp_path / "log.csv").write_text("mine")
    (tmp_path / "log.csv").chmod(0o600)
    (tmp_path / "log-failures.csv").mkdir()
    arguments = ("workload", "import", tmp_path, "--out")
    topolane.refused(
        *arguments, "log.csv", says="log-failures.csv: cannot be written: it is not a regular file"
    )
    assert (tmp_path / "log.csv").read_text() == "mine"
    assert not (tmp_path / "log-slurm.json").exists()
    (tmp_path / "log-failures.csv").rmdir()
    topolane(*arguments, "log.csv")
    assert (tmp_path / "log-failures.csv").exists()
    assert (tmp_path / "log.csv").stat().st_mode & 0o777 == 0o600
    dump(jobs, events=events)
    assert "\nremoved: log-failures.csv, which an earlier import wrote" in topolane(*arguments, "log.csv")
    assert not (tmp_path / "log-failures.csv").exists()
    topolane.refused(*arguments, tmp_path / "jobs.txt", says="jobs.txt: the import reads this file")
    topolane.refused(*arguments, "/dev/stdout", says="--out /dev/stdout: cannot be written")
    topolane.refused(*arguments, "", says="give a directory and --out LOG.csv, or --commands")
    topolane.refused(*arguments, "log.csv", "--since", "2026-10-01", says="--since goes with --commands")
    assert (tmp_path / "jobs.txt").read_text() == jobs
    assert not list(tmp_path.glob(".topolane-*"))


def test_civil_times_are_read_and_reported(dump):
    times = {"Submit": "2026-11-18T11:06:40", "Eligible": "2026-11-18T11:06:40"}
    times |= {"Start": "2026-11-18T11:08:20", "End": "2026-11-18T11:18:20"}
    imported = accounting_workload.read(dump(table(times, delimiter="|")))
    assert imported.csv == accounting_workload.read(dump(table({}))).csv
    assert says_once(
        imported, "times are civil times, taken as UTC: an hour is missing or doubled when clocks change"
    )


def test_the_commands_name_every_file_and_field(topolane):
    printed = topolane("workload", "import", "--commands", "--since", "2026-10-01")
    for dump in accounting.DUMPS:
        assert f" > {dump.file}\n" in printed
    assert f"--format={','.join(accounting.FIELDS)} > jobs.txt\n" in printed
    assert "--starttime=2026-10-01 " in printed
    topolane.refused("workload", "import", "--commands", "--since", "now; rm x", says="--since")


words = some.text(string.ascii_lowercase + string.digits, min_size=1, max_size=6)
shares = some.builds(
    Share,
    some.integers(1, 128),
    some.integers(0, 1 << 20).map(lambda mebibytes: mebibytes << 20),
    some.dictionaries(some.sampled_from(["gpu", "nic"]), some.integers(0, 8), max_size=2).map(
        lambda counts: tuple(sorted(counts.items()))
    ),
)
licenses = some.dictionaries(words, some.integers(1, 10**6), max_size=2)


@some.composite
def runs(draw):
    """Runs of jobs, every one with a start of its own."""
    found = []
    for place in range(draw(some.integers(1, 12))):
        submit = ZERO + draw(some.integers(0, 10**6))
        eligible = submit + draw(some.integers(0, 1000))
        job = draw(some.integers(1, 9))
        found.append(
            AccountedRun(
                *(job, str(job), submit, eligible, eligible + 10**6 * place, draw(some.integers(0, 10**6))),
                draw(some.none() | some.integers(1, 10**5).map(lambda minutes: 60 * minutes)),
                *(draw(some.integers(1, 99)), draw(shares), draw(words), "COMPLETED"),
                *(
                    draw(words),
                    draw(words),
                    draw(words),
                    draw(words),
                    str(draw(some.integers(0, 10**6))),
                    draw(words),
                    draw(words),
                    draw(some.none() | some.integers(1, 10**6)),
                    ",".join(f"{name}:{count}" for name, count in draw(licenses).items()),
                ),
            )
        )
    return found


def as_row(run):
    tres = [f"cpu={run.share.cores * run.nodes}", f"mem={(run.share.memory >> 20) * run.nodes}M"]
    tres += [f"gres/{name}={count * run.nodes}" for name, count in run.share.resources]
    limit = "UNLIMITED" if run.walltime is None else run.walltime // 60
    return {
        "JobIDRaw": run.job,
        "JobID": run.shown,
        "Submit": run.submit,
        "Eligible": run.eligible,
        "Start": run.start,
        "End": run.start + run.run,
        "ElapsedRaw": run.run,
        "TimelimitRaw": limit,
        "NNodes": run.nodes,
        "AllocTRES": ",".join(tres),
        "NodeList": run.hosts,
        "State": run.state,
        "Partition": run.partition,
        "QOS": run.qos,
        "Account": run.account,
        "User": run.user,
        "Priority": run.priority,
        "Reason": run.reason,
        "Reservation": run.reservation,
        "Licenses": run.licenses,
        "ReqTRES": "" if run.processors is None else f"billing=7,cpu={run.processors},node=1",
    }


@settings(deadline=None)
@given(runs())
def test_import_gives_back_the_same_jobs(tmp_path_factory, made):
    """What a synthetic table says is read as it is, and the engine reads from the CSV what was written."""
    directory = tmp_path_factory.mktemp("made")
    (directory / "jobs.txt").write_text(table(*map(as_row, made)))
    try:
        assert accounting_jobs.read(directory / "jobs.txt").runs == made
    except InputError as error:
        raise AssertionError(made) from error
    imported = accounting_workload.read(directory, shared=True)
    (directory / "log.csv").write_text(imported.csv)
    columns = sources.workload(directory / "log.csv").columns()
    expected = sorted(made, key=lambda run: run.eligible)
    assert list(columns["nodes"]) == [run.nodes for run in expected]
    assert list(columns["run"]) == [run.run for run in expected]
    assert list(columns["submit"]) == [run.eligible - imported.zero for run in expected]
    assert sorted(int(id) % accounting_workload.RUN_ID for id in columns["id"]) == sorted(
        run.job for run in made
    )
    assert len(set(columns["id"])) == len(made)
