"""Names of an earlier release: accepted for one release, with the same effect as the present ones, and not listed."""

from __future__ import annotations

import json

import pytest
import topolane as library
from topolane import Scheduler, Shape, State, Task

FORMER = {"owned": "dedicated", "quiet": "quiet-neighborhoods"}
RUN = ("--machine", "fat-tree(radix=8)", "--workload", "exp-8", "--limit", "200", "--json")


@pytest.mark.parametrize("former", FORMER)
def test_a_policy_is_the_same_under_its_former_name(topolane, former):
    present = FORMER[former]
    runs = [json.loads(topolane("simulate", *RUN, "--policy", name)) for name in (former, present)]
    assert runs[0] == runs[1] and runs[0]["policy"] == present
    (run,) = json.loads(topolane("compare", *RUN, "--policies", former, "--scenarios", "none"))
    assert run["policy"] == present


def test_former_names_are_not_listed(topolane):
    listed = [row["name"] for row in json.loads(topolane("policies", "--json"))]
    assert not FORMER.keys() & set(listed) and set(FORMER.values()) <= set(listed)
    for command, former in (("simulate", "--phi"), ("routes", "--service-lanes")):
        assert former not in topolane(command, "--help")


def test_options_keep_their_former_names(topolane, toy, write):
    run = ("simulate", *RUN, "--policy", "dedicated")
    assert topolane(*run, "--phi", "0.5") == topolane(*run, "--min-bandwidth", "0.5") != topolane(*run)
    topolane.refused(*run, "--phi", "2", says="the minimum bandwidth share must be")
    topolane.refused(*run, "--phi", "x", says="'--min-bandwidth'")
    write("state.json", '{"running": []}')
    routes = ("routes", "--machine", toy, "--state", "state.json", "--out", "lfts")
    topolane.refused(*routes, "--service-lanes", "1", says="--service-uplinks reserves")


def test_a_state_keeps_its_former_key(topolane, toy):
    """`phi` is the share of full bandwidth of a running job; a wrong value is refused by its present name."""
    job = {"id": 1, "nodes": "toy[1-2]"}
    for share, code in ((0.5, 0), (2, 2)):
        state = json.dumps({"running": [job | {"phi": share}], "request": {"nodes": 1}})
        assert topolane.run("place", "--machine", toy, stdin=state).returncode == code
    topolane.refused("place", "--machine", toy, stdin=state, says="'bandwidth_share' must be")


def test_keywords_of_the_library_keep_their_former_names():
    machine = library.machine("fat-tree(radix=8)")
    jobs = library.workload("exp-8", machine.nodes, seed=1, shape=Shape(limit=200))
    runs = [
        library.simulate(jobs, machine, policy="dedicated", **options).tables["jobs"].csv()
        for options in ({"phi": 0.5}, {"min_bandwidth": 0.5}, {})
    ]
    assert runs[0] == runs[1] != runs[2]
    task = Task("fat-tree(radix=8)", "exp-8", "dedicated", phi=0.5)
    assert task == Task("fat-tree(radix=8)", "exp-8", "dedicated", min_bandwidth=0.5)
    links = []
    for keyword in ("phi", "min_bandwidth"):
        scheduler = Scheduler(machine, "dedicated", "easy")
        scheduler.submit(1, 8, 60.0, eligible=[0, 1, 2, 4, 5, 6, 8, 9], **{keyword: 0.5})
        (decision,) = scheduler.start(0.0)
        links.append((decision.links, decision.bandwidth_share))
    assert links[0] == links[1]
    (cables, share) = links[0]
    for keyword in ("phi", "bandwidth_share"):
        scheduler = Scheduler(machine, "dedicated", "easy")
        scheduler.adopt(1, [0, 1, 2, 4, 5, 6, 8, 9], 0.0, 60.0, links=cables, **{keyword: 0.5})
        assert scheduler.complete(1)
        State(machine).hold([0, 1, 2, 4, 5, 6, 8, 9], None, cables, **{keyword: share})
