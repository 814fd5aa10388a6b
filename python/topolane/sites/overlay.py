"""A private network for a virtual cluster, over the hosts it may use.

On every host a bridge, which the guests' cards are on. The bridges of hosts that reach each other are joined by
VXLAN (RFC 7348), without multicast: each knows the tunnel addresses of the others. A host behind NAT dials out to one
that is not, by OpenVPN, and its bridge joins there. A guest keeps its address and its peers wherever it runs; the
bridges learn its new place from what QEMU announces after a move.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from topolane.sites import openvpn
from topolane.sites.remote import CommandFailed, command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VXLAN_PORT = 4789
VXLAN_MTU = 1450
"""Of an Ethernet of 1500 bytes, less the headers of VXLAN over IPv4."""
NOBODY = "00:00:00:00:00:00"
"""The entry of VXLAN's table that says where frames go whose receiver is not known yet."""


@dataclass(frozen=True)
class Member:
    """A host that takes part."""

    name: str
    run: tuple[str, ...]
    """See `remote.command`."""
    tunnel: str
    """Its address towards the others."""
    behind_nat: bool = False
    own: str | None = None
    """The host's own address in the network, with its prefix length, if it is to have one."""


def bridge(cluster: str) -> str:
    """The bridge's name on every host; Linux allows 15 letters."""
    return f"tlb{zlib.crc32(cluster.encode()):08x}"


def up(cluster: str, members: Sequence[Member]) -> None:
    """Builds it, or what is missing of it. Raises CommandFailed, with nothing left behind that was not there."""
    before = {member.name for member in members if _there(cluster, member)}
    try:
        _join(cluster, members)
    except CommandFailed:
        down(cluster, [member for member in members if member.name not in before])
        raise


def down(cluster: str, members: Sequence[Member]) -> list[str]:
    """Takes it down, as far as it is there, on every host; returns what could not be removed, in sentences."""
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


def _join(cluster: str, members: Sequence[Member]) -> None:
    meshed = [member for member in members if not member.behind_nat]
    hidden = [member for member in members if member.behind_nat]
    for member in members:
        _bridge(cluster, member)
    for member in meshed:
        _tunnel(cluster, member, [other.tunnel for other in meshed if other is not member])
    if hidden:
        if not meshed:
            raise CommandFailed("all hosts are behind NAT: none can be dialled")
        hub = meshed[0]
        openvpn.start(
            cluster, bridge(cluster), hub.run, hub.tunnel, {member.name: member.run for member in hidden}
        )


def _bridge(cluster: str, member: Member) -> None:
    name = bridge(cluster)
    if name not in _links(member):
        command(member.run, ["ip", "link", "add", name, "type", "bridge"])
    command(member.run, ["ip", "link", "set", name, "mtu", str(VXLAN_MTU), "up"])
    if member.own:
        command(member.run, ["ip", "address", "replace", member.own, "dev", name])


def _tunnel(cluster: str, member: Member, others: Sequence[str]) -> None:
    name = _vxlan(cluster)
    number = zlib.crc32(cluster.encode()) & 0xFFFFFF or 1
    if name not in _links(member):
        words = ["ip", "link", "add", name, "type", "vxlan", "id", str(number)]
        command(member.run, [*words, "dstport", str(VXLAN_PORT), "local", member.tunnel])
    command(member.run, ["ip", "link", "set", name, "mtu", str(VXLAN_MTU), "master", bridge(cluster), "up"])
    known = command(member.run, ["bridge", "fdb", "show", "dev", name])
    for other in others:
        if f"{NOBODY} dst {other} " not in known:
            command(member.run, ["bridge", "fdb", "append", NOBODY, "dev", name, "dst", other])


def _vxlan(cluster: str) -> str:
    return f"tlx{zlib.crc32(cluster.encode()):08x}"


def _links(member: Member) -> set[str]:
    """Names of its interfaces."""
    printed = command(member.run, ["ip", "-o", "link", "show"])
    return set(re.findall(r"^\d+: ([^:@\s]+)", printed, re.MULTILINE))


def _there(cluster: str, member: Member) -> bool:
    with contextlib.suppress(CommandFailed):
        return bridge(cluster) in _links(member)
    return False
