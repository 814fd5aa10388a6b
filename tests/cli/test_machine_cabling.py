"""Machines from the cables that NetBox and LLDP record, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from topolane import machine as read_machine

FILES = Path(__file__).parent / "cabling"
HOSTS = "node[1-4]"


@pytest.mark.parametrize("name", ["netbox.csv", "lldp.json"])
def test_the_written_machine_has_the_cables_of_the_file(topolane, tmp_path: Path, name: str) -> None:
    """Two leaves of two nodes, and each leaf on both spines. What the file does not say is a note."""
    out = tmp_path / "machine.toml"
    done = topolane.run("machine", "convert", FILES / name, "--hosts", HOSTS, "--to", "toml", "--out", out)
    assert done.returncode == 0, done
    assert "4 GB/s of each cable is assumed" in done.stderr
    assert ("1 cable is skipped: it carries power" in done.stderr) == (name == "netbox.csv")
    made = read_machine(out)
    assert [name for _, _, name in made.groups(1)] == ["leaf1", "leaf2"]
    assert (made.nodes, made.depth, made.links, made.missing_cables) == (4, 2, 8, 0)
    hops = {there: made.hops(0, made.nodes_named(f"node{there}")[0]) for there in (2, 3, 4)}
    assert hops == {2: 0, 3: 2, 4: 2}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name the nodes with --hosts"),
        (("--hosts", "node[1-4"), "--hosts: "),
        (("--hosts", "other1"), "the subnet has no host"),
    ],
)
def test_a_bad_list_of_hosts_is_one_sentence(topolane, words: tuple[str, ...], sentence: str) -> None:
    done = topolane.run("machine", "check", FILES / "netbox.csv", *words)
    assert done.returncode == 2
    assert sentence in done.stderr and done.stderr.strip().count("\n") == 0


def test_hosts_of_a_file_that_names_its_nodes_are_refused(topolane) -> None:
    """The option would be ignored otherwise."""
    done = topolane.run("machine", "check", "cab", "--hosts", "cab[1-4]")
    assert done.returncode == 2 and "machine cab says itself which its nodes are" in done.stderr
