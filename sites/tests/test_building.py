"""`topolane sites up` and `down`: a cluster of real guests on a real network, known to a real manager."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest_image import kernel, missing
from places import Place, placed
from topolane_sites.model import Guest, Host
from topolane_sites.movers import mover
from topolane_sites.qemu import tap
from waiting import until

pytest.importorskip("qemu.qmp", reason="building clusters needs the packages of topolane-sites")
if os.geteuid():
    pytest.skip("network namespaces need root", allow_module_level=True)
if reason := missing("cc", "strip", "ip", "bridge"):
    pytest.skip(f"a cluster needs QEMU and a kernel: {reason}", allow_module_level=True)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with placed(tmp_path) as made:
        yield made


def test_a_cluster_is_built_once_known_to_the_manager_and_taken_down(place: Place) -> None:
    done = place.up()
    assert done.returncode == 0, done.stderr
    pids = place.pids()
    assert None not in pids
    for host, guest in zip("ab", ("g1", "g2")):
        console = place.folder / f"qemu-{host}" / f"{guest}.console"
        until(lambda console=console: "tick 3" in console.read_text(errors="replace"), f"{guest} runs")
    assert place.up().returncode == 0
    assert place.pids() == pids, "what runs stays"
    known = {guest["name"]: guest["host"] for guest in place.managed.client.get("/guests")}
    assert known == {"g1": "a", "g2": "b"}
    done = place.down()
    assert done.returncode == 0, done.stderr
    assert place.pids() == [None, None] and place.links() == [set(), set()]
    assert place.managed.client.get("/guests") == [] and place.managed.client.get("/clusters") == {}
    assert place.down().returncode == 2


def test_a_guest_of_a_cluster_moves_to_the_bridge_of_another_host(place: Place) -> None:
    """The QEMU of the target runs in the network namespace of that host, as `run` in the cluster's file says."""
    assert place.up().returncode == 0
    a, b = (Host(name, name, 2, 1 << 30, "qmp", f"{place.folder}/qemu-{name}") for name in "ab")
    guest = Guest("g1", "c1", 1, 128 << 20, "a", "10.42.0.1")
    mover("qmp").move(guest, a, b, lambda _: None)
    assert mover("qmp").where(guest, (a, b)) == ("b",)
    assert [tap("g1") in links for links in place.links()] == [False, True]
    console = place.folder / "qemu-b" / "g1.console"
    until(lambda: "tick" in console.read_text(errors="replace"), "the guest goes on")


def test_a_cluster_that_cannot_be_built_whole_is_taken_down_again(place: Place) -> None:
    """QEMU does not start the second guest: what it is given for a kernel is none."""
    (place.folder / "none").write_text("no kernel")
    head, tail = place.file.read_text().rsplit(f'kernel = "{kernel()}"', 1)
    place.file.write_text(f'{head}kernel = "{place.folder / "none"}"{tail}')
    done = place.up()
    assert done.returncode == 2 and "the parts that were built are taken down" in done.stderr, done.stderr
    assert place.pids() == [None, None] and place.links() == [set(), set()]
    assert place.managed.client.get("/clusters") == {}


def test_the_policy_says_where_a_cluster_begins(place: Place) -> None:
    """Two guests whose file names no host, and a host on each of two sites with room for both: on one site together,
    where the most free cores alone would part them."""
    place.file.write_text(re.sub(r'^host = ".*"\n', "", place.file.read_text(), flags=re.MULTILINE))
    done = place.up()
    assert done.returncode == 0, done.stderr
    guests = place.managed.client.get("/guests")
    assert len(guests) == 2 and len({guest["host"] for guest in guests}) == 1
