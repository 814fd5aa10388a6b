"""topology.yaml on a real Slurm (25.05 and later): the plugin under the names of Slurm's own plugins."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import RELEASE, Cluster, Inside, running
from topolane.slurm import plugin_build, plugin_check, plugin_install
from waiting import until

if tuple(map(int, RELEASE.split("."))) < (25, 5):
    pytest.skip(f"Slurm {RELEASE} reads no topology.yaml", allow_module_level=True)

PLUGINS = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
NODES = 12
YAML = """\
- topology: fabric
  cluster_default: true
  tree:
    switches:
      - switch: leaf1
        nodes: node[1-4]
      - switch: leaf2
        nodes: node[5-8]
      - switch: leaf3
        nodes: node[9-12]
      - switch: core
        children: leaf[1-3]
- topology: racks
  block:
    block_sizes: [4]
    blocks:
      - block: rack1
        nodes: node[1-4]
      - block: rack2
        nodes: node[5-8]
      - block: rack3
        nodes: node[9-12]
- topology: plain
  flat: true
"""
PARTITIONS = (
    "PartitionName=pblock Nodes=ALL OverSubscribe=EXCLUSIVE MaxTime=INFINITE State=UP Topology=racks",
    "PartitionName=pflat Nodes=ALL OverSubscribe=EXCLUSIVE MaxTime=INFINITE State=UP Topology=plain",
)


class Site:
    def __init__(self, cluster: Cluster, built: Path, engines: Path) -> None:
        self.cluster, self.built, self.engines = cluster, built, engines
        [self.release] = plugin_build.releases_in(built)
        self.plugin_dir = f"{engines.parent / 'plugins'}:{PLUGINS}"

    def plugin(self, *words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "plugin"]
        return subprocess.run(
            [
                *self.cluster.inside.prefix,
                *command,
                *map(str, words),
                "--engine-directory",
                str(self.engines),
            ],
            env=self.cluster.environment,
            capture_output=True,
            text=True,
        )

    def host_check(self, plugin_dir: str) -> str:
        """What a host of slurmctld says of a PluginDir."""
        tree, conf = self.cluster.environment["SLURM_TREE"], self.cluster.directory / "slurm.conf"
        words = [
            *self.cluster.inside.prefix,
            "chroot",
            tree,
            "python3",
            "-",
            "controller",
            plugin_dir,
            conf,
            "",
        ]
        done = subprocess.run(words, input=plugin_check.SCRIPT.read_text(), capture_output=True, text=True)
        assert "checked yes" in done.stdout, done.stderr
        return done.stdout

    def change(self, old: str, new: str) -> None:
        conf = self.cluster.directory / "slurm.conf"
        assert old in conf.read_text()
        conf.write_text(conf.read_text().replace(old, new))
        self.cluster.script("stop", "slurmctld")
        self.cluster.script("start", "slurmctld")
        until(
            lambda: "12 idle" in self.cluster.run("sinfo", "-h", "-p", "pbatch", "-o", "%D %t"), "idle nodes"
        )

    def start(self, *arguments: object) -> set[str]:
        """The nodes of a job that runs."""
        job = self.cluster.submit(*arguments, script="sleep 600")
        said = ("squeue", "-h", "-t", "R", "-j", job, "-o", "%N")
        until(lambda: self.cluster.run(*said).strip(), f"the start of {arguments}")
        return self.cluster.nodes(self.cluster.run(*said).strip())

    def counters(self) -> dict[str, int]:
        lines = (self.cluster.directory / "state" / "topolane_counters").read_text().splitlines()
        return {name: int(value) for name, value in (line.split() for line in lines)}


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster with three topologies, before the plugin is installed."""
    directory, elsewhere = tmp_path_factory.mktemp("yaml"), tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "topology.yaml").write_text(YAML)
    # The command runs outside of that Slurm's tree, so it has to see these plugins elsewhere.
    plugins = elsewhere / "plugins"
    plugins.mkdir()
    for stock in Path(inside.environment["SLURM_TREE"] + PLUGINS).glob("topology_*.so"):
        shutil.copy(stock, plugins)
    options = ["--leaf", 4, "--conf-file", elsewhere / "topology.yaml"]
    for line in (f"PluginDir={plugins}:{PLUGINS}", *PARTITIONS):
        options += ["--conf", line]
    with running(NODES, directory, *options, inside=inside) as up:
        yield Site(up, built, elsewhere / "engine")


def test_each_topology_is_served_and_back(site: Site) -> None:
    """`install` puts copies in front of PluginDir. Jobs of all three topologies then get their nodes from the policy of their
    partition, under one view of what runs: a job of one topology keeps off the links of a job of another. `uninstall`
    refuses while PluginDir names the copies.
    """
    policies = [word for name in ("pbatch", "pblock", "pflat") for word in ("--policy", f"{name}=isolated")]
    done = site.plugin("install", "--from", site.built, *policies)
    assert done.returncode == 0, done.stderr
    copies = plugin_install.copies(site.engines)
    assert {"topology_tree.so", "topology_block.so", "topology_flat.so"} <= {
        each.name for each in copies.iterdir()
    }
    assert f"PluginDir={copies}:{site.plugin_dir}" in done.stdout and "Left to do" in done.stdout
    assert "Slurm loads its own" in site.host_check(site.plugin_dir)
    said = site.host_check(f"{copies}:{site.plugin_dir}")
    assert "wrong" not in said and "machine topology.yaml 12" in said and "node node12" in said, said
    site.change("PluginDir=", f"PluginDir={copies}:")
    assert "BlockName=rack1" in site.cluster.run("scontrol", "show", "topology", "racks")
    assert "SwitchName=leaf1" in site.cluster.run("scontrol", "show", "topology")
    wide = site.start("-p", "pbatch", "-N5")
    narrow = site.start("-p", "pflat", "-N1")
    leaves = [{(int(node.removeprefix("node")) - 1) // 4 for node in nodes} for nodes in (wide, narrow)]
    assert [len(each) for each in leaves] == [2, 1]
    waits = site.cluster.submit("-p", "pblock", "-N6")
    until(lambda: site.counters()["refused"] > 0, "the refusal is counted")
    state = site.cluster.run("squeue", "-h", "-o", "%t", "-j", waits).strip()
    assert state == "PD", "six nodes are free on two leaves, one of which the first job crosses"
    counted = site.counters()
    assert counted["active"] == 1 and counted["stock_inactive"] == 0
    refused = site.plugin("uninstall")
    assert refused.returncode == 2 and f"names {copies}" in refused.stderr, refused.stderr
    site.cluster.run("scancel", "--user=root")
    site.change(f"PluginDir={copies}:", "PluginDir=")
    done = site.plugin("uninstall")
    assert done.returncode == 0 and not list(copies.glob("*.so")), done.stderr


def test_copies_without_a_build(site: Site, tmp_path: Path) -> None:
    """A copy without a build for the running release leaves everything to stock Slurm and says so."""
    copies = tmp_path / "copies"
    copies.mkdir()
    shutil.copy(site.built / plugin_build.PLUGIN, copies / "topology_tree.so")
    site.change("PluginDir=", f"PluginDir={copies}:")
    try:
        assert len(site.start("-p", "pbatch", "-N3")) == 3
        log = (site.cluster.directory / "log" / "slurmctld.log").read_text()
        sentence = f"there is no build for Slurm {site.release}: {copies / 'topolane' / site.release}.so"
        assert f"not active, stock Slurm chooses all nodes: {sentence}" in log
        assert f"why {sentence}" in site.host_check(f"{copies}:{site.plugin_dir}")
    finally:
        site.cluster.run("scancel", "--user=root")
        site.change(f"PluginDir={copies}:", "PluginDir=")


@pytest.mark.parametrize("is_linked", [False, True])
def test_directories_that_are_not_as_installed(site: Site, tmp_path: Path, is_linked: bool) -> None:
    """Two directories of copies do not load each other without end. Of links, the loader makes one library for all names, so
    Slurm takes its own plugins. slurmctld serves all three topologies.
    """
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        for name in (plugin_build.PLUGIN, "topology_tree.so", "topology_block.so", "topology_flat.so"):
            if is_linked and name != plugin_build.PLUGIN:
                (folder / name).symlink_to(plugin_build.PLUGIN)
            else:
                shutil.copy(site.built / plugin_build.PLUGIN, folder / name)
        shutil.copytree(site.built / plugin_build.BUILDS, folder / plugin_build.BUILDS)
    front = ":".join(map(str, folders))
    site.change("PluginDir=", f"PluginDir={front}:")
    try:
        for partition in ("pbatch", "pblock", "pflat"):
            assert len(site.start("-p", partition, "-N3")) == 3
        said = site.host_check(f"{front}:{site.plugin_dir}")
        assert ("are one file, and must be copies" in said) == is_linked, said
    finally:
        site.cluster.run("scancel", "--user=root")
        site.change(f"PluginDir={front}:", "PluginDir=")
