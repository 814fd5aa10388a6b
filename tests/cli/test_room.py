"""`topolane room`, `--failures`, `--spares` and `topolane racks`: what operators of GPU machines ask for."""

from __future__ import annotations

import json

import pytest

UNIT = ("--machine", "nvl72(units=1)")
RUN = (*UNIT, "--workload", "gpu-month", "--days", 1, "--limit", 400, "--squeeze", 0.02)
FAILING = ("--failures", "0.5,12")


def test_the_empty_machine_has_room_for_whole_multiples_of_its_groups(topolane):
    found = json.loads(topolane("room", *UNIT, "--segment", 16, "--sizes", "8,64,128", "--json"))
    assert found["levels"] == ["node", "domain", "segments", "leaf", "site"]
    assert [fit["jobs"] for fit in found["fits"]] == [[0, 72, 72, 72, 72], [0, 8, 8, 8, 9], [0, 0, 4, 0, 4]]
    assert (found["free"], found["idle_nodes"], len(found["domains"])) == (576, 144, 8)
    text = topolane("room", *UNIT, "--segment", 16, "--sizes", "64")
    assert "576 of 576 GPUs are free" in text and "64 on idle nodes left over from whole segments" in text


def test_a_state_says_what_its_jobs_leave(topolane, write):
    """A job with all cores of a node strands the node's other GPUs; a part of a GPU is held as a part."""
    running = [
        {"id": 1, "nodes": "gb[1-18]"},
        {"id": 2, "nodes": "gb19", "share": {"cores": 144, "gpu": 1}},
        {"id": 3, "nodes": "gb20", "share": {"cores": 10, "gpu": 0.25}},
    ]
    state = write("state.json", json.dumps({"running": running, "down": "gb21"}))
    found = json.loads(topolane("room", *UNIT, "--state", state, "--sizes", "1,72", "--json"))
    assert found["free"] == 576 - 72 - 1 - 0.25 - 4
    assert found["stranded"] == {
        "without_cores": 3.0,
        "without_memory": 0.0,
        "scraps": 0.75,
        "left_over_from_segments": 0.0,
    }
    assert [row["idle_nodes"] for row in found["domains"]] == [0, 15, 18, 18, 18, 18, 18, 18]
    assert found["fits"][0]["jobs"][0] == 576 - 72 - 4 - 1 - 4 and found["fits"][1]["jobs"][1] == 6


def test_a_run_has_the_room_of_its_moments(topolane, tmp_path):
    """The jobs that ran hold what they took: at the end of the log nothing is held."""
    out = tmp_path / "out"
    run = json.loads(topolane("simulate", *RUN, "--failures", "none", "--out", out, "--no-report", "--json"))
    assert run["room"]["gpus"] == 576 and 0 <= run["room"]["largest"]["share_of_time"] <= 1
    assert {fit["size"] for fit in run["room"]["fits"]} == {2**power for power in range(10)}
    busy = json.loads(topolane("room", *UNIT, "--run", out, "--json"))
    late = json.loads(topolane("room", *UNIT, "--run", out, "--at", 20_000, "--json"))
    assert busy["free"] < 0.5 * late["free"] and late["free"] == 576
    assert "more that fit" in topolane("simulate", *RUN, "--failures", "none")


def test_spare_nodes_absorb_failures(topolane):
    """Without spare nodes no interruption is absorbed; with some, some are, and they stand by."""
    rows = json.loads(
        topolane("racks", *RUN, *FAILING, "--segments", "none,8", "--spares", "0,2", "--jobs", 1, "--json")
    )
    assert [(row["segment"], row["spares"]) for row in rows] == [(None, 0), (8, 0), (None, 2), (8, 2)]
    without, with_spares = rows[:2], rows[2:]
    assert all(
        row["interruptions"] > 0 and row["absorbed"] == row["node_seconds_spare"] == 0 for row in without
    )
    assert all(0 < row["absorbed"] <= row["interruptions"] for row in with_spares)
    assert all(row["node_seconds_spare"] > 0 for row in with_spares)
    text = topolane("simulate", *RUN, *FAILING, "--spares", 2)
    assert "node failures" in text and "went on with a spare node" in text


def test_the_table_of_racks_counts_jobs_in_one_rack_and_jobs_that_never_start(topolane, write):
    """First fit cuts the second job; segments keeps both whole. A spare node makes segments of a whole rack impossible."""
    trace = write("jobs.csv", "id,submit,run,nodes\n1,0,3600,10\n2,1,3600,10\n3,2,3600,1\n4,3,60,18\n")
    run = ("racks", *UNIT, "--trace", trace, "--failures", "none", "--jobs", 1, "--json")
    (first_fit,) = json.loads(topolane(*run, "--segments", "none"))
    assert first_fit["in_one_rack"] == pytest.approx(1 / 3) and first_fit["never_start"] == 0
    rows = json.loads(topolane(*run, "--policy", "segments", "--segments", 18, "--spares", "0,1"))
    assert [(row["in_one_rack"], row["never_start"]) for row in rows] == [(1, 0), (1, 1)]


def test_failures_come_from_a_file(topolane, write):
    """The job on node gb1 is interrupted, and has a row for each of its two runs."""
    trace = write("jobs.csv", "id,submit,run,nodes\n7,0,7200,1\n")
    failures = write("failures.csv", "node,from,until\ngb1,5400,9000\n")
    run = json.loads(
        topolane(
            "simulate", *UNIT, "--trace", trace, "--failures", failures, "--json", "--policy", "first-fit"
        )
    )
    assert run["failures"]["interruptions"] == 1 and run["failures"]["absorbed"] == 0
    assert run["jobs"] == 1
    # Half an hour since the last checkpoint, and ten minutes to start again.
    assert run["failures"]["node_seconds_lost"] == 1800 + 600 and run["makespan"] == 7200 + 1800 + 600


def test_a_run_lists_its_failures(topolane, write, tmp_path):
    """As given, nodes by index; a node that never comes back has no end."""
    failures = write("given.csv", "node,from,until\ngb1,5400,9000\ngb3,2,\n")
    topolane("simulate", *RUN, "--failures", failures, "--no-report", "--out", tmp_path / "out")
    assert (tmp_path / "out" / "failures.csv").read_text() == "node,from,until\n0,5400,9000\n2,2,\n"
    topolane("simulate", *RUN, "--failures", "none", "--no-report", "--out", tmp_path / "none")
    assert not (tmp_path / "none" / "failures.csv").exists()


def test_failures_of_skipped_nodes_do_not_count(topolane, write):
    """Of the machine gb[1-144] two nodes are replayed. The failures of gb3 are skipped, and one sentence on standard error counts
    them. That of gb1 interrupts the job. A node that is not in the whole machine is an error all the same."""
    trace = write("jobs.csv", "id,submit,run,nodes\n7,0,7200,1\n")
    write("failures.csv", "node,from,until\ngb3,0,9000\ngb1,5400,9000\ngb3,9500,9600\n")
    run = (*UNIT, "--trace", trace, "--nodes", "gb[1-2]", "--failures", "failures.csv")
    others = {
        "simulate": ("--policy", "first-fit"),
        "compare": ("--policies", "first-fit", "--scenarios", "none"),
        "racks": ("--policy", "first-fit", "--segments", "none"),
    }
    for command, options in others.items():
        done = topolane.run(command, *run, *options, "--json")
        assert done.stderr == "note: failures.csv: skipped 2 failures of nodes that --nodes leaves out\n"
        found = json.loads(done.stdout)
        first = found[0] if isinstance(found, list) else found
        assert first.get("failures", first)["interruptions"] == 1
    write("failures.csv", "node,from,until\ngb3,0,9000\n")
    assert "1 failure of nodes" in topolane.run("simulate", *run).stderr
    write("failures.csv", "node,from,until\ngb3,0,9000\nlogin1,0,9000\n")
    topolane.refused("simulate", *run, says=("failures.csv:3", "login1"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("node,from,until\ngb999,1,2\n", ("failures.csv:2", "gb999")),
        ("node,from,until\ngb1,5,2\n", ("failures.csv:2", "from 5 until 2")),
        ("node,from,until\ngb1,soon,2\n", ("failures.csv:2", "from", "soon")),
        ("node,from,until\n", "no failure stands in it"),
    ],
)
def test_bad_failures_are_refused(topolane, write, given, says):
    write("failures.csv", given)
    topolane.refused("simulate", *RUN, "--failures", "failures.csv", says=says)


def test_other_bad_input_is_refused(topolane):
    topolane.refused("simulate", *RUN, "--failures", "-1,6", says=("--failures", "no rate"))
    topolane.refused("simulate", *RUN, "--spares", "-1", says="--spares")
    topolane.refused("racks", *RUN, "--segments", "0", says="none")
    topolane.refused("racks", *RUN, "--spares", "none", says="whole numbers")
    topolane.refused("room", *UNIT, "--sizes", "0", says="--sizes")
    topolane.refused("room", *UNIT, "--state", "a.json", "--slurm", says="one of --state, --run and --slurm")
    topolane.refused("room", *UNIT, "--at", 3, says="--run")
