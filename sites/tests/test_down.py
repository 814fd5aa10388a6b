"""One host that fails must not keep the rest of a virtual cluster up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("qemu.qmp", reason="building clusters needs the packages of topolane-sites")
from topolane_sites import builders, overlay
from topolane_sites.clusters import Boot, VirtualCluster
from topolane_sites.model import Guest, Host
from topolane_sites.overlay import OverlayMember
from topolane_sites.qemu import QemuFolder
from wan import Wan, wan

NAMES = "abc"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[VirtualCluster]:
    """Three hosts, on each of which runs a process that stands for the QEMU of its guest."""
    hosts, processes = [], []
    for name in NAMES:
        hosts.append(Host(name, "site", 2, 1 << 30, driver="qmp", address=str(tmp_path / name)))
        (tmp_path / name).mkdir()
        file = QemuFolder.of(hosts[-1]).file(f"g-{name}", "pid")
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", str(file)])
        file.write_text(str(process.pid))
        processes.append(process)
    guests = tuple(Guest(f"g-{name}", "c1", 1, 1 << 20, name, "10.42.0.1") for name in NAMES)
    members = tuple(OverlayMember(name, ("true",), "192.0.2.1") for name in NAMES)
    yield VirtualCluster("c1", "10.42.0.0/24", tuple(hosts), members, guests, (Boot(),) * 3)
    for process in processes:
        process.kill()
        process.wait()


def _run(cluster: VirtualCluster, **runs: tuple[str, ...]) -> VirtualCluster:
    """With other prefixes for commands on some hosts."""
    changed = (replace(member, run=runs.get(member.name, member.run)) for member in cluster.members)
    return replace(cluster, members=tuple(changed))


def _guests_left(cluster: VirtualCluster) -> list[str]:
    folders = [(QemuFolder.of(host), guest.name) for host, guest in zip(cluster.hosts, cluster.guests)]
    return [guest for folder, guest in folders if folder.pid(guest) is not None]


@pytest.mark.parametrize("failing", [("false",), ("/nonexistent/ssh", "b")])
def test_a_host_whose_commands_fail_does_not_hinder_the_others(
    cluster: VirtualCluster, failing: tuple[str, ...]
) -> None:
    """A host on which every command fails cannot keep the guests of other hosts up, nor hide its own failure."""
    left = builders.down(_run(cluster, a=failing, c=failing), lambda _: None)
    assert _guests_left(cluster) == []
    assert [sentence.partition(":")[0] for sentence in left] == ["a", "c"]


def test_a_guest_that_cannot_be_ended_does_not_hinder_the_others(cluster: VirtualCluster) -> None:
    """A guest whose files cannot be removed cannot keep the guests of other hosts up."""
    QemuFolder.of(cluster.hosts[0]).file("g-a", "qmp").mkdir()
    messages: list[str] = []
    left = builders.down(cluster, messages.append)
    assert _guests_left(cluster) == []
    assert messages == ["g-b is ended on b", "g-c is ended on c"]
    assert len(left) == 1 and left[0].startswith("g-a on a: ")


@pytest.fixture
def network() -> Iterator[Wan]:
    if os.geteuid():
        pytest.skip("network namespaces need root")
    if absent := [name for name in ("ip", "bridge", "busybox") if shutil.which(name) is None]:
        pytest.skip(f"an overlay needs {absent[0]}")
    with wan(NAMES) as made:
        yield made


def test_a_host_that_fails_keeps_no_bridges_on_the_others(network: Wan) -> None:
    """A host on which every command fails cannot keep the private network of a cluster on other hosts.

    Run again when the host answers, the command takes down what was left.
    """
    members = [OverlayMember(name, network.run(name), network.address(name)) for name in NAMES]
    overlay.up("c1", members)
    left = overlay.down("c1", [members[0], replace(members[1], run=("false",)), members[2]])
    assert len(left) == 1 and left[0].startswith("b: ")
    assert [_links(network, name) for name in "ac"] == [set(), set()]
    assert _links(network, "b")
    assert overlay.down("c1", members) == []
    assert _links(network, "b") == set()


def _links(network: Wan, name: str) -> set[str]:
    """Interfaces on a host, but for those it had."""
    printed = subprocess.run(
        [*network.run(name), "ip", "-o", "link", "show"], capture_output=True, text=True, check=True
    ).stdout
    return {line.split(": ")[1].split("@")[0] for line in printed.splitlines()} - {"lo", "uplink"}
