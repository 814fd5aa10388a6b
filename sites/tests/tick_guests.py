"""Two sets of QEMU processes, and a guest in them that counts aloud."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path

from guest_image import kernel, tick_image
from topolane_sites.model import Guest, Host
from topolane_sites.qemu import QemuFolder, QemuMachine
from waiting import until

MEMORY = "131064k"
"""Not a multiple of 256 KiB: with one, QEMU before 9.0 loses writes of emulated guests while it copies them (its
commit "physmem: Fix migration dirty bitmap coherency with TCG memory access")."""


class Sites:
    """Hosts `a` and `b`, each a folder, and the guest `g1`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts = tuple(
            Host(name, f"site-{name}", 2, 2**30, driver="qmp", address=str(folder / name)) for name in "ab"
        )
        for host in self.hosts:
            Path(host.address).mkdir()
        self.guest = Guest("g1", "c", 1, 128 << 20, "a")
        self.console = folder / "console"

    def start(self, dirty: int = 4) -> None:
        """Starts the guest on `a`, rewriting `dirty` MiB ten times a second, and waits until it counts."""
        arguments = ["-M", "q35", "-accel", "tcg,tb-size=64", "-m", MEMORY, "-display", "none"]
        arguments += ["-kernel", str(kernel()), "-initrd", str(tick_image(self.folder))]
        arguments += ["-append", f"console=ttyS0 quiet panic=-1 -- {dirty}"]
        arguments += ["-chardev", f"file,id=c,path={self.console},append=on", "-serial", "chardev:c"]
        self.at("a").start(QemuMachine("g1", tuple(arguments)))
        self.goes_on()

    def file(self, programs: str) -> str:
        """The sites file of a manager over both hosts, where the guest and another one are."""
        lines = ["[manager]", "interval = 0.2", f'listen = "unix:{self.folder}/a.sock"']
        lines += [f'programs = "unix:{programs}"']
        for host in self.hosts:
            lines += ["[[site]]", f'name = "{host.site}"', "[[site.host]]", f'name = "{host.name}"']
            lines += ["cores = 2", 'memory = "1 GiB"', 'driver = "qmp"', f'address = "{host.address}"']
        lines += ["[[link]]", 'between = ["site-a", "site-b"]', "latency = 0.01", "bandwidth = 1.25e8"]
        for guest, host_name in (("g1", "a"), ("other", "b")):
            lines += ["[[guest]]", f'name = "{guest}"', "cores = 1", 'memory = "128 MiB"']
            lines += [f'host = "{host_name}"']
        return "\n".join(lines) + "\n"

    def at(self, host: str) -> QemuFolder:
        return QemuFolder.of(next(each for each in self.hosts if each.name == host))

    def ticks(self) -> list[int]:
        """What the guest has counted, wherever it ran."""
        text = self.console.read_text(errors="replace") if self.console.exists() else ""
        return [int(number) for number in re.findall(r"tick (\d+)\r?\n", text)]

    def goes_on(self) -> None:
        """The guest counts on from where it was: no number is missing, and none comes twice."""
        before = len(self.ticks())
        until(lambda: len(self.ticks()) >= before + 5, "the guest counts")
        ticks = self.ticks()
        broken = [pair for pair in itertools.pairwise(ticks) if pair[1] != pair[0] + 1]
        assert ticks[0] == 1 and not broken, broken

    def processes(self) -> list[str]:
        """Hosts on which a process of the guest lives."""
        return [name for name in "ab" if self.at(name).pid("g1") is not None]

    def end(self) -> None:
        for name in "ab":
            self.at(name).end("g1")


def slow(sites: Sites, rate: int = 4 << 20, at: str = "a") -> None:
    """Limits copying to `rate` bytes a second, so that a test can act while it goes on."""
    from qemu.qmp import QMPClient

    async def set_rate() -> None:
        client = QMPClient()
        await client.connect(str(sites.at(at).file("g1", "watch")))
        await client.execute("migrate-set-parameters", {"max-bandwidth": rate})
        await client.disconnect()

    asyncio.run(set_rate())
