#!/usr/bin/env python3
"""Makes what the tests run in addition to this repository: a control plane, kernels, Xen, Slurm, Prometheus.

components.py               makes all that can be had here, names the rest, and ends with exit code 0
components.py NAME...       makes these; exit code 1 if one of them cannot be had
components.py --path NAME   makes one and prints its folder; exit code 3, or the command's own, if it cannot be had
components.py --list        prints the names

A component is made once on a machine. It lies in ~/.cache/topolane/components/NAME-DIGEST. The digest is of the command
that makes it, of the files that decide what comes out, and of the system. The tree has links to it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import importlib.metadata
import itertools
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
MOUNTS = Path("/proc/self/mounts")
KEPT = 2
"""The number of versions kept of a component; the one that was unused for longest is removed first."""


class Unavailable(Exception):
    """A component cannot be made here, because something is missing. It has the exit code of the command that
    failed.
    """

    def __init__(self, reason: str, code: int = 3) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True)
class Component:
    name: str
    command: str
    """The command runs in the folder `within` of the tree and fills the folder `{to}`. Its first word is a
    program or a file of the tree.
    """
    inputs: Sequence[str] = ()
    """Further files of the tree that affect the result."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Links in the tree, each with its target in the component."""
    within: str = "."
    by_apt: bool = False
    """Whether the result depends on this machine's package lists."""

    def words(self, to: Path) -> list[str]:
        program, *words = shlex.split(self.command)
        own = TREE / program
        return [str(own) if own.is_file() else program, *(word.replace("{to}", str(to)) for word in words)]

    def digest(self) -> str:
        said = [self.name, self.command, self.within, platform.machine(), _release()]
        found = hashlib.sha256("\0".join(said).encode())
        program = shlex.split(self.command)[0]
        for name in [program, *self.inputs]:
            file = TREE / name
            found.update(file.read_bytes() if file.is_file() else b"")
        return found.hexdigest()[:16]

    def folder(self) -> Path:
        return cache() / f"{self.name}-{self.digest()}"


def go(name: str, module: str, *packages: str) -> Component:
    """Programs of a Go module of the tree, with a version like that of Kubernetes' own programs."""
    command = f'go build -ldflags="-s -w {VERSION}" -o {{to}}/ {" ".join(packages)}'
    programs = [package.rpartition("/")[2] for package in packages]
    links = {f"target/kubernetes/{program}": program for program in programs}
    return Component(name, command, [f"{module}/go.mod", f"{module}/go.sum"], links, module)


def kueue() -> Component:
    """Kueue's controller, and its custom resources, which lie in its module. The tests must not look them up
    there: that can need the network.
    """
    module, name = "benches/kueue", "sigs.k8s.io/kueue"
    made = go("kueue", module, f"{name}/cmd/kueue")
    script = f"set -e; {made.command}; cp -r \"$(go list -m -f '{{{{.Dir}}}}' {name})/config/components/crd/bases\" {{to}}/definitions"
    links = {**made.links, "target/kubernetes/kueue-definitions": "definitions"}
    return dataclasses.replace(made, command=f"sh -c {shlex.quote(script)}", links=links)


def slurm(suite: str) -> list[Component]:
    """The Slurm of a suite of Debian or Ubuntu, its source for the headers, and a Debian in which its packages
    are installed.
    """
    where = ["tests/slurm/releases.sh", "tests/slurm/releases.txt"]
    return [
        Component(f"slurm-{suite}", f"tests/slurm/slurm_tree.sh {suite} {{to}}", where),
        Component(f"slurm-source-{suite}", f"tests/slurm/slurm_source.sh {suite} {{to}}", where),
        Component(f"slurm-sackd-{suite}", f"tests/slurm/sackd.sh {suite} {{to}}", where),
        Component(f"slurm-debian-{suite}", f"tests/slurm/fresh_debian.sh {suite} {{to}}"),
    ]


KWOK = "tests/kubernetes/components"
VERSION = "-X k8s.io/component-base/version.gitVersion=v1.36.1"
FETCHED = [
    Component("guest-kernel", "tools/guest_kernel.sh {to}", links={".venv/guest-kernel": ""}, by_apt=True),
    Component("xen", "tools/xen.sh {to}", links={".venv/xen": ""}, by_apt=True),
    Component(
        "prometheus",
        "tools/debian_programs.sh - prometheus {to} prometheus promtool",
        links={".venv/bin/prometheus": "prometheus", ".venv/bin/promtool": "promtool"},
        by_apt=True,
    ),
    Component(
        "etcd",
        "tools/etcd.sh {to}",
        ["tools/debian_programs.sh", *(f"{KWOK}/go.{file}" for file in ("mod", "sum"))],
        links={"target/kubernetes/etcd": "etcd"},
    ),
    *slurm("trixie"),
]
COMPILED = [
    go(
        "kubernetes", "native/kubernetes",
        "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager",
    ),
    go("kwok", KWOK, "sigs.k8s.io/kwok/cmd/kwok"),
    kueue(),
]  # fmt: skip
PACKAGES = "packages"
"""The name for the packages that apt installs on this machine: a browser for the report, an InfiniBand subnet
for the readers, MPI and SimGrid for calibration and contention, ns-3 for contention, Slurm, guests. Debian's
Slurm services start only if there is an /etc/slurm/slurm.conf, which nothing here writes.
"""
GROUPS = (
    "chromium chromium-driver ibsim-utils opensm infiniband-diags",
    "openmpi-bin libopenmpi-dev libsimgrid-dev",
    "g++ pkg-config libns3-dev libgsl-dev",
    "munge slurm-client slurm-wlm-basic-plugins slurmctld slurmd slurmrestd",
    "gcc libslurm-dev",
    "valgrind",
    "mpich libmpich-dev",
    "mmdebstrap",
    "debhelper dpkg-dev",
    "rpm",
    "gfortran",
    "scalapack-mpi-test mumps-test hpcc lammps",
)
PLAIN_GROUPS = (
    "qemu-system-x86 binutils busybox-static dropbear-bin",
    "pdsh",
    "mariadb-server",
    "systemd",
    "crun runc",
    "openvpn nftables iproute2",
    "libvirt-daemon-driver-qemu libvirt-daemon libvirt-dev pkg-config python3-dev",
)
"""Groups installed without the packages that Debian recommends with them."""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "topolane" / "components"


@functools.cache
def _release() -> str:
    try:
        return platform.freedesktop_os_release().get("VERSION_ID", "")
    except OSError:
        return ""


@contextlib.contextmanager
def locked(name: str) -> Iterator[int]:
    """Makes sure that only one process at a time makes a component. A program that inherits the descriptor
    holds the lock until it ends, even if this run is killed.
    """
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def made(component: Component) -> Path:
    """The folder of a component, which is made if it is missing. Raises Unavailable."""
    folder = component.folder()
    if not folder.is_dir():
        with locked(component.name) as lock:
            if not folder.is_dir():
                _make(component, folder, lock)
    with contextlib.suppress(PermissionError):
        os.utime(folder)
    return folder


def _make(component: Component, folder: Path, lock: int) -> None:
    """Makes a component in a folder of another name and renames it, so that a killed run leaves no partial
    component.
    """
    part = cache() / f".{component.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    words = component.words(part)
    if shutil.which(words[0]) is None:
        raise Unavailable(f"{words[0]} is missing")
    if component.by_apt:
        update()
    part.mkdir()
    log = cache() / f".{component.name}.log"
    with log.open("wb") as output:
        done = subprocess.run(
            words, cwd=TREE / component.within, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[lock]
        )  # fmt: skip
    if done.returncode:
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"]
        raise Unavailable(f"{last[0]} (exit code {done.returncode}, {log})", done.returncode)
    os.utime(part)
    part.rename(folder)
    mine = [each for each in cache().iterdir() if re.fullmatch(f"{component.name}-[0-9a-f]{{16}}", each.name)]
    mounts = MOUNTS.read_text() if MOUNTS.exists() else ""
    for old in sorted(mine, key=lambda each: each.stat().st_mtime, reverse=True)[KEPT:]:
        if f"{old}/" not in mounts:  # a Slurm that contains this process has /tmp and /dev mounted inside it
            old.rename(part)
            shutil.rmtree(part, ignore_errors=True)


def link(component: Component, folder: Path | None) -> None:
    """Points the tree's links at the folder. None removes them, so that no test runs another version."""
    for place, inner in component.links.items():
        at = TREE / place
        if folder is None:
            if at.is_symlink():
                at.unlink()
        elif not (at.is_symlink() and at.readlink() == folder / inner):
            at.parent.mkdir(parents=True, exist_ok=True)
            if at.is_dir() and not at.is_symlink():
                shutil.rmtree(at)
            other = at.with_name(f".{at.name}.{os.getpid()}")
            other.symlink_to(folder / inner)
            other.replace(at)


def apt(*words: str) -> bool:
    """Runs apt-get without questions. Returns whether it succeeded."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600", *words]
    return subprocess.run(command, stdout=subprocess.DEVNULL, env=environment).returncode == 0


@functools.cache
def update() -> None:
    """Updates the package lists, once per run, if that is allowed."""
    if os.geteuid() == 0:
        with locked("lists"):
            apt("update")


def not_installed(groups: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(" ".join(groups).split()))
    query = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *names]
    said = subprocess.run(query, capture_output=True, text=True).stdout.splitlines()
    return [name for name in names if f"{name} installed" not in said]


def install(groups: Sequence[str], *options: str) -> list[str]:
    """Installs packages in one transaction, or group by group if that fails. Returns the groups that are
    unavailable.
    """
    if not (lacking := not_installed(groups)):
        return []
    update()
    if not apt("install", "--yes", *options, *lacking):
        for group in filter(lambda group: not_installed([group]), groups):
            if not apt("install", "--yes", *options, *group.split()):
                subprocess.run(["dpkg", "--configure", "-a"], stdout=subprocess.DEVNULL)
                apt("install", "--yes", "--no-remove", "--fix-broken", *options, *group.split())
    return [group for group in groups if not_installed([group])]


def _version(module: str) -> str:
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return ""


def packages() -> None:
    """Installs the packages that apt has, and libvirt's Python module, which needs them. Raises Unavailable."""
    if shutil.which("apt-get") is None:
        raise Unavailable("apt-get is missing")
    if os.geteuid() != 0 and not_installed([*GROUPS, *PLAIN_GROUPS]):
        raise Unavailable("only root installs " + " ".join(not_installed([*GROUPS, *PLAIN_GROUPS])))
    with locked(PACKAGES):
        lacking = install(GROUPS) + install(PLAIN_GROUPS, "--no-install-recommends")
    wanted = "requirements/libvirt.txt"
    if f"libvirt-python=={_version('libvirt-python')} " not in (TREE / wanted).read_text():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", TREE / wanted]).returncode:
            lacking.append("libvirt-python")
    if lacking:
        raise Unavailable(", ".join(lacking))


def report(name: str) -> bool:
    """Makes a component and its links, and prints the result in a line."""
    began = time.monotonic()
    try:
        if name == PACKAGES:
            packages()
        else:
            link(named(name), made(named(name)))
    except Unavailable as reason:
        if name != PACKAGES:
            link(named(name), None)
        print(f"{name}: cannot be had here, its tests will be skipped: {reason}", flush=True)
        return False
    seconds = time.monotonic() - began
    print(f"{name}: " + ("ready" if seconds < 2 else f"made in {seconds:.0f} s"), flush=True)
    return True


def named(name: str) -> Component:
    """The component with this name, including the Slurm of any suite. Raises KeyError."""
    suite = re.fullmatch(r"slurm-(?:source-|sackd-|debian-)?([a-z]+)", name)
    return {each.name: each for each in [*FETCHED, *COMPILED, *(slurm(suite[1]) if suite else [])]}[name]


def main(words: list[str]) -> int:
    # Two groups run at the same time: components that are fetched, and components that are compiled.
    lanes = ([PACKAGES, *(each.name for each in FETCHED)], [each.name for each in COMPILED])
    if words == ["--list"]:
        print(*lanes[0], *lanes[1], sep="\n")
        return 0
    try:
        if words[:1] == ["--path"] and len(words) == 2:
            print(made(named(words[1])))
            return 0
        chosen = [name for name in words if name == PACKAGES or named(name)]
    except KeyError as name:
        print(f"components.py: there is no component {name}: --list prints the names", file=sys.stderr)
        return 2
    except Unavailable as reason:
        print(f"{words[1]}: {reason}", file=sys.stderr)
        return reason.code

    lanes[0].extend(name for name in chosen if name not in [*lanes[0], *lanes[1]])
    with ThreadPoolExecutor(2) as both:
        outcomes = both.map(lambda lane: [report(name) for name in lane if name in (chosen or lane)], lanes)
        all_there = all(itertools.chain.from_iterable(outcomes))
    return 0 if all_there or not words else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
