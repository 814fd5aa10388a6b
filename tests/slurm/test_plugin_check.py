"""`topolane slurm plugin check` on a real Slurm with stock topology/tree: what it refuses would end slurmctld."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Cluster, Inside, running
from plugin_site import MACHINE, plugin_conf
from reading import TOPOLANE, with_commands
from topolane.slurm import plugin_build
from topolane.slurm.plugin_check import SCRIPT
from waiting import DEADLINE

PLUGINS = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
NODES = 4
WRONG = {
    "another release": ("", "is of Slurm 1.02.3, and Slurm here is"),
    "a missing entry point": ("", "topology_p_whole_topo, which Slurm looks up"),
    "a crash": ("#define CRASHES\n", "ends the process by signal 6"),
    "an unknown symbol": ("#define UNKNOWN\n", "cannot be loaded"),
}
SOURCE = """
#include <stdint.h>
#include <stdlib.h>
const char plugin_name[] = "wrong", plugin_type[] = "topology/topolane";
const uint32_t plugin_version = NUMBER, plugin_id = 1;
const _Bool supports_exclusive_topo;
#ifdef CRASHES
__attribute__((constructor)) static void crash(void) { abort(); }
#endif
#ifdef UNKNOWN
extern int topolane_symbol_of_no_library(void);
int init(void) { return topolane_symbol_of_no_library(); }
#endif
"""


class Site:
    def __init__(self, cluster: Cluster, directory: Path, plugins: Path) -> None:
        self.cluster, self.plugins = cluster, plugins
        self.environment = with_commands(cluster, directory)
        # The hosts of this cluster are all this machine. What ssh runs on a host is its last word.
        ssh = directory / "ssh"
        tree = cluster.environment["SLURM_TREE"]
        entered = " ".join((*cluster.inside.prefix, "chroot", tree, "sh", "-c"))
        ssh.write_text(f'#!/bin/sh\nfor word; do :; done\nexec {entered} "$word"\n')
        ssh.chmod(0o755)

    def check(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The command on a host that is none of the cluster's."""
        elsewhere = ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"]
        return subprocess.run(
            [*elsewhere, *TOPOLANE, "slurm", "plugin", "check", *words],
            env=self.environment, capture_output=True, text=True, timeout=DEADLINE,
        )  # fmt: skip

    def ping(self) -> str:
        words = [*self.cluster.inside.prefix, "scontrol", "ping"]
        return subprocess.run(words, env=self.cluster.environment, capture_output=True, text=True).stdout

    def put(self, built: Path, machine: str = MACHINE, **settings: object) -> None:
        """Copies what was built, and writes topolane.conf and the machine file."""
        shutil.copy(built / plugin_build.PLUGIN, self.plugins)
        shutil.copytree(built / plugin_build.BUILDS, self.plugins / plugin_build.BUILDS, dirs_exist_ok=True)
        text = plugin_conf(built, "machine.toml", "Partition=pbatch Policy=isolated\n", **settings)
        (self.cluster.directory / "topolane.conf").write_text(text)
        (self.cluster.directory / "machine.toml").write_text(machine)

    def slurmctld(self) -> subprocess.CompletedProcess[str]:
        """slurmctld with the plugin, in the foreground, as long as it lives or a few seconds."""
        self.cluster.script("stop", "slurmctld")
        words = [*self.cluster.inside.prefix, "timeout", "20", "slurmctld", "-D"]
        return subprocess.run(words, env=self.cluster.environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory, elsewhere = tmp_path_factory.mktemp("check"), tmp_path_factory.mktemp("elsewhere")
    plugins = elsewhere / "plugins"
    plugins.mkdir()
    with running(NODES, directory, "--conf", f"PluginDir={PLUGINS}:{plugins}", inside=inside) as up:
        yield Site(up, elsewhere, plugins)


@pytest.fixture(autouse=True)
def clean(site: Site) -> Iterator[None]:
    """slurm.conf names the plugin, which slurmctld does not run yet."""
    shutil.rmtree(site.plugins)
    site.plugins.mkdir()
    (site.cluster.directory / "topolane.conf").unlink(missing_ok=True)
    conf = site.cluster.directory / "slurm.conf"
    before = conf.read_text()
    assert before.count("TopologyPlugin=topology/tree") == 1
    conf.write_text(before.replace("TopologyPlugin=topology/tree", "TopologyPlugin=topology/topolane"))
    try:
        yield
    finally:
        conf.write_text(before)
        if site.cluster.inside.prefix and "UP" not in site.ping():
            site.cluster.script("start", "slurmctld")


def test_a_host_without_the_plugin(site: Site) -> None:
    """It is named with the number of others like it, and the exit code is 1."""
    done = site.check()
    assert done.returncode == 1, done.stderr
    assert f"there is no {plugin_build.PLUGIN} in PluginDir={PLUGINS}:{site.plugins}" in done.stdout
    assert done.stdout.endswith("Do not restart slurmctld yet.\n")


def test_what_fits_is_accepted(site: Site, built: Path) -> None:
    """All hosts, and one more that is named. Nodes that the machine file does not name are counted."""
    site.put(built, MACHINE.replace("node[1-24]", "node[2-25]"))
    done = site.check("--host", "login")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "the machine file does not name node1: stock Slurm chooses among them" in done.stdout
    assert re.search(r"\d hosts can load the plugin, built for Slurm \d+\.\d+\.\d+\.\n$", done.stdout)


def test_what_would_leave_all_to_stock_is_refused(site: Site, built: Path) -> None:
    """A line of topolane.conf, an engine or a machine file that slurmctld would not take."""
    for settings, says in (
        ({"CallTime": 0}, "topolane.conf"),
        ({"Engine": "/nowhere.so"}, "the engine cannot be loaded"),
        ({"Stock": "hypercube"}, "hypercube"),
    ):
        site.put(built, **settings)
        done = site.check()
        assert done.returncode == 1 and "the plugin would not be active" in done.stdout, done.stdout
        assert says in done.stdout
    site.put(built, "[[site]]\n")
    assert "the plugin would not be active" in site.check().stdout
    site.put(built, MACHINE.replace("node[1-24]", "other[1-24]"))
    assert "the machine file names none of Slurm's nodes" in site.check().stdout


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_build_is_refused_before_slurmctld_would_end(
    site: Site, built: Path, tmp_path: Path, fault: str
) -> None:
    """slurmctld itself ends with each of these plugins."""
    site.put(built)
    define, says = WRONG[fault]
    [release] = plugin_build.releases_in(built)
    major, minor, micro = map(int, release.split("."))
    number = 0x10203 if fault == "another release" else major << 16 | minor << 8 | micro
    source = tmp_path / "wrong.c"
    source.write_text(define + SOURCE.replace("NUMBER", str(number)))
    library = site.plugins / plugin_build.PLUGIN
    library.unlink()
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-z,now", "-o", library, source], check=True)
    done = site.check()
    assert done.returncode == 1 and says in done.stdout, done.stdout
    ended = site.slurmctld()
    assert ended.returncode not in (0, 124), ended.stderr


def test_copies_in_front_of_plugin_dir(site: Site, built: Path, tmp_path: Path) -> None:
    """slurm.conf names tree then. The hosts of slurmctld need the copies; on nodes the directory may be empty."""
    conf = site.cluster.directory / "slurm.conf"
    named = conf.read_text().replace("TopologyPlugin=topology/topolane", "TopologyPlugin=topology/tree")
    conf.write_text(named)
    done = site.check()
    assert done.returncode == 1 and f"Slurm loads its own {PLUGINS}/topology_tree.so" in done.stdout, (
        done.stdout
    )
    site.put(built)
    shutil.copy(built / plugin_build.PLUGIN, site.plugins / "topology_tree.so")
    front = f"PluginDir={site.plugins}:{PLUGINS}"
    conf.write_text(named.replace(f"PluginDir={PLUGINS}:{site.plugins}", front))
    done = site.check()
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    conf.write_text(named)


def test_the_commands_for_all_hosts_are_printed(site: Site, built: Path) -> None:
    """One for each host: it prints what the host found."""
    site.put(built)
    for way in ("ssh", "pdsh", "srun"):
        lines = site.check("--print", "--through", way).stdout.splitlines()
        assert len(lines) == len(set(lines)) and all("python3" in line for line in lines)
        assert any(line.startswith(way) for line in lines)
    printed = site.check("--print").stdout.splitlines()[-1]
    done = subprocess.run(
        ["sh", "-c", printed], env=site.environment, capture_output=True, text=True, timeout=DEADLINE
    )
    assert "checked yes" in done.stdout and "wrong" not in done.stdout, done.stdout + done.stderr


def test_the_program_for_hosts_runs_on_an_old_python() -> None:
    """It uses neither newer syntax than that of Python 3.6 nor anything of Topolane."""
    import ast

    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 6))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported == {"ctypes", "os", "re", "subprocess", "sys"}
