"""Guests as jobs: real QEMU processes, and a domain of a real libvirt daemon."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import spinning_guest
from libvirt_daemons import Daemon
from libvirt_daemons import missing as missing_libvirt
from spinning_guest import seconds
from tick_guests import until
from topolane._engine import InputError
from topolane.gang.guests import Guest, guest
from topolane.sites.qemu import Folder

pytest.importorskip("qemu.qmp", reason="guests by QMP need the extra sites")
if reason := spinning_guest.missing():
    pytest.skip(reason, allow_module_level=True)

from topolane.sites.moving.qmp import ask, monitor


@pytest.fixture(scope="module")
def qemu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    """A plain QEMU process, whose guest `busy` keeps two cores busy."""
    folder = spinning_guest.start(tmp_path_factory.mktemp("qemu"))
    yield folder
    folder.end("busy")


@pytest.fixture(scope="module")
def libvirt_guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same guest as a domain. Answers with the URI of its libvirt."""
    libvirt = pytest.importorskip("libvirt", reason="guests of libvirt need the extra libvirt")
    if reason := missing_libvirt():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("libvirt")
    daemon = Daemon(folder / "daemon")
    made = libvirt.open(daemon.uri)
    try:
        made.createXML(spinning_guest.domain(folder, "busy"), 0)
        off = made.defineXML(spinning_guest.domain(folder, "off"))
        yield daemon.uri
        off.undefine()
    finally:
        made.close()
        daemon.end()


def _all_busy(found: Guest) -> bool:
    return len(found.threads) == spinning_guest.CORES and all(seconds(each) > 0.05 for each in found.threads)


def _monitor_of(folder: Folder) -> str:
    return str(folder.file("busy", "qmp"))


def test_the_cores_of_a_qemu_process_are_found_by_its_qmp_socket(qemu: Folder) -> None:
    """Rule: its threads are those that compute for the guest, and no others of the process."""
    found = guest(_monitor_of(qemu))
    assert found.process == qemu.pid("busy")
    until(lambda: _all_busy(found), "all of them compute")
    tasks = {int(task.name) for task in Path(f"/proc/{found.process}/task").iterdir()}
    assert set(found.threads) < tasks


def test_the_cores_of_a_domain_are_found_by_its_name_and_by_its_process(
    libvirt_guest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: as above; a domain that is shut off, or that libvirt does not know, is said to be."""
    monkeypatch.setenv("LIBVIRT_DEFAULT_URI", libvirt_guest)
    found = guest("busy")
    until(lambda: _all_busy(found), "all of them compute")
    assert guest(str(found.process)).threads == found.threads
    with pytest.raises(InputError, match="guest off is shut off"):
        guest("off")
    with pytest.raises(InputError, match="guest nosuch: qemu.* knows none of that name"):
        guest("nosuch")


def test_what_is_no_guest_is_refused_in_a_sentence(
    qemu: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: one sentence that says what was asked for and why it is no guest."""
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "other"))
        with pytest.raises(InputError, match="other: no QMP is heard there: .*refused"):
            guest(str(tmp_path / "other"))
    with pytest.raises(InputError, match="none: no QMP is heard there: .*No such file"):
        guest(str(tmp_path / "none"))
    with pytest.raises(InputError, match=f"process {os.getpid()} has no thread that is called a vCPU"):
        guest(str(os.getpid()))
    with pytest.raises(InputError, match="process 999999999: No such file or directory"):
        guest("999999999")
    monkeypatch.setattr("topolane.sites.moving.qmp.ANSWER", 0.5)
    with pytest.raises(InputError, match="nobody answers as QMP there; .* one client at a time"):
        asyncio.run(_while_another_asks(_monitor_of(qemu)))


async def _while_another_asks(path: str) -> None:
    async with monitor(path) as client:
        await ask(client, "query-status")
        await asyncio.to_thread(guest, path)
