"""What the daemon of a host measures: speed of cores, load by others, and what guests use and need."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="the daemons need topolane-sites")
pytest.importorskip("qemu.qmp", reason="the daemons need topolane-sites")
import psutil
from quiet_cores import QuietCores
from topolane_sites.core_speed import CoreSpeed
from topolane_sites.guest_monitor import guest_state
from topolane_sites.host import HostWatch
from topolane_sites.host_guests import LibvirtDomains, Processes
from topolane_sites.model import Host
from topolane_sites.processor import features_of
from topolane_sites.qemu import QemuFolder, QemuMachine
from topolane_sites.rates import Rates
from waiting import DEADLINE, until

needs_qemu = pytest.mark.skipif(
    shutil.which("qemu-system-x86_64") is None, reason="qemu-system-x86_64 is not installed"
)
ENDLESS = [sys.executable, "-c", "while True: pass"]


def test_the_speed_of_a_core_does_not_depend_on_what_else_runs_on_it() -> None:
    """The best repeat counts: with an endless process on every core it is at least 70 % of what it was, and the mean
    repeat is slower. The daemon may run on the same cores afterwards as before."""
    cores, quiet_cores = os.sched_getaffinity(0), QuietCores()
    before = CoreSpeed().look()
    busy = [subprocess.Popen(["taskset", "-c", str(core), *ENDLESS]) for core in cores]
    try:
        loaded = CoreSpeed().look()
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert 0.01 <= before["speed"] <= 100
    assert os.sched_getaffinity(0) == cores
    quiet_cores.judge(
        loaded["speed"] > 0.7 * before["speed"] and loaded["speed_now"] < loaded["speed"], (before, loaded)
    )


def test_cores_that_are_busy_with_no_guest_are_other_load(tmp_path: Path) -> None:
    watch = HostWatch(Host("e1", "east", 4, 1 << 33, "qmp", str(tmp_path)))
    watch.look()
    with subprocess.Popen(ENDLESS) as busy:
        try:
            began, used = time.monotonic(), psutil.Process(busy.pid).cpu_times()
            until(lambda: psutil.Process(busy.pid).cpu_times().user > used.user + 0.5, "it computes")
            passed, now = time.monotonic() - began, psutil.Process(busy.pid).cpu_times()
            measured = watch.look()["other_load"]
        finally:
            busy.kill()
    of_process = (now.user - used.user) / passed
    assert 0.5 * of_process < measured <= len(os.sched_getaffinity(0)) + 0.1


@needs_qemu
def test_cores_that_are_busy_with_a_guest_are_its_own(tmp_path: Path) -> None:
    """A guest whose firmware spins: its row says so, and the load of others is what is left."""
    host = Host("e1", "east", 4, 1 << 33, "qmp", str(tmp_path))
    folder, watch = QemuFolder.of(host), HostWatch(host)
    # Its reset vector jumps to itself.
    spin = tmp_path / "spin.bin"
    spin.write_bytes(bytes(65536 - 16) + b"\xeb\xfe" + bytes(14))
    arguments = ("-M", "pc", "-accel", "tcg", "-m", "16", "-display", "none", "-bios", str(spin))
    folder.start(QemuMachine("g1", arguments))
    reports: list[dict[str, Any]] = []
    try:
        watch.look()
        until(lambda: _later(watch, reports)["guests"][0]["cpu"] > 0.02, "the guest is busy")
        (row,) = reports[-1]["guests"]
        assert row["cpu"] + reports[-1]["other_load"] < len(os.sched_getaffinity(0)) + 0.1
        # An emulated guest does not use its host's instructions; it has no network card here.
        assert (row["emulated"], row["features"], row["cpu_model"]) == (True, (), "qemu64")
        assert "sent" not in row and "received" not in row
    finally:
        folder.end("g1")


@needs_qemu
def test_a_guest_that_does_not_tell_its_processor_is_asked_again(tmp_path: Path) -> None:
    """A QEMU without a machine has no core to ask. Its state is reported, without a processor. Nothing is remembered: a
    guest of that name and process that reports it later has it."""
    host = Host("e1", "east", 4, 1 << 33, "qmp", str(tmp_path))
    folder, processes = QemuFolder.of(host), Processes(host)
    folder.start(QemuMachine("g1", ("-M", "none", "-display", "none")))
    try:
        (row,) = processes.look()
        assert row.fields["state"] == "running" and "cpu_model" not in row.fields
        assert processes._processors == {}
    finally:
        folder.end("g1")


@needs_qemu
def test_a_folder_that_is_named_from_here_is_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that is given a relative path sees the guests that were started under the absolute one."""
    (tmp_path / "e1").mkdir(mode=0o700)
    folder = QemuFolder.of(Host("e1", "east", 4, 1 << 33, "qmp", str(tmp_path / "e1")))
    folder.start(QemuMachine("g1", ("-M", "pc", "-accel", "tcg", "-m", "16", "-display", "none")))
    monkeypatch.chdir(tmp_path)
    try:
        report = HostWatch(Host("e1", "east", 4, 1 << 33, "qmp", "e1")).look()
        assert [row["name"] for row in report["guests"]] == ["g1"]
    finally:
        folder.end("g1")


def _later(watch: HostWatch, reports: list[dict[str, Any]]) -> dict[str, Any]:
    """The report half a second later: the system counts processor time in steps of 10 ms."""
    time.sleep(0.5)
    reports.append(watch.look())
    return reports[-1]


@needs_qemu
def test_the_instruction_sets_of_a_running_guest_are_read_from_its_processor(tmp_path: Path) -> None:
    """Those of the model that it was started with, without those that were taken out of it."""
    from qemu.qmp import QMPClient

    folder = QemuFolder.of(Host("e1", "east", 4, 1 << 33, "qmp", str(tmp_path)))
    cpu = "Nehalem,-sse4.2,+movbe"
    folder.start(
        QemuMachine("g1", ("-M", "pc", "-accel", "tcg", "-m", "16", "-display", "none", "-cpu", cpu))
    )

    async def read() -> tuple[str, ...]:
        client = QMPClient()
        await client.connect(str(folder.file("g1", "watch")))
        try:
            cores: Any = await client.execute("query-cpus-fast")
            return await features_of(client.execute, cores[0]["qom-path"])
        finally:
            await client.disconnect()

    try:
        found = asyncio.run(read())
    finally:
        folder.end("g1")
    assert {"sse4_1", "ssse3", "pni", "cx16", "movbe"} <= set(found)
    assert not {"clwb", "avx", "avx2", "avx512f"} & set(found)


@pytest.fixture
def libvirtd(tmp_path: Path) -> Iterator[Host]:
    """A host with a real libvirt."""
    pytest.importorskip("libvirt", reason="libvirt's binding is not installed")
    from libvirt_daemons import Daemon, missing

    if (why := missing()) is not None:
        pytest.skip(why)
    daemon = Daemon(tmp_path / "daemon")
    try:
        yield Host("e1", "east", 4, 1 << 33, "libvirt", daemon.uri)
    finally:
        daemon.end()


def _start(host: Host, kind: str, cpu: str, more: str = "") -> None:
    """A domain that is paused at its first instruction. A KVM inside a guest may lack its register of capabilities."""
    import libvirt

    made = libvirt.open(host.address)
    try:
        made.createXML(
            f"<domain type='{kind}' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>g1</name>"
            "<memory>65536</memory><os><type arch='x86_64' machine='q35'>hvm</type></os>"
            f"{cpu}{more}</domain>",
            libvirt.VIR_DOMAIN_START_PAUSED,
        )
    except libvirt.libvirtError as error:
        if kind == "kvm":
            pytest.skip(f"KVM cannot be used here: {error}")
        raise
    finally:
        made.close()


def _cpu(mode: str, inside: str = "") -> str:
    return f"<cpu mode={mode}>{inside}<feature policy='disable' name='arch-capabilities'/></cpu>"


@needs_qemu
@pytest.mark.parametrize(
    ("cpu", "qemu"),
    [
        (_cpu("'host-passthrough'"), "host"),
        (_cpu("'host-passthrough'", "<feature policy='disable' name='clwb'/>"), "host,-clwb"),
        (_cpu("'maximum'"), "max"),
        (_cpu("'custom' match='exact'", "<model>pentium3</model>"), "pentium3"),
    ],
)
def test_the_instruction_sets_of_a_domain_are_those_that_its_qemu_has(
    tmp_path: Path, libvirtd: Host, cpu: str, qemu: str
) -> None:
    """A domain under KVM has what a QEMU with the same processor says of itself, whatever libvirt's description of it
    lists: KVM may give fewer instruction sets than the host's flags show."""
    _start(libvirtd, "kvm", cpu)
    (row,) = LibvirtDomains(libvirtd).look()
    folder = QemuFolder.of(Host("e1", "east", 4, 1 << 33, "qmp", str(tmp_path)))
    arguments = ("-M", "q35", "-accel", "kvm", "-m", "64", "-display", "none", "-S")
    folder.start(QemuMachine("g1", (*arguments, "-cpu", f"{qemu},-arch-capabilities")))
    try:
        # None: it did not answer in time.
        said = until(lambda: asyncio.run(guest_state(folder, "g1", with_processor=True)), "QEMU answers")
    finally:
        folder.end("g1")
    processor = said["processor"]
    assert row.fields["features"] == processor["features"] != ()
    assert {name: row.fields[name] for name in processor} == processor


@needs_qemu
def test_an_instruction_set_that_only_libvirt_describes_is_not_the_domains(libvirtd: Host) -> None:
    """QEMU takes CMPXCHG16B out of the host's processor, which libvirt does not know: the guest does not have it. Every
    processor that KVM runs on has it."""
    without = "<qemu:arg value='-global'/><qemu:arg value='host-x86_64-cpu.cx16=off'/>"
    _start(libvirtd, "kvm", _cpu("'host-passthrough'"), f"<qemu:commandline>{without}</qemu:commandline>")
    (row,) = LibvirtDomains(libvirtd).look()
    assert "lm" in row.fields["features"]
    assert "cx16" not in row.fields["features"]


@needs_qemu
def test_an_emulated_domain_has_no_instruction_sets_of_its_host(libvirtd: Host) -> None:
    """Its processor is known, and nothing is checked for it."""
    _start(libvirtd, "qemu", "<cpu mode='maximum'/>")
    (row,) = LibvirtDomains(libvirtd).look()
    assert (row.fields["emulated"], row.fields["cpu_model"], row.fields["features"]) == (True, "max", ())


def test_a_domain_that_has_no_qemu_is_reported_without_a_processor() -> None:
    """Its state is known. The move of such a guest is not checked."""
    pytest.importorskip("libvirt", reason="libvirt's binding is not installed")
    (row,) = LibvirtDomains(Host("e1", "east", 4, 1 << 33, "libvirt", "test:///default")).look()
    assert row.fields["state"] == "running"
    assert "features" not in row.fields


WATCH = """
import fcntl, json, os, struct, subprocess, sys
from topolane_sites.host import HostWatch
from topolane_sites.model import Host
from topolane_sites.qemu import QemuFolder, QemuMachine, tap
card = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(card, 0x400454CA, struct.pack("16sH22x", tap("g1").encode(), 0x1002))  # TUNSETIFF: a tap, without header
subprocess.run(["ip", "link", "set", tap("g1"), "up"], check=True)
host = Host("e1", "east", 4, 1 << 33, "qmp", sys.argv[1])
folder = QemuFolder.of(host)
folder.start(QemuMachine("g1", ("-M", "pc", "-accel", "tcg", "-m", "16", "-display", "none")))
try:
    watch = HostWatch(host)
    watch.look()
    for _ in range(1000):
        os.write(card, b"\\xff" * 6 + bytes([2, 0, 0, 0, 0, 1, 8, 0]) + bytes(1000))
    print(json.dumps(watch.look()["guests"]))
finally:
    folder.end("g1")
"""


@needs_qemu
@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_bytes_through_the_card_of_a_guest_are_counted_from_its_side(tmp_path: Path) -> None:
    """What the card of a guest gives to its host, the guest sent."""
    words = ["unshare", "-n", sys.executable, "-c", WATCH, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["sent"] > 1000 + row["received"]


def test_a_counter_that_began_again_counts_from_nothing() -> None:
    """Also one that was not there before; the first look gives nothing."""
    rates = Rates()
    assert rates.look({"a": 5.0}) == {}
    measured = rates.look({"a": 6.0, "b": 3.0})
    assert measured["b"] == pytest.approx(3 * measured["a"])
    again = rates.look({"a": 2.0, "b": 4.0})
    assert again["a"] == pytest.approx(2 * again["b"])
