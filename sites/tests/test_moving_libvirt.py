"""Live migration of a real guest between two real libvirt daemons."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest_image import kernel, missing, tick_image
from libvirt_daemons import Daemon
from libvirt_daemons import missing as missing_libvirt
from tick_guests import Sites
from waiting import until

libvirt = pytest.importorskip("libvirt", reason="moving by libvirt needs the extra libvirt")
if reason := missing("cc", "strip") or missing_libvirt():
    pytest.skip(f"a guest of libvirt's needs more: {reason}", allow_module_level=True)

from topolane_sites.clusters import Boot
from topolane_sites.domains import xml
from topolane_sites.model import Guest, Host
from topolane_sites.movers import MoveFailed, OutcomeUnknown, mover
from topolane_sites.movers import libvirt as libvirt_mover


class Domains(Sites):
    """The same guest as `Sites`, in libvirt's hands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons = [Daemon(folder / name) for name in "ab"]
        self.hosts = tuple(
            Host(name, f"site-{name}", 2, 2**30, driver="libvirt", address=daemon.uri)
            for name, daemon in zip("ab", self.daemons)
        )
        self.guest = Guest("g1", "c", 1, 128 << 20, "a")
        self.console = folder / "console"

    def start(self, dirty: int = 1) -> None:
        boot = Boot(str(kernel()), str(tick_image(self.folder)))
        text = xml(self.guest, boot, "qemu", f"console=ttyS0 quiet panic=-1 -- {dirty}")
        file = f'<serial type="file"><source path="{self.console}" append="on"/>'
        made = libvirt.open(self.daemons[0].uri)
        made.createXML(
            text.replace('<console type="pty">', file)
            .replace('<target type="serial" port="0" />', '<target port="0" />')
            .replace("</console>", "</serial>"),
            0,
        )
        made.close()
        self.goes_on()

    def ends(self) -> tuple[Host, Host]:
        """The host that the guest is on, and the other."""
        (here,) = mover("libvirt").where(self.guest, self.hosts)
        return self.hosts if here == "a" else self.hosts[::-1]

    def slow(self) -> None:
        """Holds copying to a MiB a second."""
        made = libvirt.open(self.ends()[0].address)
        made.lookupByName("g1").migrateSetMaxSpeed(1)
        made.close()

    def stop(self, host: Host) -> None:
        """Stops the process that receives the guest at a host."""
        folder = self.daemons[self.hosts.index(host)].folder
        os.kill(int((folder / "0" / "qemu" / "g1.pid").read_text()), signal.SIGSTOP)

    def end(self) -> None:
        for daemon in self.daemons:
            daemon.end()


@pytest.fixture(scope="module")
def domains(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domains]:
    made = Domains(tmp_path_factory.mktemp("libvirt"))
    made.start()
    yield made
    made.end()


def test_a_moved_domain_counts_on_at_its_target_alone(domains: Domains) -> None:
    here, there = domains.ends()
    seen: list[float] = []
    measured = mover("libvirt").move(domains.guest, here, there, seen.append)
    assert mover("libvirt").where(domains.guest, domains.hosts) == (there.name,)
    domains.goes_on()
    assert seen[-1] == 1.0 and measured["bytes"] > 1 << 20
    assert 0 < measured["downtime"] < measured["seconds"]


def test_a_cancelled_move_leaves_the_domain_where_it_is(domains: Domains) -> None:
    here, there = domains.ends()
    domains.slow()

    def cancel(share: float) -> None:
        if share > 0.01:
            raise MoveFailed("cancelled")

    with pytest.raises(MoveFailed, match=f"stays at {here.name}: cancelled"):
        mover("libvirt").move(domains.guest, here, there, cancel)
    assert mover("libvirt").where(domains.guest, domains.hosts) == (here.name,)
    domains.goes_on()


def test_a_move_that_libvirt_never_ends_is_given_up(
    domains: Domains, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: where nothing more is copied until the deadline, the move ends, and the domain runs on at its source alone."""
    here, there = domains.ends()
    monkeypatch.setattr(libvirt_mover, "ENDS", 2.0)
    monkeypatch.setattr(libvirt_mover, "ENDING", 2.0)
    domains.slow()

    def stop(share: float) -> None:
        if share > 0.01:
            domains.stop(there)

    with pytest.raises(MoveFailed, match=f"stays at {here.name}: nothing more was copied for 2 s"):
        mover("libvirt").move(domains.guest, here, there, stop)
    assert mover("libvirt").where(domains.guest, domains.hosts) == (here.name,)
    domains.goes_on()


def test_a_target_whose_daemon_dies_leaves_the_domain_where_it_is(domains: Domains) -> None:
    here, there = domains.ends()
    dying = domains.daemons[domains.hosts.index(there)]
    domains.slow()

    def kill(share: float) -> None:
        if share > 0.01:
            dying.kill()

    with pytest.raises((MoveFailed, OutcomeUnknown), match="g1"):
        mover("libvirt").move(domains.guest, here, there, kill)
    dying.start()
    assert mover("libvirt").settle(domains.guest, here, there) == here.name
    assert mover("libvirt").where(domains.guest, domains.hosts) == (here.name,)
    domains.goes_on()


MOVE = """
import sys
from topolane_sites.model import Guest, Host
from topolane_sites.movers import mover
hosts = [Host(n, n, 2, 2**30, driver="libvirt", address=p) for n, p in zip("ab", sys.argv[1:])]
mover("libvirt").move(Guest("g1", "c", 1, 2**27, "a"), *hosts, lambda share: print(share, flush=True))
"""


def test_a_mover_that_is_killed_leaves_one_domain_once_it_is_settled(domains: Domains) -> None:
    here, there = domains.ends()
    domains.slow()
    words = [sys.executable, "-c", MOVE, here.address, there.address]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as moving:
        assert moving.stdout
        for line in moving.stdout:
            if float(line) > 0.01:
                moving.send_signal(signal.SIGKILL)
                break
    time.sleep(0.5)
    host = mover("libvirt").settle(domains.guest, here, there)
    until(lambda: mover("libvirt").where(domains.guest, domains.hosts) == (host,), "one domain is left")
    domains.goes_on()
