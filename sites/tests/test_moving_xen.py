"""A guest of Xen is moved by libvirt between two real Xens, each in an emulated machine; and which guests pause meanwhile."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest_image import kernel, tick_image
from guest_image import missing as missing_guest

pytest.importorskip("libvirt", reason="moving by libvirt needs the extra libvirt")
from topolane_gang.study import xen_machine
from topolane_gang.study.xen_machine import Cores, XenMachine
from topolane_sites.movers.libvirt import SOUND, is_paused
from waiting import until

HERE = Path(__file__).parent
DRIVER = "tools/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_libxl.so"


def xml(kind: str, system: str) -> str:
    return f"<domain type='{kind}'><name>g1</name><os><type arch='x86_64'>{system}</type></os></domain>"


@pytest.mark.parametrize(
    ("kind", "system", "version", "paused"),
    [
        ("xen", "linux", 4_017_000, True),
        ("xen", "xenpvh", 4_017_000, False),
        ("xen", "hvm", 4_017_000, False),
        ("qemu", "hvm", SOUND - 1, True),
        ("qemu", "hvm", SOUND, False),
        ("kvm", "hvm", SOUND - 1, False),
    ],
)
def test_guests_pause_where_what_they_write_cannot_be_seen(
    kind: str, system: str, version: int, paused: bool
) -> None:
    """Rule: paravirtual guests of Xen, and emulated ones of an older QEMU, pause while they are copied; no other does."""
    assert is_paused(xml(kind, system), version) is paused


class XenHost(XenMachine):
    """A machine with a network card, joined with the other one's by sockets in a folder."""

    def __init__(self, folder: Path, number: int) -> None:
        self.cable = folder
        self.number = number
        own = folder / f"xen{number}"
        own.mkdir()
        super().__init__(own, Cores(2))
        self.run(f"sh {HERE}/xen_host.sh {number}")

    def words(self, image: Path) -> list[str | Path]:
        here, there = (self.cable / f"card{number}" for number in (self.number, 3 - self.number))
        ends = f"local.type=unix,local.path={here},remote.type=unix,remote.path={there}"
        card = f"virtio-net-pci,netdev=far,mac=52:54:00:00:00:0{self.number}"
        return [*super().words(image), "-netdev", f"dgram,id=far,{ends}", "-device", card]

    def python(self, words: str) -> str:
        return self.run(f"{xen_machine.python()} {HERE}/xen_move.py {words}", 1800.0)

    def tick(self) -> int:
        """The last number that the guest printed here, or 0."""
        said = self.tried("tail -n 3 /var/log/xen/console/guest-g1.log")[1]
        return max((int(number) for number in re.findall(r"tick (\d+)\r?\n", said)), default=0)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[XenHost]]:
    reason = xen_machine.missing() or missing_guest("cc", "strip")
    if not reason and shutil.which("libvirtd") is None:
        reason = "libvirtd is not installed"
    if not reason and not (xen_machine.components() / DRIVER).exists():
        reason = "the Xen of the components has no driver for libvirt: run make components"
    if reason:
        pytest.skip(reason)
    made: list[XenHost] = []
    try:
        for number in (1, 2):
            made.append(XenHost(tmp_path, number))
        yield made
    finally:
        for host in made:
            host.end()


def test_a_paravirtual_guest_moves_between_two_xens(hosts: list[XenHost], tmp_path: Path) -> None:
    """Rule: the guest runs at the target alone afterwards, and goes on counting from where it was."""
    first, second = hosts
    (tmp_path / "g1.xml").write_text(
        f"<domain type='xen'><name>g1</name><memory unit='MiB'>96</memory><vcpu>1</vcpu><os><type arch='x86_64'"
        f" machine='xenpv'>linux</type><kernel>{Path(kernel() or '').resolve()}</kernel>"
        f"<initrd>{tick_image(tmp_path)}</initrd><cmdline>console=hvc0 quiet panic=-1 -- 1</cmdline></os>"
        "<devices><console type='pty'><target type='xen' port='0'/></console></devices></domain>"
    )
    first.python(f"start {tmp_path}/g1.xml")
    until(lambda: first.tick() > 10, "the guest counts")
    moved = json.loads(first.python("move").splitlines()[-1])
    assert moved["from"] == "xen1" and moved["to"] == ["xen2"] and moved["last"] == 1.0
    assert "g1" not in first.run("xl list")
    last = first.tick()
    until(lambda: second.tick() > last, "the guest counts on")
