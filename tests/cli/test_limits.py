"""Machines on parts of which a policy cannot give jobs links: every command says so first, and works on the rest."""

from __future__ import annotations

import json

import pytest

WIDE = """
name = "wide"
[[site]]
name = "core"
children = [4, 2, 2]
parents = [1, 4, 72]
"""
SAID = "dedicated: switches of pod0 and pod1 have 72 uplinks, more than 64: a job that owns links and has nodes there stays"


@pytest.fixture
def wide(tmp_path):
    """16 nodes in two pods whose switches have more uplinks than are kept count of."""
    file = tmp_path / "wide.toml"
    file.write_text(WIDE)
    return file


def test_place_says_it_and_refuses_by_name(topolane, wide):
    """Eight nodes fit a pod; nine would need links between pods, which no job can own here."""
    asked = [json.dumps({"request": {"nodes": nodes}}) for nodes in (8, 9)]
    common = ("place", "--machine", wide, "--policy", "dedicated")
    fits, wider = (topolane.run(*common, stdin=request) for request in asked)
    assert fits.returncode == 0 and fits.stdout.startswith(SAID) and "nodes      " in fits.stdout
    assert wider.returncode == 1 and wider.stdout.startswith(SAID)
    assert (
        "not placed, cannot-isolate: can never be isolated: 9 wanted, 16 in all, but uplinks of a"
        in wider.stdout
    )
    answer = json.loads(topolane.run(*common, "--json", stdin=asked[1]).stdout)
    assert answer["refusal"] == "cannot-isolate" and answer["limits"] == [
        SAID.removeprefix("dedicated: ") + " inside one of them"
    ]
    other = json.loads(
        topolane.run("place", "--machine", wide, "--policy", "isolated", "--json", stdin=asked[1]).stdout
    )
    assert other["placed"] and "limits" not in other


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_runs_say_it_and_go_on(topolane, wide, log, command):
    named = (
        ("--policy", "dedicated")
        if command == "simulate"
        else ("--policies", "isolated,dedicated", "--jobs", 1)
    )
    text = topolane(command, "--machine", wide, "--trace", log, *named)
    assert text.count(SAID) == 1 and text.index(SAID) < text.index("───")
    runs = json.loads(topolane(command, "--machine", wide, "--trace", log, *named, "--json"))
    runs = runs if isinstance(runs, list) else [runs]
    assert [len(run.get("limits", [])) for run in runs if run["policy"] == "dedicated"] == [1] * sum(
        run["policy"] == "dedicated" for run in runs
    )
    assert all("limits" not in run for run in runs if run["policy"] == "isolated")
    (owned, *_) = [run for run in runs if run["policy"] == "dedicated"]
    refused = owned["left_out"]["refused by the policy: cannot-isolate"]
    assert refused > 0 and owned["jobs"] + refused == 40 and owned["jobs_sharing_links"] == 0
