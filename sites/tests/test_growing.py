"""A cluster that runs an MPI program in real guests grows, and shrinks again: `sites up` and `sites down --guests`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from guest_image import kernel, missing
from managed import MAIN
from topolane_sites import builders, overlay
from topolane_sites.client import Client
from topolane_sites.model import Host
from topolane_sites.qemu import QemuFolder, tap
from waiting import DEADLINE, until
from wan import Wan, wan

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "demo"))
from mpi_image import NEEDED, mpi_image

pytest.importorskip("qemu.qmp", reason="building clusters needs the packages of topolane-sites")
if os.geteuid():
    pytest.skip("network namespaces need root", allow_module_level=True)
if reason := missing(*NEEDED, "cc", "ip", "bridge", "busybox"):
    pytest.skip(f"a cluster needs QEMU, MPICH and a kernel: {reason}", allow_module_level=True)

ADDRESSES = {"g1": "10.42.0.1", "g2": "10.42.0.2", "g3": "10.42.0.3"}
MANAGER = "10.42.0.254"
CORES = {"a": 3, "b": 4}
"""Of the two hosts. The new guest fits on both; `b` has more free cores, and `a` has the rest of the cluster."""


class Growing:
    """Two sites, a manager that the ranks reach, and the file of a cluster."""

    def __init__(self, folder: Path, network: Wan) -> None:
        self.folder, self.network = folder, network
        self.processes: list[subprocess.Popen[bytes]] = []
        self.client = Client(f"unix:{folder}/a.sock")
        self.file, self.config = folder / "c1.toml", folder / "sites.toml"
        (folder / "token").write_text("a-token-of-this-test\n")
        (folder / "token").chmod(0o600)
        lines = [
            "[manager]",
            f'listen = "unix:{folder}/a.sock"',
            'programs = "0.0.0.0:7171"',
            "interval = 0.2",
        ]
        lines += ['report-token-file = "token"']
        for host, cores in CORES.items():
            lines += ["[[site]]", f'name = "site-{host}"', "[[site.host]]", f'name = "{host}"']
            lines += [
                f"cores = {cores}",
                'memory = "4 GiB"',
                'driver = "qmp"',
                f'address = "{folder / host}"',
            ]
        lines += ["[[link]]", 'between = ["site-a", "site-b"]', "latency = 0.005", "bandwidth = 1.25e8"]
        self.config.write_text("\n".join(lines) + "\n")
        self.image = self._image()
        self.manager = self.start("wan", [*_main("sites", "run"), "--config", self.config], "manager.log")
        until(self._answers, "the manager answers")

    def _answers(self) -> bool:
        assert self.manager.poll() is None, self.said("manager")
        return (self.folder / "a.sock").exists()

    def _image(self) -> Path:
        from topolane.mpi.build import library

        program = self.folder / "exchange"
        subprocess.run(["mpicc.mpich", "-O1", "-o", program, HERE / "exchange.c"], check=True)
        carried = {"libtopolane_mpi.so": library("mpicc.mpich"), "exchange": program}
        return mpi_image(self.folder, ADDRESSES, carried)

    def write(self, guests: Sequence[str]) -> None:
        """The cluster's file with these guests; g1 and g2 begin on `a`."""
        lines = ['name = "c1"', 'network = "10.42.0.0/24"']
        for host, tunnel in (*((name, self.network.address(name)) for name in CORES), ("wan", "192.0.2.254")):
            run = ", ".join(f'"{word}"' for word in self.network.run(host))
            lines += ["[[host]]", f'name = "{host}"', f"run = [{run}]", f'tunnel = "{tunnel}"']
            lines += [f'own = "{MANAGER}/24"'] if host == "wan" else []
        for name in guests:
            lines += ["[[guest]]", f'name = "{name}"', "cores = 1", 'memory = "256 MiB"']
            lines += ['host = "a"'] if name != "g3" else []
            lines += [f'address = "{ADDRESSES[name]}"', 'accelerator = "tcg"', f'kernel = "{kernel()}"']
            lines += [f'initramfs = "{self.image}"']
            lines += ['append = "console=ttyS0 quiet panic=-1 guest={name} address={address}/{prefix}"']
        self.file.write_text("\n".join(lines) + "\n")

    def start(self, place: str, words: Sequence[object], log: str) -> subprocess.Popen[bytes]:
        """A process in a namespace, whose output goes to a file."""
        with (self.folder / log).open("wb") as file:
            command = [*self.network.run(place), *map(str, words)]
            made = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        self.processes.append(made)
        return made

    def topolane(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        words = [*_main("sites", command), self.file, "--config", self.config, *options]
        words += ["--manager", f"unix:{self.folder}/a.sock"]
        return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=DEADLINE)

    def ssh(self, guest: str, words: str) -> list[str]:
        """The command that runs a command in a guest, from the namespace of the manager."""
        key = str(self.folder / "key")
        return ["dbclient", "-y", "-y", "-i", key, f"root@{ADDRESSES[guest]}", words]

    def answers(self, guest: str) -> bool:
        words = [*self.network.run("wan"), "timeout", "10", *self.ssh(guest, "true")]
        return subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0

    def mpiexec(self, name: str, guests: Sequence[str]) -> subprocess.Popen[bytes]:
        """A program of exchange.c with a rank on each of these guests, which the manager watches, until `ends`."""
        around = {
            "UCX_TLS": "tcp,self",
            "LD_PRELOAD": "/usr/lib/libtopolane_mpi.so:/usr/lib/nap.so",
            "TOPOLANE_MPI_MANAGER": f"{MANAGER}:7171",
            "TOPOLANE_MPI_TOKEN": "a-token-of-this-test",
            "TOPOLANE_MPI_PROGRAM": name,
            "TOPOLANE_MPI_SECONDS": "1",
        }
        words = ["mpiexec", "-launcher", "ssh", "-launcher-exec", "/bin/ssh", "-n", str(len(guests))]
        words += ["-ppn", "1", "-hosts", ",".join(guests)]
        words += [word for key, value in around.items() for word in ("-genv", key, value)]
        words += ["/usr/lib/exchange", "1000000", "20000", f"/tmp/{name}"]
        return self.start("wan", self.ssh("g1", " ".join(words)), f"{name}.log")

    def ends(self, name: str, process: subprocess.Popen[bytes], ranks: int) -> bool:
        """Lets a program end; whether its answer is right."""
        words = [*self.network.run("wan"), *self.ssh("g1", f"touch /tmp/{name}")]
        subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=DEADLINE)
        assert process.wait(DEADLINE) == 0, self.said(name)
        printed = re.search(r"rounds (\d+)\nsum (\d+)\n$", self.said(name))
        return printed is not None and int(printed[2]) == _sum(ranks, int(printed[1]))

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def hosts(self) -> dict[str, str]:
        """Where the guests are, as the manager knows it."""
        return {guest["name"]: guest["host"] for guest in self.client.get("/guests")}

    def ranks(self, guest: str) -> list[str]:
        """The programs that run in a guest, as the manager knows it."""
        return [
            one["id"] for one in self.client.get("/guests") if one["name"] == guest for one in one["programs"]
        ]

    def end(self) -> None:
        for name, cores in CORES.items():
            host = Host(name, name, cores, 1, "qmp", str(self.folder / name))
            if Path(host.address).is_dir():
                for guest in ADDRESSES:
                    QemuFolder.of(host).end(guest)
        for process in self.processes:
            process.kill()
            process.wait()


def _main(*words: str) -> list[str]:
    return [sys.executable, "-c", MAIN, *words]


def _sum(ranks: int, rounds: int) -> int:
    """What exchange.c prints: every rank adds up what both neighbours send."""
    return 2 * sum((rank + turn) % 256 for turn in range(rounds) for rank in range(ranks))


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    with wan("ab") as network:
        made = Growing(tmp_path, network)
        try:
            yield made
        finally:
            made.end()


def test_a_cluster_grows_runs_a_program_on_all_its_guests_and_shrinks(growing: Growing) -> None:
    growing.write(["g1", "g2"])
    done = growing.topolane("up")
    assert done.returncode == 0, done.stderr
    until(lambda: growing.answers("g1") and growing.answers("g2"), "g1 and g2 answer")
    two = growing.mpiexec("two", ["g1", "g2"])
    until(lambda: growing.ranks("g2") == ["two"], "the program on two guests runs")

    growing.write(["g1", "g2", "g3"])
    done = growing.topolane("up")
    assert done.returncode == 0, done.stderr
    assert growing.hosts() == {"g1": "a", "g2": "a", "g3": "a"}, "the new guest comes to the others"
    until(lambda: growing.answers("g3"), "g3 answers")
    three = growing.mpiexec("three", ["g1", "g2", "g3"])
    until(lambda: "three" in growing.ranks("g3"), "the program on three guests runs")

    done = growing.topolane("down", "--guests", "g3")
    assert done.returncode == 2 and "g3 still runs program exchange (three)" in done.stderr, done
    assert growing.ends("three", three, 3), growing.said("three")
    until(lambda: growing.ranks("g3") == [], "the program has ended")
    done = growing.topolane("down", "--guests", "g3")
    assert done.returncode == 0, done.stderr
    assert "still names g3: the next 'sites up' would build it again" in done.stdout
    assert growing.hosts() == {"g1": "a", "g2": "a"}
    member = overlay.OverlayMember("a", growing.network.run("a"), "")
    assert tap("g3") not in overlay._links(member) and tap("g2") in overlay._links(member)
    learned = subprocess.check_output([*growing.network.run("wan"), "bridge", "fdb"], text=True)
    assert builders.mac("c1", "g2") in learned and builders.mac("c1", "g3") not in learned
    assert growing.ends("two", two, 2), growing.said("two")
    done = growing.topolane("down")
    assert done.returncode == 0 and growing.client.get("/clusters") == {}, done.stderr
