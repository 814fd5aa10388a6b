"""`topolane place` with a request of processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = """name = "m"
[node]
sockets = 1
cores-per-socket = 4
memory = 1000000000
nic-bandwidth = 1e9
copy-bandwidth = 2e9
[[site]]
name = "s"
children = [4, 2]
bandwidth = 1e9
"""


@pytest.fixture
def ask(tmp_path: Path, topolane: Any) -> Any:
    (tmp_path / "m.toml").write_text(MACHINE)

    def run(request: dict[str, Any], *options: str, **state: Any) -> Any:
        (tmp_path / "state.json").write_text(json.dumps({"request": request, **state}))
        return topolane.run(
            "place", str(tmp_path / "state.json"), "--machine", str(tmp_path / "m.toml"), *options
        )

    return run


def answer(run: Any) -> Any:
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_every_k_is_predicted_and_the_shortest_taken(ask: Any) -> None:
    found = answer(ask({"processes": 4, "pattern": "alltoall(bytes=1e6)"}, "--policy", "first-fit", "--json"))
    totals = [rank["total"] for rank in found["ranks"]]
    assert [rank["cores_per_node"] for rank in found["ranks"]] == [1, 2, 3, 4]
    assert found["cores_per_node"] == 4 == 1 + totals.index(min(totals))
    assert found["hosts"] == ["m1"]


def test_fixed_takes_its_number_of_cores(ask: Any) -> None:
    for option in ("fixed:2", "2"):
        run = ask({"processes": 4}, "--policy", "first-fit", "--json", "--cores-per-node", option)
        found = answer(run)
        assert (found["cores_per_node"], found["nodes"]) == (2, [0, 1])


def test_what_does_not_fit_says_why(ask: Any) -> None:
    request = {"processes": 16, "memory": 400_000_000}
    ranks = answer(ask(request, "--policy", "first-fit", "--json"))["ranks"]
    assert [rank["refusal"] for rank in ranks] == ["never", None, "memory", "memory"]
    run = ask({"processes": 64}, "--policy", "first-fit")
    assert run.returncode == 1
    assert "not placed" in run.stdout


def test_running_jobs_that_communicate_count(ask: Any) -> None:
    """While a job fills the cable between the leaves, more of the processes share a node."""
    running = [
        {"id": 1, "nodes": "m[3-4,7-8]", "pattern": "alltoall(bytes=1e9)", "processes": 16},
    ]
    request = {"processes": 4, "pattern": "alltoall(bytes=1e6)"}
    options = ("--policy", "scattered", "--json", "--cores-per-node", "fixed:1")
    quiet = answer(ask(request, *options, running=[{"id": 1, "nodes": "m[3-4,7-8]"}]))
    shared = answer(ask(request, *options, running=running))
    assert quiet["nodes"] == shared["nodes"]
    assert shared["ranks"][0]["total"] > quiet["ranks"][0]["total"]


@pytest.mark.parametrize(
    ("request_", "options", "words"),
    [
        ({"processes": 0}, [], "'processes' must be a whole number from 1"),
        ({"processes": 4, "pattern": "magic"}, [], 'pattern "magic"'),
        ({"processes": 4, "core_seconds": -1}, [], "'core_seconds' must be a number from 0"),
        ({"processes": 4, "iterations": 1e308}, [], "'iterations' must be a number from 0 to 1e+30"),
        ({"processes": 4, "nodes": 2}, [], "unknown key 'nodes'"),
        ({"processes": 4}, ["--cores-per-node", "some"], "neither auto, fixed:k nor a number"),
        ({"processes": 4}, ["--model", "magic"], "unknown model"),
        ({"nodes": 4}, ["--cores-per-node", "auto"], "is for a request that names 'processes'"),
    ],
)
def test_bad_input(ask: Any, request_: dict[str, Any], options: list[str], words: str) -> None:
    run = ask(request_, *options)
    assert run.returncode == 2
    assert words in run.stderr
    assert run.stdout == ""
