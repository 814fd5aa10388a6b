"""The daemons of hosts and guests: what they tell a real manager, and that they survive its restart."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guest_image import missing
from managed import MAIN, WINDOWS, Managed, guest_daemon
from tick_guests import Sites
from topolane import InputError
from waiting import DEADLINE, until

pytest.importorskip("psutil", reason="the daemons need topolane-sites")
from topolane_sites.host import HostWatch
from topolane_sites.model import Host
from topolane_sites.qemu import QemuFolder, QemuMachine


@pytest.fixture
def managed(tmp_path: Path) -> Iterator[Managed]:
    made = Managed(tmp_path, {"g1": "e1"})
    made.start()
    yield made
    made.process.kill()
    made.process.wait()


@contextlib.contextmanager
def _daemon(*words: object, folder: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A daemon. That of a guest needs a folder for what it sets."""
    before = guest_daemon(folder / "windows") if folder is not None else []
    command = [*before, sys.executable, "-c", MAIN, "sites", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as made:
        try:
            yield made
        finally:
            made.terminate()
            made.communicate(timeout=DEADLINE)


def _host(managed: Managed, name: str) -> dict[str, Any]:
    return next((host for host in managed.client.get("/hosts") if host["name"] == name), {})


def _again(managed: Managed) -> None:
    """Kills the manager and starts it again."""
    managed.process.send_signal(signal.SIGKILL)
    managed.process.wait()
    managed.start()


def test_a_host_is_known_by_what_it_reports_and_again_after_the_manager_was_killed(managed: Managed) -> None:
    words = ["host", "--name", "e9", "--site", "east", "--driver", "dry-run", "--memory", "2 GiB"]
    with _daemon(*words, "--every", "0.2", "--manager", f"unix:{managed.folder}/a.sock") as daemon:
        until(lambda: _host(managed, "e9").get("report"), "the manager knows the host")
        found = _host(managed, "e9")
        assert (found["site"], found["cores"], found["memory"]) == ("east", os.cpu_count(), 2 << 30)
        assert found["report"]["use"]["memory_used"] > 0
        _again(managed)
        until(lambda: _host(managed, "e9").get("report"), "the host is known again")
        assert daemon.poll() is None


def test_a_host_reports_the_guests_that_really_run_there(tmp_path: Path) -> None:
    if reason := missing("cc", "strip"):
        pytest.skip(f"a guest needs QEMU and a kernel: {reason}")
    (tmp_path / "qemu").mkdir()
    sites = Sites(tmp_path / "qemu")
    managed = Managed(tmp_path, {"g1": "e1"})
    drives = f'name = "west"\ndriver = "qmp"\naddress = "{sites.hosts[0].address}"'
    managed.file.write_text(managed.file.read_text().replace('name = "west"', drives, 1))
    managed.start()
    try:
        sites.start()
        words = ["host", "--name", "w9", "--site", "west", "--driver", "qmp", "--every", "0.3"]
        address = ["--address", sites.hosts[0].address, "--manager", f"unix:{managed.folder}/a.sock"]
        with _daemon(*words, *address):
            until(lambda: _host(managed, "w9").get("report"), "the manager knows the host")
            until(
                lambda: _host(managed, "w9")["report"]["guests"][0].get("cpu"), "the guest uses its processor"
            )
            guest = _host(managed, "w9")["report"]["guests"][0]
            assert (guest["name"], guest["state"], guest["cores"]) == ("g1", "running", 1)
            assert 127 << 20 <= guest["memory"] <= 128 << 20
            kept = next(one for one in managed.client.get("/guests") if one["name"] == "g1")
            assert kept["host"] == "w9"
            assert _host(managed, "w9")["driver"] == "qmp"
    finally:
        sites.end()
        managed.process.kill()
        managed.process.wait()


def test_a_guest_that_hangs_is_still_on_its_host(tmp_path: Path) -> None:
    """A QEMU process that is alive and does not answer is reported as it was last seen: its room is not free. Once it is
    dead it is not reported."""
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    host = Host("e1", "east", 4, 1 << 33, "qmp", str(tmp_path))
    watch, folder = HostWatch(host), QemuFolder.of(host)
    folder.start(QemuMachine("g1", ("-M", "pc", "-accel", "tcg", "-m", "16", "-display", "none")))
    pid = folder.pid("g1")
    try:
        (before,) = watch.look()["guests"]
        os.kill(pid, signal.SIGSTOP)
        (after,) = watch.look()["guests"]
        assert [after[key] for key in ("name", "state", "cores", "memory")] == ["g1", "running", 1, 16 << 20]
        assert before["state"] == "running"
    finally:
        os.kill(pid, signal.SIGCONT)
        folder.end("g1")
    assert watch.look()["guests"] == []


def test_a_host_whose_libvirt_is_away_reports_nothing(tmp_path: Path) -> None:
    """No report, which the manager sees as silence: a report without guests would have them ended."""
    pytest.importorskip("libvirt", reason="libvirt's binding is not installed")
    host = Host("e1", "east", 4, 1 << 33, "libvirt", f"qemu:///system?socket={tmp_path}/none")
    with pytest.raises(InputError, match="libvirt of e1: "):
        HostWatch(host).look()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("kind", ["host", "guest", "relay"])
def test_a_daemon_that_is_asked_to_end_has_not_failed(kind: str, ending: int, tmp_path: Path) -> None:
    """Its exit code is 0 after either signal, and no traceback is printed; with no manager too."""
    words = {
        "host": ["host", "--site", "east", "--driver", "dry-run"],
        "guest": ["guest"],
        "relay": ["guest", "--relay", tmp_path / "p.sock", "--programs", "127.0.0.1:1"],
    }[kind]
    with _daemon(*words, "--manager", f"unix:{tmp_path}/none.sock", folder=tmp_path) as daemon:
        said = daemon.stderr.readline()  # it is at work
        daemon.send_signal(ending)
        said += daemon.communicate(timeout=DEADLINE)[1]
        assert daemon.returncode == 0, said
        assert "Traceback" not in said


def test_a_guest_reports_what_runs_in_it(managed: Managed) -> None:
    words = ["guest", "--name", "g1", "--every", "0.2", "--manager", f"unix:{managed.folder}/a.sock"]

    def report() -> Any:
        return next(one for one in managed.client.get("/guests") if one["name"] == "g1")["report"]

    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            with _daemon(*words, folder=managed.folder):
                until(
                    lambda: report() and busy.pid in [one["pid"] for one in report()["processes"]],
                    "the manager knows what runs in the guest",
                )
        finally:
            busy.kill()


def test_a_guest_keeps_its_windows_and_the_machine_of_this_test_is_left_alone(tmp_path: Path) -> None:
    """The daemon sets tcp_slow_start_after_idle to 0. For the daemon alone, a file of this test is mounted in its place."""
    if os.geteuid() or not guest_daemon(tmp_path / "windows"):
        pytest.skip("only root may set it")
    with _daemon("guest", "--manager", f"unix:{tmp_path}/none.sock", folder=tmp_path) as daemon:
        until(lambda: (tmp_path / "windows").read_text() == "0\n", "the daemon sets it")
        assert WINDOWS in Path(f"/proc/{daemon.pid}/mountinfo").read_text()
    assert WINDOWS not in Path("/proc/self/mountinfo").read_text()


def test_ranks_reach_a_manager_through_the_guest_and_again_once_it_is_back(tmp_path: Path) -> None:
    """The relay hands on what it is given, byte for byte, both ways, and ends a connection the manager ended."""
    path = tmp_path / "run" / "programs.sock"
    with socket.create_server(("127.0.0.1", 0)) as far:
        port = far.getsockname()[1]
        relay = ["--relay", path, "--programs", f"127.0.0.1:{port}"]
        with _daemon("guest", "--manager", f"unix:{tmp_path}/none.sock", *relay, folder=tmp_path) as daemon:
            until(path.exists, "the relay listens")
            for _ in range(2):
                with socket.socket(socket.AF_UNIX) as rank:
                    until(lambda rank=rank: rank.connect_ex(str(path)) == 0, "the relay takes a rank")
                    manager, _ = far.accept()
                    sent = os.urandom(300_000)
                    with manager:
                        rank.sendall(sent[:150_000])
                        heard = manager.recv(150_000, socket.MSG_WAITALL)
                        manager.sendall(sent[150_000:])
                        heard += rank.recv(150_000, socket.MSG_WAITALL)
                    assert heard == sent
                    assert rank.recv(1) == b""
            far.close()
            with socket.socket(socket.AF_UNIX) as rank:
                rank.connect(str(path))
                assert rank.recv(1) == b"", "without a manager the connection ends"
            assert daemon.poll() is None
