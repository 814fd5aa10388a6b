"""Slurm may be updated before Topolane is: topology_topolane.so fits every release, and leaves everything to stock Slurm where
there is no build for the running one.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import RELEASE, Inside
from plugin_site import PARTITIONS, Site, plugin_cluster
from reading import topolane, with_commands
from topolane.slurm import plugin_build
from waiting import until

STOCK = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
OTHER = "24.11.4"
"""A release that no distribution in releases.txt has."""


class Updated(Site):
    """A cluster whose plugin has no build, as after an update of Slurm, and the builds that are to be had."""

    def __init__(self, site: Site, builds: Path, environment: dict[str, str]) -> None:
        super().__init__(site.cluster, site.built)
        self.builds, self.environment = builds, environment
        [self.release] = plugin_build.releases_in(builds)
        self.folder = self.built / plugin_build.BUILDS

    def put(self, release: str) -> None:
        """The one build that there is, under the name of this release."""
        for path in self.folder.iterdir():
            path.unlink()
        build = self.builds / plugin_build.BUILDS / f"{self.release}.so"
        shutil.copy(build, self.folder / f"{release}.so")

    def runs_a_job(self) -> None:
        """slurmctld, slurmd and srun have loaded the plugin."""
        until(lambda: "24 idle" in self.cluster.run("sinfo", "-h", "-o", "%D %t"), "idle nodes")
        assert len(set(self.cluster.run("srun", "-N3", "-p", "pbatch", "hostname", "-s").split())) >= 1

    def status(self) -> tuple[int, str]:
        done = topolane(self.environment, "slurm", "status")
        assert not done.stderr
        return done.returncode, done.stdout

    def metrics(self) -> str:
        return topolane(self.environment, "slurm", "metrics", "--once").stdout


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Updated]:
    directory, plugins = tmp_path_factory.mktemp("shim"), tmp_path_factory.mktemp("plugins")
    for name in (plugin_build.PLUGIN, plugin_build.SPANK, plugin_build.ENGINE):
        shutil.copy(built / name, plugins)
    (plugins / plugin_build.BUILDS).mkdir()
    with plugin_cluster(plugins, inside, directory, "--partitions", PARTITIONS) as cluster:
        yield Updated(Site(cluster, plugins), built, with_commands(cluster, tmp_path_factory.mktemp("words")))


@pytest.mark.parametrize(
    ("release", "says"),
    [
        (OTHER, "there is no build of the plugin for Slurm {running} in {folder}, only for " + OTHER),
        ("{running}", None),
    ],
    ids=["of another release", "of this release"],
)
def test_an_update_of_slurm_leaves_all_to_stock_until_there_is_a_build(
    site: Updated, release: str, says: str | None
) -> None:
    """slurmctld starts, jobs run where stock Slurm puts them, status ends with exit code 1 and the reason, and the metric
    is 0. With a build of this release the plugin is active again.
    """
    site.put(release.format(running=site.release))
    site.restart()
    site.runs_a_job()
    code, text = site.status()
    if says is None:
        until(lambda: site.status()[0] == 0, "the plugin is active")
        assert "topolane_slurm_active 1.0" in site.metrics()
        return
    assert code == 1 and says.format(running=site.release, folder=site.folder) in text, text
    assert "topolane_slurm_active 0.0" in site.metrics()
    missing = f"there is no build for Slurm {site.release}: {site.folder / site.release}.so does not exist"
    assert f"not active, stock Slurm chooses all nodes: {missing}" in site.log()


def test_a_build_of_another_release_under_this_name(site: Updated, tmp_path: Path) -> None:
    """The number in the build counts, not the name of its file. slurmctld lives on."""
    site.put(site.release)
    library = site.folder / f"{site.release}.so"
    source = tmp_path / "other.c"
    source.write_text('#include "core.h"\nconst Core topolane_core = {CORE_INTERFACE, 0x170b0a};\n')
    words = ["cc", "-shared", "-fPIC", "-I", plugin_build.SOURCES, "-o", library, source]
    subprocess.run(words, check=True)
    site.cluster.script("stop", "slurmctld")
    # Status cannot distinguish what a slurmctld wrote that started seconds before this one.
    (site.state / "topolane_counters").unlink()
    site.cluster.script("start", "slurmctld")
    site.runs_a_job()
    assert f"{library} is not for Slurm {site.release}" in site.log()
    until(lambda: site.status()[0] == 1, "status no longer shows what the former slurmctld wrote")


def test_a_release_with_an_entry_point_that_the_plugin_lacks(site: Updated, tmp_path: Path) -> None:
    """Such a release may come. In front of PluginDir, under the names of Slurm's plugins, slurmctld then takes its own
    plugin. Under topology/topolane it does not start, and `plugin check` says why before the restart.
    """
    older = tmp_path / plugin_build.PLUGIN
    shutil.copytree(plugin_build.NATIVE, tmp_path / "native")
    sources = [
        tmp_path / "native" / path.relative_to(plugin_build.NATIVE) for path in plugin_build.PLUGIN_SOURCES
    ]
    sources[0].write_text(sources[0].read_text().replace("topology_p_get_bitmap", "topology_p_of_old"))
    subprocess.run(["cc", *plugin_build.OPTIONS, *sources, "-ldl", "-o", older], check=True)
    copies = tmp_path / "copies"
    copies.mkdir()
    shutil.copy(older, copies / "topology_tree.so")
    conf = site.cluster.directory / "slurm.conf"
    before = conf.read_text()
    conf.write_text(
        before.replace("TopologyPlugin=topology/topolane", "").replace("PluginDir=", f"PluginDir={copies}:")
    )
    try:
        site.restart()
        assert site.cluster.run("scontrol", "show", "topology").count("SwitchName=leaf") == 4
        site.runs_a_job()
        fault = "it lacks topology_p_get_bitmap, which this release of Slurm looks up"
        assert f"topolane: {copies}/topology_tree.so: {fault}" in site.log()
    finally:
        conf.write_text(before)
    kept = (site.built / plugin_build.PLUGIN).read_bytes()
    (site.built / plugin_build.PLUGIN).unlink()
    shutil.copy(older, site.built)
    try:
        said = topolane(site.environment, "slurm", "plugin", "check", "--print").stdout.splitlines()[0]
        done = subprocess.run(
            [*site.cluster.inside.prefix, "chroot", site.environment["SLURM_TREE"], "sh", "-c", said],
            env=site.environment, capture_output=True, text=True,
        )  # fmt: skip
        assert f"wrong {site.built / plugin_build.PLUGIN}: {fault}" in done.stdout, done.stdout + done.stderr
    finally:
        (site.built / plugin_build.PLUGIN).write_bytes(kept)
        site.restart()
        site.runs_a_job()


def test_one_library_is_for_all_releases(built: Path) -> None:
    """It is compiled without headers of Slurm, so the same file serves every release and no host needs another one after an
    update.
    """
    assert plugin_build.releases_in(built)[0].startswith(f"{RELEASE}.")
    sources = " ".join(path.read_text() for path in plugin_build.PLUGIN_SOURCES)
    assert "slurm/slurm" not in sources and "release.h" not in sources
