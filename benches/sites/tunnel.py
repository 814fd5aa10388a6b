"""Measures what a tunnel of OpenVPN between two sites costs: round trips, rates, CPU time of a packet, TCP after a pause.

Two network namespaces are the sites; between them is a WAN of 1 Gb/s with a real delay (benches/mpi/wan.c). The tunnel is
that of a virtual cluster (`topolane_sites.openvpn`): a bridge on each side, and one OpenVPN process for all that crosses.
TCP has no window scaling, so that a connection has at most 64 KiB under way, as the study of the sites paper assumes.

The CPU time of a packet is that of OpenVPN's processes alone, so other load on the machine does not change it much. A full
segment is a packet of 1,398 bytes of data.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from far_sites import SETTINGS, FarSites, ahead, far_sites, inside, run
from measure import Options, Row
from topolane_sites import core_speed, openvpn

CLUSTER, BRIDGE = "bench", "tunnelled"
MBIT = 1000
OLD = {
    "net.ipv4.tcp_window_scaling": "0",
    "net.ipv4.tcp_slow_start_after_idle": "1",
}
"""Settings of both sites, as the study assumes; the second is Linux's default."""
DATAGRAMS = (72, 1400)
"""Bytes of UDP packets: about an acknowledgement, and nearly the most."""
BURST = 250
"""Datagrams one after another; OpenVPN reads them without waiting for each."""
SMALL = 1600
"""Bytes of a small message: about what LU's 32 ranks send in a sweep."""
SWEEP, EVERY = 160, 1.2e-3
"""Small messages of a sweep, and the seconds between them if it runs as long as in the paper."""
LARGE = 1 << 19
"""Bytes of a large message: about a face of LU's 32 ranks, class C."""
PAUSES = (0.0, 0.05, 0.1, 0.3, 1.0)
"""Seconds without traffic before a large message."""


class Way:
    """The plain way between the sites, or the one through the tunnel."""

    def __init__(self, sites: FarSites, name: str, network: str, processes: tuple[int, ...] = ()) -> None:
        self.sites, self.name, self.network = sites, name, network
        self.processes = processes
        """OpenVPN's."""

    def rows(self, options: Options) -> list[Row]:
        """All figures of this way."""
        part = 5 if options.quick else 1
        rows = [self.round_trip(200 // part)]
        rows += [row for size in DATAGRAMS for row in self.datagrams(size, 200 // part)]
        rows += self.cost(f"messages of {SMALL:,} bytes", lambda: self.sweeps(10 // part), 10 // part * SWEEP)
        rows += [row for count in (1, options.connections) for row in self.large(count, 64 // part)]
        return rows + self.pauses(2 if options.quick else 10)

    def row(self, what: str, unit: str, *values: float) -> Row:
        return Row("tunnel", f"{self.name}: {what}", unit, values)

    @contextlib.contextmanager
    def connection(self, timeout: float | None = None) -> Iterator[tuple[socket.socket, socket.socket]]:
        """A TCP connection from the first site to the second: both ends. timeout: seconds to wait for it."""
        with inside(self.sites.name(2)), socket.create_server((f"{self.network}.2", 0)) as listening:
            with inside(self.sites.name(1)):
                near = socket.create_connection(listening.getsockname(), timeout)
            near.settimeout(None)
            far, _ = listening.accept()
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with near, far:
            yield near, far

    @contextlib.contextmanager
    def answered(self, size: int) -> Iterator[Callable[[], float]]:
        """Yields a function that sends a message and returns the seconds until it is answered by one byte."""

        def answer() -> None:
            while received(far, size):
                far.sendall(b".")

        def send() -> float:
            began = time.perf_counter()
            near.sendall(message)
            near.recv(1)
            return time.perf_counter() - began

        message = bytes(size)
        with self.connection() as (near, far), ahead():
            answering = threading.Thread(target=answer, daemon=True)
            answering.start()
            yield send
            near.shutdown(socket.SHUT_WR)
            answering.join()

    def round_trip(self, times: int) -> Row:
        """Of one byte and its answer."""
        with self.answered(1) as send:
            return self.row("round trip of one byte", "ms", *(1e3 * send() for _ in range(times)))

    def datagrams(self, size: int, bursts: int) -> list[Row]:
        """Bursts of UDP packets, for the CPU time of one where none waits for another."""

        def send() -> None:
            with inside(self.sites.name(1)), socket.socket(type=socket.SOCK_DGRAM) as near:
                for _ in range(bursts):
                    for _ in range(BURST):
                        near.sendto(bytes(size), (f"{self.network}.2", 9))
                    time.sleep(0.02)

        return self.cost(f"UDP of {size:,} bytes", send, bursts * BURST)

    def sweeps(self, times: int) -> None:
        """Small messages at LU's pace, each sent at once."""
        with self.connection() as (near, far), ahead():
            size = times * SWEEP * SMALL
            reading = threading.Thread(target=received, args=(far, size), daemon=True)
            reading.start()
            sweep(near, times)
            reading.join()

    def large(self, connections: int, messages: int) -> list[Row]:
        """Large messages without a pause on some connections at once: bytes per second, packets and CPU time."""
        taken = 0.0

        def send() -> None:
            nonlocal taken
            with contextlib.ExitStack() as stack:
                pairs = [stack.enter_context(self.connection()) for _ in range(connections)]
                threads = [
                    threading.Thread(target=call, args=(end, messages * LARGE), daemon=True)
                    for near, far in pairs
                    for end, call in ((near, sent), (far, received))
                ]
                began = time.perf_counter()
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                taken = time.perf_counter() - began

        what = f"{connections} connection{'s' * (connections > 1)}"
        rows = self.cost(f"{what}, messages of {LARGE >> 10} KiB", send, messages * connections)
        rate = connections * messages * LARGE / taken / 1e6
        return [self.row(f"{what}, throughput", "MB/s", rate), *rows]

    def cost(self, what: str, send: Callable[[], None], messages: int) -> list[Row]:
        """Packets a message in the tunnel, both ways, and the CPU time of the two OpenVPN processes for one."""
        before, cpu = self.packets(), self.cpu()
        send()
        if not self.processes:
            return []
        there, back = (after - earlier for after, earlier in zip(self.packets(), before))
        used = sum(self.cpu()) - sum(cpu)
        return [
            self.row(f"{what}: packets there", "a message", there / messages),
            self.row(f"{what}: packets back", "a message", back / messages),
            # Each packet passes both processes.
            self.row(f"{what}: CPU time of one process", "us a packet", 1e6 * used / 2 / (there + back)),
        ]

    def packets(self) -> tuple[int, int]:
        """Packets that the first site's bridge has sent and received."""
        if not self.processes:
            return 0, 0
        words = ["ip", "netns", "exec", self.sites.name(1), "cat"]
        words += [f"/sys/class/net/{openvpn.tap(CLUSTER)}/statistics/{way}_packets" for way in ("tx", "rx")]
        there, back = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        return int(there), int(back)

    def cpu(self) -> list[float]:
        """Seconds that OpenVPN's processes have run."""
        files = [Path(f"/proc/{process}/schedstat") for process in self.processes]
        return [int(file.read_text().split()[0]) / 1e9 for file in files]

    def pauses(self, times: int) -> list[Row]:
        """A large message directly after another, and after a pause."""
        rows = []
        with self.answered(LARGE) as send:
            for pause in PAUSES:
                taken = []
                for _ in range(times):
                    send()
                    send()
                    time.sleep(pause)
                    taken.append(1e3 * send())
                rows.append(self.row(f"{LARGE >> 10} KiB after a pause of {pause:g} s", "ms", *taken))
        return [*rows, self.after_sweeps(times)]

    def after_sweeps(self, times: int) -> Row:
        """A large message after two sweeps of small ones, as in an iteration of LU."""

        def answer() -> None:
            for size in [LARGE, LARGE, 2 * SWEEP * SMALL, LARGE] * times:
                received(far, size)
                far.sendall(b".")

        taken = []
        with self.connection() as (near, far), ahead():
            answering = threading.Thread(target=answer, daemon=True)
            answering.start()
            for _ in range(times):
                for _ in range(2):
                    near.sendall(bytes(LARGE))
                    near.recv(1)
                sweep(near, 2)
                near.recv(1)
                began = time.perf_counter()
                near.sendall(bytes(LARGE))
                near.recv(1)
                taken.append(1e3 * (time.perf_counter() - began))
            answering.join()
        return self.row(f"{LARGE >> 10} KiB after {2 * SWEEP} messages of {SMALL:,} bytes", "ms", *taken)


def received(end: socket.socket, size: int) -> bool:
    """Whether `size` bytes came."""
    while size > 0 and (got := len(end.recv(min(size, 1 << 20)))):
        size -= got
    return size == 0


def sweep(end: socket.socket, times: int) -> None:
    """Sends the small messages of some sweeps, one after another."""
    began = time.perf_counter()
    for number in range(times * SWEEP):
        while (left := began + number * EVERY - time.perf_counter()) > 0:
            time.sleep(left)
        end.sendall(bytes(SMALL))


def sent(end: socket.socket, size: int) -> None:
    """Sends `size` bytes."""
    for _ in range(size // LARGE):
        end.sendall(bytes(LARGE))


@contextlib.contextmanager
def tunnelled(sites: FarSites) -> Iterator[Way]:
    """The way through OpenVPN, which is ended afterwards."""
    spaces = {f"site{number}": ("ip", "netns", "exec", sites.name(number)) for number in (1, 2)}
    for number in (1, 2):
        space = sites.name(number)
        run("ip", "-n", space, "link", "add", BRIDGE, "type", "bridge")
        run("ip", "-n", space, "address", "add", f"10.43.0.{number}/24", "dev", BRIDGE)
        run("ip", "-n", space, "link", "set", BRIDGE, "mtu", "1450", "up")
    server = openvpn.OpenVpnServer("site2", spaces["site2"], "198.51.100.2")
    try:
        openvpn.start(CLUSTER, BRIDGE, server, {"site1": spaces["site1"]})
        files = Path(openvpn.FOLDER).glob(f"{CLUSTER}-????????.pid")
        processes = tuple(int(file.read_text()) for file in files)
        for process in processes:
            # As for wan.c: the load of the machine does not change the delay.
            os.sched_setscheduler(process, os.SCHED_RR, os.sched_param(1))
        way = Way(sites, "OpenVPN", "10.43.0", processes)
        joined(way)
        yield way
    finally:
        for space in spaces.values():
            openvpn.stop(CLUSTER, space)


def joined(way: Way, patience: float = 30.0) -> None:
    """Waits until a connection can be made through the tunnel. Raises RuntimeError."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), way.connection(timeout=1.0):
            return
    raise RuntimeError(f"nothing came through the tunnel within {patience:g} s")


def measure(options: Options) -> list[Row]:
    """All figures, first of the plain way, then of the tunnel."""
    speeds = [core_speed.CoreSpeed().look()["speed"] for _ in range(1 if options.quick else 3)]
    rows = [Row("tunnel", "speed of a core, of the reference core", "", tuple(speeds))]
    with far_sites((0, 1), options.delay / 1e3, MBIT, SETTINGS | OLD) as sites:
        rows += Way(sites, "plain", "198.51.100").rows(options)
        with tunnelled(sites) as way:
            rows += way.rows(options)
    return rows
