"""Lists of Kubernetes nodes as clusters print them: amounts are what they are, and nodes that take no pods are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MAIN = "import sys; from topolane.cli import main; sys.exit(main())"
DATA = Path(__file__).parent / "data"


def run(*words: str) -> tuple[int, str]:
    """The exit code of a command, and all that it prints."""
    done = subprocess.run([sys.executable, "-c", MAIN, *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_node_with_less_than_a_core_has_none(tmp_path: Path) -> None:
    """940m are no whole core: a note says so, the machine file keeps it, and a job of 12 cores a node has no place."""
    file = str(DATA / "less-than-a-core.kubernetes.json")
    code, said = run("machine", "show", file)
    assert code == 0 and "without a whole core to give" in said, said
    kept = tmp_path / "kept.toml"
    assert run("machine", "convert", file, "--to", "toml", "--out", str(kept))[0] == 0
    assert "cores-per-socket = 0" in kept.read_text()
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("id,submit,run,nodes,cores\n1,0,60,1,12\n2,0,60,1,1\n")
    code, said = run(
        "simulate",
        "--machine",
        str(kept),
        "--trace",
        str(jobs),
        "--shared",
        "--policy",
        "first-fit",
        "--json",
    )
    assert code == 2 or '"jobs": 0,\n  "load"' in said, said


def test_nodes_out_of_service_are_named() -> None:
    """A cordoned, a tainted and a node that is not Ready are nodes of the machine, and a note names each."""
    code, said = run("machine", "show", str(DATA / "out-of-service.kubernetes.json"))
    assert code == 0
    for words in ('"w1" is cordoned', '"w3" is not Ready', '"w2" is tainted'):
        assert words in said, said


def test_a_switch_at_two_levels_is_named_with_its_node() -> None:
    """The message names the node once, and no line twice."""
    code, said = run("machine", "show", str(DATA / "one-switch-twice.kubernetes.json"))
    assert code == 2 and 'node "w1" has switch "s1" above itself' in said, said
