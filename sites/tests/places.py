"""Two hosts with real guests on a real network, the manager that knows them, and the file of a cluster."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from guest_image import kernel, tick_image
from managed import MAIN, Managed
from topolane_sites import overlay
from topolane_sites.model import Host
from topolane_sites.qemu import QemuFolder
from waiting import DEADLINE
from wan import Wan, wan


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
        self.write()

    def write(self, guests: Mapping[str, str] = {"g1": "a", "g2": "b"}) -> None:
        """Writes the file with these guests; an empty host leaves it to the policy."""
        lines = ['name = "c1"', 'network = "10.42.0.0/24"']
        for host in "ab":
            run = ", ".join(f'"{word}"' for word in self.network.run(host))
            lines += ["[[host]]", f'name = "{host}"', f"run = [{run}]"]
            lines += [f'tunnel = "{self.network.address(host)}"']
        for name, host in guests.items():
            lines += ["[[guest]]", f'name = "{name}"', "cores = 1", 'memory = "128 MiB"']
            lines += [f'host = "{host}"'] if host else []
            lines += [f'address = "10.42.0.{name[1:]}"', f'kernel = "{kernel()}"']
            lines += [f'initramfs = "{self.image}"']
            lines += ['append = "console=ttyS0 quiet panic=-1 -- 0"', 'accelerator = "tcg"']
        self.file.write_text("\n".join(lines) + "\n")

    def topolane(self, *words: object) -> subprocess.CompletedProcess[str]:
        manager = ["--manager", f"unix:{self.folder}/a.sock"]
        command = [sys.executable, "-c", MAIN, "sites", *map(str, words), *manager]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)

    def up(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.topolane("up", self.file, "--config", self.managed.file, *options)

    def down(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.topolane("down", self.file, "--config", self.managed.file, *options)

    def processes(self) -> dict[str, list[str]]:
        """The hosts on which a process of each guest lives."""
        found: dict[str, list[str]] = {}
        for host in "ab":
            folder = QemuFolder(self.folder / f"qemu-{host}")
            for guest in folder.guests():
                if folder.pid(guest) is not None:
                    found.setdefault(guest, []).append(host)
        return found

    def hosts(self) -> dict[str, str]:
        """Where the guests are, as the manager knows it."""
        return {guest["name"]: guest["host"] for guest in self.managed.client.get("/guests")}

    def pids(self) -> list[int | None]:
        hosts = [Host(name, name, 2, 1, "qmp", f"{self.folder}/qemu-{name}") for name in "ab"]
        folders = [QemuFolder(Path(host.address)) for host in hosts]
        return [folder.pid(guest) for folder, guest in zip(folders, ("g1", "g2"))]

    def end(self) -> None:
        self.down()
        for host, guests in [(host, QemuFolder(self.folder / f"qemu-{host}")) for host in "ab"]:
            for guest in guests.guests():
                QemuFolder(guests.path, self.network.run(host)).end(guest)
        self.managed.process.kill()
        self.managed.process.wait()

    def links(self) -> list[set[str]]:
        """Interfaces on both hosts, but for those they had."""
        members = [overlay.OverlayMember(host, self.network.run(host), "") for host in "ab"]
        return [overlay._links(member) - {"lo", "uplink"} for member in members]


@contextlib.contextmanager
def placed(folder: Path) -> Iterator[Place]:
    """A place, and nothing of it afterwards."""
    with wan("ab") as network:
        made = Place(folder, network)
        try:
            yield made
        finally:
            made.end()
