"""`topolane routes`: tables for jobs that own links. `tests/fabric/test_routes.py` loads them into a subnet."""

from __future__ import annotations

import json

import pytest

# Of the toy: cables 0-15 are of its nodes; from there on each leaf has 2, one to each second-level switch.
LEAVES = 16


def state(*jobs: dict) -> str:
    return json.dumps({"running": list(jobs)})


A = {"id": 7, "nodes": "toy[1-2,5-6]", "links": [LEAVES, LEAVES + 2]}
B = {"id": "b", "nodes": "toy[3-4,7-8]", "links": [LEAVES + 1, LEAVES + 3]}


@pytest.fixture
def routes(topolane, toy, write):
    """Runs the command on a state; what it says in JSON."""

    def run(text: str, *options: object) -> dict:
        write("state.json", text)
        given = ("--machine", toy, "--state", "state.json", "--out", "lfts")
        return json.loads(topolane("routes", *given, "--json", *options))

    return run


def test_tables_in_words_and_in_json(routes, topolane, toy, tmp_path):
    said = routes(state(A, B))
    assert (said["switches"], said["changed"], said["service"]) == (12, None, None)
    assert [(job["id"], job["nodes"], job["links"]) for job in said["jobs"]] == [
        ("7", "toy[1-2,5-6]", 2),
        ("b", "toy[3-4,7-8]", 2),
    ]
    entries = [line for line in (tmp_path / "lfts").read_text().splitlines() if line.startswith("0x")]
    assert len(entries) == said["entries"]
    words = topolane("routes", "--machine", toy, "--state", "state.json", "--out", "lfts")
    assert words.splitlines()[0].endswith("2 of 2 jobs own 4 links")


def test_the_tables_of_a_machine_read_back(routes, topolane, toy, write, tmp_path):
    # Every way by the file is one by the command's jobs: leaf0 sends both ways over the first cable.
    routes(state(A))
    write("net.ibnetdiscover", topolane("machine", "convert", toy, "--to", "ibnetdiscover"))
    write("jobs.csv", 'id,nodes\n7,"toy[1-2,5-6]"\n')
    said = json.loads(
        topolane(
            "links",
            "--jobs",
            "jobs.csv",
            "--pattern",
            "uniform",
            "--machine",
            "net.ibnetdiscover",
            "--routing",
            "lfts",
            "--top",
            "0",
            "--json",
        )
    )
    used = {row["cable"] for row in said["links"] if row["load"] > 0 and row["cable"] >= LEAVES}
    assert used == set(A["links"])


def test_what_place_answers_is_what_routes_takes(routes, topolane, toy):
    # Job after job: the second is placed on what the first leaves, and the tables keep them apart.
    running: list[dict] = []
    for number in (1, 2):
        asked = json.dumps({"running": running, "request": {"nodes": 6}})
        said = json.loads(topolane("place", "--machine", toy, "--policy", "dedicated", "--json", stdin=asked))
        running.append({"id": number, "nodes": said["nodes"], "links": said["links"]})
    assert not set(running[0]["links"]) & set(running[1]["links"])
    assert [job["links"] for job in routes(state(*running))["jobs"]] == [len(job["links"]) for job in running]
    words = topolane(
        "place", "--machine", toy, "--policy", "dedicated", stdin=json.dumps({"request": {"nodes": 6}})
    )
    assert words.splitlines()[-1].endswith("(cables that no other job uses)")
    taken = json.dumps(
        {"running": [running[0], {**running[1], "links": running[0]["links"]}], "request": {"nodes": 1}}
    )
    topolane.refused(
        "place", "--machine", toy, stdin=taken, says="running[1]: node toy1, or a link above it, has not"
    )
    for share in (0, 2, "x"):
        wrong = json.dumps({"running": [{**running[0], "bandwidth_share": share}], "request": {"nodes": 1}})
        topolane.refused(
            "place",
            "--machine",
            toy,
            stdin=wrong,
            says="running[0]: 'bandwidth_share' must be a number above 0",
        )


def test_what_differs_from_tables_before(routes, write, tmp_path):
    routes(state(A, B))
    write("before", (tmp_path / "lfts").read_bytes())
    again = routes(state(A, B), "--previous", "before")
    assert again["changed"] == 0
    # Without b its nodes are free; only entries for them differ.
    without = routes(state(A), "--previous", "before")
    assert without["changed"] > 0
    assert without["jobs"][0]["changed"] == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            state(A, {**B, "links": A["links"]}),
            "state.json: job b: cable 16 (an uplink of leaf0) is job 7's too",
        ),
        (state(A, {**B, "nodes": "toy[2-3,7]"}), "state.json: job b: node toy2 is job 7's too"),
        (state({**A, "links": [LEAVES, 99]}), "state.json: job 7: cable 99 is not among the"),
        (state({**A, "links": [LEAVES]}), "state.json: job 7: its links do not lead from leaf"),
        (state({**A, "links": [0]}), "state.json: job 7: cable 0 (of node toy1) does not join"),
        (state({**A, "links": "all"}), "state.json: running[0]: 'links' is not a list of cables but \"all\""),
        (state({"id": 7, "links": []}), "state.json: running[0]: 'nodes' names no node"),
        (state({**A, "nodes": "x1"}), "state.json: running[0]: 'nodes': machine toy has no node x1"),
        (state(A, A), "state.json: running[1]: there is a job 7 already"),
        (state({**A, "color": 1}), "state.json: running[0]: unknown key 'color'"),
        ("{", "state.json:1: not JSON"),
    ],
)
def test_a_state_that_cannot_be(topolane, toy, write, text, says):
    write("state.json", text)
    topolane.refused("routes", "--machine", toy, "--state", "state.json", "--out", "lfts", says=says)


def test_options_that_cannot_be(topolane, toy, write):
    write("state.json", state(A))
    command = ("routes", "--machine", toy, "--state", "state.json", "--out", "lfts")
    topolane.refused(*command, "--service-uplinks", "1", says="name these nodes with --service")
    topolane.refused(*command, "--service", "x1", says="--service x1: machine toy has no node x1")
    topolane.refused(
        *command, "--nodes", "toy[1-4]", says="--nodes: forwarding tables are for the whole machine"
    )
    topolane.refused(*command, "--previous", "nothing", says="nothing: No such file")
    write("other", "not tables\n")
    topolane.refused(
        *command, "--previous", "other", says="other:1: not a line of a dump of forwarding tables"
    )
    aside = ("--service", "toy16", "--service-uplinks", "4")
    topolane.refused(*command, *aside, says="is reserved for service nodes")
