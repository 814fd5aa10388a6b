"""`topolane slurm plugin check` by Slurm's srun and by pdsh: each node answers with what lies there."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Cluster, Inside, running
from test_plugin_check import NODES, PLUGINS, SOURCE, Site
from topolane.slurm import plugin_build
from waiting import DEADLINE, until

OTHER = "node2"
"""The node that has a directory of plugins of its own."""


class Through(Site):
    """A cluster on which each node is a host of its own, and what administrators have on their host."""

    def __init__(self, cluster: Cluster, directory: Path, plugins: Path) -> None:
        super().__init__(cluster, directory, plugins)
        self.other = directory / "other"
        self.other.mkdir()
        self.environment["PDSH_RCMD_TYPE"] = "ssh"  # as sites set it: the package may prefer rsh
        tree, inside = cluster.environment["SLURM_TREE"], " ".join(cluster.inside.prefix)
        path = cluster.environment["PATH"]
        # The host is the word before the last, and a node is where its slurmd is.
        (directory / "ssh").write_text(
            "#!/bin/sh\n"
            "while [ $# -gt 2 ]; do shift; done\n"
            f'pid={cluster.directory}/run/$1.pid enter="{inside}"\n'
            '[ ! -f "$pid" ] || enter="nsenter --mount --target=$(cat "$pid")"\n'
            f'exec $enter chroot {tree} sh -c "$2"\n'
        )
        # srun listens at the address of its host's name.
        named = f"unshare --uts sh -c 'hostname {socket.gethostname()} && exec \"$@\"' sh"
        (directory / "srun").write_text(f'#!/bin/sh\nPATH={path} exec {named} {inside} srun "$@"\n')
        (directory / "srun").chmod(0o755)

    def separate(self) -> None:
        """Gives each node a host name of its own, and one of them a directory of plugins of its own."""
        conf = self.cluster.directory / "slurm.conf"
        named, count = re.subn(r"NodeHostname=\S+", f"NodeHostname=node[1-{NODES}]", conf.read_text())
        assert count == 1
        self.cluster.script("stop", "slurmctld", OTHER)
        conf.write_text(named)
        self.cluster.script("start", "slurmctld")
        facts = ("PATH", "SLURM_CONF")
        words = [f"{fact}={self.cluster.environment[fact]}" for fact in facts]
        words.append(f"TOPOLANE_TEST_CLUSTER={self.cluster.directory}")  # by which its end finds it
        start = f'mount --bind "$1" "$2" && exec slurmd -N {OTHER}'
        mounted = f"{self.cluster.environment['SLURM_TREE']}{self.plugins}"
        command = ["env", "-i", *words, "unshare", "--mount", "sh", "-c", start, "sh", self.other, mounted]
        log = self.cluster.directory / "log" / f"{OTHER}.log"
        started = log.read_text().count("slurmd started on")
        subprocess.run([*self.cluster.inside.prefix, *map(str, command)], check=True, timeout=DEADLINE)
        # Its steps get slurm.conf as it read it, which may be after its command has ended.
        until(lambda: log.read_text().count("slurmd started on") > started, f"the slurmd of {OTHER}")

    def answers(self, way: str) -> tuple[int, str]:
        """The exit code, and what is printed."""
        done = self.check("--through", way)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def site(inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Through]:
    directory, elsewhere = tmp_path_factory.mktemp("through"), tmp_path_factory.mktemp("elsewhere")
    plugins = elsewhere / "plugins"
    plugins.mkdir()
    with running(NODES, directory, "--conf", f"PluginDir={PLUGINS}:{plugins}", inside=inside) as up:
        through = Through(up, elsewhere, plugins)
        through.separate()
        conf = directory / "slurm.conf"
        before = conf.read_text()
        conf.write_text(before.replace("TopologyPlugin=topology/tree", "TopologyPlugin=topology/topolane"))
        yield through
        conf.write_text(before)


@pytest.fixture(params=["srun", "pdsh"])
def way(request: pytest.FixtureRequest, site: Through) -> str:
    name: str = request.param
    if name == "pdsh" and shutil.which(name) is None:
        pytest.skip("pdsh is missing: make components installs it")
    return name


def copy(built: Path, folder: Path) -> None:
    """Copies the plugin as an administrator does."""
    shutil.rmtree(folder / plugin_build.BUILDS, ignore_errors=True)
    shutil.copy(built / plugin_build.PLUGIN, folder)
    shutil.copytree(built / plugin_build.BUILDS, folder / plugin_build.BUILDS)


def test_every_node_is_asked(site: Through, built: Path, way: str) -> None:
    """All nodes and the host of slurmctld can load the plugin."""
    site.put(built)
    copy(built, site.other)
    code, said = site.answers(way)
    assert code == 0 and re.search(rf"^{NODES + 1} hosts can load the plugin", said, re.MULTILINE), said


def test_a_node_whose_files_differ_is_named(site: Through, built: Path, way: str, tmp_path: Path) -> None:
    """It alone, and why: its plugin is missing, or of another release."""
    site.put(built)
    (site.other / plugin_build.PLUGIN).unlink(missing_ok=True)
    code, said = site.answers(way)
    assert code == 1 and f"{OTHER}: there is no {plugin_build.PLUGIN} in PluginDir" in said, said
    source = tmp_path / "wrong.c"
    source.write_text(SOURCE.replace("NUMBER", str(0x10203)))
    library = site.other / plugin_build.PLUGIN
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    code, said = site.answers(way)
    assert code == 1 and f"{OTHER}: {site.plugins / plugin_build.PLUGIN} is of Slurm 1.02.3" in said, said
    assert not re.search(r"\bnode[134]\b", said), said


def test_a_node_without_a_slurmd_is_not_asked(site: Through, built: Path, way: str) -> None:
    """It is named as not asked, and is no fault."""
    site.put(built)
    copy(built, site.other)
    site.cluster.script("stop", "node4")
    site.cluster.run("scontrol", "update", "nodename=node4", "state=down", "reason=test")
    try:
        code, said = site.answers(way)
    finally:
        site.cluster.script("start", "node4")
    until(lambda: site.cluster.run("sinfo", "-h", "-n", "node4", "-o", "%t").strip() == "idle", "node4")
    assert code == 0 and "not asked, because they are down or not there: node4" in said, said
