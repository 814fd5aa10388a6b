"""`topolane links`: loads of links that can be worked out by hand, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

# Two leaves of two hosts, each with two cables to one spine.
NET = Path(__file__).parents[2] / "crates/fabric/tests/data/two-leaves.ibnetdiscover"
LIDS = {"n1": 1, "n2": 5, "n3": 6, "n4": 7}
# Of every switch the ports towards n1 to n4: all cross traffic by the first cable of a leaf, but
# n4's, which takes the second.
PORTS = {
    ("0000000000200000", "leaf0"): [1, 2, 3, 4],
    ("0000000000200001", "leaf1"): [3, 3, 1, 2],
    ("0000000000200002", "spine"): [1, 1, 3, 4],
}


def dump(ports: dict[tuple[str, str], list[int]]) -> str:
    lines = []
    for (guid, name), out in ports.items():
        lines.append(f"Unicast lids [0-7] of switch Lid 2 guid 0x{guid} ('{name}'):")
        lines += [f"0x{lid:04x} {port:03} # x" for lid, port in zip(LIDS.values(), out)]
        lines.append("7 lids dumped")
    return "\n".join([*lines, ""])


@pytest.fixture
def net(write):
    write("tables.dump", dump(PORTS))
    write("flow.csv", "from,to,bytes\n0,1,1000\n")
    write("jobs.csv", 'id,nodes,traffic\n7,"n1,n3",flow.csv\n8,"n2,n3",flow.csv\n9,n4,\n')
    return write("net.ibnetdiscover", NET.read_text())


ASK = ("links", "--machine", "net.ibnetdiscover", "--jobs", "jobs.csv")
BY = ("--routing", "tables.dump")


def answer(topolane, *arguments) -> dict:
    return json.loads(topolane(*ASK, *arguments, "--json"))


def test_loads_and_users_by_hand(topolane, net):
    # Jobs 7 and 8 each want all of every link of their one way; their ways join at leaf0 and go on
    # by one cable. Job 9 is alone on a node and sends nothing.
    found = answer(topolane, *BY)
    assert (found["routing"], found["found"]) == ("tables", 5)
    loads = {link["link"]: (link["load"], [user["id"] for user in link["jobs"]]) for link in found["links"]}
    assert loads == {
        "leaf0->spine#0": (2.0, ["7", "8"]),
        "spine->leaf1#0": (2.0, ["7", "8"]),
        "leaf1->n3": (2.0, ["7", "8"]),
        "n1->leaf0": (1.0, ["7"]),
        "n2->leaf0": (1.0, ["8"]),
    }
    assert [link["load"] for link in found["links"]] == [2.0, 2.0, 2.0, 1.0, 1.0]
    # 1,000 bytes at the 1 GB/s of four SDR lanes.
    assert [job["time_alone"] for job in found["jobs"]] == [1e-6, 1e-6, 0.0]


def test_json_as_place_reads_it(topolane, net, write):
    write("state.json", json.dumps({"machine": "cab", "down": "n4", "running": [{"id": 7, "nodes": [0, 2]}]}))
    by = ("--routing", "tables.dump", "--pattern", "stencil4d(bytes=1000)", "--json")
    found = json.loads(topolane("links", "--machine", "net.ibnetdiscover", "--jobs", "state.json", *by))
    # Two ranks in a line, each the other's neighbour: eight links, none of them leaf0's second.
    names = {link["link"] for link in found["links"]}
    assert names == {"n1->leaf0", "leaf0->spine#0", "spine->leaf1#0", "leaf1->n3"} | {
        "n3->leaf1", "leaf1->spine#0", "spine->leaf0#0", "leaf0->n1",
    }  # fmt: skip


def test_adaptive_spreads_over_parallel_cables(topolane, net):
    # Two cables carry the two jobs' traffic, half a cable's worth each per job.
    found = answer(topolane, "--routing", "adaptive", "--between", "leaf0", "spine")
    up = [link for link in found["links"] if link["direction"] == "up"]
    assert [(link["load"], link["capacity"]) for link in up] == [(1.0, 1e9), (1.0, 1e9)]


def test_selections(topolane, net):
    def names(*arguments):
        return [link["link"] for link in answer(topolane, *BY, *arguments)["links"]]

    assert names("--link", "leaf0->spine#1") == ["leaf0->spine#1"]
    assert names("--link", "leaf0->spine") == ["leaf0->spine#0", "leaf0->spine#1"]
    assert sorted(names("--link", "0")) == ["leaf0->n1", "n1->leaf0"]
    assert sorted(names("--between", "n4", "leaf1")) == ["leaf1->n4", "n4->leaf1"]
    assert len(names("--between", "spine", "leaf1")) == 4
    assert len(names("--top", 2)) == 2
    assert "... and 3 more links" in topolane(*ASK, *BY, "--top", 2)


def changed(switch: str, host: str, port: int) -> str:
    ports = {key: list(out) for key, out in PORTS.items()}
    next(out for key, out in ports.items() if key[1] == switch)[list(LIDS).index(host)] = port
    return dump(ports)


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        (changed("spine", "n3", 1), ("tables.dump:16", "destination n3", "switch spine", "sends it round")),
        (changed("spine", "n3", 255), ("tables.dump:16", "destination n3", "spine has no port for it")),
        (changed("spine", "n4", 8), ("tables.dump:17", "destination n4", "port 8, which has no cable")),
        (dump(PORTS)[:-15], ("tables.dump:13", "spine breaks off", "cut short")),
        (
            dump(PORTS).replace("20000", "2000f", 1),
            ("tables.dump:1", "0x00000000002000f0", "is not in net.ib"),
        ),
        (dump(PORTS).replace("0x0006", "0x0009", 1), ("tables.dump:4", "LID 0x0009 belongs to no port")),
        ("", "no forwarding table"),
        (b"\xff", "not UTF-8 text"),
    ],
)
def test_tables_that_cannot_be(topolane, net, write, tables, says):
    write("tables.dump", tables)
    topolane.refused(*ASK, *BY, says=says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--routing", "nope"), ("no routing and no file is called 'nope'", "d-mod-k")),
        ((*BY, "--machine", "cab"), ("tables.dump", "not with machine 'cab'")),
        ((*BY, "--nodes", "n[1-2]"), "the whole machine"),
        ((*BY, "--machine", "jobs.csv"), "jobs.csv:1: not a line of ibnetdiscover"),
        ((*BY, "--link", "n1->n2"), "--link 'n1->n2': the machine has no such link"),
        ((*BY, "--between", "n1", "spine"), "no link joins 'n1' and 'spine'"),
        ((*BY, "--pattern", "nope"), ('"nope"', "there is none of that name")),
        ((*BY, "--jobs", "nope.csv"), "nope.csv: No such file"),
    ],
)
def test_unknown_arguments(topolane, net, arguments, says):
    topolane.refused(*ASK, *arguments, says=says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,nodes\n", "jobs.csv: no job is running"),
        ("id,hosts\n7,n1\n", "jobs.csv:1: column 'hosts' is not known; there are"),
        ("nodes\nn1\n", "jobs.csv:1: the header names no column id"),
        ("id,nodes\n7,n1,n2\n", ("jobs.csv:2: 3 cells", "quotes")),
        ("id,nodes\n7,n9\n", ("jobs.csv:2: 'nodes'", "no node n9")),
        ("id,nodes\n7,\n", "jobs.csv:2: 'nodes' names no node"),
        ("id,nodes\n7,n1\n7,n2\n", "jobs.csv:3: there is a job 7 already"),
        ("id,nodes,pattern,traffic\n7,n1,stencil4d,flow.csv\n", "name two kinds of traffic"),
        ("id,nodes,traffic\n7,n1,flow.csv\n", ("jobs.csv:2: flow.csv has 2 ranks", "the job has 1")),
        ("id,nodes,traffic\n7,n1,none.csv\n", "none.csv: No such file"),
        ("id,nodes,traffic\n7,n1,jobs.csv\n", "jobs.csv:1: "),
    ],
)
def test_jobs_that_cannot_be(topolane, net, write, text, says):
    write("jobs.csv", text)
    topolane.refused(*ASK, *BY, says=says)
