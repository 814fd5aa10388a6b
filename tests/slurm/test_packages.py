"""The packages of the topology plugin: what is in them, and a .deb on a fresh Debian trixie with Slurm 24.11."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import COMPONENTS, Cluster, Inside, running
from topolane.slurm import plugin_build
from waiting import until

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGING = ROOT / "packaging"
SUITE = "trixie"
PLUGINS = Path("usr/lib/x86_64-linux-gnu/slurm-wlm")
ENGINE = Path("usr/lib/topolane") / plugin_build.ENGINE
EXAMPLE = Path("usr/share/doc/topolane-slurm/examples/topolane.conf")
HELPER = Path("usr/libexec/topolane-slurm/slurm-conf")
COMMANDS = (
    *("munged", "slurmctld", "slurmd", "slurmrestd", "scontrol", "sinfo"),
    *("squeue", "sbatch", "srun", "scancel", "setpriv"),
)
NAMES_IT = "TopologyPlugin=topology/topolane\n"
COPIES = "/usr/lib/topolane/slurm"
IN_FRONT = f"PluginDir={COPIES}:/{PLUGINS}\n"
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def made(script: str, source: Path, engine: Path, target: Path, directory: Path = ROOT) -> list[Path]:
    """The packages that a script of packaging/ makes. Skips where it names a program that is missing."""
    environment = os.environ | {
        "TOPOLANE": str(Path(sys.executable).with_name("topolane")),
        "ENGINE": str(engine),
        "SOURCE_DATE_EPOCH": "1750000000",
    }
    words = [PACKAGING / script, target, source]
    done = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return [Path(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def deb(source: Path, engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = made("deb.sh", source, engine, tmp_path_factory.mktemp("deb"))
    return next(path for path in found if "dbgsym" not in path.name)


@pytest.fixture(scope="module")
def rpm(source: Path, engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made("rpm.sh", source, engine, tmp_path_factory.mktemp("rpm"))[0]


def said(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Debian:
    """A fresh Debian with Slurm, configured by its packages, in a directory."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree

    def run(self, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command inside."""
        paths = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
        command = ["chroot", str(self.tree), *map(str, words)]
        return subprocess.run(command, env=paths | environment, capture_output=True, text=True)

    def state(self) -> str:
        """The package's state, as dpkg has it."""
        return self.run("dpkg-query", "-W", "-f", "${Status}", "topolane-slurm").stdout

    @contextlib.contextmanager
    def entered(self) -> Iterator[Inside]:
        """The commands of that Slurm, for cluster.sh."""
        script = 'for each in proc sys dev tmp; do mount --rbind "/$each" "$0/$each"; done; echo; exec sleep infinity'
        words = ["unshare", "--mount", "sh", "-c", script, str(self.tree)]
        mounted = subprocess.Popen(words, stdout=subprocess.PIPE)
        try:
            assert mounted.stdout is not None and mounted.stdout.read(1) == b"\n", "the mounts failed"
            path = f"{self.tree}/commands:{os.environ['PATH']}"
            prefix = ("nsenter", "--mount", f"--target={mounted.pid}")
            yield Inside(prefix, {"PATH": path, "SLURM_TREE": str(self.tree)})
        finally:
            mounted.kill()
            mounted.wait()


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Debian:
    said = subprocess.run([COMPONENTS, "--path", f"slurm-debian-{SUITE}"], capture_output=True, text=True)
    if said.returncode:
        pytest.skip(said.stderr.strip())
    tree = tmp_path_factory.mktemp("debian") / "tree"
    tree.mkdir()
    subprocess.run(["tar", "-xf", Path(said.stdout.strip()) / "debian.tar", "-C", tree], check=True)
    # No service starts by itself.
    policy = tree / "usr" / "sbin" / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    shutil.copy("/etc/hosts", tree / "etc" / "hosts")
    commands = tree / "commands"
    commands.mkdir()
    for name in COMMANDS:
        script = commands / name
        script.write_text(f'#!/bin/sh\nPATH=/usr/sbin:/usr/bin:/sbin:/bin exec chroot {tree} {name} "$@"\n')
        script.chmod(0o755)
    return Debian(tree)


@pytest.fixture
def conf(debian: Debian) -> Iterator[Path]:
    """/etc/slurm/slurm.conf of that Debian, which is gone afterwards with all new files next to it."""
    directory = debian.tree / "etc" / "slurm"
    before = set(directory.iterdir())
    yield directory / "slurm.conf"
    for path in set(directory.iterdir()) - before:
        path.unlink()


def test_the_package_fits_every_release_of_slurm(deb: Path) -> None:
    """The .deb has the version of Cargo.toml and holds back no update of Slurm. It has each file where Debian's Slurm and
    topolane.conf look for it, and one shim under all names. Its maintainer is whoever makes it."""
    fields = dict(re.findall(r"^(\S+): (.*)$", said("dpkg-deb", "-f", deb), re.MULTILINE))
    assert fields["Version"] == f"{VERSION}-1" and "example.org" not in fields["Maintainer"]
    assert deb.name == f"topolane-slurm_{fields['Version']}_{fields['Architecture']}.deb"
    assert [each for each in fields["Depends"].split(", ") if "slurm" in each] == [
        "slurm-wlm-basic-plugins (>= 24.11)"
    ]
    listed = said("dpkg-deb", "-c", deb).splitlines()
    files = {line.rpartition(" ./")[2] for line in listed if line.startswith("-")}
    documents = {f"usr/share/doc/topolane-slurm/{name}" for name in ("copyright", "changelog.gz")}
    plugins = {
        str(PLUGINS / name) for name in (plugin_build.PLUGIN, plugin_build.SPANK, "topolane/24.11.5.so")
    }
    plugins |= {f"{COPIES[1:]}/topology_{name}.so" for name in ("tree", "block", "flat", "topolane")}
    assert {str(ENGINE), str(EXAMPLE), str(HELPER)} | plugins | documents <= files
    assert not any(name.startswith("etc/") for name in files)
    assert all(" root/root " in line for line in listed)


def test_the_same_sources_give_the_same_package(
    deb: Path, source: Path, engine: Path, tmp_path: Path
) -> None:
    """Byte for byte, at another time and from another directory."""
    found = made("deb.sh", source, engine, tmp_path, tmp_path)
    again = next(path for path in found if path.name == deb.name)
    assert again.read_bytes() == deb.read_bytes()


def test_lintian_has_nothing_to_say(deb: Path) -> None:
    """No error and no warning of Debian's checker of packages."""
    if shutil.which("lintian") is None:
        pytest.skip("lintian is missing")
    done = subprocess.run(["lintian", deb], capture_output=True, text=True)
    assert not done.stdout, done.stdout


def test_every_licence_in_the_engine_is_named() -> None:
    """Crates that are not under Apache-2.0 as well are named in the copyright file."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is missing")
    words = ["cargo", "tree", "--offline", "--locked", "-p", "topolane-capi", "-e", "normal,no-proc-macro"]
    done = subprocess.run(
        [*words, "--prefix", "none", "--format", "{p}|{l}"], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip("cargo has not fetched the crates")
    copyright_file = (PACKAGING / "debian" / "copyright").read_text()
    crates = [line.removesuffix(" (*)").split("|") for line in done.stdout.splitlines()]
    assert len(crates) > 10
    for name, licence in crates:
        assert "Apache-2.0" in licence or f"{name.split()[0]} (Copyright" in copyright_file, (name, licence)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"slurm.conf": NAMES_IT}, "slurm.conf"),
        ({"slurm.conf": 'ClusterName=c TOPOLOGYplugin = "topology/topolane" # ours\n'}, "slurm.conf"),
        ({"slurm.conf": "Include more.conf\n", "more.conf": NAMES_IT}, "more.conf"),
        ({"slurm.conf": "include /etc/slurm/more.conf\n", "more.conf": NAMES_IT}, "more.conf"),
        (
            {
                "slurm.conf": f"Include more.conf\n{NAMES_IT.replace('topolane', 'tree')}",
                "more.conf": IN_FRONT,
            },
            "more.conf",
        ),
        ({"slurm.conf": f"PluginDir=/usr/lib/a:{COPIES}/\n"}, "slurm.conf"),
        ({"slurm.conf": f"PluginDir={COPIES}-2:/usr/lib/a\n"}, None),
        ({"slurm.conf": f"#{NAMES_IT}TopologyPlugin=topology/tree\n"}, None),
        ({"slurm.conf": "ClusterName=c\n", "slurm.conf.old": NAMES_IT}, None),
        ({"slurm.conf": "Include slurm.conf\n"}, None),
        ({}, None),
    ],
    ids=[
        "plain",
        "spelling",
        "included",
        "absolute",
        "copies",
        "with a slash",
        "other folder",
        "comment",
        "other file",
        "itself",
        "no file",
    ],
)
def test_what_slurm_conf_says(debian: Debian, conf: Path, files: dict[str, str], names: str | None) -> None:
    """The plugin may be removed unless slurm.conf, or a file that it includes, names it."""
    for name, text in files.items():
        (conf.parent / name).write_text(text)
    shutil.copy(PACKAGING / "slurm-conf", debian.tree / "root" / "slurm-conf")
    done = debian.run("/root/slurm-conf", "removable")
    assert (done.returncode, done.stdout) == (1 if names else 0, "")
    assert not names or re.search(
        f"/etc/slurm/{names} has (TopologyPlugin=topology/topolane|PluginDir=)", done.stderr
    )
    assert debian.run("/root/slurm-conf", "removable", TOPOLANE_REMOVE="yes").returncode == 0
    assert debian.run("/root/slurm-conf", "gone").returncode == 2


@pytest.mark.parametrize("line", ["SLURM_CONF=/opt/s.conf", 'SLURMCTLD_OPTIONS="-i -f /opt/s.conf"'])
def test_a_slurm_conf_elsewhere(debian: Debian, line: str) -> None:
    """The file that the daemons are started with counts, too."""
    shutil.copy(PACKAGING / "slurm-conf", debian.tree / "root" / "slurm-conf")
    defaults = debian.tree / "etc" / "default" / "slurmctld"
    before = defaults.read_text()
    (debian.tree / "opt" / "s.conf").write_text(NAMES_IT)
    assert debian.run("/root/slurm-conf", "removable").returncode == 0
    try:
        defaults.write_text(f"{before}{line}\n")
        assert "/opt/s.conf has" in debian.run("/root/slurm-conf", "removable").stderr
    finally:
        defaults.write_text(before)


def test_from_stock_slurm_to_the_plugin_and_back(
    debian: Debian, conf: Path, deb: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On a fresh Debian: install the package, do what it says, and jobs are placed by the plugin. It cannot be removed
    while slurm.conf names it; after that it leaves nothing, and stock Slurm goes on."""
    shutil.copy(deb, debian.tree / "root" / "topolane-slurm.deb")
    install = ("dpkg", "-i", "/root/topolane-slurm.deb")
    plugin = debian.tree / PLUGINS / plugin_build.PLUGIN
    directory = tmp_path_factory.mktemp("slurm")
    with debian.entered() as inside, running(6, directory, "--leaf", 3, inside=inside) as cluster:
        # Outside of the mounts /tmp of that Debian is empty, as the scripts of dpkg find it.
        conf.write_text((directory / "slurm.conf").read_text())
        done = debian.run(*install)
        assert done.returncode == 0, done.stderr
        assert plugin.is_file() and (debian.tree / ENGINE).is_file()
        assert f"Copy /{EXAMPLE} to /etc/slurm/topolane.conf" in done.stdout
        front = f"PluginDir={COPIES}:/{PLUGINS}"
        assert front in done.stdout
        assert cluster.run("scontrol", "show", "config").count("= topology/tree") == 1
        assert not (conf.parent / "topolane.conf").exists(), "the package configured something"

        text = (debian.tree / EXAMPLE).read_text()
        assert "#Partition=batch Policy=isolated" in text
        text = text.replace("#Partition=batch", "Partition=pbatch").replace("#JobsMay", "JobsMay")
        (directory / "topolane.conf").write_text(text)
        (directory / "plugstack.conf").write_text(f"optional {plugin_build.SPANK}\n")
        use(cluster, conf, front)
        log = (directory / "log" / "slurmctld.log").read_text()
        assert re.search(rf"topolane: active, 1 rules, engine /{re.escape(str(ENGINE))}", log), log[-2000:]
        works(cluster, "--topolane=dedicated,min-bandwidth=0.5")
        counters = directory / "state" / "topolane_counters"

        def placed() -> bool:
            cluster.run("srun", "-N2", "true")  # It writes its counters every ten seconds, when it is called.
            return counters.is_file() and bool(
                re.search(r"^placed [1-9]", counters.read_text(), re.MULTILINE)
            )

        until(placed, "the plugin has placed jobs")

        done = debian.run("dpkg", "-r", "topolane-slurm")
        assert done.returncode and plugin.is_file() and debian.state().endswith(" ok installed")
        assert f"/etc/slurm/slurm.conf has {front}" in done.stderr
        done = debian.run(*install)
        assert done.returncode == 0, done.stderr
        assert "Restart slurmctld, so that it loads this version." in done.stdout
        works(cluster)

        use(cluster, conf, "")
        done = debian.run("dpkg", "-r", "topolane-slurm")
        assert done.returncode == 0, done.stderr
        assert not plugin.exists() and not (debian.tree / ENGINE).parent.exists()
        cluster.script("stop", "slurmctld")
        cluster.script("start", "slurmctld")
        works(cluster)


def use(cluster: Cluster, conf: Path, line: str) -> None:
    """Writes the one line into slurm.conf, or removes it, and restarts all daemons."""
    names = ["slurmctld", *(f"node{number}" for number in range(1, 7))]
    path = cluster.directory / "slurm.conf"
    text = re.sub("^PluginDir=.*\n", "", path.read_text(), flags=re.MULTILINE) + f"{line}\n"
    cluster.script("stop", *names)
    path.write_text(text)
    conf.write_text(text)
    cluster.script("start", *names)


def works(cluster: Cluster, *options: str) -> None:
    """A job over two nodes runs to its end."""
    until(lambda: cluster.run("sinfo", "-h", "-o", "%D %t").strip() == "6 idle", "idle nodes")
    assert len(set(cluster.run("srun", "-N2", *options, "printenv", "SLURMD_NODENAME").split())) == 2


def test_the_rpm_has_the_same(rpm: Path, source: Path) -> None:
    """The RPM has the plugin where SchedMD's packages have theirs, holds back no update of Slurm, and is compiled as
    `topolane slurm plugin build` does it."""
    assert rpm.name.startswith(f"topolane-slurm-{VERSION}-1.")
    listed = said("rpm", "-qlp", rpm).split()
    library = Path(next(name for name in listed if name.endswith(f"/slurm/{plugin_build.PLUGIN}"))).parents[1]
    wanted = {
        f"{library}/slurm/{plugin_build.SPANK}",
        f"{library}/topolane/{plugin_build.ENGINE}",
        f"{library}/slurm/topolane/24.11.5.so",
        f"{library}/topolane/slurm/topology_tree.so",
        f"/{HELPER}",
    }
    assert wanted <= set(listed)
    needs = said("rpm", "-qp", "--requires", rpm)
    assert re.findall(r"^slurm\(\S+\) (.*)$", needs, re.MULTILINE) == [">= 24.11"]
    assert ".so" not in said("rpm", "-qp", "--provides", rpm)
    spec = (PACKAGING / "rpm" / "topolane-slurm.spec").read_text()
    options = " ".join(re.findall(r'^options="(.*)"$', spec, re.MULTILINE)).split()
    assert set(plugin_build.OPTIONS) <= set(options)
    for name, paths in (
        (plugin_build.PLUGIN, plugin_build.PLUGIN_SOURCES),
        (plugin_build.SPANK, plugin_build.SPANK_SOURCES),
    ):
        line = spec[spec.index(f"-o ../../{name}") :].replace("\\\n", " ").splitlines()[0]
        assert set(re.findall(r"\S+\.c", line)) == {
            str(path.relative_to(plugin_build.NATIVE)) for path in paths
        }


def test_the_same_sources_give_the_same_rpm(rpm: Path, source: Path, engine: Path, tmp_path: Path) -> None:
    """Byte for byte, at another time and from another directory."""
    assert made("rpm.sh", source, engine, tmp_path, tmp_path)[0].read_bytes() == rpm.read_bytes()


def test_the_rpm_stays_while_slurm_conf_names_the_plugin(debian: Debian, conf: Path, rpm: Path) -> None:
    """The RPM's scripts say what is left to do, and refuse a removal as those of the .deb do. There is no EL here: the RPM
    is put on Debian without a look at what it needs."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        command = ["rpm", f"--root={debian.tree}", "--dbpath=/root/rpm", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True)

    conf.write_text("ClusterName=c\n")
    done = run("--install", "--nodeps", rpm)
    assert done.returncode == 0, done.stderr
    assert (
        "PluginDir=/usr/lib64/topolane/slurm:" in done.stdout
        or "PluginDir=/usr/lib/topolane/slurm:" in done.stdout
    )
    example = re.search(r"Copy /(\S+) to", done.stdout)
    assert example and "Engine=/usr/lib" in (debian.tree / example[1]).read_text()
    named = re.search(r"^Engine=/(\S+)$", (debian.tree / example[1]).read_text(), re.MULTILINE)
    assert named and (debian.tree / named[1]).is_file()
    conf.write_text(NAMES_IT)
    done = run("--erase", "topolane-slurm")
    assert done.returncode and "/etc/slurm/slurm.conf has TopologyPlugin=topology/topolane" in done.stderr
    assert (debian.tree / named[1]).is_file()
    done = run("--install", "--replacepkgs", "--nodeps", rpm)
    assert done.returncode == 0 and "Restart slurmctld" in done.stdout, done.stderr
    conf.write_text("TopologyPlugin=topology/tree\n")
    done = run("--erase", "topolane-slurm")
    assert done.returncode == 0, done.stderr
    assert not (debian.tree / named[1]).exists()
