"""A private network for a virtual cluster, over the hosts it may use.

Every host has a bridge for the guests' network cards. VXLAN (RFC 7348) joins the bridges of hosts that reach
each other, without multicast: each knows the tunnel addresses of the others. The hosts behind NAT connect by
OpenVPN to one that is reachable, the relay, which also joins them with each other. A guest keeps its address and its peers wherever it runs; after a move,
QEMU's announcement gives the bridges its new position.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from topolane_sites import openvpn
from topolane_sites.remote import CommandFailed, command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VXLAN_PORT = 4789
VXLAN_MTU = 1450
"""The MTU: 1500 bytes of Ethernet, minus the headers of VXLAN over IPv4."""
UNKNOWN_RECEIVER = "00:00:00:00:00:00"
"""The entry of VXLAN's table for frames with an unknown receiver."""


@dataclass(frozen=True)
class OverlayMember:
    """A host in the network."""

    name: str
    run: tuple[str, ...]
    """See `remote.command`."""
    tunnel: str
    """Its address for the other hosts."""
    behind_nat: bool = False
    own: str | None = None
    """The host's own address in the network, with its prefix length, if any."""


def bridge(cluster: str) -> str:
    """The name of the bridge on every host. Linux allows 15 letters."""
    return f"tlb{zlib.crc32(cluster.encode()):08x}"


def up(cluster: str, members: Sequence[OverlayMember], relay: str | None = None) -> list[str]:
    """Builds the network, or its missing parts. Returns sentences on tunnels that had to be mended.

    relay: the member to which those behind NAT connect. Raises CommandFailed after removing what it had built.
    """
    before = {member.name for member in members if _there(cluster, member)}
    try:
        return _join(cluster, members, relay)
    except CommandFailed:
        down(cluster, [member for member in members if member.name not in before])
        raise


def down(cluster: str, members: Sequence[OverlayMember]) -> list[str]:
    """Removes the network on every host. Returns sentences on what could not be removed."""
    left = []
    for member in members:
        try:
            there = _links(member)
        except CommandFailed as error:
            left.append(f"{member.name}: {error}")
            continue  # a host that does not tell its interfaces does nothing else
        steps: list[Callable[[], object]] = [partial(openvpn.stop, cluster, member.run)]
        for link in (_vxlan(cluster), bridge(cluster)):
            if link in there:
                steps.append(partial(command, member.run, ["ip", "link", "delete", link]))
        for step in steps:
            try:
                step()
            except CommandFailed as error:
                left.append(f"{member.name}: {error}")
    return left


def forget(cluster: str, members: Sequence[OverlayMember], address: str) -> list[str]:
    """Removes a guest's hardware address from the tables of all bridges, which would expire after minutes.

    Returns sentences on hosts where that failed.
    """
    left = []
    for member in members:
        try:
            if bridge(cluster) in _links(member):
                _forget(cluster, member, address)
        except CommandFailed as error:
            left.append(f"{member.name}: {error}")
    return left


def _forget(cluster: str, member: OverlayMember, address: str) -> None:
    known = command(member.run, ["bridge", "fdb", "show", "br", bridge(cluster)])
    for device, rest in re.findall(rf"^{address} dev (\S+)(.*)$", known, re.MULTILINE):
        table = "self" if "self" in rest.split() else "master"
        with contextlib.suppress(CommandFailed):  # it has expired meanwhile
            command(member.run, ["bridge", "fdb", "del", address, "dev", device, table])


def _join(cluster: str, members: Sequence[OverlayMember], relay: str | None) -> list[str]:
    meshed = [member for member in members if not member.behind_nat]
    hidden = [member for member in members if member.behind_nat]
    for member in members:
        _bridge(cluster, member)
    for member in meshed:
        _tunnel(cluster, member, [other.tunnel for other in meshed if other is not member])
    hub = next((member for member in meshed if member.name == relay), None)
    for member in meshed:
        if member is not hub and openvpn.tap(cluster) in _links(member):
            openvpn.stop(cluster, member.run)  # it was the relay before
    if not hidden:
        return []
    if hub is None:
        raise CommandFailed(
            f"{', '.join(member.name for member in hidden)} cannot be reached without a relay"
        )
    runs = {member.name: member.run for member in hidden}
    return openvpn.start(cluster, bridge(cluster), openvpn.OpenVpnServer(hub.name, hub.run, hub.tunnel), runs)


def _bridge(cluster: str, member: OverlayMember) -> None:
    name = bridge(cluster)
    if name not in _links(member):
        command(member.run, ["ip", "link", "add", name, "type", "bridge"])
    command(member.run, ["ip", "link", "set", name, "mtu", str(VXLAN_MTU), "up"])
    if member.own:
        command(member.run, ["ip", "address", "replace", member.own, "dev", name])


def _tunnel(cluster: str, member: OverlayMember, others: Sequence[str]) -> None:
    name = _vxlan(cluster)
    number = zlib.crc32(cluster.encode()) & 0xFFFFFF or 1
    if name not in _links(member):
        words = ["ip", "link", "add", name, "type", "vxlan", "id", str(number)]
        command(member.run, [*words, "dstport", str(VXLAN_PORT), "local", member.tunnel])
    command(member.run, ["ip", "link", "set", name, "mtu", str(VXLAN_MTU), "master", bridge(cluster), "up"])
    known = command(member.run, ["bridge", "fdb", "show", "dev", name])
    for other in others:
        if f"{UNKNOWN_RECEIVER} dst {other} " not in known:
            command(member.run, ["bridge", "fdb", "append", UNKNOWN_RECEIVER, "dev", name, "dst", other])


def _vxlan(cluster: str) -> str:
    return f"tlx{zlib.crc32(cluster.encode()):08x}"


def _links(member: OverlayMember) -> set[str]:
    """The names of its interfaces."""
    printed = command(member.run, ["ip", "-o", "link", "show"])
    return set(re.findall(r"^\d+: ([^:@\s]+)", printed, re.MULTILINE))


def _there(cluster: str, member: OverlayMember) -> bool:
    with contextlib.suppress(CommandFailed):
        return bridge(cluster) in _links(member)
    return False
