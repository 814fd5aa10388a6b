"""A cluster's private network over real interfaces: namespaces stand for hosts, one of them behind a real NAT."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from topolane_sites import overlay
from topolane_sites.overlay import OverlayMember
from topolane_sites.remote import CommandFailed
from waiting import until
from wan import Wan, wan

if os.geteuid():
    pytest.skip("network namespaces need root", allow_module_level=True)
if absent := [name for name in ("ip", "bridge", "busybox") if shutil.which(name) is None]:
    pytest.skip(f"an overlay needs {absent[0]}", allow_module_level=True)


def _member(made: Wan, site: str) -> OverlayMember:
    number = made.sites.index(site) + 1
    return OverlayMember(
        site, made.run(site), made.address(site), site in made.hidden, f"10.42.0.{number}/24"
    )


def _reaches(made: Wan, near: str, far: str) -> bool:
    """Whether the host `near` gets an answer from the address of `far` in the cluster's network."""
    number = made.sites.index(far) + 1
    words = [*made.run(near), "busybox", "ping", "-c", "1", "-W", "1", f"10.42.0.{number}"]
    return subprocess.run(words, capture_output=True).returncode == 0


def _links(made: Wan, site: str) -> set[str]:
    return overlay._links(_member(made, site))


@pytest.fixture
def open_sites() -> Iterator[Wan]:
    with wan("abc") as made:
        yield made


def test_hosts_that_reach_each_other_are_joined_without_multicast_and_twice_is_once(open_sites: Wan) -> None:
    members = [_member(open_sites, site) for site in "abc"]
    before = {site: _links(open_sites, site) for site in "abc"}
    overlay.up("c1", members)
    overlay.up("c1", members)
    for near in "abc":
        for far in "abc":
            until(lambda near=near, far=far: _reaches(open_sites, near, far), f"{near} reaches {far}")
    flooded = subprocess.run(
        [*open_sites.run("a"), "bridge", "fdb", "show", "dev", overlay._vxlan("c1")],
        capture_output=True,
        text=True,
    ).stdout
    assert flooded.count(overlay.UNKNOWN_RECEIVER) == 2
    assert overlay.down("c1", members) == []
    assert {site: _links(open_sites, site) for site in "abc"} == before
    # Taking down what is not there is nothing.
    assert overlay.down("c1", members) == []


def test_two_clusters_do_not_hear_each_other(open_sites: Wan) -> None:
    one = [_member(open_sites, site) for site in "ab"]
    other = [
        OverlayMember("a", open_sites.run("a"), "192.0.2.1"),
        OverlayMember("c", open_sites.run("c"), "192.0.2.3"),
    ]
    overlay.up("c1", one)
    overlay.up("c2", [other[0], _member(open_sites, "c")])
    until(lambda: _reaches(open_sites, "a", "b"), "a reaches b")
    assert not _reaches(open_sites, "a", "c")


def test_a_network_that_cannot_be_built_leaves_nothing(open_sites: Wan) -> None:
    members = [_member(open_sites, "a"), OverlayMember("b", open_sites.run("b"), "no address")]
    before = {site: _links(open_sites, site) for site in "ab"}
    with pytest.raises(CommandFailed, match="no address"):
        overlay.up("c1", members)
    assert {site: _links(open_sites, site) for site in "ab"} == before


@pytest.mark.parametrize("hidden", ["c", "bc"])
def test_hosts_behind_nat_are_reached_through_openvpn(hidden: str) -> None:
    """Nothing can be sent to them from outside, yet guests there reach all others, and are reached."""
    if absent := [name for name in ("openvpn", "openssl", "nft") if shutil.which(name) is None]:
        pytest.skip(f"NAT and what gets through it need {', '.join(absent)}")
    with wan("abc", hidden) as made:
        assert subprocess.run(
            [*made.run("a"), "busybox", "ping", "-c", "1", "-W", "1", "10.99.2.2"], capture_output=True
        ).returncode, "the NAT lets strangers in"
        members = [_member(made, site) for site in "abc"]
        try:
            overlay.up("c1", members, "a")
            overlay.up("c1", members, "a")
            for near, far in ("ac", "ca", "bc", "cb", "ab"):
                until(lambda near=near, far=far: _reaches(made, near, far), f"{near} reaches {far}")
        finally:
            assert overlay.down("c1", members) == []
        for site in "abc":
            assert _links(made, site) == {"lo", "uplink"}
    assert "topolane-openvpn" not in subprocess.run(["ps", "ax"], capture_output=True, text=True).stdout
