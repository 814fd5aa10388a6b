"""`topolane compare` says how far a replay is from the recorded starts, and `--baseline` prints all of it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from topolane import machine, simulate, workload
from topolane.slurm import accounting_workload
from waiting import counting_opens

RECORDS = Path(__file__).parents[1] / "live" / "slurm" / "records-of-a-twin-an-hour"
SWF = "; MaxNodes: 4\n; MaxProcs: 4\n; Partition: 1 batch\n; Partition: 2 debug\n"


def log(*jobs):
    """An SWF log of (id, submit, wait, run, nodes, partition)."""
    record = "{} {} {} {} {} -1 -1 {} {} -1 1 1 1 -1 -1 {} -1 -1\n"
    return SWF + "".join(
        record.format(id, submit, wait, run, nodes, nodes, run, partition)
        for id, submit, wait, run, nodes, partition in jobs
    )


MACHINE = """
name = "four"
[[site]]
name = "core"
children = [2, 2]
parents = [1, 1]
"""

# The machine has 4 nodes. Jobs 1 and 3 run as recorded. Job 2 was recorded to wait two hours and would have started at once.
JOBS = ((1, 0, 0, 3600, 4, 1), (2, 3600, 7200, 3600, 2, 1), (3, 10_800, 0, 3600, 2, 2))


@pytest.fixture
def inputs(write):
    write("four.toml", MACHINE)
    write("log.swf", log(*JOBS))
    return ("--machine", "four.toml", "--trace", "log.swf", "--scenarios", "none", "--jobs", 1)


def test_every_comparison_says_how_far_it_is_from_the_truth(topolane, inputs):
    """Mean waits of 0 where 40 min were recorded; one job in each of three parts, so they differ by 40 min in the mean."""
    sentence = (
        "Under today's rules (isolated, fcfs) this replay has mean waits of 0 s where 40 min were recorded; "
        "differences between policies smaller than 40 min say nothing."
    )
    said = topolane("compare", *inputs, "--policies", "isolated", "--queue", "fcfs", "--out", "out")
    assert said.count(sentence) == 1
    assert "rank" not in said
    assert sentence in (topolane.directory / "out/report.html").read_text().replace("&#39;", "'")
    assert not (topolane.directory / "out/baseline.csv").exists()
    (facts,) = [json.loads((topolane.directory / "out/summary.json").read_text())]
    assert facts["baseline"] == {
        "policy": "isolated",
        "queue": "fcfs",
        "inferred": [],
        "jobs": 3,
        "recorded_mean_wait": 2400.0,
        "replayed_mean_wait": 0.0,
        "rank_correlation": None,
        "least_difference": 2400.0,
    }


def test_the_baseline_runs_without_a_speed_up_and_is_no_row_of_the_table(topolane, inputs):
    runs = json.loads(topolane("compare", *inputs, "--policies", "isolated", "--scenarios", "20", "--json"))
    assert [(run["policy"], run["scenario"]) for run in runs] == [("isolated", "20")]
    assert runs[0]["baseline"]["policy"] == "isolated"


def test_the_table_has_a_row_for_every_size_and_partition(topolane, inputs):
    said = topolane("compare", *inputs, "--policies", "first-fit", "--baseline", "--out", "out")
    rows = [" ".join(line.split()) for line in said.splitlines()]
    assert "all 3 40 min / 0 s 0 s / 0 s 1.8 h / 0 s -" in rows
    assert "partition batch 2 1.0 h / 0 s 1.0 h / 0 s 1.9 h / 0 s -" in rows
    assert "partition debug 1 0 s / 0 s 0 s / 0 s 0 s / 0 s -" in rows
    assert "1 job started over an hour earlier than recorded: 1 unknown." in said
    assert "0 jobs started over an hour later than recorded." in said
    # Hours 2 and 4 differ by 50 points: job 2 ran in hour 4, with job 3, and runs in hour 2 now.
    assert (
        "Utilisation differs hour by hour by at most 50.0 points (day 1, 01:00), by 25.0 in the mean." in said
    )
    page = (topolane.directory / "out/report.html").read_text()
    assert 'id="baseline"' in page
    with (topolane.directory / "out/baseline.csv").open() as file:
        found = {row["job_id"]: row for row in csv.DictReader(file)}
    assert (found["2"]["recorded_wait"], found["2"]["replayed_wait"], found["2"]["reason"]) == (
        "7200.0",
        "0.0",
        "unknown",
    )
    assert (found["1"]["partition"], found["1"]["reason"]) == ("batch", "")


@pytest.mark.parametrize(("workers", "most"), [(1, 1), (2, 5)])
def test_each_process_reads_the_log_once(topolane, inputs, workers, most):
    """The parent asks whether the log records starts, and compares the replay with them. Workers infer from them and simulate four
    rules; others do so for the draws of what the records do not tell."""
    rules = ("--policies", "first-fit,isolated", "--queue", "easy,fcfs")
    inferred = ("--held", "recorded", "--capacity", "recorded", "--order", "recorded")
    with counting_opens(topolane.directory / "log.swf") as opens:
        topolane("compare", *inputs, *rules, *inferred, "--baseline", "--out", "out", "--jobs", workers)
        assert 1 <= opens() <= most


def test_json_has_the_baseline_with_the_runs(topolane, inputs):
    facts = json.loads(topolane("compare", *inputs, "--policies", "first-fit", "--baseline", "--json"))
    assert [run["policy"] for run in facts["runs"]] == ["first-fit"]
    assert facts["baseline"]["earlier"] == {"unknown": 1}
    assert facts["baseline"]["utilisation"]["largest_difference"] == pytest.approx(50)
    assert facts["baseline"]["waits"][0]["mean"] == [2400.0, 0.0]


def test_a_held_job_has_its_reason(topolane, write):
    """Job 2 was eligible a minute after its submission; that is the likely reason why it started late."""
    write("four.toml", MACHINE)
    write(
        "log.csv",
        "id,submit,run,nodes,start,submitted\n1,0,60,1,0,0\n2,60,60,1,9000,0\n",
    )
    write("log-failures.csv", "node,from,until\nfour1,0,9000\n")
    said = topolane(
        *("compare", "--machine", "four.toml", "--trace", "log.csv", "--policies", "first-fit", "--baseline"),
        *("--jobs", 1),
    )
    assert "1 job started over an hour earlier than recorded: 1 held." in said


def test_nodes_that_the_machine_lacks_were_down_elsewhere(topolane, write):
    """The import writes every node that was down next to the log, login nodes and those of other partitions too."""
    write("four.toml", MACHINE)
    write("log.csv", "id,submit,run,nodes,start\n1,0,60,1,0\n2,60,60,1,9000\n")
    compare = (
        *("compare", "--machine", "four.toml", "--trace", "log.csv", "--policies", "first-fit", "--baseline"),
        *("--jobs", 1),
    )
    write("log-failures.csv", "node,from,until\nlogin1,0,9000\n")
    assert "1 job started over an hour earlier than recorded: 1 unknown." in topolane(*compare)
    write("log-failures.csv", "node,from,until\nlogin1,0,9000\nfour1,0,9000\n")
    assert "1 job started over an hour earlier than recorded: 1 nodes down." in topolane(*compare)


def test_utilisation_counts_runs_that_became_one_with_a_later_run(topolane, write):
    """A job of 2 nodes takes half of each. First it ran on half of 4 nodes until a node failed after half an hour: 4 halves of 4 nodes
    for half of the first hour are 25 %. It ran again in the second hour, on 2 halves: 25 %. The replay has this run in the first
    hour, and no other."""
    write("four.toml", f"{MACHINE}[node]\nsockets = 1\ncores-per-socket = 2\n")
    write(
        "log.csv",
        "id,submit,run,walltime,nodes,cores,start,earlier_runs\n1,0,3600,3600,2,1,3600,0:1800:4\n",
    )
    compare = ("compare", "--machine", "four.toml", "--trace", "log.csv", "--policies", "first-fit")
    found = json.loads(topolane(*compare, "--jobs", 1, "--baseline", "--json"))["baseline"]["utilisation"]
    assert (found["from"], found["recorded"], found["replayed"]) == (0, [0.25, 0.25], [0.25, 0])


def test_utilisation_counts_runs_that_a_failed_node_ended(topolane):
    """The import makes them one job with the run that came later. They hold their nodes all the same, in the records as in a replay that
    ends jobs too. Each run in the records is a row of the import without joined runs, each one of the replay is a row of jobs.csv."""
    topolane("workload", "import", RECORDS, "--out", "hour.csv")
    facts = json.loads(
        topolane(
            *("compare", "--machine", RECORDS / "topology.conf", "--trace", "hour.csv", "--queue", "slurm"),
            *("--policies", "first-fit", "--scenarios", "none", "--jobs", 1, "--baseline", "--json"),
            *("--no-report", "--out", "out"),
        )
    )
    found = facts["baseline"]["utilisation"]

    def held(rows, *names):
        """Node-seconds in each hour, of runs with start, run time and nodes."""
        hours = [0.0] * len(found["recorded"])
        for row in rows:
            start, run, nodes = (float(row[name]) for name in names)
            for hour in range(len(hours)):
                since = found["from"] + 3600 * hour
                hours[hour] += nodes * max(min(start + run, since + 3600) - max(start, since), 0)
        return [seconds / (72 * 3600) for seconds in hours]

    every = list(csv.DictReader(io.StringIO(accounting_workload.read(RECORDS, join=False).csv)))
    assert len(every) > facts["baseline"]["jobs"]
    assert found["recorded"] == pytest.approx(held(every, "start", "run", "nodes"))
    with (topolane.directory / "out/jobs.csv").open() as file:
        again = list(csv.DictReader(file))
    assert len(again) > facts["baseline"]["jobs"]
    names = ("starting_time", "execution_time", "requested_number_of_resources")
    assert found["replayed"] == pytest.approx(held(again, *names))


def test_records_of_slurm_are_replayed_as_the_guide_says(topolane):
    """Imported records under the queue slurm come closer than plain EASY. `--partition` chooses by the column of the CSV."""
    topolane("workload", "import", RECORDS, "--out", "hour.csv")
    compare = (
        *(
            "compare",
            "--machine",
            RECORDS / "topology.conf",
            "--trace",
            "hour.csv",
            "--policies",
            "first-fit",
        ),
        *("--scenarios", "none", "--jobs", 1, "--queue"),
    )
    said = topolane(*compare, "slurm")
    assert re.search(
        r"\nfirst-fit, slurm: nodes that were down in the records interrupted \d jobs; \d node hours lost\n",
        said,
    )

    def error(queue):
        head = json.loads(topolane(*compare, queue, "--json"))[0]["baseline"]
        return abs(head["replayed_mean_wait"] / head["recorded_mean_wait"] - 1)

    assert error("slurm") < 0.05
    assert error("easy") > 0.5
    said = topolane(*compare, "slurm", "--partition", "pdebug", "--nodes", "twin[55-72]")
    assert "hour on topology: 100 jobs, 18 nodes" in said
    assert "skipped: 904 in another partition" in said
    topolane.refused(*compare, "slurm", "--partition", "none", says="hour.csv: no job is of partition 'none'")


def test_the_sentence_names_what_is_from_the_records(topolane, inputs):
    """Job 2 was held for the two hours that it waited, so the replay is as recorded."""
    said = topolane(
        *("compare", *inputs, "--policies", "first-fit"),
        *("--held", "recorded", "--capacity", "recorded", "--order", "recorded"),
    )
    assert "1 job held, 2 hours in all; 0 node hours out of service" in said
    assert (
        "Under today's rules (first-fit, easy, with holds, capacity and order from the records) this replay has mean waits of "
        "40 min where 40 min were recorded; differences between policies smaller than 0 s say nothing."
        in said
    )


def test_the_bound_is_twice_what_other_draws_move(topolane, write):
    """The jobs ran on 12 nodes, and the log does not tell which 4 of 16 were out of service.

    Draws are the next four seeds; the last two scatter the nodes.
    """
    twelve = machine(write("twelve.toml", MACHINE.replace("[2, 2]", "[6, 2]")))
    jobs = [(number, 6000 * number, 0, 20_000, 1 + number**2 % 7, 1) for number in range(1, 90)]
    ran = simulate(workload(write("made.swf", log(*jobs)), 12), twelve, policy="first-fit").jobs
    waits = dict(ran.select("job_id", "waiting_time").iter_rows())
    write("log.swf", log(*(job[:2] + (int(waits[job[0]]),) + job[3:] for job in jobs)))
    run = (
        "compare",
        "--machine",
        "fat-tree(radix=4)",
        "--trace",
        "log.swf",
        "--scenarios",
        "none",
        "--jobs",
        1,
    )
    run = (*run, "--held", "recorded", "--json")
    every = [
        json.loads(topolane(*run, "--policies", "first-fit,isolated", "--capacity", capacity, "--seed", seed))
        for seed, capacity in enumerate(("recorded", "recorded", "recorded", "scattered", "scattered"))
    ]
    changes = [isolated["mean_wait"] - first_fit["mean_wait"] for first_fit, isolated in every]
    bound = every[0][0]["baseline"]["least_difference"]
    assert bound == pytest.approx(2 * max(abs(change - changes[0]) for change in changes))
    assert bound > 0
    alone = json.loads(topolane(*run, "--policies", "first-fit", "--capacity", "recorded"))
    assert alone[0]["baseline"]["least_difference"] < bound


def test_a_time_beyond_belief_does_not_fill_the_memory(topolane, write):
    """A start that is recorded 2,852 years later counts as a wait. Utilisation by the hour ends after 20 years: all hours would be
    25 million numbers in each of the two rows."""
    write("four.toml", MACHINE)
    write("log.csv", "id,submit,run,nodes,start\n1,0,10,1,0\n2,0,10,1,90000000000\n")
    run = ("compare", "--machine", "four.toml", "--trace", "log.csv", "--policies", "first-fit", "--baseline")
    found = json.loads(topolane(*run, "--jobs", 1, "--json"))["baseline"]
    assert (found["jobs"], found["recorded_mean_wait"], found["replayed_mean_wait"]) == (2, 4.5e10, 0)
    hours = found["utilisation"]
    assert len(hours["recorded"]) == len(hours["replayed"]) == 20 * 365.25 * 24
    assert hours["recorded"][0] > 0


def test_without_recorded_starts_there_is_no_baseline(topolane, inputs, write):
    write("plain.csv", "id,submit,run,nodes\n1,0,60,1\n")
    others = ("compare", "--machine", "four.toml", "--policies", "first-fit", "--jobs", 1)
    assert "were recorded" not in topolane(*others, "--trace", "plain.csv")
    topolane.refused(*others, "--trace", "plain.csv", "--baseline", says="plain.csv records no starts")
    topolane.refused(
        *others, "--trace", "log.swf", "--queue", "recorded", "--baseline", says="other than recorded"
    )
    assert "were recorded" not in topolane(*others, "--trace", "log.swf", "--queue", "recorded")
    topolane.refused("compare", "--workload", "cab-aug", "--baseline", says="cab-aug records no starts")


def test_a_job_that_runs_twice_waits_from_its_first_submission_to_its_last_start(topolane, write):
    """Its node fails after ten minutes and is back after an hour. A job of all nodes starts again only then."""
    write("topology.conf", "SwitchName=leaf Nodes=n[1-4]\n")
    write("log.csv", "id,submit,run,walltime,nodes,start\n1,0,1800,3600,4,3700\n")
    failure = {"nodes": "n1", "from": 600, "until": 3600, "ends_jobs": True}
    write("queue.json", json.dumps({"out_of_service": [failure]}))
    topolane(
        *("compare", "--machine", "topology.conf", "--trace", "log.csv", "--policies", "first-fit"),
        *("--queue", "slurm", "--queue-config", "queue.json", "--scenarios", "none", "--baseline"),
        *("--no-report", "--out", "out"),
    )
    with open(topolane.directory / "out/baseline.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["replayed_wait"]) == float(row["replayed_start"]) >= 3600
    assert float(row["recorded_wait"]) == 3700


HEADER = "id,submit,run,walltime,nodes,start,hosts,scheduler,earlier_runs\n"


@pytest.fixture
def asked(write):
    """Two jobs of all nodes: Slurm's main scheduler started the first twice, and backfill the second."""
    write("topology.conf", "SwitchName=leaf Nodes=n[1-4]\n")
    write("queue.json", "{}")
    write("log.csv", HEADER + "1,0,10,60,4,40,n[1-4],main,1:5:4\n2,2,10,60,4,20,n[1-4],backfill,\n")
    write("log-runs.csv", HEADER + "1,0,5,60,4,1,n[1-4],main,\n10000000001,25,10,60,4,40,n[1-4],main,\n")
    return (
        *("compare", "--machine", "topology.conf", "--trace", "log.csv", "--policies", "first-fit"),
        *(
            "--queue",
            "slurm",
            "--queue-config",
            "queue.json",
            "--scenarios",
            "none",
            "--baseline",
            "--no-report",
        ),
    )


def test_the_baseline_counts_single_decisions(topolane, asked):
    """Every run is asked about: both runs of the first job and the second job, each in the recorded state."""
    said = " ".join(topolane(*asked).split())
    assert (
        "the queue starts the same job in 100 % of 2 (main scheduler) and 100 % of 1 (backfill), and 0 other jobs."
        in said
    )
    assert "Clusters like this (priority/basic), measured:" in said
    found = json.loads(topolane(*asked, "--json"))["baseline"]
    assert found["flavour"] == "basic"
    assert found["decisions"]["main"] == {"starts": 2, "same": 1.0, "others": 0, "answers": {"same": 2}}


def test_single_decisions_are_only_of_records_that_nothing_changes(topolane, asked):
    for change in (("--days", 1), ("--limit", 1)):
        assert "Single decisions" not in topolane(*asked, *change)
    assert "Single decisions" not in topolane(*asked[:8], "easy", *asked[11:])
