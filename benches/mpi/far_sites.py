"""Provides sites for an MPI program on one machine: a network namespace for each rank, with a real delay
between sites (wan.c).

Each namespace is a host with two networks: `far`, whose packets to other sites are delayed, and one without
delay, over which the launcher starts the ranks.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAP = HERE.parents[1] / "tests" / "mpi" / "nap.c"
SETTINGS = {
    # The default of many kernels. The WAN loses no packets, so a connection never leaves slow start.
    "net.ipv4.tcp_congestion_control": "reno",
    "net.ipv4.tcp_slow_start_after_idle": "0",
}
AGENT = """#!/bin/sh
# Starts a command of an MPI launcher in the namespace of a host's address.
while [ "${1#-}" != "$1" ]; do shift; done
number=${1##*.}; shift
exec ip netns exec PREFIX$number unshare --uts sh -c "hostname PREFIX$number; $*"
"""
# Use only TCP between sites, and let waiting ranks sleep.
MPIS = {
    "mpich": ["-launcher", "rsh", "-launcher-exec", "AGENT", "-iface", "hub"],
    "openmpi": [
        *(
            "--allow-run-as-root",
            "--oversubscribe",
            "--mca",
            "plm",
            "rsh",
            "--mca",
            "plm_rsh_agent",
            "AGENT",
            "--mca",
            "plm_rsh_no_tree_spawn",
            "1",
        ),
        *("--mca", "oob_tcp_if_include", "192.0.2.0/24", "--mca", "btl_tcp_if_include", "198.51.100.0/24"),
        *("--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "tcp,self,vader"),
    ],
}
VARIABLES = {
    "mpich": {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "far"},
    "openmpi": {},
}


class FarSites:
    """Hosts 1, 2, ..., one for each rank: 192.0.2.N for the launcher, 198.51.100.N for MPI."""

    def __init__(self, site_of: Sequence[int], delay: float, mbit: float, folder: Path) -> None:
        self.prefix = f"far{os.getpid()}x"
        self.site_of, self.delay, self.mbit, self.folder = tuple(site_of), delay, mbit, folder
        self.hosts = range(1, len(site_of) + 1)
        self._wan: subprocess.Popen[str] | None = None

    def up(self, settings: Mapping[str, str] = SETTINGS) -> None:
        """Sets up the namespaces. Raises CalledProcessError if the machine does not support them."""
        run("gcc", "-O2", "-o", self.folder / "wan", HERE / "wan.c")
        run("gcc", "-O2", "-fPIC", "-shared", "-DMOMENT=100000", "-o", self.folder / "nap.so", NAP, "-ldl")
        agent = self.folder / "agent"
        agent.write_text(AGENT.replace("PREFIX", self.prefix))
        agent.chmod(0o755)
        hub = self.name(0)
        run("ip", "netns", "add", hub)
        run("ip", "-n", hub, "link", "add", "hub", "type", "bridge")
        run("ip", "-n", hub, "address", "add", "192.0.2.254/24", "dev", "hub")
        run("ip", "-n", hub, "link", "set", "hub", "up")
        run("ip", "-n", hub, "link", "set", "lo", "up")
        for host in self.hosts:
            self._join(host, settings)
        command = [str(self.folder / "wan"), str(1e3 * self.delay), str(self.mbit)]
        command += [word for host in self.hosts for word in (self.name(host), str(self.site_of[host - 1]))]
        self._wan = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if not self._wan.stdout or self._wan.stdout.readline() != "ready\n":
            raise subprocess.CalledProcessError(self._wan.wait(), "wan")
        for host in self.hosts:
            run("ip", "-n", self.name(host), "address", "add", f"198.51.100.{host}/24", "dev", "far")
            run("ip", "-n", self.name(host), "link", "set", "far", "up")

    def name(self, host: int) -> str:
        """The name of a host's namespace; host 0 is the launcher's."""
        return f"{self.prefix}{host}"

    def down(self) -> None:
        if self._wan:
            self._wan.kill()
            self._wan.wait()
        for host in (0, *self.hosts):
            subprocess.run(["ip", "netns", "delete", self.name(host)], capture_output=True)

    def launch(
        self, mpi: str, environment: Mapping[str, str], command: Sequence[str | Path], each: int = 1
    ) -> list[str]:
        """The command that starts a rank on every host, in order of the hosts, and repeats this `each` times."""
        around = {**VARIABLES[mpi], **environment}
        preloads = filter(None, [environment.get("LD_PRELOAD"), str(self.folder / "nap.so")])
        around["LD_PRELOAD"] = ":".join(preloads)
        words = ["ip", "netns", "exec", self.name(0), f"mpiexec.{mpi}"]
        words += [word.replace("AGENT", str(self.folder / "agent")) for word in MPIS[mpi]]
        addresses = [f"192.0.2.{host}" for host in self.hosts]
        if mpi == "mpich":
            words += ["-hosts", ",".join(addresses * each), "-ppn", "1"]
            words += [word for name, value in around.items() for word in ("-genv", name, value)]
        else:
            words += ["--map-by", "node", "--host", ",".join(f"{address}:{each}" for address in addresses)]
            words += [word for name, value in around.items() for word in ("-x", f"{name}={value}")]
        return [*words, "-n", str(each * len(self.site_of)), *map(str, command)]

    def _far_pair(self) -> tuple[int, int]:
        """Two hosts on different sites."""
        return 1, next(host for host in self.hosts if self.site_of[host - 1] != self.site_of[0])

    def _connect(self) -> tuple[socket.socket, socket.socket]:
        """Opens a TCP connection over the WAN. Returns both ends."""
        one, other = self._far_pair()
        with inside(self.name(other)), socket.create_server((f"198.51.100.{other}", 0)) as listening:
            with inside(self.name(one)):
                near = socket.create_connection(listening.getsockname())
            far, _ = listening.accept()
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return near, far

    def round_trips(self, times: int = 200) -> list[float]:
        """Round-trip times of one byte by TCP over the WAN in seconds, sorted."""

        def answer() -> None:
            while got := far.recv(1):
                far.sendall(got)

        near, far = self._connect()
        taken = []
        with near, far, ahead():
            answering = threading.Thread(target=answer, daemon=True)
            answering.start()
            for _ in range(times):
                began = time.perf_counter()
                near.sendall(b".")
                near.recv(1)
                taken.append(time.perf_counter() - began)
            near.shutdown(socket.SHUT_WR)
            answering.join()
        return sorted(taken)

    def throughput(self, megabytes: int = 200) -> float:
        """Bits per second of one TCP connection over the WAN, including its start."""
        near, far = self._connect()

        def send() -> None:
            for _ in range(megabytes):
                near.sendall(bytes(1_000_000))
            near.shutdown(socket.SHUT_WR)

        with near, far:
            began = time.perf_counter()
            threading.Thread(target=send, daemon=True).start()
            while far.recv(1 << 20):
                pass
            return 8e6 * megabytes / (time.perf_counter() - began)

    def _join(self, host: int, settings: Mapping[str, str]) -> None:
        name, port, hub = self.name(host), f"host{host}", self.name(0)
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "near", "netns", name)
        run("ip", "-n", hub, "link", "set", port, "master", "hub", "up")
        run("ip", "-n", name, "address", "add", f"192.0.2.{host}/24", "dev", "near")
        run("ip", "-n", name, "link", "set", "near", "up")
        for key, value in settings.items():
            run("ip", "netns", "exec", name, "sysctl", "-qw", f"{key}={value}")


def run(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True)


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """Moves this thread into a namespace for a while. Sockets made meanwhile stay in it."""
    library = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{name}") as there:
        if library.setns(there.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"{name}: cannot be entered")
        try:
            yield
        finally:
            library.setns(home.fileno(), 0)


@contextlib.contextmanager
def ahead() -> Iterator[None]:
    """Gives this process, and threads started meanwhile, a higher priority than other work on the machine."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextlib.contextmanager
def far_sites(
    site_of: Sequence[int], delay: float, mbit: float, settings: Mapping[str, str] = SETTINGS
) -> Iterator[FarSites]:
    """Sites that exist while the block runs."""
    with tempfile.TemporaryDirectory(prefix="topolane-far-") as folder:
        made = FarSites(site_of, delay, mbit, Path(folder))
        try:
            made.up(settings)
            yield made
        finally:
            made.down()
