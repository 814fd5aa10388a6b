"""`topolane sites up` and `down`: a cluster of real guests on a real network, known to a real manager."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest_image import kernel, missing, tick_image
from managed import MAIN, Managed
from tick_guests import until
from topolane.sites import overlay
from topolane.sites.model import Guest, Host
from topolane.sites.movers import mover
from topolane.sites.qemu import Folder, tap
from wan import Wan, wan

pytest.importorskip("qemu.qmp", reason="building clusters needs the extra sites")
if os.geteuid():
    pytest.skip("network namespaces need root", allow_module_level=True)
if reason := missing("cc", "strip", "ip", "bridge"):
    pytest.skip(f"a cluster needs QEMU and a kernel: {reason}", allow_module_level=True)


class Place:
    """Two hosts, a manager that knows them, and the file of a cluster."""

    def __init__(self, folder: Path, network: Wan) -> None:
        self.folder, self.network = folder, network
        self.managed = Managed(folder, {})
        lines = ["[manager]", f'listen = "unix:{folder}/a.sock"', f'programs = "unix:{folder}/p.sock"']
        for host in "ab":
            lines += ["[[site]]", f'name = "{host}"', "[[site.host]]", f'name = "{host}"', "cores = 2"]
            lines += ['memory = "1 GiB"', 'driver = "qmp"', f'address = "{folder}/qemu-{host}"']
        self.managed.file.write_text("\n".join(lines) + "\n")
        self.managed.start()
        self.image = tick_image(folder)
        self.file = folder / "c1.toml"
        self._write()

    def _write(self) -> None:
        lines = ['name = "c1"', 'network = "10.42.0.0/24"']
        for host in "ab":
            run = ", ".join(f'"{word}"' for word in self.network.run(host))
            lines += ["[[host]]", f'name = "{host}"', f"run = [{run}]"]
            lines += [f'tunnel = "{self.network.address(host)}"']
        for number, host in enumerate("ab", 1):
            lines += [
                "[[guest]]",
                f'name = "g{number}"',
                f'host = "{host}"',
                "cores = 1",
                'memory = "128 MiB"',
            ]
            lines += [
                f'address = "10.42.0.{number}"',
                f'kernel = "{kernel()}"',
                f'initramfs = "{self.image}"',
            ]
            lines += ['append = "console=ttyS0 quiet panic=-1 -- 0"', 'accelerator = "tcg"']
        self.file.write_text("\n".join(lines) + "\n")

    def topolane(self, *words: object) -> subprocess.CompletedProcess[str]:
        manager = ["--manager", f"unix:{self.folder}/a.sock"]
        command = [sys.executable, "-c", MAIN, "sites", *map(str, words), *manager]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def up(self) -> subprocess.CompletedProcess[str]:
        return self.topolane("up", self.file, "--config", self.managed.file)

    def down(self) -> subprocess.CompletedProcess[str]:
        return self.topolane("down", self.file, "--config", self.managed.file)

    def pids(self) -> list[int | None]:
        hosts = [Host(name, name, 2, 1, "qmp", f"{self.folder}/qemu-{name}") for name in "ab"]
        folders = [Folder(Path(host.address)) for host in hosts]
        return [folder.pid(guest) for folder, guest in zip(folders, ("g1", "g2"))]

    def links(self) -> list[set[str]]:
        """Interfaces on both hosts, but for those they had."""
        members = [overlay.Member(host, self.network.run(host), "") for host in "ab"]
        return [overlay._links(member) - {"lo", "uplink"} for member in members]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with wan("ab") as network:
        made = Place(tmp_path, network)
        try:
            yield made
        finally:
            made.down()
            made.managed.process.kill()
            made.managed.process.wait()


def test_a_cluster_is_built_once_known_to_the_manager_and_taken_down(place: Place) -> None:
    done = place.up()
    assert done.returncode == 0, done.stderr
    pids = place.pids()
    assert None not in pids
    for host, guest in zip("ab", ("g1", "g2")):
        console = place.folder / f"qemu-{host}" / f"{guest}.console"
        until(lambda console=console: "tick 3" in console.read_text(errors="replace"), f"{guest} runs")
    assert place.up().returncode == 0
    assert place.pids() == pids, "what runs stays"
    known = {guest["name"]: guest["host"] for guest in place.managed.client.get("/guests")}
    assert known == {"g1": "a", "g2": "b"}
    done = place.down()
    assert done.returncode == 0, done.stderr
    assert place.pids() == [None, None] and place.links() == [set(), set()]
    assert place.managed.client.get("/guests") == [] and place.managed.client.get("/clusters") == {}
    assert place.down().returncode == 2


def test_a_guest_of_a_cluster_moves_to_the_bridge_of_another_host(place: Place) -> None:
    """The QEMU of the target runs in the network namespace of that host, as `run` in the cluster's file says."""
    assert place.up().returncode == 0
    a, b = (Host(name, name, 2, 1 << 30, "qmp", f"{place.folder}/qemu-{name}") for name in "ab")
    guest = Guest("g1", "c1", 1, 128 << 20, "a", "10.42.0.1")
    mover("qmp").move(guest, a, b, lambda _: None)
    assert mover("qmp").where(guest, (a, b)) == ("b",)
    assert [tap("g1") in links for links in place.links()] == [False, True]
    console = place.folder / "qemu-b" / "g1.console"
    until(lambda: "tick" in console.read_text(errors="replace"), "the guest goes on")


def test_a_cluster_that_cannot_be_built_whole_is_taken_down_again(place: Place) -> None:
    """QEMU does not start the second guest: what it is given for a kernel is none."""
    (place.folder / "none").write_text("no kernel")
    head, tail = place.file.read_text().rsplit(f'kernel = "{kernel()}"', 1)
    place.file.write_text(f'{head}kernel = "{place.folder / "none"}"{tail}')
    done = place.up()
    assert done.returncode == 2 and "the parts that were built are taken down" in done.stderr, done.stderr
    assert place.pids() == [None, None] and place.links() == [set(), set()]
    assert place.managed.client.get("/clusters") == {}


def test_the_policy_says_where_a_cluster_begins(place: Place) -> None:
    """Two guests whose file names no host, and a host on each of two sites with room for both: on one site together,
    where the most free cores alone would part them."""
    place.file.write_text(re.sub(r'^host = ".*"\n', "", place.file.read_text(), flags=re.MULTILINE))
    done = place.up()
    assert done.returncode == 0, done.stderr
    guests = place.managed.client.get("/guests")
    assert len(guests) == 2 and len({guest["host"] for guest in guests}) == 1
