"""`--outages`: links and switches that fail during a run."""

from __future__ import annotations

import csv
import io
import json

import pytest
from topolane import machine, outages

COMMON = (
    "simulate",
    "--machine",
    "fat-tree(radix=8)",
    "--workload",
    "exp-8",
    "--limit",
    150,
    "--policy",
    "dedicated",
)


@pytest.fixture
def failing(tmp_path):
    """A cable, and later a whole second-level switch."""
    file = tmp_path / "failing.csv"
    file.write_text("name,from,until\nleaf0->pod0-s1,200,\npod1-s2,400,900\n")
    return file


def test_jobs_that_are_there_are_listed_and_no_job_comes(topolane, failing, tmp_path):
    """The summary counts and names the jobs that ran on a link when it failed; jobs.csv marks the same ones."""
    run = json.loads(
        topolane(*COMMON, "--outages", failing, "--out", tmp_path / "out", "--no-report", "--json")
    )
    found = run["outages"]
    assert found["outages"] == 2 and found["affected"] == len(found["ids"]) > 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "jobs.csv").read_text())))
    assert [int(row["job_id"]) for row in rows if row["affected"] == "1"] == found["ids"]
    for row in rows:
        if row["affected"] == "1":
            start, end = float(row["starting_time"]), float(row["finish_time"])
            assert start < 200 < end or start < 400 < end
    without = json.loads(topolane(*COMMON, "--json"))
    assert "outages" not in without and without["jobs"] == run["jobs"]


def test_the_table_says_so_for_every_run(topolane, failing):
    text = topolane(
        *("compare", "--machine", "fat-tree(radix=8)", "--workload", "exp-8", "--limit", 150, "--jobs", 1),
        *("--policies", "first-fit,dedicated", "--scenarios", "none", "--outages", failing),
    )
    lines = [line for line in text.splitlines() if "2 outages" in line]
    assert [line.partition(",")[0] for line in lines] == ["first-fit", "dedicated"]
    assert all("affected (" in line for line in lines)


def test_things_are_named_as_the_machine_names_them():
    """A link from either end, one of parallel cables or all, a cable by its id, a switch, a node."""
    tree = machine("fat-tree(radix=4)")
    links = tree.link_names()
    (one,) = tree.cables_named(["leaf0->pod0-s1"])
    assert [links[cable][:4:2] for cable in one] == [("leaf0", "pod0-s1")]
    assert tree.cables_named(["pod0-s1->leaf0", str(one[0])]) == [one, one]
    (switch,) = tree.cables_named(["pod0-s1"])
    assert {name for cable in switch for name in links[cable][:4:2]} == {
        *("leaf0", "leaf1", "pod0-s1"),
        *(links[cable][2] for cable in switch if links[cable][0] == "pod0-s1"),
    }
    assert len(switch) == 4 and tree.cables_named([tree.node_name(3)]) == [[3]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "name,from,until\nleaf0->pod0-s9,0,1\n",
            "failing.csv:2: machine fat-tree(radix=4, pods=4) has no link, switch",
        ),
        (
            "name,from,until\npod0,0,1\n",
            'failing.csv:2: "pod0" is several parallel switches: name one, such as',
        ),
        (
            "name,from,until\n999999,0,1\n",
            'failing.csv:2: machine fat-tree(radix=4, pods=4) has no link, switch or node "999999"',
        ),
        (
            "name,from,until\npod0-s0,soon,1\n",
            "failing.csv:2: from must be a number of seconds or empty, not 'soon'",
        ),
        (
            "name,from,until\npod0-s0,1,nan\n",
            "failing.csv:2: until must be a number of seconds or empty, not 'nan'",
        ),
        (
            "name,from,until\n\npod0-s0,5,5\n",
            "failing.csv:3: it must end after it begins, not from 5 until 5",
        ),
        ("name,from,until\npod0-s0,5\n", "failing.csv:2: 2 cells, where the header names 3"),
        ("link,from\nx,1\n", "failing.csv:1: column 'link' is not known; there are name, from, until"),
        ("name,from,until\n", "failing.csv: no outage stands in it"),
        ("", "failing.csv:1: the header names no column name"),
    ],
)
def test_what_cannot_be_used_is_named(topolane, failing, text, said):
    failing.write_text(text)
    done = topolane.run(
        "simulate", "--machine", "fat-tree(radix=4)", "--workload", "exp-2", "--outages", failing
    )
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and said in done.stderr


def test_a_file_that_is_not_there(topolane, failing):
    done = topolane.run("simulate", "--outages", f"{failing}x")
    assert (done.returncode, done.stdout) == (2, "") and "No such file" in done.stderr


def test_from_python(failing):
    found = outages.read(failing, machine("fat-tree(radix=8)"))
    assert [(outage.start, outage.end) for outage in found] == [(200.0, float("inf")), (400.0, 900.0)]
