"""Live migration of a real guest between two sets of QEMU processes: it counts on, and there is one of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("qemu.qmp", reason="moving by QMP needs the packages of topolane-sites")
from guest_image import missing
from managed import Managed
from sender import Rank
from tick_guests import Sites, slow
from topolane.cluster.clients import qmp
from topolane_sites.model import Host
from topolane_sites.movers import GuestLost, MoveFailed, mover
from waiting import DEADLINE, until

if reason := missing("cc", "strip"):
    pytest.skip(f"a guest needs QEMU and a kernel: {reason}", allow_module_level=True)


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    made = Sites(tmp_path)
    yield made
    made.end()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mover gives a monitor 20 s to answer, and an emulated guest on a busy machine may need more."""
    monkeypatch.setattr(qmp, "ANSWER", DEADLINE)


def _stays(sites: Sites) -> None:
    """One copy, at the source, which counts on."""
    a, b = sites.hosts
    until(lambda: mover("qmp").where(sites.guest, (a, b)) == ("a",), "the guest is at its source")
    assert sites.processes() == ["a"]
    sites.goes_on()


@pytest.mark.usefixtures("patient")
def test_a_moved_guest_counts_on_at_its_target_alone(sites: Sites) -> None:
    sites.start()
    a, b = sites.hosts
    seen: list[float] = []
    measured = mover("qmp").move(sites.guest, a, b, seen.append)
    assert mover("qmp").where(sites.guest, (a, b)) == ("b",)
    assert sites.processes() == ["b"]
    sites.goes_on()
    assert seen[-1] == 1.0 and all(0 <= share <= 1 for share in seen)
    assert measured["bytes"] > 1 << 20 and 0 < measured["downtime"] < measured["seconds"]
    # And back, by the same definition.
    mover("qmp").move(sites.guest, b, a, lambda _: None)
    _stays(sites)


@pytest.mark.usefixtures("patient")
def test_a_cancelled_move_leaves_the_guest_where_it_is(sites: Sites) -> None:
    sites.start()
    slow(sites)

    def cancel(share: float) -> None:
        if share > 0.1:
            raise MoveFailed("cancelled")

    with pytest.raises(MoveFailed, match="stays at a: cancelled"):
        mover("qmp").move(sites.guest, *sites.hosts, cancel)
    _stays(sites)


@pytest.mark.usefixtures("patient")
def test_a_target_that_dies_while_memory_is_copied_leaves_the_guest_where_it_is(sites: Sites) -> None:
    sites.start()
    slow(sites)

    def kill(share: float) -> None:
        if pid := sites.at("b").pid("g1"):
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(MoveFailed, match="g1 stays at a"):
        mover("qmp").move(sites.guest, *sites.hosts, kill)
    _stays(sites)


def test_a_source_whose_monitor_goes_away_leaves_one_copy(sites: Sites) -> None:
    """The copy may have completed or not: whichever it was, one runs and nothing is missing."""
    sites.start()
    slow(sites, 16 << 20)

    def unlink(share: float) -> None:
        sites.at("a").file("g1", "qmp").unlink(missing_ok=True)
        raise ConnectionError("the monitor is gone")

    with contextlib.suppress(MoveFailed):
        mover("qmp").move(sites.guest, *sites.hosts, unlink)
    until(lambda: len(sites.processes()) == 1, "one copy is left")
    sites.goes_on()


@pytest.mark.usefixtures("patient")
def test_a_source_that_dies_while_memory_is_copied_is_a_lost_guest_and_no_half_one_stays(
    sites: Sites,
) -> None:
    sites.start()
    slow(sites)

    def kill(share: float) -> None:
        if pid := sites.at("a").pid("g1"):
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(GuestLost, match="ended at both hosts"):
        mover("qmp").move(sites.guest, *sites.hosts, kill)
    assert sites.processes() == []
    assert mover("qmp").where(sites.guest, sites.hosts) == ()


def test_a_target_that_cannot_start_changes_nothing(sites: Sites) -> None:
    sites.start()
    (sites.at("b").path / "host.json").write_text('{"run": ["/nonexistent"]}')
    with pytest.raises(MoveFailed, match="cannot move to b: .*nonexistent"):
        mover("qmp").move(sites.guest, *sites.hosts, lambda _: None)
    assert not sites.at("b").guests()
    _stays(sites)


MOVE = """
import sys
from topolane_sites.model import Guest, Host
from topolane_sites.movers import mover, qmp
step, *ends = sys.argv[1:]
def die(*_):
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
hosts = [Host(n, n, 2, 2**30, driver="qmp", address=p) for n, p in zip(ends[::2], ends[1::2])]
if step == "connecting":
    connect = qmp._connect
    async def connect_and_die(*clients):
        await connect(*clients)
        die()
    qmp._connect = connect_and_die
if step == "handing over":
    qmp._hand_over = die
if step == "handed over":
    qmp.QemuFolder.end = die
if step == "complete":
    qmp._until = die
print("moving", flush=True)
mover("qmp").move(Guest("g1", "c", 1, 2**27, ends[0]), *hosts, lambda _: print("copying", flush=True))
"""


def test_a_mover_killed_at_any_step_leaves_one_copy_once_it_is_settled(sites: Sites) -> None:
    """Killed with SIGKILL before memory is copied, while it is, when it is complete, before the target runs and after."""
    sites.start()
    here, there = sites.hosts
    _killed(sites, "connecting", here, there)
    _settled(sites, here, there, here)
    for step in ("complete", "handing over", "handed over"):
        _killed(sites, step, here, there)
        _settled(sites, here, there, there)
        here, there = there, here
    slow(sites, at=here.name)
    _killed(sites, "copying", here, there)
    _settled(sites, here, there, here)


def _killed(sites: Sites, step: str, here: Host, there: Host) -> None:
    words = [sys.executable, "-c", MOVE, step, here.name, here.address, there.name, there.address]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as moving:
        assert moving.stdout
        for line in moving.stdout:
            if step == "copying" and line == "copying\n":
                time.sleep(0.3)
                moving.kill()
                break
    assert moving.returncode == -signal.SIGKILL


def _settled(sites: Sites, here: Host, there: Host, expected: Host) -> None:
    """Settling leaves the one copy there, and settling what is settled changes nothing."""
    for _ in range(2):
        assert mover("qmp").settle(sites.guest, here, there) == expected.name
        assert mover("qmp").where(sites.guest, sites.hosts) == (expected.name,)
        assert sites.processes() == [expected.name]
        sites.goes_on()


@pytest.mark.usefixtures("patient")
def test_a_guest_makes_way_for_a_cluster_that_arrives(sites: Sites) -> None:
    """A core is free on either site and two guests of one arrive: the manager plans to move the guest that runs to the other
    site, and applied the plan is a live migration; the guest counts on, and there is room where it was."""
    sites.start()
    manager = Managed(sites.folder, {})
    manager.file.write_text(sites.file(manager.programs))
    wanted = {"guests": 2, "cores": 1, "memory": 128 << 20}

    async def asked() -> None:
        rank = Rank(manager.programs, 0, 1, host="g1")
        rank.start()
        rank.report(length=20.0)
        try:
            while rank.unacknowledged:
                await asyncio.sleep(0.05)
            made = await asyncio.to_thread(manager.client.post, "/room", wanted)
            assert [(move["guest"], move["target"]) for move in made["moves"]] == [("g1", "b")]
            assert made["room"] == ["a", "a"]
            await asyncio.to_thread(manager.client.post, f"/plans/{made['id']}/apply")
            done = partial(until, lambda: manager.stages() == {"g1": "done"}, "the move")
            await asyncio.to_thread(done)
            after = await asyncio.to_thread(manager.client.post, "/room", wanted)
            assert (after["moves"], after["room"]) == ([], ["a", "a"])
        finally:
            await rank.stop()

    manager.start()
    try:
        asyncio.run(asyncio.wait_for(asked(), DEADLINE))
    finally:
        manager.stop()
    assert sites.processes() == ["b"]
    sites.goes_on()
