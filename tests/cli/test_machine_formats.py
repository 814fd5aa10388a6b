"""Machines in formats of racks, on the command line: read, joined, written, and notes on what was skipped."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from topolane import machine as read_machine

SHARED = Path(__file__).parents[3] / "shared" / "machines"

YAML = """---
- topology: racks
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: r1, nodes: "n[1-2]"}
      - {block: r2, nodes: "n[3-4]"}
- topology: wires
  cluster_default: true
  tree:
    switches:
      - {switch: top, children: "s[1-2]"}
      - {switch: s1, nodes: "n[1,3]"}
      - {switch: s2, nodes: "n[2,4]"}
"""
WIRES = 'name = "wired"\n[[site]]\nname = "s"\nchildren = [2, 2]\nparents = [1, 2]\nnodes = "n[1,3,2,5]"\n'


@pytest.fixture
def run(topolane):
    """Runs the script and expects an exit code; notes may stand on standard error."""

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = topolane.run(*arguments)
        assert done.returncode == code, done
        return done

    return run


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    path = tmp_path / "topology.yaml"
    path.write_text(YAML)
    return path


@pytest.fixture
def wires(tmp_path: Path) -> Path:
    path = tmp_path / "wires.toml"
    path.write_text(WIRES)
    return path


def test_all_topologies_are_read_and_one_by_name(run, topology: Path):
    shown = run("machine", "show", topology, "--json")
    facts = json.loads(shown.stdout)
    assert (facts["nodes"], len(facts["domains"])) == (4, 2)
    assert "topologies wires and racks are read as one machine" in shown.stderr
    facts = json.loads(run("machine", "show", topology, "--topology", "racks", "--json").stdout)
    assert facts["block_sizes"] == [2, 4]
    assert [(domain["name"], domain["nodes"]) for domain in facts["domains"]] == [
        ("r1", "n[1-2]"),
        ("r2", "n[3-4]"),
    ]
    shown = run("machine", "show", topology, "--topology", "racks")
    assert "2 domains of 2 nodes" in shown.stdout and "block sizes 2, 4 nodes" in shown.stdout
    assert "says nothing of cables" in shown.stderr
    missing = run("machine", "show", topology, "--topology", "x", code=2)
    assert 'there is no topology "x"; there are racks, wires' in missing.stderr


@pytest.mark.parametrize("cables_first", [True, False])
def test_domains_join_cables(run, tmp_path: Path, wires: Path, cables_first: bool):
    """Whichever file is named first, cables come from the one that knows them."""
    blocks = tmp_path / "topology.conf"
    blocks.write_text("BlockSizes=2\nBlockName=r1 Nodes=n[1-2]\nBlockName=r2 Nodes=n[3-4]\n")
    files = (wires, "--join", blocks) if cables_first else (blocks, "--join", wires)
    shown = run("machine", "convert", *files, "--to", "toml", "--out", tmp_path / "both.toml")
    assert 'node "n4" is not in the machine: skipped in domains' in shown.stderr
    assert 'node "n5" is in no domain' in shown.stderr
    both = read_machine(tmp_path / "both.toml")
    assert (both.nodes, both.links, both.block_sizes) == (4, read_machine(wires).links, [2])
    assert [(name, both.hostlist(nodes)) for name, nodes, _ in both.domains()] == [
        ("r1", "n[1-2]"),
        ("r2", "n3"),
    ]


def test_what_a_format_cannot_say_is_reported(run, tmp_path: Path, wires: Path):
    notes = run("machine", "convert", wires, "--to", "slurm").stderr
    assert "slurm does not say how many cables there are" in notes
    assert run("machine", "convert", wires, "--to", "toml").stderr == ""


def test_every_command_takes_both_files(run, tmp_path: Path, wires: Path, topology: Path):
    shown = run(
        "simulate", "--machine", wires, "--join", topology, "--workload", "cab-aug", "--limit", 5, code=0
    )
    assert shown.stdout
    refused = run(
        "routes", "--machine", wires, "--join", topology, "--run", "x", "--out", tmp_path / "y", code=2
    )
    assert "--topology and --join" in refused.stderr


def test_a_gzipped_file_is_read(run, tmp_path: Path):
    path = tmp_path / "hosts.csv.gz"
    path.write_bytes(gzip.compress(b"ip,DSW,PSW,ASW\na,G,P,S\nb,G,P,S\n"))
    machine = read_machine(path)
    assert (machine.nodes, machine.name) == (2, "hosts")
    path.write_bytes(path.read_bytes()[:-12])
    assert "damaged gzip archive" in run("machine", "check", path, code=2).stderr


def test_bad_labels_are_one_sentence_with_file_and_line(run, tmp_path: Path):
    path = tmp_path / "nodes.yaml"
    node = "- kind: Node\n  metadata: {{name: {}, labels: {{fabric.topograph.run/tier-0: l, fabric.topograph.run/tier-1: {}}}}}\n"
    path.write_text("kind: List\nitems:\n" + node.format("a", "s1") + node.format("b", "s2"))
    notes = run("machine", "check", path, code=2).stderr
    assert f'{path}:5: node "b" says that switch "l" hangs on "s2", node "a" of line 3 says' in notes
    assert len(notes.strip().splitlines()) == 1


def test_the_hosts_of_lingjun_are_read():
    path = SHARED / "lingjun-2023-topo.csv.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    lines = gzip.decompress(path.read_bytes()).decode().split()[1:]
    rows = [line.split(",") for line in lines]
    machine = read_machine(path)
    assert machine.nodes == len(rows)
    assert len(machine.groups(1)) == len({tuple(row[1:]) for row in rows})
    assert len(machine.groups(2)) == len({tuple(row[1:3]) for row in rows})
