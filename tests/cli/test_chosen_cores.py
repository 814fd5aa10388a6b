"""`topolane simulate --cores-per-node`: every job's cores per node chosen at its submission."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = """name = "m"
[node]
sockets = 1
cores-per-socket = 4
nic-bandwidth = 1e9
copy-bandwidth = 1e9
latency = 0.0
copy-latency = 0.0
memory-bandwidth = 1e15
[[site]]
name = "s"
children = [8]
bandwidth = 1e9
"""
LOG = """; MaxNodes: 8
; MaxProcs: 32
1 0 0 100 8 -1 -1 8 200 -1 1 -1 -1 -1 -1 -1 -1 -1
2 500 0 100 8 -1 -1 8 200 -1 1 -1 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def simulate(tmp_path: Path, topolane: Any) -> Any:
    (tmp_path / "m.toml").write_text(MACHINE)
    (tmp_path / "log.swf").write_text(LOG)

    def run(*options: str, code: int = 0) -> Any:
        files = ("--machine", str(tmp_path / "m.toml"), "--trace", str(tmp_path / "log.swf"))
        asked = ("--network", "full", "--patterns", "alltoall(bytes=1e6)", "--comm-fraction", "0.5", "--json")
        done = topolane.run(
            "simulate", *files, *asked, "--no-report", "--out", str(tmp_path / "out"), *options
        )
        assert done.returncode == code, done.stderr
        if code:
            return done.stderr
        with (tmp_path / "out" / "jobs.csv").open() as rows:
            return json.loads(done.stdout), list(csv.DictReader(rows))

    return run


def facts(rows: list[dict[str, str]]) -> list[tuple[int, float]]:
    return [(int(row["requested_number_of_resources"]), float(row["execution_time"])) for row in rows]


def test_fixed_cores_change_nodes_and_run_time(simulate: Any) -> None:
    """Eight processes exchange b bytes with each other for half of the log's 100 s. On two nodes of
    four 16 b leave each node, on four of two 12 b, on eight of one 7 b: so 50 + 50 * 12 / 16 and
    50 + 50 * 7 / 16 seconds."""
    cases = {"fixed:4": (2, 100.0), "fixed:2": (4, 87.5), "fixed:1": (8, 71.875)}
    for option, expected in cases.items():
        _, rows = simulate("--cores-per-node", option)
        for nodes, seconds in facts(rows):
            assert nodes == expected[0]
            assert seconds == pytest.approx(expected[1], rel=1e-6)


def test_auto_takes_the_shortest(simulate: Any) -> None:
    _, rows = simulate("--cores-per-node", "auto")
    assert [nodes for nodes, _ in facts(rows)] == [8, 8]


def test_without_a_choice_nothing_changes(simulate: Any) -> None:
    _, rows = simulate("--cores-per-node", "4")
    assert facts(rows) == [(2, 100.0), (2, 100.0)]


def test_what_is_refused(simulate: Any, topolane: Any) -> None:
    assert "neither a number" in simulate("--cores-per-node", "fixed:0", code=2)
    too_many = simulate("--cores-per-node", "fixed:5", code=2)
    assert "5 cores of each node wanted, 4 the most that one has" in too_many
    assert "cannot be chosen" in simulate("--cores-per-node", "auto", "--queue", "recorded", code=2)
    done = topolane.run("simulate", "--workload", "exp-16", "--limit", "5", "--cores-per-node", "auto")
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs --network" in done.stderr
    done = topolane.run("workload", "show", "--workload", "exp-16", "--cores-per-node", "auto")
    assert (done.returncode, done.stdout) == (2, "")
