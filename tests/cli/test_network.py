"""Runs on a network from the command line: links, patterns, and what is refused."""

from __future__ import annotations

import csv
import io
import json

import pytest

SMALL = "fat-tree(radix=4)"  # 16 nodes, 48 links
RUN = ("simulate", "--machine", SMALL, "--network", "congestion", "--patterns", "stencil4d", "--no-report")


NARROW = 'name = "narrow"\n[[site]]\nname = "core"\nchildren = [4, 4]\n'  # one cable a leaf


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def read(topolane, name: str) -> list[dict[str, str]]:
    return rows((topolane.directory / name).read_text())


@pytest.fixture
def narrow(write):
    """16 nodes, 20 links: scattered jobs meet on the one cable of a leaf."""
    return write("narrow.toml", NARROW)


@pytest.fixture
def crowd(write):
    """Jobs of 3 nodes, more than run at once."""
    lines = [f"{index},{30 * index},{100 + index},3,{400 + index}" for index in range(12)]
    return write("crowd.csv", "\n".join(["id,submit,run,nodes,walltime", *lines, ""]))


def test_a_comparison_on_a_network(topolane, narrow, crowd):
    """The reference without a network, every policy on it; two rows for every link; isolated jobs are
    not slowed, the others are; the page shows it."""
    text = topolane(
        *("compare", "--machine", narrow, "--trace", crowd, "--jobs", 1, "--out", "out"),
        *("--policies", "scattered,isolated", "--network", "congestion", "--patterns", "stencil4d"),
        *("--comm-fraction", 1),
    )
    assert "isolated against scattered under easy" in text
    assert "slowed by others, mean / worst" in text
    facts = json.loads((topolane.directory / "out/summary.json").read_text())
    assert [(run["policy"], run["network"]) for run in facts] == [
        ("scattered", None),
        ("scattered", "congestion"),
        ("isolated", "congestion"),
    ]
    assert "contention" not in facts[0]
    assert facts[1]["contention"]["slowed"] > 0 < facts[1]["contention"]["node_seconds_lost"]
    assert (facts[2]["contention"]["slowed"], facts[2]["contention"]["max"]) == (0, 1.0)
    assert [pattern["pattern"] for pattern in facts[1]["contention"]["by_pattern"]] == ["stencil4d"]
    for name in ("scattered", "isolated"):
        links = read(topolane, f"out/runs/{name}-easy-none-congestion/links.csv")
        assert len(links) == 2 * (16 + 4)
        assert {(row["link"], row["direction"]) for row in links} == {
            (str(link), way) for link in range(20) for way in ("up", "down")
        }
        assert all(0 <= float(row["mean_load"]) <= 1 for row in links)
    assert not (topolane.directory / "out/runs/scattered-easy-none/links.csv").exists()
    jobs = read(topolane, "out/runs/isolated-easy-none-congestion/jobs.csv")
    assert {(row["pattern"], float(row["contention"])) for row in jobs} == {("stencil4d", 1.0)}
    page = (topolane.directory / "out/report.html").read_text()
    assert all(f'id="{figure}"' in page for figure in ("link-heat-2", "contention", "contention-by-size"))


def test_links_that_are_missing_have_no_row(topolane, crowd, write):
    machine = write(
        "gap.toml",
        'name = "gap"\n[[site]]\nname = "core"\nchildren = [4, 4]\nparents = [1, 2]\n'
        "missing = [[1, 2, 0, 1, 0]]\n",
    )
    topolane("simulate", "--machine", machine, "--trace", crowd, "--out", "out", *RUN[3:])
    links = read(topolane, "out/links.csv")
    assert len(links) == 2 * (16 + 4 * 2 - 1)
    assert not [row for row in links if (row["level"], row["group"], row["parent"]) == ("1", "2", "1")]


@pytest.mark.parametrize("model", ["congestion", "max-min"])
def test_the_load_of_one_job_by_hand(topolane, write, model):
    """One job of two nodes on two leaves runs for T = 100 s of a makespan M = 300 s, which a job of one
    node makes that long. It uses its bottleneck for the fraction f of T: load f T / M in the mean.
    stencil4d of two ranks sends both ways; so the sum is over the links of both ways."""
    trace = write("one.csv", "id,submit,run,nodes,walltime\n1,0,100,2,\n2,0,300,1,\n")
    topolane(
        *("simulate", "--machine", SMALL, "--trace", trace, "--policy", "scattered", "--out", "out"),
        *("--network", model, "--patterns", "stencil4d", "--comm-fraction", 0.6, "--no-report"),
    )
    (job,) = [row for row in read(topolane, "out/jobs.csv") if row["job_id"] == "1"]
    first, second = map(int, job["allocated_resources"].replace("-", " ").split())
    assert first // 2 != second // 2
    links = read(topolane, "out/links.csv")
    assert len({row["bandwidth"] for row in links}) == 1
    loads = [float(row["mean_load"]) for row in links if float(row["mean_load"]) > 0]
    assert loads == [pytest.approx(0.6 * 100 / 300, abs=1e-6)] * len(loads)
    levels = 2 if first // 4 == second // 4 else 3
    assert len(loads) == 2 * 2 * levels
    used = {row["group"] for row in links if row["level"] == "0" and float(row["mean_load"]) > 0}
    assert used == {str(first), str(second)}


def test_jobs_end_at_their_walltime_if_asked(topolane, narrow, write):
    """Without the option a slowed job outlasts its walltime and is counted; with it, it ends there; one
    that has no walltime goes on."""
    lines = [f"{index},0,100,3,{101 if index % 2 else ''}" for index in range(5)]
    trace = write("tight.csv", "\n".join(["id,submit,run,nodes,walltime", *lines, ""]))
    common = ("simulate", "--machine", narrow, *RUN[3:], "--trace", trace, "--policy", "scattered")
    common += ("--comm-fraction", 1, "--json")
    goes_on = json.loads(topolane(*common, "--out", "on"))
    assert goes_on["contention"]["overran"] > 0 == goes_on["killed_at_walltime"]
    assert "ran past the walltime (without one, the run time)" in topolane(*common[:-1])
    ended = json.loads(topolane(*common, "--kill-at-walltime", "--out", "ended"))
    assert ended["killed_at_walltime"] > 0
    states = {row["job_id"]: row for row in read(topolane, "ended/jobs.csv")}
    slowed = [row for row in states.values() if float(row["contention"]) > 1]
    assert slowed
    for row in states.values():
        if int(row["job_id"]) % 2:
            assert float(row["execution_time"]) <= 101
        else:
            assert row["final_state"] == "COMPLETED_SUCCESSFULLY"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--comm-fraction", 2), ("--comm-fraction", "2.0 is not between 0 and 1")),
        (("--comm-fraction", "nan"), "--comm-fraction"),
        (("--patterns", "nope"), ("nope", "stencil4d", "pairs", "suba2a")),
        (("--patterns", "stencil4d(speed=1)"), "speed"),
        (("--routing", "nope"), ("nope", "d-mod-k", "s-mod-k", "random", "adaptive")),
        (("--network", "nope"), ("nope", "congestion", "max-min")),
        (("--network", ""), ("unknown model", "congestion", "max-min")),
        (("--patterns", "stencil4d(bytes=1e-320)"), ("bytes from rank", "1e-30")),
    ],
)
def test_what_no_network_is(topolane, crowd, options, says):
    topolane.refused(*RUN, "--trace", crowd, "--out", "out", *options, says=says)
    comparison = ("compare", *RUN[1:], "--trace", crowd, "--jobs", 1, "--out", "out")
    topolane.refused(*comparison, *options, says=says)


def test_with_a_network_no_speed_up_is_assumed(topolane, crowd):
    common = ("compare", *RUN[1:], "--trace", crowd, "--jobs", 1, "--out", "out")
    for scenarios in ("10", "none,v1"):
        topolane.refused(*common, "--scenarios", scenarios, says=("no speed-up is assumed", "--scenarios"))
    topolane.refused(
        *RUN, "--trace", crowd, "--scenario", "10", "--out", "out", says="no speed-up is assumed"
    )


def test_parameters_of_patterns_may_hold_commas(topolane, crowd):
    patterns = "pairs, unstructured3d(least=2, most=4)"
    facts = json.loads(topolane(*RUN, "--trace", crowd, "--patterns", patterns, "--json"))
    assert [row["pattern"] for row in facts["contention"]["by_pattern"]] == ["pairs", "unstructured3d"]


def test_a_pair_that_no_way_joins_is_named(topolane, write):
    """One switch above each leaf, and the two leaves have kept cables to different ones: there are
    uplinks on both sides, but no way, whichever routing spreads the traffic."""
    missing = "missing = [[1, 0, 0, 0, 0], [1, 1, 0, 1, 0]]"
    machine = write(
        "broken.toml",
        f'name = "broken"\n[[site]]\nname = "core"\nchildren = [2, 2]\nparents = [1, 2]\n{missing}\n'
        'nodes = "n[1-4]"\n',
    )
    trace = write("all.csv", "id,submit,run,nodes\n7,0,100,4\n")
    for routing in ("d-mod-k", "adaptive"):
        options = ("--trace", trace, "--patterns", "alltoall", "--routing", routing)
        topolane.refused(
            "simulate",
            "--machine",
            machine,
            *RUN[3:5],
            *options,
            says="job 7: no route leads from node n1 to node n3",
        )


def test_jobs_draw_a_matrix_that_was_measured(topolane, crowd, write):
    """A file of traffic is used in addition to the patterns: jobs that draw it have its name; a bad one is refused by line."""
    matrix = write("mine.csv", "from,to,bytes,messages\n0,1,1000,1\n1,2,1000,1\n2,0,1000,1\n")
    run = ("simulate", "--machine", SMALL, "--network", "congestion", "--no-report", "--trace", crowd)
    topolane(*run, "--patterns", matrix, "--out", "out")
    assert {row["pattern"] for row in read(topolane, "out/jobs.csv")} == {"mine"}
    bad = write("bad.csv", "from,to,bytes\n0,x,1000\n")
    topolane.refused(*run, "--patterns", bad, "--out", "bad", says=("bad.csv:2:", '"x" is not a rank'))


GRIDS = ["torus(size=8x8)", "hyperx(size=4x4, nodes=4)"]


@pytest.mark.parametrize("machine", GRIDS)
def test_a_comparison_on_a_torus_and_a_hyperx(topolane, machine, write):
    """The same options and tables as on a tree: isolated jobs are not slowed, random ones are, and `least-slowdown` loses less."""
    jobs = [f"{index},{30 * index},400,16,900" for index in range(12)]
    crowd = write("crowd.csv", "\n".join(["id,submit,run,nodes,walltime", *jobs, ""]))
    topolane(
        *("compare", "--machine", machine, "--trace", crowd, "--jobs", 1, "--out", "out"),
        *("--policies", "random,isolated,least-slowdown", "--network", "congestion"),
        *("--patterns", "alltoall", "--comm-fraction", 1),
    )
    facts = json.loads((topolane.directory / "out/summary.json").read_text())
    slowed = {run["policy"]: run["contention"] for run in facts if run["network"]}
    assert slowed["random"]["slowed"] > 0 == slowed["isolated"]["slowed"]
    assert slowed["least-slowdown"]["node_seconds_lost"] < slowed["random"]["node_seconds_lost"]
    links = read(topolane, "out/runs/random-easy-none-congestion/links.csv")
    between = [row for row in links if row["level"] == "switches"]
    assert len(between) == (2 * (64 + 64) if machine.startswith("torus") else 2 * (4 * 6 + 4 * 6))
    assert any(float(row["mean_load"]) > 0 for row in between)


@pytest.mark.parametrize(
    ("machine", "routing"),
    [("torus(size=4x3x2, nodes=2)", "dimension-order"), ("hyperx(size=4x3, nodes=2, cables=1x2)", "minimal")],
)
def test_links_of_a_torus_and_a_hyperx(topolane, machine, routing, write):
    """Two jobs that each have a node on both of two neighbours meet on the cables between them, and on no other link."""
    name = machine.partition("(")[0]
    jobs = write("jobs.csv", f'id,nodes,pattern\n1,"{name}[1,3]",alltoall\n2,"{name}[2,4]",alltoall\n')
    found = json.loads(topolane("links", "--machine", machine, "--jobs", jobs, "--json"))
    assert found["routing"] == routing
    met = {link["link"].partition("#")[0] for link in found["links"] if len(link["jobs"]) == 2}
    assert met == {"leaf0->leaf1", "leaf1->leaf0"}


def test_a_pod_has_no_contention(topolane, crowd):
    run = ("simulate", "--machine", "torus(size=8x4, cube=4x4)", "--trace", crowd, *RUN[3:], "--out", "out")
    topolane.refused(*run, says="is a pod, whose optical switches are set for each job")
