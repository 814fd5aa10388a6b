"""What `topolane slurm plugin check` finds from files and Slurm's answers alone, without a Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest
from topolane.slurm import host_check, plugin_check
from topolane.slurm.plugin_build import PLUGIN

READS_YAML = b"\0topology.yaml\0"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("- topology: a\n  tree:\n    switches: []\n- topology: b\n  flat: true\n", ["flat", "tree"]),
        ('[{"topology": "a", "block": {"blocks": []}}]', ["block"]),
        ("- {topology: a, tree: {switches: []}}\n", ["tree"]),
        ("- topology: tree # flat: true\n# block:\n  ring:\n", ["ring"]),
    ],
)
def test_the_types_of_a_topology_yaml_say_what_slurm_loads(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    """In every style of YAML; comments and values do not count."""
    conf = tmp_path / "slurm.conf"
    conf.touch()
    (tmp_path / "topology.yaml").write_text(text)
    assert host_check.file_names(READS_YAML, str(conf), "topology/flat") == [
        f"topology_{name}.so" for name in names
    ]
    (older,) = host_check.file_names(b"", str(conf), "topology/topolane")
    assert older == PLUGIN, "this Slurm does not know the file"


def test_every_directory_of_plugin_dir_must_exist(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Otherwise Slurm refuses slurm.conf, in daemons and commands."""
    host_check.load("node", [str(tmp_path), f"{tmp_path}/none"], "/nowhere/slurm.conf", "topology/tree")
    assert (
        f"wrong PluginDir names {tmp_path}/none, which is no directory".encode()
        in capfdbinary.readouterr().out
    )


def test_programs_in_the_prefix_of_plugin_dir_say_the_release(tmp_path: Path) -> None:
    """A shell of ssh does not have the directories of a Slurm in /opt in its PATH."""
    program = tmp_path / "sbin" / "slurmctld"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho slurm 25.05.7\n")
    program.chmod(0o755)
    assert host_check.installed_release("controller", [str(tmp_path / "lib" / "slurm")]) == "25.05.7"


def test_free_text_of_a_node_does_not_change_what_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment or reason can be set by others. A cloud node that is up is asked. srun is used for nodes alone, in a partition of
    theirs.
    """
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(
        '#!/bin/sh\ncase "$*" in\n*config*) echo "SlurmctldHost[0] = head" ;;\n*) cat <<END\n'
        "NodeName=n1 NodeHostName=h1 State=IDLE Partitions=a,b Comment=NodeHostName=evil Reason=x State=DOWN\n"
        "NodeName=n2 NodeHostName=h2 State=IDLE+CLOUD\n"
        "NodeName=n3 NodeHostName=h3 State=IDLE+CLOUD+POWERED_DOWN\nEND\nesac\n"
    )
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    asked, away = plugin_check.hosts([], "ssh")
    assert [host.name for host in asked] == ["head", "h1", "h2"] and away == ["n3"]
    printed = [line.split()[:6] for line in plugin_check.commands(["login"], "srun")]
    assert [words[0] for words in printed] == ["ssh", "srun", "ssh", "ssh"]
    assert printed[1][4:] == ["--partition=a", "--nodelist=n1"]
