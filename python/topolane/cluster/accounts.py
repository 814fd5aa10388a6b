"""Says which client a request comes from: a user of this machine, or a network address."""

from __future__ import annotations

import ipaddress
import socket
import struct
from typing import Any, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

SOCKET = "socket"
"""The account of a Unix socket. Only its owner can open it, so the client is a proxy, and stands for any number of viewers."""
IPV6_PREFIX = 64
"""Bits of an IPv6 address that one client cannot choose: it may use every address behind them."""

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI2s2s16s16sIII")
_ANSWER = struct.Struct("=BBBB2s2s16s16sIIIIIIII")
_ANY = 0xFFFFFFFF


End: TypeAlias = Any
"""One end of a connection, as sockets name it: a tuple that begins with address and port; something else for a Unix socket."""


def client_of(client: End, server: End) -> str:
    """The client of a connection, as one account. server: the end that is ours.

    A client on this machine is its user, whichever local address it uses; `local` if the system does not say which user.
    Any other client is its address, and with IPv6 the network of 64 bits.
    """
    address, own = _address(client), _address(server)
    if address is None:
        return SOCKET
    if address.is_loopback or address == own:
        user = None if own is None else _user_of((address, client[1]), (own, server[1]))
        return "local" if user is None else f"user {user}"
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))


def _address(end: End) -> Address | None:
    """The address of one end of a connection; None for a Unix socket."""
    if not isinstance(end, tuple):
        return None
    try:
        found = ipaddress.ip_address(str(end[0]).partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _user_of(client: tuple[Address, int], server: tuple[Address, int]) -> int | None:
    """The number of the user that holds the client's end of a TCP connection on this machine; None if that is not known."""
    if client[0].version != server[0].version or not hasattr(socket, "AF_NETLINK"):
        return None
    family = socket.AF_INET if client[0].version == 4 else socket.AF_INET6
    ports = (port.to_bytes(2, "big") for port in (client[1], server[1]))
    ends = (end[0].packed.ljust(16, b"\0") for end in (client, server))
    asked = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY, *ports, *ends, 0, _ANY, _ANY)
    header = _HEADER.pack(_HEADER.size + len(asked), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    try:
        with socket.socket(
            socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, _NETLINK_SOCK_DIAG
        ) as kernel:
            kernel.send(header + asked)
            answer = kernel.recv(4096)
    except OSError:
        return None
    if len(answer) < _HEADER.size + _ANSWER.size or _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    *_, user, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    # A socket that its process has closed has no inode, and may be shown as root's.
    return int(user) if inode else None
