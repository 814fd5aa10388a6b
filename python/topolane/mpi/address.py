"""Addresses to listen on: a Unix socket or a TCP port."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import stat
from dataclasses import dataclass

from topolane._engine import InputError


@dataclass(frozen=True)
class Address:
    """An address of the form `unix:/path` or `host:port`."""

    path: str | None = None
    host: str = ""
    port: int = 0

    @staticmethod
    def parse(text: str) -> Address:
        """Reads an address. Raises InputError for any other text."""
        if text.startswith(("unix:/", "/")):
            return Address(path=text.removeprefix("unix:"))
        host, colon, port = text.rpartition(":")
        if colon and host and re.fullmatch("[0-9]{1,5}", port) and int(port) < 1 << 16:
            return Address(host=host.strip("[]"), port=int(port))
        raise InputError(f"{text!r} is no address: unix:/path or host:port is wanted")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.path is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def silent(self) -> str | None:
        """Why no process answers at the address within a second; None if one does."""
        try:
            if self.path is None:
                socket.create_connection((self.host, self.port), timeout=1.0).close()
            else:
                with socket.socket(socket.AF_UNIX) as asked:
                    asked.settimeout(1.0)
                    asked.connect(self.path)
        except OSError as error:
            return error.strerror or str(error)
        return None

    @property
    def is_unspecified(self) -> bool:
        """Whether the address stands for all addresses of this machine, so that no client can connect to it."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def bound_to(address: Address) -> socket.socket:
    """A socket bound to an address. Only its owner may open the file of a Unix socket.

    Raises InputError if the address cannot be used.
    """
    try:
        if address.path is not None:
            return bound_socket(address.path)
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise InputError(f"{address}: nothing can listen there: {error.strerror}") from error


def bound_socket(path: str) -> socket.socket:
    """A Unix socket that only its owner may open from the start. It replaces the socket of an ended process.

    Raises InputError if a process listens there, and OSError if the socket cannot be created.
    """
    remove_dead_socket(path)
    made = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        made.bind(path)
    except OSError:
        made.close()
        raise
    finally:
        os.umask(before)
    return made


def remove_dead_socket(path: str) -> None:
    """Removes the socket of a process that has ended. Raises InputError if a process still listens."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise InputError(f"{path}: is there, and is no socket")
        with socket.socket(socket.AF_UNIX) as other:
            try:
                other.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            else:
                raise InputError(f"{path}: another process already listens there")
