"""Whether Slurm loads the plugin under the names of its own plugins."""

from __future__ import annotations

from pathlib import Path

import pytest
from topolane.slurm import shadows
from topolane.slurm.inspection import is_plugged
from topolane.slurm.plugin_build import PLUGIN


@pytest.fixture
def configuration(tmp_path: Path) -> dict[str, str]:
    """Slurm 26.05 with topology/tree; its directory of plugins has the plugin too."""
    stock = tmp_path / "stock"
    stock.mkdir()
    for name in ("topology_tree.so", "topology_block.so", PLUGIN):
        (stock / name).write_bytes(name.encode())
    return {
        "SLURM_VERSION": "26.05.5",
        "SLURM_CONF": str(tmp_path / "slurm.conf"),
        "TopologyPlugin": "topology/tree",
        "PluginDir": str(stock),
    }


def copies(directory: Path) -> Path:
    folder = directory / "copies"
    folder.mkdir()
    for name in ("topology_tree.so", PLUGIN):
        (folder / name).write_bytes(b"the plugin")
    return folder


def test_without_a_topology_yaml_the_line_of_slurm_conf_counts(configuration: dict[str, str]) -> None:
    assert not is_plugged(configuration)
    assert is_plugged(configuration | {"TopologyPlugin": "topology/topolane"})


def test_with_a_topology_yaml_the_order_of_plugin_dir_counts(
    configuration: dict[str, str], tmp_path: Path
) -> None:
    """Copies count in front of Slurm's plugins only, and TopologyPlugin does not count. A directory without topology plugins
    may be in front of both.
    """
    (tmp_path / "topology.yaml").write_text("")
    assert not is_plugged(configuration | {"TopologyPlugin": "topology/topolane"})
    folder, stock = copies(tmp_path), configuration["PluginDir"]
    assert is_plugged(configuration | {"PluginDir": f"{folder}:{stock}"})
    assert not is_plugged(configuration | {"PluginDir": f"{stock}:{folder}"})
    assert is_plugged(configuration | {"PluginDir": f"{tmp_path}:{folder}:{stock}"})


def test_an_older_slurm_reads_no_topology_yaml(configuration: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text("")
    assert shadows.topology_yaml(configuration) == tmp_path / "topology.yaml"
    older = configuration | {"SLURM_VERSION": "24.11.5", "TopologyPlugin": "topology/topolane"}
    assert shadows.topology_yaml(older) is None and is_plugged(older)


def test_names_of_stock_plugins(configuration: dict[str, str], tmp_path: Path) -> None:
    """Those of Slurm's own directories: copies do not count, nor does the plugin itself."""
    folders = [copies(tmp_path), Path(configuration["PluginDir"])]
    assert shadows.stock_names(folders) == ["topology_block.so", "topology_tree.so"]
