"""Plain QEMU processes of a host, described in a folder: lists, starts and ends them.

host.json      how to run a command on that host
GUEST.json     the machine: QEMU's arguments, the bridge it is on
GUEST.pid      its process
GUEST.qmp      monitor of who moves it
GUEST.watch    monitor of who watches it: a QMP socket serves one client at a time
GUEST.handed-over   there while a move to this host must not be taken back any more
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from topolane import files
from topolane._engine import InputError
from topolane.parsing import read_json

from topolane_sites.remote import CommandFailed, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_sites.model import Host

BINARY = "qemu-system-x86_64"
ENDING = 20.0
"""Seconds in which a process may end by itself."""


@dataclass(frozen=True)
class QemuMachine:
    """The description of a QEMU process to start."""

    name: str
    arguments: tuple[str, ...]
    """QEMU's arguments, without monitors and network; `{folder}` stands for the host's folder."""
    bridge: str | None = None
    """The bridge of its only network card."""
    mac: str = ""
    mtu: int = 1500


@dataclass(frozen=True)
class QemuFolder:
    """The guests of one host."""

    path: Path
    run: tuple[str, ...] = field(default=())
    """The prefix of commands that run on the host, such as `ip netns exec NAME`."""

    @classmethod
    def of(cls, host: Host) -> QemuFolder:
        """The folder of a host, from its `address`.

        Raises CommandFailed if it cannot be read, or if another user may write there: its files define what
        is executed.
        """
        path = Path(host.address).absolute()  # as in the words of its processes
        try:
            if not path.is_dir():
                raise CommandFailed(f"host {host.name}: {path} is not a folder")
            found = path.stat()
            if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
                raise CommandFailed(
                    f"host {host.name}: others may write to {path}, which says what is executed: give it to this "
                    "user, chmod 700"
                )
            settings = read_json(path / "host.json") if (path / "host.json").exists() else {}
            return cls(path, tuple(settings.get("run", ())))
        except (OSError, ValueError, AttributeError) as error:
            raise CommandFailed(f"host {host.name}: {path / 'host.json'}: {error}") from error

    def file(self, guest: str, kind: str) -> Path:
        """A file of a guest."""
        return self.path / f"{guest}.{kind}"

    def guests(self) -> list[str]:
        """The names of the guests in the folder, running or not."""
        return sorted(file.stem for file in self.path.glob("*.json") if file.name != "host.json")

    def machine(self, guest: str) -> QemuMachine:
        """The description with which a guest was started. Raises CommandFailed."""
        try:
            kept = read_json(self.file(guest, "json"))
            return QemuMachine(**{**kept, "arguments": tuple(kept["arguments"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CommandFailed(f"{self.file(guest, 'json')}: {error}") from error

    def pid(self, guest: str) -> int | None:
        """The guest's process, if it is alive. Another process that got the same number later does not count."""
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            pid = int(self.file(guest, "pid").read_text())
            process = psutil.Process(pid)
            if str(self.file(guest, "pid")) in process.cmdline() and process.status() != "zombie":
                return pid
        return None

    def start(self, machine: QemuMachine, incoming: bool = False) -> None:
        """Starts a guest; with `incoming`, it waits for a move. Raises CommandFailed with nothing left
        behind.
        """
        name = machine.name
        try:
            files.write(self.file(name, "json"), json.dumps(asdict(machine)), "guest")
        except InputError as error:
            raise CommandFailed(str(error)) from error
        arguments = [word.replace("{folder}", str(self.path)) for word in machine.arguments]
        words = [BINARY, "-name", name, *arguments, "-daemonize", "-nodefaults"]
        words += ["-pidfile", str(self.file(name, "pid"))]
        for monitor in ("qmp", "watch"):
            words += ["-qmp", f"unix:{self.file(name, monitor)},server=on,wait=off"]
        if machine.bridge:
            words += ["-netdev", f"tap,id=net,ifname={tap(name)},script=no,downscript=no"]
            words += [
                "-device",
                f"virtio-net-pci,netdev=net,mac={machine.mac},host_mtu={machine.mtu},romfile=",
            ]
        if incoming:
            # It waits when all has come: whether it runs is the mover's to say.
            words += ["-incoming", "defer", "-S"]
        try:
            if machine.bridge:
                self._plug(machine)
            self.command(words)
        except CommandFailed:
            self.end(name)
            raise

    def end(self, guest: str) -> None:
        """Ends its process, if there is one, and deletes its files."""
        if (pid := self.pid(guest)) is not None:
            _end(pid)
        with contextlib.suppress(CommandFailed):
            machine = self.machine(guest)
            if machine.bridge:
                self.command(["ip", "link", "delete", tap(guest)])
        for kind in ("pid", "qmp", "watch", "handed-over", "json"):
            self.file(guest, kind).unlink(missing_ok=True)

    def command(self, words: Sequence[str]) -> str:
        """The output of a command on the host. Raises CommandFailed with its error."""
        return command(self.run, words)

    def _plug(self, machine: QemuMachine) -> None:
        name = tap(machine.name)
        with contextlib.suppress(CommandFailed):
            self.command(["ip", "link", "delete", name])
        self.command(["ip", "tuntap", "add", name, "mode", "tap"])
        self.command(["ip", "link", "set", name, "master", str(machine.bridge), "up"])


def tap(guest: str) -> str:
    """The name of its interface on a host. Linux allows 15 letters."""
    return f"tl{zlib.crc32(guest.encode()):08x}"


def _end(pid: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for end in (process.terminate, process.kill):
            deadline = time.monotonic() + ENDING
            end()
            while time.monotonic() < deadline:
                if process.status() == "zombie":
                    return
                time.sleep(0.02)
