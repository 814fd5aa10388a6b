"""Guests as jobs: real QEMU processes, and a domain of a real libvirt daemon."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import spinning_guest
from adopted_pair import WEIGHT, Pair, goes_on, pair, place, seconds
from libvirt_daemons import Daemon
from libvirt_daemons import missing as missing_libvirt
from quiet_cores import QuietCores
from test_gang_commands import daemon, gang, jobs
from topolane._engine import InputError
from topolane_gang.agent import Agent, AgentJob
from topolane_gang.guests import GangGuest, guest
from topolane_sites.qemu import QemuFolder
from waiting import until

pytest.importorskip("qemu.qmp", reason="guests by QMP need the extra sites")
if reason := spinning_guest.missing():
    pytest.skip(reason, allow_module_level=True)

from topolane_sites.movers.qmp import ask, monitor


@pytest.fixture(scope="module")
def qemu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QemuFolder]:
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


def _adopt(found: GangGuest) -> Callable[[Agent], AgentJob]:
    def adopt(agent: Agent) -> AgentJob:
        try:
            return agent.adopt("guest", threads=found.threads, weight=WEIGHT)
        except InputError as error:
            if "freezer of control groups version 1" in str(error):
                pytest.skip(str(error))
            raise

    return adopt


def _all_busy(found: GangGuest) -> bool:
    return len(found.threads) == spinning_guest.CORES and all(seconds(each) > 0.05 for each in found.threads)


def _monitor_of(folder: QemuFolder) -> str:
    return str(folder.file("busy", "qmp"))


def test_the_cores_of_a_qemu_process_are_found_by_its_qmp_socket(qemu: QemuFolder) -> None:
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
    qemu: QemuFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    with pytest.raises(InputError, match="no QMP monitor answers there; .* one client at a time"):
        asyncio.run(_while_another_asks(_monitor_of(qemu), monkeypatch))


async def _while_another_asks(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with monitor(path) as client:
        await ask(client, "query-status")
        monkeypatch.setattr("topolane_sites.movers.qmp.ANSWER", 0.5)
        await asyncio.to_thread(guest, path)


@pytest.mark.parametrize("kind", ["qemu", "libvirt"])
def test_a_guest_has_its_share_of_the_cores_and_is_let_go_as_it_was(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: the cores of a guest of weight 3 get three quarters of the CPU time against a job of weight 1; when the
    agent ends they run, in the control groups and on the cores that they had."""
    if kind == "qemu":
        found = guest(_monitor_of(request.getfixturevalue("qemu")))
    else:
        monkeypatch.setenv("LIBVIRT_DEFAULT_URI", request.getfixturevalue("libvirt_guest"))
        found = guest("busy")
    before = [place(thread) for thread in found.threads]
    quiet_cores = QuietCores(found.threads[:1])  # a signal to a thread stops its process
    with pair(_adopt(found)) as both:
        share = both.share()
    assert goes_on(list(found.threads))
    assert [place(thread) for thread in found.threads] == before
    quiet_cores.judge(0.62 < share < 0.88, share)


def test_the_monitor_answers_while_the_cores_are_stopped(qemu: QemuFolder) -> None:
    """Rule: only the guest's cores are stopped: in slices in which they get nothing, QMP is answered."""
    found = guest(_monitor_of(qemu))
    with pair(_adopt(found), slice=0.5) as both:
        until(lambda: asyncio.run(_answered_while_off(_monitor_of(qemu), found, both)), "QMP is answered")


async def _answered_while_off(path: str, found: GangGuest, both: Pair) -> bool:
    async with monitor(path) as client:
        asked, had = time.monotonic(), [seconds(thread) for thread in found.threads]
        await ask(client, "query-status")
        answered = time.monotonic()
        got = [seconds(thread) for thread in found.threads]
    # What was off is known when it is over.
    await asyncio.sleep(1.5)
    off = any(start <= asked and answered <= end for start, end in both.off(both.adopted))
    assert not off or got == had, "it was stopped, and ran"
    return off


def test_a_guest_is_added_by_command_and_what_is_none_is_refused(qemu: QemuFolder, tmp_path: Path) -> None:
    """Rule: `gang add --guest` makes a job of as many threads as the guest has cores; what is no guest, and two things
    at once, end in one sentence and exit code 2, with nothing added."""
    socket_of = _monitor_of(qemu)
    with daemon(tmp_path, "--policy", "gang") as at:
        for words, said in (
            (("--guest", "999999999"), "topolane: guest 999999999: process 999999999: No such file"),
            (("--guest", socket_of, "--slurm-step", "1"), "topolane: give one of: a command after --, --pid"),
            (("--slurm-step", "x"), "topolane: Slurm step 'x': JOB or JOB.STEP is wanted"),
        ):
            done = gang("add", *words, *at)
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
            assert done.stderr.startswith(said)
        assert jobs(at) == {}
        done = gang("add", "--guest", socket_of, "--name", "vm", "--weight", "2", *at)
        if "freezer of control groups version 1" in done.stderr:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        assert (jobs(at)["vm"]["threads"], jobs(at)["vm"]["weight"]) == (spinning_guest.CORES, 2.0)
        assert goes_on(list(guest(socket_of).threads))
        gang("stop", "vm", *at)
    assert qemu.pid("busy") is not None, "it is let go, not ended"
