"""What `make release` has made, installed and run where nothing of Topolane is: TOPOLANE_DIST names its directory."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITES = {"bookworm": 12, "trixie": 13}
UNPRIVILEGED = ("chroot", "--userspec=65534:65534")
FIRST_PICTURE = ("compare", "--out", "/tmp/first/picture")
PATHS = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def dist() -> Path:
    if "TOPOLANE_DIST" not in os.environ:
        pytest.skip("TOPOLANE_DIST is not set: `make release` sets it")
    return Path(os.environ["TOPOLANE_DIST"])


def one(dist: Path, pattern: str) -> Path:
    """The only file of that name."""
    found = sorted(dist.glob(pattern))
    if not found:
        pytest.skip(f"{pattern} was not made")
    (file,) = found
    return file


def said(*words: object, **more: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    output: str = done.stdout
    return output


def says_its_build(version: str) -> None:
    """The output of `topolane --version` names the commit of the build and its profile."""
    assert f"commit    {os.environ['TOPOLANE_COMMIT']}\n" in version
    assert re.search(rf"^engine    profile {os.environ.get('PROFILE', 'release')}, ", version, re.MULTILINE)


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_a_wheel_needs_no_newer_glibc_than_its_name_says(dist: Path, processor: str) -> None:
    """auditwheel agrees with the name; Python 3.10 and newer load the engine."""
    wheel = one(dist, f"topolane-[0-9]*_{processor}.whl")
    assert wheel.name.split("-")[2:] == ["cp310", "abi3", f"manylinux_2_28_{processor}.whl"]
    shown = " ".join(said(sys.executable, "-m", "auditwheel", "show", wheel).split())
    named = re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_(\w+)"', shown)
    assert named, shown
    assert int(named[1]) <= 28 and named[2] == processor


@pytest.mark.parametrize(("processor", "number"), [("x86_64", 62), ("aarch64", 183)])
def test_the_plugin_of_slurm_is_there_for_each_processor(
    dist: Path, tmp_path: Path, processor: str, number: int
) -> None:
    """A site needs neither Rust nor the source of its Slurm: the archive has the engine, the plugins, and a build for each release,
    all for this processor and for glibc 2.28. On this machine the engine can be loaded.
    """
    archive = one(dist, f"topolane-slurm-plugin-*-{processor}.tar.gz")
    said("tar", "-xf", archive, "-C", tmp_path)
    (folder,) = tmp_path.iterdir()
    libraries = {str(path.relative_to(folder)): path for path in folder.rglob("*.so")}
    assert {"libtopolane.so", "topology_topolane.so", "topolane_spank.so", "topolane/24.11.5.so"} <= set(
        libraries
    )
    for path in libraries.values():
        content = path.read_bytes()
        assert int.from_bytes(content[18:20], "little") == number, path  # e_machine of ELF
        needed = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)[.\d]*\0", content)]
        assert max(needed) <= 28, path
    if os.uname().machine == processor:
        program = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).topolane_api_version())"
        assert int(said(sys.executable, "-c", program, libraries["libtopolane.so"])) > 0


def test_from_pip_install_to_the_first_picture(dist: Path, tmp_path: Path) -> None:
    """A new environment, an empty HOME and the wheel suffice for a report; it carries the pages, completion and the page of serve."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    environment = kept | {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    wheel = one(dist, f"topolane-[0-9]*_{os.uname().machine}.whl")
    said(sys.executable, "-m", "venv", tmp_path / "venv")
    said(tmp_path / "venv/bin/pip", "install", "--quiet", wheel, env=environment)
    command = tmp_path / "venv/bin/topolane"
    begin = time.monotonic()
    printed = said(command, "compare", "--out", tmp_path / "out", env=environment, cwd=home)
    print(f"first picture after {time.monotonic() - begin:.1f} s")
    assert "isolated" in printed and "<svg" in (tmp_path / "out/report.html").read_text()
    says_its_build(said(command, "--version", env=environment))
    prefix = tmp_path / "venv"
    assert (prefix / "share/man/man1/topolane-compare.1").is_file()
    assert (prefix / "share/bash-completion/completions/topolane").is_file()
    (static,) = prefix.glob("lib/python*/site-packages/topolane/serve/static")
    files = set(re.findall(r'(?:src|href)="static/([^"]+)"', (static / "index.html").read_text()))
    assert "app.js" in files and files | {"LICENCES.txt"} <= {path.name for path in static.iterdir()}


class Debian:
    """A fresh Debian in a directory."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree

    def run(self, *words: object, chroot: tuple[str, ...] = ("chroot",)) -> str:
        """What a command inside prints, with the devices and processes of this machine."""
        script = 'for each in proc sys dev; do mount --rbind "/$each" "$0/$each"; done; exec "$@"'
        inside = ("unshare", "--mount", "sh", "-ec", script, self.tree, *chroot, self.tree, *words)
        return said(*inside, env=PATHS | {"DEBIAN_FRONTEND": "noninteractive"})

    def left(self) -> set[str]:
        """Paths that have the name of the package, but for logs and what was put there for the test."""
        found = {str(path.relative_to(self.tree)) for path in self.tree.rglob("*topolane*")}
        return {path for path in found if not path.startswith(("opt/", "tmp/", "var/log/", "var/cache/"))}


def mirror() -> str:
    fields = ("--format", "$(SITE)", "Created-By: Packages", "Label: Debian")
    return (said("apt-get", "indextargets", *fields).splitlines() or [""])[0]


def fresh(suite: str, tree: Path, *options: str) -> Debian:
    """Skips where a fresh Debian cannot be had."""
    if os.geteuid() or shutil.which("mmdebstrap") is None:
        pytest.skip("a fresh Debian needs root and mmdebstrap")
    words = ["mmdebstrap", "--quiet", *options, suite, str(tree), mirror()]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a fresh {suite} cannot be had: {done.stderr.strip().splitlines()[-1]}")
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", tree / "etc" / name)
    return Debian(tree)


@pytest.fixture(scope="module", params=SUITES)
def debian(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Debian]:
    suite = request.param
    # As others come to it too, it lies outside of pytest's directories, which only root enters.
    tree = Path(f"/tmp/topolane-release-{suite}-{os.getpid()}")
    yield fresh(suite, tree, "--variant=apt", "--include=man-db")
    shutil.rmtree(tree)


def test_the_package_in_a_fresh_debian(dist: Path, debian: Debian) -> None:
    """apt finds all that the package needs, any user runs the command and reads its pages, and a purge leaves nothing."""
    number = SUITES[re.search(r"-(\w+)-\d+$", str(debian.tree))[1]]  # type: ignore[index]
    shutil.copy(one(dist, f"topolane_*~deb{number}_amd64.deb"), debian.tree / "opt/topolane.deb")
    debian.run("apt-get", "update", "-qq")
    debian.run("apt-get", "install", "-qq", "-y", "--no-install-recommends", "/opt/topolane.deb")
    says_its_build(debian.run("topolane", "--version", chroot=UNPRIVILEGED))
    printed = debian.run("topolane", *FIRST_PICTURE, chroot=UNPRIVILEGED)
    assert "isolated" in printed
    assert "<svg" in (debian.tree / "tmp/first/picture/report.html").read_text()
    assert "SYNOPSIS" in debian.run("man", "topolane-compare", chroot=UNPRIVILEGED)
    for package in ("fastapi", "uvicorn", "httpx", "yaml", "prometheus_client"):
        debian.run("/usr/lib/topolane/bin/python3", "-c", f"import {package}", chroot=UNPRIVILEGED)
    assert (debian.tree / "usr/share/bash-completion/completions/topolane").is_file()
    debian.run("apt-get", "purge", "-qq", "-y", "topolane")
    assert debian.left() == set()


def test_the_container_file(dist: Path) -> None:
    """Its steps in a fresh trixie end with a command that runs as the user it names. No image is built here."""
    tree = Path(f"/tmp/topolane-release-container-{os.getpid()}")
    debian = fresh("trixie", tree, "--variant=apt")
    try:
        steps = re.findall(
            r"^([A-Z]+) (.*)$", (ROOT / "packaging/Containerfile").read_text(), flags=re.MULTILINE
        )
        facts = dict(steps)
        assert ("ARG", "DEBIAN=docker.io/library/debian:trixie-slim") in steps
        assert facts["FROM"] == "${DEBIAN}"
        pattern, place = facts["COPY"].replace("${TARGETARCH}", "amd64").split()
        shutil.copy(one(dist, pattern), debian.tree / place.lstrip("/"))
        debian.run("sh", "-ec", facts["RUN"])
        assert not list((debian.tree / "tmp").glob("*.deb"))
        entry = facts["ENTRYPOINT"].strip('["]')
        says_its_build(debian.run(entry, "--version", chroot=("chroot", f"--userspec={facts['USER']}")))
    finally:
        shutil.rmtree(tree)


def test_the_package_on_another_processor(dist: Path) -> None:
    """The engine of aarch64 replays a month under an emulator, in a trixie of that processor, which is only unpacked."""
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is None:
        pytest.skip("qemu-aarch64-static is missing")
    tree = Path(f"/tmp/topolane-release-aarch64-{os.getpid()}")
    packages = "--include=base-files,python3,libstdc++6,libgcc-s1"
    debian = fresh("trixie", tree, "--variant=extract", "--architectures=arm64", packages)
    try:
        said("dpkg-deb", "-x", one(dist, "topolane_*~deb13_arm64.deb"), tree)
        shutil.copy(emulator, tree / "emulator")
        command = ("/emulator", "/usr/lib/topolane/bin/python3", "/usr/lib/topolane/bin/topolane")
        version = debian.run(*command, "--version")
        says_its_build(version)
        assert ", aarch64\n" in version
        words = ("simulate", "--machine", "cab", "--workload", "cab-aug", "--policy", "isolated")
        assert "isolated" in debian.run(*command, *words)
    finally:
        shutil.rmtree(tree)


def test_the_sums_are_of_the_files(dist: Path) -> None:
    """SHA256SUMS names every other file. The licences are of all parts in the three lists, and each part has one."""
    said("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=dist)
    listed = {line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in dist.iterdir()} - {"SHA256SUMS"}
    licences = one(dist, "topolane-*-licences.txt").read_text()
    sections = re.findall(r"^(\S+\.cdx\.json): .*\n((?:  .*\n)+)", licences, re.MULTILINE)
    lists = {path.name: json.loads(path.read_text())["components"] for path in dist.glob("*.cdx.json")}
    assert len(sections) == len(lists) == 3
    for name, lines in sections:
        parts = [line.split()[:2] for line in lines.splitlines()]
        assert sorted(parts) == sorted([part["name"], part["version"]] for part in lists[name])
    assert "not stated" not in licences, [line for line in licences.splitlines() if "not stated" in line]
