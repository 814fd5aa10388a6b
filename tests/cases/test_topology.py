"""Files of Slurm's topology as operators have them: what Slurm reads is read, and where Slurm warns there is a note."""

from __future__ import annotations

from pathlib import Path

import pytest
import topolane
from topolane import InputError
from topolane._engine import Machine, machine_writers
from topolane.slurm import conf_file
from topolane.slurm.plugin_machine import read_machine

DATA = Path(__file__).parent / "data"


def leaves(machine: Machine) -> dict[str, str]:
    """The hostlist of every leaf switch by its name."""
    return {name: machine.hostlist(range(start, end)) for start, end, name in machine.groups(1)}


THREE_AND_THREE = {"leaf-a": "c[1-3]", "leaf-b": "c[4-6]"}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("blanks.topology.conf", THREE_AND_THREE),
        ("quotes.topology.conf", {"Row A": "c[1-3]"}),
        ("lines.topology.conf", {"leaf-a": "c[1-3]", "leaf-b": "c4"}),
        ("twice.topology.conf", {"leaf-a": "c[1-3]"}),
        ("included/topology.conf", THREE_AND_THREE),
    ],
)
def test_what_slurm_reads_without_a_word_is_read_without_a_note(file, expected):
    machine = topolane.machine(DATA / file)
    assert leaves(machine) == expected
    assert machine.notes == []


@pytest.mark.parametrize(
    ("file", "expected", "note"),
    [
        (
            "two-leaves.topology.conf",
            {"leaf-a": "c[1-3]", "leaf-b": "c[4-5]"},
            "node c3 is on leaf switch leaf-a and on leaf-b of line 2",
        ),
        (
            "no-nodes.topology.conf",
            {"leaf-a": "c[1-3]", "leaf-c": "c[4-5]"},
            "switch leaf-b of line 2 has no nodes, and 1 other is alike",
        ),
        ("two-cores.topology.conf", THREE_AND_THREE, "switches core1, core2 name the same switch"),
        ("two-trees.topology.conf", THREE_AND_THREE, "no switch reaches all nodes: the 2 trees"),
        ("blank-child.topology.conf", {"Row A": "c[1-3]"}, "has a blank in its name: Slurm finds no child"),
        ("mark.topology.conf", {"leaf-a": "c[1-3]"}, "byte order mark"),
        ("key-twice.topology.conf", {"leaf-a": "c[1-3]"}, "Nodes stands twice on line 1"),
    ],
)
def test_where_slurm_warns_a_note_says_what_became_of_it(file, expected, note):
    machine = topolane.machine(DATA / file)
    assert leaves(machine) == expected
    (only,) = machine.notes
    assert note in only


def test_a_block_without_nodes_and_a_node_in_two_blocks_are_notes():
    machine = topolane.machine(DATA / "no-nodes.block.topology.conf")
    blocks = [(name, machine.hostlist(nodes)) for name, nodes, _ in machine.domains()]
    assert blocks == [("rack-a", "c[1-4]"), ("rack-c", "c[5-8]")]
    in_two, empty = machine.notes
    assert 'node "c4" is in block "rack-a" and in "rack-c" of line 3' in in_two
    assert 'block "rack-b" of line 2 has no nodes' in empty
    assert "join others than in Slurm" in empty


def test_two_parents_make_one_group_of_their_switches():
    machine = topolane.machine(DATA / "two-parents.topology.yaml")
    assert leaves(machine) == {"unit": "c[1-3]", "leaf-b": "c4"}
    empty, joined = machine.notes
    assert "switch leaf-c of line 8 has no nodes" in empty
    assert "switches spine1, spine2 name the same switch as their child" in joined
    first, last = machine.node_named("c1"), machine.node_named("c4")
    assert first is not None
    assert last is not None
    assert machine.hops(first, last) == 4
    "Up from unit over leaf-a, the spines and top, down to leaf-b."


def test_an_error_in_an_included_file_names_that_file(tmp_path):
    (tmp_path / "topology.conf").write_text("SwitchName=a Nodes=n1\nInclude rows.conf\n")
    with pytest.raises(InputError, match=r"topology\.conf:2: Include: .*rows\.conf: No such file"):
        topolane.machine(tmp_path / "topology.conf")
    (tmp_path / "rows.conf").write_text("\nSwitchName=a Nodes=n2\n")
    with pytest.raises(InputError, match=r"rows\.conf:2: switch a stands on line 1 already"):
        topolane.machine(tmp_path / "topology.conf")
    (tmp_path / "rows.conf").write_text("Include rows.conf\n")
    with pytest.raises(InputError, match=r'rows\.conf:1: Include "rows.conf": the file includes itself'):
        topolane.machine(tmp_path / "topology.conf")


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("two-leaves.topology.conf", r":2: node c3 is on leaf switch leaf-a and on leaf-b"),
        ("two-cores.topology.conf", r":4: switch leaf-a is named as a child by core2 and by core1 on line 3"),
        ("included/topology.conf", r':2: Include "more.conf": the file is not known here'),
    ],
)
def test_the_plugin_of_slurmctld_takes_only_a_tree_in_one_file(file, why):
    """It promises links on what it reads, so it assumes nothing of what is no tree."""
    with pytest.raises(InputError, match=why):
        read_machine([DATA / file])


@pytest.mark.parametrize("target", machine_writers())
def test_names_that_a_format_does_not_take_are_written_as_others_with_a_note(target):
    """Slurm's hostlists overflow at a number of 20 digits."""
    machine = topolane.machine(DATA / "long-numbers.machine.json", "kubernetes")
    text, notes = machine.to(target), machine.lost(target)
    renamed = [note for note in notes if "is written as" in note]
    if target in ("slurm", "slurm-yaml"):
        assert '"a12345678901234567890" is written as "a12345678901234567890_", and 1 other' in renamed[0]
        assert "a12345678901234567890_" in text
        back = Machine.parse(text, "written", target)
        assert leaves(back) == {"a12345678901234567890_": "c1", "a12345678901234567891_": "c2"}
    else:
        assert renamed == []


def test_slurm_conf_is_read_as_slurm_reads_it(tmp_path):
    """The last value of a key counts, wherever it stands: so the plugin is not taken out while slurmctld needs it."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "# TopologyPlugin=topology/flat\n"
        "topologyplugin = topology/tree#the stock one\n"
        'StateSaveLocation="/var/spool/of slurm" SlurmUser=root\n'
        "Include \\\nplugins.conf\n"
    )
    (tmp_path / "plugins.conf").write_text("TopologyPlugin=\\\ntopology/topolane # ours\n")
    assert conf_file.value(conf, "TopologyPlugin") == "topology/topolane"
    assert conf_file.value(conf, "StateSaveLocation") == "/var/spool/of slurm"
    assert conf_file.value(conf, "SlurmUser") == "root"
    assert conf_file.value(conf, "Nothing") is None
