"""Attacks on live migration: reading guest memory on the way, changing it, and taking the place of either end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

pytest.importorskip("qemu.qmp", reason="moving by QMP needs the packages of topolane-sites")
from guest_image import missing
from tick_guests import MEMORY, Sites
from topolane_sites.movers import MoveFailed, mover, qmp
from topolane_sites.qemu import QemuFolder, QemuMachine
from waiting import until

if reason := missing("cc", "strip"):
    pytest.skip(f"a guest needs QEMU and a kernel: {reason}", allow_module_level=True)

MARKER = b"tick %lu\n"
"""A string in the memory of the guest: the format of the lines that it prints."""
CHUNK = 1 << 16


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    """A guest of the driver `qmp`, which runs on the host `a`."""
    made = Sites(tmp_path)
    made.start()
    yield made
    made.end()


@pytest.fixture(params=["qmp", "libvirt"])
def guests(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sites]:
    """A guest of each driver that moves memory, which runs on the host `a`."""
    if request.param == "qmp":
        made = Sites(tmp_path)
    else:
        from test_moving_libvirt import Domains  # skips the test where libvirt is missing

        made = Domains(tmp_path)
    made.start()
    yield made
    made.end()


def _move(sites: Sites, progress: Callable[[float], None] = lambda _: None) -> dict[str, float]:
    return mover(sites.hosts[0].driver).move(sites.guest, *sites.hosts, progress)


def _runs_at(sites: Sites, host: str) -> None:
    """One copy, at that host, which counts on."""
    driver = mover(sites.hosts[0].driver)
    until(lambda: driver.where(sites.guest, sites.hosts) == (host,), f"the guest is at {host}")
    sites.goes_on()


class Capture:
    """What goes over the loopback interface, as tcpdump sees it."""

    def __enter__(self) -> Self:
        every = 3  # ETH_P_ALL of linux/if_ether.h
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(every))
        beyond_the_limit = 33  # SO_RCVBUFFORCE of asm-generic/socket.h
        self.socket.setsockopt(socket.SOL_SOCKET, beyond_the_limit, 256 << 20)
        self.socket.bind(("lo", 0))
        self.seen = bytearray()
        self.thread = threading.Thread(target=self._read)
        self.thread.start()
        return self

    def _read(self) -> None:
        while chunk := self.socket.recv(1 << 17):
            if b"the capture ends here" in chunk:
                return
            self.seen += chunk

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            while self.thread.is_alive():
                end.sendto(b"the capture ends here", ("127.0.0.1", 9))
                self.thread.join(0.1)
        dropped = struct.unpack("II", self.socket.getsockopt(263, 6, 8))[1]  # SOL_PACKET, PACKET_STATISTICS
        self.socket.close()
        assert not dropped, f"the capture missed {dropped} packets"


@pytest.mark.skipif(os.geteuid() != 0, reason="a packet capture needs root")
def test_a_packet_capture_does_not_show_guest_memory(guests: Sites) -> None:
    """A process that captures packets cannot read the memory of a guest that is moved.

    It looks for a string that the guest's program holds.
    """
    with Capture() as capture, socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as canary:
            canary.sendall(b"this one is to be seen")
        _move(guests)
    _runs_at(guests, "b")
    assert b"this one is to be seen" in capture.seen
    assert MARKER not in capture.seen


def test_memory_does_not_come_by_a_port(guests: Sites) -> None:
    """A process without the guests' files cannot connect to either QEMU while memory is copied: neither has a port."""
    seen: list[Any] = []
    looks = 0

    def look(share: float) -> None:
        nonlocal looks
        looks += share < 1
        for process in psutil.process_iter(["cmdline"]):
            words = " ".join(process.info["cmdline"] or ())
            if "qemu-system" in words.partition(" ")[0] and str(guests.folder) in words:
                with contextlib.suppress(psutil.NoSuchProcess):
                    seen.extend(process.net_connections("inet"))

    _move(guests, look)
    _runs_at(guests, "b")
    assert looks and not seen


class Peer:
    """A TCP server on a port of its own; `serve` is called with each connection, in a thread."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self.serve = serve
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.open: list[socket.socket] = [self.socket]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                made, _ = self.socket.accept()
                self.open.append(made)
                threading.Thread(target=self._serve, args=(made,), daemon=True).start()

    def _serve(self, made: socket.socket) -> None:
        with contextlib.suppress(OSError), made:
            self.serve(made)

    def close(self) -> None:
        for one in self.open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _relay(port: int, change: Callable[[bytes], bytes]) -> Peer:
    """A host on the path to a port: what is sent there goes through `change`."""

    def serve(near: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", port)) as far:
            threading.Thread(target=_pump, args=(far, near, bytes), daemon=True).start()
            _pump(near, far, change)

    return Peer(serve)


def _pump(source: socket.socket, sink: socket.socket, change: Callable[[bytes], bytes]) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(CHUNK):
            sink.sendall(change(chunk))
        sink.shutdown(socket.SHUT_WR)


Attack = Callable[[int], Peer | None]


@pytest.fixture
def attack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Attack], None]]:
    """Sets an attack that acts when the source is about to connect to a TCP port, and gets that port.

    If the attack returns a Peer, it is on the path: the source connects to it instead. A move without a TCP port
    gives it no chance.
    """
    peers: list[Peer] = []
    ask = qmp.ask

    def set_attack(chosen: Attack) -> None:
        async def asked(client: Any, command: str, **words: Any) -> Any:
            if command == "migrate" and (found := re.fullmatch(r"tcp:.*:(\d+)", str(words.get("uri")))):
                peer = await asyncio.to_thread(chosen, int(found[1]))
                if peer is not None:
                    peers.append(peer)
                    words["uri"] = f"tcp:127.0.0.1:{peer.port}"
            return await ask(client, command, **words)

        monkeypatch.setattr(qmp, "ask", asked)

    yield set_attack
    for peer in peers:
        peer.close()


def test_a_host_on_the_path_cannot_change_what_a_guest_runs(
    sites: Sites, attack: Callable[[Attack], None]
) -> None:
    """A host on the path of a live migration cannot replace what the program of the guest prints."""
    attack(lambda port: _relay(port, lambda chunk: chunk.replace(MARKER, b"TICK %lu\n")))
    _move(sites)
    until(lambda: mover("qmp").where(sites.guest, sites.hosts) == ("b",), "the guest is at b")
    before = sites.console.stat().st_size
    until(lambda: sites.console.stat().st_size > before + 50, "the guest prints")
    assert "TICK" not in sites.console.read_text(errors="replace")
    _runs_at(sites, "b")


def test_a_listener_in_the_targets_place_receives_no_guest_memory(
    sites: Sites, attack: Callable[[Attack], None]
) -> None:
    """A process that the source is made to connect to instead of the target cannot receive the guest's memory."""
    seen = bytearray()

    def take(made: socket.socket) -> None:
        while chunk := made.recv(CHUNK):
            seen.extend(chunk)

    attack(lambda port: Peer(take))
    with contextlib.suppress(MoveFailed):
        _move(sites)
    until(lambda: len(sites.processes()) == 1, "one copy is left")
    sites.goes_on()
    assert MARKER not in seen


GREETINGS = {
    "a stream of migration": b"QEVM\0\0\0\3" + bytes(range(256)) * 64,
    "no word of any protocol": bytes(range(255, 0, -1)) * 64,
    "silence": b"",
}


@pytest.mark.parametrize("greeting", GREETINGS)
def test_a_stranger_that_connects_first_does_not_hinder_a_move(
    greeting: str, sites: Sites, attack: Callable[[Attack], None]
) -> None:
    """A process that connects to the target's port before the source does cannot make the move fail."""
    strangers: list[socket.socket] = []

    def connect(port: int) -> None:
        made = socket.create_connection(("127.0.0.1", port))
        strangers.append(made)
        with contextlib.suppress(OSError):
            made.sendall(GREETINGS[greeting])
        time.sleep(0.5)

    attack(connect)
    try:
        _move(sites)
        _runs_at(sites, "b")
    finally:
        for made in strangers:
            made.close()


def test_another_guests_memory_cannot_be_fed_to_the_target(
    sites: Sites, attack: Callable[[Attack], None], tmp_path: Path
) -> None:
    """A QEMU that migrates its own guest to the target's port first cannot take the place of the guest's memory."""
    (tmp_path / "c").mkdir()
    stranger = QemuFolder(tmp_path / "c")
    words = ["-M", "q35", "-accel", "tcg,tb-size=64", "-m", MEMORY, "-display", "none"]
    words += ["-chardev", "null,id=c", "-serial", "chardev:c"]
    stranger.start(QemuMachine("stranger", tuple(words)))
    ended: list[str] = []

    async def feed(port: int) -> None:
        async with qmp.monitor(str(stranger.file("stranger", "watch"))) as client:
            await client.execute("migrate", {"uri": f"tcp:127.0.0.1:{port}"})
            while not ended:
                status = (await client.execute("query-migrate"))["status"]
                if status in ("completed", "failed"):
                    ended.append(status)
                await asyncio.sleep(0.1)

    attack(lambda port: asyncio.run(feed(port)))
    try:
        _move(sites)
        _runs_at(sites, "b")
        assert "completed" not in ended
    finally:
        stranger.end("stranger")
